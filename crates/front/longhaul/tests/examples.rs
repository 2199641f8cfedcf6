//! The programs in `examples/`, which a user would write.

#![expect(clippy::unwrap_used, reason = "in a test an unwrap is an assertion")]

#[expect(dead_code, reason = "its main")]
#[path = "../examples/hourly.rs"]
mod hourly;

#[expect(dead_code, reason = "its main")]
#[path = "../examples/explain_capture.rs"]
mod explain_capture;

#[expect(dead_code, reason = "its main")]
#[path = "../examples/http.rs"]
mod http;

use longhaul::ping::{PingMethod, PingRequest};
use longhaul::{Request, StopFlag};
use perf::server::{Server, ServerConfig};
use serde_json::Value;
use std::io::{Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::time::Duration;

#[test]
fn a_path_is_measured_in_rounds_and_stored() {
    let server = TcpListener::bind("127.0.0.1:0").unwrap();
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("results.jsonl");
    let request = PingRequest {
        method: PingMethod::Tcp(server.local_addr().unwrap().port()),
        count: 2,
        interval: Duration::from_millis(10),
        ..PingRequest::new("127.0.0.1")
    };
    let every = Duration::from_millis(20);
    hourly::measure(&Request::Ping(request), &file, every, 2, &StopFlag::new()).unwrap();
    let text = std::fs::read_to_string(&file).unwrap();
    let rounds: Vec<serde_json::Value> =
        text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(rounds.len(), 2);
    for round in rounds {
        assert_eq!((&round["received"], &round["lost"]), (&2.into(), &0.into()), "{round}");
    }
    let nowhere = Request::Ping(PingRequest::new(""));
    assert!(hourly::measure(&nowhere, &file, every, 1, &StopFlag::new()).is_err());
}

#[test]
fn a_capture_is_explained() {
    let file = concat!(env!("CARGO_MANIFEST_DIR"), "/../cli/tests/corpus/loss-middle.pcap.gz");
    let explained = explain_capture::explained(file).unwrap();
    assert_eq!(explained.len(), 1);
    assert!(explained[0].0 == "stream 0" && !explained[0].1.is_empty(), "{explained:?}");
    assert!(explain_capture::explained("/nowhere").is_err());
}

/// The status and the lines of the answer to a request over HTTP.
fn post(to: SocketAddr, path: &str, kind: &str, body: &str) -> (u16, Vec<Value>) {
    post_to(&to.to_string(), to, path, kind, body)
}

fn post_to(host: &str, to: SocketAddr, path: &str, kind: &str, body: &str) -> (u16, Vec<Value>) {
    let mut stream = TcpStream::connect(to).unwrap();
    write!(
        stream,
        "POST {path} HTTP/1.1\r\nHost: {host}\r\nContent-Type: {kind}\r\nContent-Length: {}\r\n\
         Connection: close\r\n\r\n{body}",
        body.len()
    )
    .unwrap();
    let mut text = String::new();
    stream.read_to_string(&mut text).unwrap();
    let status = text.split(' ').nth(1).unwrap().parse().unwrap();
    let (_, answer) = text.split_once("\r\n\r\n").unwrap();
    // The lengths of chunks are lines as well, which are no objects.
    let lines = answer.lines().filter(|line| line.starts_with('{'));
    (status, lines.map(|line| serde_json::from_str(line).unwrap()).collect())
}

#[test]
fn events_and_the_document_are_streamed_over_http() {
    let bind = Some(Ipv4Addr::LOCALHOST.into());
    let server = Server::bind(&ServerConfig { bind, port: 0, ..ServerConfig::default() }).unwrap();
    let (port, ended) = (server.local_addr().port(), StopFlag::new());
    let stop = ended.clone();
    let serving = std::thread::spawn(move || server.serve(&stop, &|_: perf::ServerEvent| ()));
    let (tell, told) = std::sync::mpsc::channel();
    std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_io().build().unwrap();
        runtime.block_on(async {
            let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
            tell.send(listener.local_addr().unwrap()).unwrap();
            axum::serve(listener, http::router()).await.unwrap();
        });
    });
    let to = told.recv().unwrap();
    let json = "application/json";
    let body = format!(
        r#"{{"transfer":{{"host":"127.0.0.1","ports":{{"start":{port},"end":{port}}},"end":{{"seconds":0.3}}}}}}"#
    );
    let (status, lines) = post(to, "/test", json, &body);
    assert_eq!(status, 200, "{lines:?}");
    assert!(lines.iter().any(|line| line["event"]["test"]["connected"].is_object()), "{lines:?}");
    let last = lines.last().unwrap();
    assert_eq!(last["document"]["schema"], "longhaul.test/2", "{last}");
    ended.raise();
    serving.join().unwrap().unwrap();
    // What is wrong is said before anything is opened.
    let (status, lines) = post(to, "/test", json, r#"{"transfer":{"host":""}}"#);
    assert_eq!((status, &lines[0]["remedy"]["field"]), (422, &"host".into()), "{lines:?}");
    assert_eq!(post(to, "/test", json, "{").0, 400);
    assert_eq!(post(to, "/lab", "text/plain", "{}").0, 415);
    assert_eq!(post_to("rebound.example", to, "/lab", json, "{}").0, 421);
}
