//! ndt7's two tests, as its clients run them.

use crate::http::{Answer, Client};
use crate::server::Server;
use serde_json::Value;
use std::collections::VecDeque;
use std::io::Read;
use std::time::{Duration, Instant};
use websocket::close::Close;
use websocket::frame::{self, Mask, Opcode};
use websocket::{ClientKey, CloseCode, Event, Limits, Reader, Role};

pub(crate) const SUBPROTOCOL: &str = "net.measurementlab.ndt.v7";
pub(crate) const MASK: Option<Mask> = Some([0x12, 0x34, 0x56, 0x78]);

#[expect(clippy::disallowed_methods, reason = "a test of what a client sees")]
pub(crate) fn now() -> Instant {
    Instant::now()
}

/// A client of a test that runs.
pub(crate) struct Peer {
    pub(crate) client: Client,
    reader: Reader,
    waiting: VecDeque<Event>,
    buffer: Vec<u8>,
}

impl Peer {
    /// Begins a test, which must be accepted.
    pub(crate) fn begin(server: &Server, target: &str) -> Self {
        let mut client = Client::new(server.address);
        let key = ClientKey::new(*b"sixteen bytes...");
        let request = key.request(target, "localhost", SUBPROTOCOL).unwrap_or_default();
        assert!(client.send(request.as_bytes()).is_ok());
        let head = client.head();
        let checked = key.check_response(head.as_bytes(), SUBPROTOCOL);
        assert_eq!(checked, Ok(Some(head.len())), "{head}");
        // The read limit of ndt7-client-go.
        let limits = Limits { text_bytes: 8 << 10, binary_frame_bytes: 1 << 20 };
        let reader = Reader::new(Role::Client, limits);
        Peer { client, reader, waiting: VecDeque::new(), buffer: vec![0; 1 << 20] }
    }

    /// What the server sent next; `None` once it has closed the connection.
    pub(crate) fn event(&mut self) -> Option<Event> {
        while self.waiting.is_empty() {
            let length = match self.client.0.read(&mut self.buffer) {
                Ok(0) => return None,
                Ok(length) => length,
                Err(error) => panic!("{error}"),
            };
            let mut bytes = &self.buffer[..length];
            loop {
                match self.reader.next(&mut bytes) {
                    Ok(Some(event)) => self.waiting.push_back(event),
                    Ok(None) => break,
                    Err(error) => panic!("{error}"),
                }
            }
        }
        self.waiting.pop_front()
    }

    pub(crate) fn send(&mut self, opcode: Opcode, payload: &[u8]) -> std::io::Result<()> {
        self.client.send(&frame::message(opcode, payload, MASK))
    }

    /// The server's Close, whatever comes before it.
    pub(crate) fn close(&mut self) -> Option<Close> {
        while let Some(event) = self.event() {
            if let Event::Close(close) = event {
                return Some(close);
            }
        }
        None
    }
}

/// Checks the messages of a test, at most ten a second, and returns the last.
fn last(messages: &[Value], test: &str, seconds: f64) -> Value {
    let rate = messages.len() as f64 / seconds;
    assert!((2.0..10.0).contains(&rate), "{rate} messages/s");
    let mut before = 0;
    for message in messages {
        let elapsed = message["TCPInfo"]["ElapsedTime"].as_u64();
        assert!(elapsed.is_some_and(|elapsed| elapsed > before), "{message}");
        before = elapsed.unwrap_or(0);
        assert_eq!(message["Test"], test);
        assert_eq!(message["Origin"], "server");
        assert!(
            message["ConnectionInfo"]["Client"]
                .as_str()
                .is_some_and(|c| c.starts_with("127.0.0.1:"))
        );
        assert_eq!(message["ConnectionInfo"]["UUID"], messages[0]["ConnectionInfo"]["UUID"]);
        for name in ["BW", "MinRTT", "PacingGain", "CwndGain", "ElapsedTime"] {
            assert!(message["BBRInfo"][name].is_u64(), "{name} in {message}");
        }
    }
    messages.last().cloned().unwrap_or_default()
}

fn json(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_else(|error| panic!("{error} in {text}"))
}

#[test]
fn a_download_of_ten_seconds() {
    let server = Server::start(|_| ());
    let mut peer =
        Peer::begin(&server, "/ndt/v7/download?client_name=ndt7-js&client_version=0.0.6");
    let began = now();
    let (mut bytes, mut sizes, mut size, mut messages) = (0u64, Vec::new(), 0, Vec::new());
    let close = loop {
        match peer.event().unwrap() {
            Event::Binary(more) => size += more,
            Event::BinaryEnd => {
                sizes.push(std::mem::take(&mut size));
                bytes += *sizes.last().unwrap() as u64;
                // 50 MB/s leave the processor to other tests.
                let ahead = bytes as f64 / 50e6 - began.elapsed().as_secs_f64();
                std::thread::sleep(Duration::from_secs_f64(ahead.max(0.0)));
            }
            Event::Text(text) => {
                let message = json(&text);
                assert_eq!(message["AppInfo"]["NumBytes"], bytes, "what is before it");
                messages.push(message);
            }
            Event::Close(close) => break close,
            _ => {}
        }
    };
    let seconds = began.elapsed().as_secs_f64();
    assert!((9.9..11.5).contains(&seconds), "{seconds} s");
    assert_eq!(close.code, Some(CloseCode::NORMAL));
    peer.send(Opcode::Close, &1000u16.to_be_bytes()).unwrap();
    assert_eq!(peer.event(), None, "a clean end");
    assert_eq!((sizes[0], *sizes.last().unwrap()), (8 << 10, 1 << 20));
    let mut sent = 0;
    for pair in sizes.windows(2) {
        sent += pair[0];
        let grown = if pair[0] < 1 << 20 && pair[0] <= sent / 16 { 2 * pair[0] } else { pair[0] };
        assert_eq!(pair[1], grown, "after {sent} bytes");
    }
    let last = last(&messages, "download", seconds);
    let (acked, retransmitted) = (&last["TCPInfo"]["BytesAcked"], &last["TCPInfo"]["BytesRetrans"]);
    assert!(retransmitted.is_u64() && last["TCPInfo"]["MinRTT"].is_u64());
    assert!(acked.as_u64().unwrap() as f64 > 0.8 * bytes as f64, "{acked} of {bytes}");
}

#[test]
fn an_upload_of_ten_seconds() {
    let server = Server::start(|_| ());
    let mut peer = Peer::begin(&server, "/ndt/v7/upload");
    let began = now();
    let mut writing = Client(peer.client.0.try_clone().unwrap());
    let sender = std::thread::spawn(move || {
        // ndt7-js goes up to 8 MiB, the protocol to 16 MiB.
        let messages = [8 << 10, 1 << 20, 16 << 20]
            .map(|size| frame::message(Opcode::Binary, &vec![7; size], MASK));
        let text =
            frame::message(Opcode::Text, br#"{"AppInfo":{"NumBytes":1,"ElapsedTime":2}}"#, MASK);
        let mut sent = 0u64;
        for number in 0.. {
            let message = &messages[if number == 100 { 2 } else { usize::from(number > 10) }];
            if writing.send(&text).and_then(|()| writing.send(message)).is_err() {
                break;
            }
            sent += message.len() as u64;
            let ahead = sent as f64 / 50e6 - began.elapsed().as_secs_f64();
            std::thread::sleep(Duration::from_secs_f64(ahead.max(0.0)));
            if began.elapsed() > Duration::from_millis(9900) {
                break;
            }
        }
        sent
    });
    let (mut messages, mut pings) = (Vec::new(), 0);
    let close = loop {
        match peer.event().unwrap() {
            Event::Text(text) => messages.push(json(&text)),
            Event::Ping(_) => pings += 1,
            Event::Close(close) => break close,
            other => panic!("a server sends no {other:?} during an upload"),
        }
    };
    let seconds = began.elapsed().as_secs_f64();
    assert!((9.9..11.5).contains(&seconds), "{seconds} s");
    assert_eq!(close.code, Some(CloseCode::NORMAL));
    let sent = sender.join().unwrap() as f64;
    peer.send(Opcode::Close, &1000u16.to_be_bytes()).unwrap();
    assert_eq!(peer.event(), None, "a clean end");
    assert_eq!(pings, messages.len());
    let last = last(&messages, "upload", seconds);
    let received = last["AppInfo"]["NumBytes"].as_f64().unwrap();
    assert!((0.97 * sent..=sent).contains(&received), "{received} of {sent}");
    let tcp = &last["TCPInfo"];
    let rate = 8e6 * tcp["BytesReceived"].as_f64().unwrap() / tcp["ElapsedTime"].as_f64().unwrap();
    assert!((rate / (8.0 * sent / seconds) - 1.0).abs() < 0.1, "what clients show: {rate} bit/s");
}

#[test]
fn an_early_exit_after_250_megabytes() {
    let server = Server::start(|_| ());
    let mut peer = Peer::begin(&server, "/ndt/v7/download?early_exit=250");
    let (began, mut bytes) = (now(), 0);
    let close = loop {
        match peer.event().unwrap() {
            Event::Binary(more) => bytes += more,
            Event::Close(close) => break close,
            _ => {}
        }
    };
    assert_eq!(close.code, Some(CloseCode::NORMAL));
    assert!(bytes >= 250_000_000, "{bytes}");
    assert!(began.elapsed() < Duration::from_secs(9), "{:?}", began.elapsed());
}

/// The status and reason of an upgrade that is refused.
pub(crate) fn refusal(server: &Server, target: &str, subprotocol: &str) -> Answer {
    let mut client = Client::new(server.address);
    let request = ClientKey::new([0; 16]).request(target, "localhost", subprotocol);
    assert!(client.send(request.unwrap_or_default().as_bytes()).is_ok());
    client.answer()
}

#[test]
fn what_is_not_ndt7_is_refused() {
    let server = Server::start(|_| ());
    let reason = format!("the subprotocol {SUBPROTOCOL} is required\n");
    for subprotocol in ["net.measurementlab.ndt", "longhaul.web.1", "NET.measurementlab.ndt.v7"] {
        let refused = refusal(&server, "/ndt/v7/upload", subprotocol);
        assert_eq!((refused.status, refused.text()), (400, reason.as_str()));
    }
    for query in ["early_exit=251", "early_exit=0", "early_exit", &"x".repeat(4097)] {
        let refused = refusal(&server, &format!("/ndt/v7/download?{query}"), SUBPROTOCOL);
        assert_eq!(refused.status, 400, "{query}");
    }
    let mut client = Client::new(server.address);
    assert_eq!(client.get("/ndt/v7/download").status, 400);
    assert_eq!(client.post("/ndt/v7/upload", "x", b"").status, 405);
}

#[test]
fn locate_names_this_server() {
    let server = Server::start(|_| ());
    let mut client = Client::new(server.address);
    for path in ["/v2/nearest/ndt/ndt7?client_name=ndt7-js", "/ndt/ndt7"] {
        let head = format!("GET {path} HTTP/1.1\r\nHost: {}\r\n\r\n", server.address);
        client.send(head.as_bytes()).unwrap();
        let answer = client.answer();
        assert_eq!(answer.header("access-control-allow-origin"), Some("*"));
        let result = &answer.json()["results"][0];
        for test in ["download", "upload"] {
            let url = format!("ws://{}/ndt/v7/{test}", server.address);
            assert_eq!(result["urls"][format!("ws:///ndt/v7/{test}")], url);
        }
        assert_eq!(result["machine"], server.address.to_string());
        assert!(
            result["location"]["city"].is_string() && result["location"]["country"].is_string()
        );
    }
}
