//! Whole runs.

use crate::page::{
    Server, Socket, ask, begin, carry_out, hello, hello_by_requests, receive, short,
};
use host::clock::now;
use serde_json::{Value, json};
use std::time::Duration;
use units::ByteCount;
use web::{WebEvent, WebRequest};

#[test]
fn a_run_from_hello_to_result() {
    stall_retry::retry(|| check_whole_run(&hello(), "websocket"));
}

#[test]
fn a_run_by_requests() {
    stall_retry::retry(|| check_whole_run(&hello_by_requests(), "http"));
}

#[test]
fn requests_of_the_other_direction_end_the_run() {
    let server = Server::start(short());
    let mut control = Socket::open(server.address, "/api/run");
    control.say(&hello_by_requests());
    let run = control.text().unwrap()["run"].as_str().unwrap().to_owned();
    let page = json!({"type": "page", "step": 0, "busy": 0.1, "longest_stall_ms": 1});
    assert_eq!(control.text().unwrap()["kind"], "idle");
    control.say(&page);
    let step = loop {
        let message = control.text().unwrap();
        if message["kind"] == "download" && message["type"] == "step" {
            break message["step"].clone();
        }
    };
    let request = |method: &str, run: &str| {
        let target = format!("/api/run/{run}/flow/{step}/0");
        let headers = format!("Host: {}\r\nContent-Length: 0\r\n", server.address);
        ask(server.address, &format!("{method} {target} HTTP/1.1\r\n{headers}\r\n")).0
    };
    assert_eq!(request("GET", &"0".repeat(32)), 404);
    assert_eq!(request("POST", &run), 409);
    let last = control.text().unwrap();
    assert_eq!(last["type"], "problem", "{last}");
    assert!(last["message"].as_str().unwrap().contains("direction"), "{last}");
}

#[test]
fn a_step_begins_with_the_flows_that_could_be_opened() {
    let server = Server::start(short());
    let (mut control, welcome) = begin(server.address);
    let run = welcome["run"].as_str().unwrap();
    let open = |step: &Value, number: u64| {
        Socket::try_open(server.address, &format!("/api/run/{run}/flow/{step}/{number}"), "")
    };
    let report = |step: &Value| json!({"type": "page", "step": step, "busy": 0.1});
    let (mut result, mut reported) = (None, Value::Null);
    while result.is_none() {
        let message = control.text().unwrap();
        let step = message["step"].clone();
        match (message["type"].as_str().unwrap(), message["flows"].as_u64()) {
            ("step", Some(0)) => control.say(&report(&step)),
            ("step", Some(flows)) => {
                // Of several the second and those after the third never come.
                for number in [0, 2].into_iter().filter(|number| *number < flows) {
                    let flow = open(&step, number).unwrap();
                    let until = now() + Duration::from_secs(20);
                    std::thread::spawn(move || receive(flow, until));
                }
            }
            ("sample", _) if reported != step => {
                assert_eq!(open(&step, 1).err(), Some(409), "it has begun");
                control.say(&report(&step));
                reported = step;
            }
            ("step-result", Some(2)) => result = Some(message),
            _ => {}
        }
    }
    let result = result.unwrap();
    assert!(result["rate"].as_f64().unwrap() > 1e6, "{result}");
    assert_eq!(result["valid"], true, "{result}");
}

/// The largest receive buffer of a connection, in bytes: the third value of tcp_rmem.
fn receive_buffer() -> f64 {
    let values = std::fs::read_to_string("/proc/sys/net/ipv4/tcp_rmem").unwrap();
    values.split_whitespace().nth(2).unwrap().parse().unwrap()
}

fn check_whole_run(hello: &Value, transport: &str) {
    let server = Server::start(short());
    let told = carry_out(server.address, hello);
    for step in told.of("step") {
        assert_eq!(step["transport"], transport, "{step}");
    }
    let results = told.of("step-result");
    let result = told.messages.last().unwrap();
    assert_eq!(result["type"], "result", "{result}");
    let kinds: Vec<(&str, u64)> = results
        .iter()
        .filter(|step| step["congestion"].is_null() || step["kind"] != "download")
        .map(|step| (step["kind"].as_str().unwrap(), step["flows"].as_u64().unwrap()))
        .collect();
    assert_eq!((kinds.first(), kinds.last()), (Some(&("idle", 0)), Some(&("upload", 6))));
    for step in results.iter().filter(|step| step["kind"] != "idle") {
        assert!(step["rate"].as_f64().unwrap() > 1e6, "{step}");
        assert!(step["sentence"].as_str().unwrap().len() > 10, "{step}");
        assert!(step["finding"].is_object() && step["rtt_loaded"].is_number(), "{step}");
        assert_eq!(step["valid"], true, "{step}");
    }
    // What the server counts is what arrived in the time of a step, apart from headers: what a slow
    // client still finds in its receive buffers afterwards is not.
    let counted = |kind: &str| -> f64 {
        let of_kind = results.iter().filter(|step| step["kind"] == kind);
        of_kind.map(|step| step["bytes"].as_f64().unwrap()).sum()
    };
    let (down, up) = (told.downloaded as f64, told.uploaded as f64);
    let downloads = results.iter().filter(|step| step["kind"] == "download");
    let flows: u64 = downloads.map(|step| step["flows"].as_u64().unwrap()).sum();
    let waiting = flows as f64 * receive_buffer();
    let arrived = counted("download");
    assert!(arrived > down * 0.9 - waiting && arrived < down * 1.1, "{arrived} of {down}");
    // The client counts whole frames, the server what arrived.
    assert!(counted("upload") > up * 0.5 && counted("upload") <= up * 1.01 + 2e6, "{up}");
    assert!(told.of("sample").len() > 10);
    for (field, is_there) in [
        ("download", Value::is_object as fn(&Value) -> bool),
        ("upload", Value::is_object),
        ("rtt_idle", Value::is_number),
        ("rtt_download", Value::is_number),
        ("bufferbloat", Value::is_object),
        ("verdicts", Value::is_object),
        ("finding", Value::is_object),
        ("differs", Value::is_array),
        ("remedies", Value::is_array),
    ] {
        assert!(is_there(&result[field]), "{field}: {result}");
    }
    assert!(result["download"]["one_flow"].as_f64().unwrap() > 1e6);
    assert_eq!(result["upload"]["flows"], 6);
    let event = server.wait(|event| matches!(event, WebEvent::RunFinished { .. }));
    let WebEvent::RunFinished { bytes, download_bps, .. } = event else { unreachable!() };
    assert!(bytes as f64 >= counted("download") && download_bps.unwrap() > 1e6);
}

#[test]
fn a_run_keeps_to_its_bytes() {
    let most = 20_000_000;
    let request = WebRequest { max_bytes_per_run: ByteCount::from_bytes(most), ..short() };
    let server = Server::start(request);
    let told = carry_out(server.address, &hello());
    assert_eq!(told.messages[0]["max_bytes"], most);
    assert_eq!(told.messages.last().unwrap()["type"], "result");
    // Frames that were on their way come on top: one of each flow.
    assert!(told.downloaded < most + (8 << 20), "{}", told.downloaded);
    let reasons = told.messages.last().unwrap()["invalid_because"].to_string();
    assert!(reasons.contains("bytes"), "{reasons}");
    // The page may ask for less.
    let less = json!({"type": "hello", "version": 1, "max_bytes": 2_000_000});
    let told = carry_out(server.address, &less);
    assert_eq!(told.messages[0]["max_bytes"], 2_000_000);
    assert!(told.downloaded < 10_000_000, "{}", told.downloaded);
}

#[test]
fn a_control_connection_that_ends_frees_everything() {
    let mut request = WebRequest { step_seconds: 10.0, ..short() };
    request.limits.runs_per_address = 1;
    let server = Server::start(request);
    for _ in 0..3 {
        let (mut control, welcome) = begin(server.address);
        let run = welcome["run"].as_str().unwrap().to_owned();
        while control.text().unwrap()["kind"] != "idle" {}
        drop(control);
        server.wait(|event| matches!(event, WebEvent::RunFailed { .. }));
        let target = format!("/api/run/{run}/probe");
        let deadline = now() + Duration::from_secs(5);
        while crate::page::Socket::try_open(server.address, &target, "").err() != Some(404) {
            assert!(now() < deadline);
        }
    }
}

#[test]
fn a_draining_server_ends_with_its_last_run() {
    let server = Server::start(short());
    let address = server.address;
    let run = std::thread::spawn(move || carry_out(address, &hello()));
    server.wait(|event| matches!(event, WebEvent::RunStarted { .. }));
    server.drain.raise();
    server.wait(|event| matches!(event, WebEvent::Draining { runs: 1 }));
    assert!(!server.has_stopped());
    let refused = crate::page::Socket::try_open(address, "/api/run", "").err();
    assert_eq!(refused, Some(503));
    assert_eq!(run.join().unwrap().messages.last().unwrap()["type"], "result");
    server.wait(|event| matches!(event, WebEvent::RunFinished { .. }));
    server.wait(|event| matches!(event, WebEvent::Stopped));
}

/// The place of a run is free before its page has heard of its end, and its end is told after.
#[test]
fn a_draining_server_tells_the_end_of_its_last_run() {
    let server = Server::start(short());
    let (mut control, _) = begin(server.address);
    server.drain.raise();
    server.wait(|event| matches!(event, WebEvent::Draining { runs: 1 }));
    control.say(&hello());
    while control.text().unwrap()["type"] != "problem" {}
    // A page that does not close its connection, for whose Close the server waits.
    let last = server.wait(|event| matches!(event, WebEvent::RunFailed { .. } | WebEvent::Stopped));
    assert!(matches!(last, WebEvent::RunFailed { .. }), "{last:?}");
    server.wait(|event| matches!(event, WebEvent::Stopped));
}
