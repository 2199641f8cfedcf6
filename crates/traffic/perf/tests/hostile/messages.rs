//! Messages that would take far more memory than their length.

use crate::{
    scripted_client::{STEPS, ScriptedClient},
    test_server::{TestServer, short},
};
use iperf3_proto::{State, framing};
use perf::client::EndAfter;
use perf::{ServerEvent, StopFlag, client};
use serde_json::json;
use std::{
    io::{Read, Write},
    net::{SocketAddr, TcpListener},
    thread,
    time::Duration,
};
use units::ByteCount;

#[test]
fn oversized_results_are_refused_by_their_length() {
    let server = TestServer::new();
    let asked = json!({"tcp": true, "time": 1, "parallel": 1});
    for length in [framing::CLIENT_RESULTS_LIMIT + 1, 1 << 20] {
        let mut client = ScriptedClient::after(&server, &asked, STEPS);
        client.send(&length.to_be_bytes());
        assert_eq!(client.receive(), State::ServerError.byte());
    }
    // It is parsed, without a tree for the nested values in place of a number.
    let bomb = format!(
        "{{\"cpu_util_total\":[{}0],\"streams\":[{{\"id\":1,\"bytes\":7}}]}}",
        "{\"\":0},".repeat(9_000)
    );
    server.events.lock().unwrap().clear();
    ScriptedClient::after(&server, &asked, STEPS).exchange(bomb.as_bytes());
    let finished = server.wait_for(|event| matches!(event, ServerEvent::Finished { .. }));
    let ServerEvent::Finished { summary, .. } = finished else { unreachable!() };
    assert_eq!(summary.theirs.streams[0].bytes, 7);
}

#[test]
fn messages_of_all_sessions_share_one_budget() {
    let one = u64::from(framing::CLIENT_RESULTS_LIMIT) * framing::MEMORY_PER_BYTE;
    let server =
        TestServer::with(|config| config.limits.message_memory = ByteCount::from_bytes(2 * one));
    let asked = json!({"tcp": true, "time": 1, "parallel": 1});
    // Two clients announce results of the maximum length and send nothing more.
    let idle: Vec<ScriptedClient> = (0..2)
        .map(|_| {
            let mut client = ScriptedClient::after(&server, &asked, STEPS);
            client.send(&framing::CLIENT_RESULTS_LIMIT.to_be_bytes());
            client.send(b"{");
            client
        })
        .collect();
    // The server may still be reading the lengths of those two: a client that gets through
    // before is followed by another.
    let mut waiting = (0..50)
        .find_map(|_| {
            let mut client = ScriptedClient::after(&server, &asked, STEPS);
            client.send(&framing::encode(&json!({"streams": []})).unwrap());
            client.control.set_read_timeout(Some(Duration::from_millis(300))).unwrap();
            client.control.read(&mut [0]).is_err().then_some(client)
        })
        .unwrap();
    waiting.control.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    drop(idle);
    // The server's own results begin with their length.
    assert_eq!(waiting.receive(), 0);
}

/// A server that runs one test of one stream and reports `results`.
fn server(results: String) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    thread::spawn(move || {
        let (mut control, _) = listener.accept().unwrap();
        let message = |control: &mut std::net::TcpStream| {
            let mut length = [0; 4];
            control.read_exact(&mut length).unwrap();
            let length = usize::try_from(u32::from_be_bytes(length)).unwrap();
            control.read_exact(&mut vec![0; length]).unwrap();
        };
        control.read_exact(&mut [0; 37]).unwrap();
        control.write_all(&[State::ParamExchange.byte()]).unwrap();
        message(&mut control);
        control.write_all(&[State::CreateStreams.byte()]).unwrap();
        let (mut stream, _) = listener.accept().unwrap();
        stream.read_exact(&mut [0; 37]).unwrap();
        control.write_all(&[State::TestStart.byte(), State::TestRunning.byte()]).unwrap();
        thread::spawn(move || while matches!(stream.read(&mut [0; 65536]), Ok(1..)) {});
        control.read_exact(&mut [0]).unwrap();
        control.write_all(&[State::ExchangeResults.byte()]).unwrap();
        message(&mut control);
        control.write_all(&u32::try_from(results.len()).unwrap().to_be_bytes()).unwrap();
        control.write_all(results.as_bytes()).unwrap();
        control.write_all(&[State::DisplayResults.byte()]).unwrap();
        let _ = control.read(&mut [0]);
    });
    address
}

fn results(member: &str) -> String {
    format!(
        "{{\"cpu_util_total\":5,{member},\"streams\":[{{\"id\":1,\"bytes\":12345,\"end_time\":0.2}}]}}"
    )
}

#[test]
fn any_server_output_is_accepted() {
    let lines = "the server's output\\n".repeat(400_000);
    let rows = "{\"\":0},".repeat(1_200_000);
    for (member, truncated) in [
        (format!("\"server_output_text\":\"{lines}\""), true),
        (format!("\"server_output_json\":{{\"intervals\":[{rows}0]}}"), true),
        (format!("\"server_output_json\":{}1{}", "[".repeat(5_000), "]".repeat(5_000)), false),
        (format!("\"longhaul\":{{\"version\":[{}0]}}", "{\"\":0},".repeat(400_000)), false),
    ] {
        let mut config = short(server(results(&member)));
        config.end = EndAfter::Seconds(0.2);
        config.get_server_output = true;
        let report = client::run(&config, &mut |_| (), &StopFlag::new()).unwrap();
        assert_eq!(report.measurement.received().bytes(), 12_345, "the figures survive");
        let notes = report.measurement.notes.join("\n");
        assert_eq!(notes.contains("the server's output is truncated"), truncated, "{notes}");
        let theirs = report.theirs.unwrap();
        assert!(theirs.server_output_json.is_none());
        if let Some(text) = theirs.server_output_text {
            assert!(text.len() < 4 << 20 && text.ends_with("truncated by longhaul]"));
        }
    }
}

#[test]
fn decompression_bombs_from_a_server_are_skipped() {
    // Columns, streams and notes as in a longhaul server's results.
    let zeros = "0,".repeat(100_000);
    let column = |name: &str| format!("\"{name}\":[{zeros}0]");
    let names = ["t_s", "written_bytes", "acked_bytes", "delivered_bytes", "x", "mss_bytes"];
    let columns: Vec<String> = names.map(column).to_vec();
    let streams = "{\"id\":1},".repeat(50_000);
    for extra in [
        format!(
            "{{\"version\":\"1\",\"streams\":[{{\"id\":1,\"sender\":{{{}}}}}]}}",
            columns.join(",")
        ),
        format!("{{\"version\":\"1\",\"streams\":[{streams}{{}}]}}"),
        format!(
            "{{\"version\":\"1\",\"notes\":[{}\"{}\"]}}",
            "[],".repeat(100_000),
            "x".repeat(1 << 20)
        ),
        format!("{{\"version\":\"{}\"}}", "9".repeat(1 << 20)),
    ] {
        let mut config = short(server(results(&format!("\"longhaul\":{extra}"))));
        config.end = EndAfter::Seconds(0.2);
        let report = client::run(&config, &mut |_| (), &StopFlag::new()).unwrap();
        assert_eq!(report.measurement.received().bytes(), 12_345);
        assert!(
            report.measurement.peer.len() < 50 && report.measurement.peer.starts_with("longhaul")
        );
        assert!(report.measurement.notes.iter().all(|note| note.len() < 400));
        assert!(report.measurement.streams[0].sender.len() < 10_000);
    }
}
