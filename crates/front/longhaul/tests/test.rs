//! A short test against a server on loopback: its events, its document, and what is refused.

#![expect(clippy::unwrap_used, reason = "in a test an unwrap is an assertion")]

use longhaul::test::{EndAfter, TestDocument, TestEvent, TestMode, TestRequest};
use longhaul::{Document, Event, Fault, Field, Request, StopFlag};
use perf::ServerEvent;
use perf::server::{Server, ServerConfig};
use serde_json::Value;
use std::net::IpAddr;
use std::thread;
use std::time::Duration;

/// Carries out requests while a server runs, which gets its own port.
fn with_server<T>(work: impl FnOnce(u16) -> T) -> T {
    let bind = Some(IpAddr::from([127, 0, 0, 1]));
    let server = Server::bind(&ServerConfig { bind, port: 0, ..ServerConfig::default() }).unwrap();
    let (port, stop) = (server.local_addr().port(), StopFlag::new());
    thread::scope(|scope| {
        let serving = scope.spawn(|| server.serve(&stop, &|_: ServerEvent| ()));
        let done = work(port);
        stop.raise();
        serving.join().unwrap().unwrap();
        done
    })
}

fn short(port: u16) -> TestRequest {
    let mut request = TestRequest::new("127.0.0.1");
    request.transfer.ports = port..=port;
    request.transfer.end = EndAfter::Seconds(0.4);
    request.transfer.report_every = Duration::from_millis(100);
    request.transfer.watch_load = Duration::ZERO;
    request
}

/// The events of a request, and its document.
fn run(request: &TestRequest) -> (Vec<TestEvent>, TestDocument) {
    let mut events = Vec::new();
    let on_event = &mut |event| match event {
        Event::Test(event) => events.push(event),
        other => panic!("{other:?}"),
    };
    let request = Request::Test(Box::new(request.clone()));
    let text = serde_json::to_string(&request).unwrap();
    let read = serde_json::from_str(&text).unwrap();
    match longhaul::run(read, on_event, &StopFlag::new()).unwrap() {
        Document::Test(document) => (events, document),
        other => panic!("{other:?}"),
    }
}

#[test]
fn one_test_has_events_and_a_document() {
    let (events, document) = with_server(|port| run(&short(port)));
    let [TestEvent::Connected { peer, streams, .. }, rest @ ..] = events.as_slice() else {
        panic!("{events:?}")
    };
    assert!(peer.ip().is_loopback() && streams == &[1], "{events:?}");
    let intervals = rest.iter().filter(|event| matches!(event, TestEvent::Interval(_))).count();
    assert!(intervals >= 2 && intervals == rest.len(), "{events:?}");
    let TestDocument::Once(result) = &document else { panic!("{document:?}") };
    assert!(result.measurement.streams[0].sender.len() > 2, "no samples");
    let json: Value = serde_json::to_value(&document).unwrap();
    assert_eq!(json["schema"], "longhaul.test/2");
    assert_eq!(json["received_bytes"].as_u64(), Some(result.measurement.received().bytes()));
    assert!(json["received_bytes"].as_u64() > Some(0) && json["sentence"].is_string(), "{json}");
    assert_eq!(json["streams"].as_array().map(Vec::len), Some(1));
    assert!(json.get("measurement").is_none() && json.get("decision").is_none(), "{json}");
    // An event can be sent on as well.
    let sent: Value = serde_json::to_value(&events[0]).unwrap();
    assert_eq!(sent["connected"]["protocol"], "tcp");
}

#[test]
fn repeated_tests_are_one_document() {
    let (events, document) = with_server(|port| {
        let mut request = TestRequest { mode: TestMode::Repeat { count: 2 }, ..short(port) };
        request.transfer.end = EndAfter::Seconds(0.2);
        run(&request)
    });
    let numbers: Vec<u32> = events
        .iter()
        .filter_map(|event| match event {
            TestEvent::Repetition { number, count: 2 } => Some(*number),
            _ => None,
        })
        .collect();
    assert_eq!(numbers, [1, 2]);
    let TestDocument::Repeat(report) = document else { panic!("{document:?}") };
    assert_eq!((report.asked, report.runs.len()), (2, 2));
}

#[test]
fn a_wrong_request_is_refused_before_anything_is_opened() {
    // Nothing listens there: whoever connects gets another error.
    let mut request = short(9);
    request.transfer.streams = 0;
    let on_event = &mut |event: Event| panic!("{event:?}");
    let refused = longhaul::run(Request::Test(Box::new(request)), on_event, &StopFlag::new());
    let problem = refused.unwrap_err();
    assert_eq!(problem.fault, Fault::Request);
    assert_eq!(problem.remedy.map(|remedy| remedy.field), Some(Field::Streams));
    let closed = longhaul::run(Request::Test(Box::new(short(9))), on_event, &StopFlag::new());
    assert_eq!(closed.unwrap_err().fault, Fault::Peer);
}
