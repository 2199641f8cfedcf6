//! Servers of other speed tests that break the protocol: clients end in time with a reason.

#![expect(clippy::unwrap_used, reason = "in a test an unwrap is an assertion")]

use longhaul::ndt7::{self, Ndt7Document, Ndt7Request};
use longhaul::responsiveness::{self, ResponsivenessRequest};
use longhaul::{Fault, Problem, StopFlag};
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::thread;
use std::time::{Duration, Instant};
use websocket::frame::{self, Opcode};
use websocket::handshake::accept;

/// A server of one connection.
fn serve(work: impl FnOnce(TcpStream) + Send + 'static) -> SocketAddr {
    let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
    let address = listener.local_addr().unwrap();
    thread::spawn(move || {
        let (stream, _) = listener.accept().unwrap();
        stream.set_write_timeout(Some(Duration::from_secs(20))).unwrap();
        work(stream);
    });
    address
}

/// Reads a request's head.
fn head(stream: &mut TcpStream) -> String {
    let mut head = Vec::new();
    let mut byte = [0];
    while !head.ends_with(b"\r\n\r\n") && stream.read(&mut byte).unwrap_or(0) == 1 {
        head.push(byte[0]);
    }
    String::from_utf8(head).unwrap()
}

/// Accepts an upgrade.
fn upgrade(stream: &mut TcpStream) {
    let head = head(stream);
    let key = head.lines().find_map(|line| line.strip_prefix("Sec-WebSocket-Key: ")).unwrap();
    let answer = format!(
        "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\
         Sec-WebSocket-Accept: {}\r\nSec-WebSocket-Protocol: net.measurementlab.ndt.v7\r\n\r\n",
        accept(key)
    );
    stream.write_all(answer.as_bytes()).unwrap();
}

#[expect(clippy::disallowed_methods, reason = "the time of a test")]
fn run(
    path: &str,
    most_s: u64,
    work: impl FnOnce(TcpStream) + Send + 'static,
) -> Result<Ndt7Document, Problem> {
    let address = serve(work);
    let began = Instant::now();
    let request = Ndt7Request::new(format!("ws://{address}/ndt/v7/{path}"));
    let result = ndt7::run(&request, &mut |_| (), &StopFlag::new());
    assert!(began.elapsed() < Duration::from_secs(most_s), "{:?}", began.elapsed());
    result
}

fn refused(result: Result<Ndt7Document, Problem>, why: &str) {
    let problem = result.unwrap_err();
    assert_eq!(problem.fault, Fault::Peer);
    assert!(problem.message.contains(why), "{}", problem.message);
}

#[test]
fn answers_that_accept_no_upgrade_are_refused() {
    for (answer, why) in [
        ("HTTP/1.1 429 Too Many Requests\r\nRetry-After: 9\r\n\r\n", "429 Too Many Requests"),
        ("HTTP/1.1 101 x\r\nUpgrade: websocket\r\nSec-WebSocket-Accept: x\r\n\r\n", "key"),
        ("SSH-2.0-OpenSSH\r\n\r\n", "SSH-2.0"),
        ("", "without an answer"),
    ] {
        let result = run("download", 3, move |mut stream| {
            head(&mut stream);
            stream.write_all(answer.as_bytes()).unwrap();
        });
        refused(result, why);
    }
}

#[test]
fn an_endless_head_ends() {
    let result = run("download", 3, |mut stream| {
        head(&mut stream);
        while stream.write_all(b"X: y\r\n").is_ok() {}
    });
    refused(result, "too long");
}

#[test]
fn silence_ends_before_and_after_the_upgrade() {
    let silent = |mut stream: TcpStream| while stream.read(&mut [0; 4096]).is_ok_and(|n| n > 0) {};
    refused(run("download", 9, silent), "does not answer");
    let result = run("upload", 9, move |mut stream| {
        upgrade(&mut stream);
        silent(stream);
    });
    let document = result.unwrap();
    let measurement = &document.tests[0].transfer.measurement;
    assert!(
        measurement.notes.iter().any(|note| note.contains("sends nothing")),
        "{:?}",
        measurement.notes
    );
}

#[test]
fn frames_against_the_protocol_end_a_test() {
    let huge = frame::header(Opcode::Text, 1 << 40, None).to_vec();
    let masked = frame::message(Opcode::Text, b"{}", Some([1; 4]));
    let payload = frame::message(Opcode::Binary, &[0; 1000], None);
    for (path, sent, why) in [
        ("download", huge, "text message has more bytes"),
        ("download", masked, "masked"),
        ("upload", payload, "payload during an upload"),
        ("download", vec![0xff; 100], "reserved"),
    ] {
        let result = run(path, 3, move |mut stream| {
            upgrade(&mut stream);
            stream.write_all(&sent).unwrap();
            // Until the client has left.
            while stream.read(&mut [0; 65_536]).is_ok_and(|n| n > 0) {}
        });
        match result {
            Err(problem) => assert!(problem.message.contains(why), "{problem}"),
            Ok(document) => {
                let notes = &document.tests[0].transfer.measurement.notes;
                assert!(notes.iter().any(|note| note.contains(why)), "{notes:?}");
            }
        }
    }
}

/// Pings, texts with absurd numbers and payload without end: the client stops by itself.
#[test]
fn a_flood_ends_in_time_and_is_bounded() {
    let result = run("download", 20, |mut stream| {
        upgrade(&mut stream);
        let text = br#"{"TCPInfo":{"ElapsedTime":-1e308,"BytesAcked":1e308,"RTT":1e99,"SndMSS":-5,"SndCwnd":1e300,"BusyTime":1e30},"AppInfo":{"NumBytes":[]}}"#;
        let mut block = frame::message(Opcode::Text, text, None);
        block.extend(frame::message(Opcode::Ping, &[7; 125], None));
        block.extend(frame::message(Opcode::Binary, &[0; 10_000], None));
        // Many times what is kept; as fast as it can, it would take the cores of other tests.
        while stream.write_all(&block).is_ok() {
            thread::sleep(Duration::from_micros(200));
        }
    });
    let document = result.unwrap();
    let measurement = &document.tests[0].transfer.measurement;
    assert!(measurement.streams[0].received_bytes > 20_000_000);
    assert!(measurement.streams[0].sender.len() <= 1001);
    assert!(serde_json::to_string(&document).unwrap().len() < 2 << 20);
}

#[test]
fn a_responsiveness_server_without_http2_or_a_configuration_is_refused() {
    for answer in ["HTTP/1.1 400 Bad Request\r\n\r\n", "", "\0\0\0\u{4}\0\0\0\0\0"] {
        let address = serve(move |mut stream| {
            let _ = stream.read(&mut [0; 4096]);
            stream.write_all(answer.as_bytes()).unwrap();
        });
        let request = ResponsivenessRequest::new(format!("http://{address}"));
        let problem = responsiveness::run(&request, &mut |_| (), &StopFlag::new()).unwrap_err();
        assert_eq!(problem.fault, Fault::Peer, "{problem}");
    }
}

#[test]
fn a_responsiveness_server_that_says_nothing_ends_the_test_in_time() {
    let address = serve(|mut stream| {
        // An empty SETTINGS frame, then nothing.
        stream.write_all(b"\0\0\0\x04\0\0\0\0\0").unwrap();
        while stream.read(&mut [0; 4096]).is_ok_and(|n| n > 0) {}
    });
    let request = ResponsivenessRequest::new(format!("http://{address}"));
    let began = host::clock::now();
    let problem = responsiveness::run(&request, &mut |_| (), &StopFlag::new()).unwrap_err();
    assert!(problem.message.contains("does not answer"), "{problem}");
    assert!(began.elapsed() < Duration::from_secs(9), "{:?}", began.elapsed());
}
