//! Clients of the proxy and of DNS that mean no good. Each runs beside near and far.

use crate::stage::{PROXY, PROXY_WITH_TOKEN, inside};
use boost::Event;
use host::clock;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::sync::mpsc::Receiver;
use std::time::Duration;

/// Longer than anything here takes.
const TIMEOUT: Duration = Duration::from_secs(30);

pub(crate) fn heads() {
    inside("heads");
}

pub(crate) fn many() {
    inside("many");
}

pub(crate) fn two() {
    inside("two");
}

pub(crate) fn dns() {
    inside("names");
}

pub(crate) fn play(name: &str, events: &Receiver<Event>) {
    match name {
        "heads" => slow_and_huge_heads(),
        "many" => many_idle_connections(),
        "two" => two_listeners(events),
        "names" => hostile_names(),
        other => panic!("no role is called {other}"),
    }
}

fn connect() -> TcpStream {
    let until = clock::now() + TIMEOUT;
    loop {
        match TcpStream::connect(PROXY) {
            Ok(stream) => {
                stream.set_read_timeout(Some(TIMEOUT)).unwrap();
                return stream;
            }
            // Near has not begun to listen.
            Err(error) => assert!(clock::now() < until, "{error}"),
        }
    }
}

/// What the proxy answers until it closes or resets.
fn rest(mut stream: &TcpStream) -> Vec<u8> {
    let mut answer = Vec::new();
    let mut buffer = [0; 4096];
    loop {
        match stream.read(&mut buffer) {
            Ok(0) => return answer,
            Ok(count) => answer.extend(&buffer[..count]),
            Err(error) => {
                assert_eq!(error.kind(), std::io::ErrorKind::ConnectionReset, "{error}");
                return answer;
            }
        }
    }
}

/// A request that is served, from greeting to body.
fn is_served() -> bool {
    let mut stream = connect();
    stream
        .write_all(
            b"\x05\x01\x00\x05\x01\x00\x03\x0bwww.example\x00\x50GET / HTTP/1.1\r\nHost: a\r\n\r\n",
        )
        .unwrap();
    rest(&stream).windows(15).any(|some| some == b"GET / HTTP/1.1 ")
}

fn slow_and_huge_heads() {
    // Bytes trickle in: the deadline covers the whole head.
    let mut slow = connect();
    let trickle = slow.try_clone().unwrap();
    let sender = std::thread::spawn(move || {
        let mut trickle = &trickle;
        for byte in b"CONNECT www.example:80 HTTP/1.1\r\nHost: a\r\nA: ".iter().chain(&[b'a'; 99]) {
            if trickle.write_all(&[*byte]).is_err() {
                return;
            }
            std::thread::sleep(Duration::from_millis(300));
        }
        panic!("a head of 300 ms a byte is still read");
    });
    for endless in [&b"CONNECT a:1 HTTP/1.1\r\nA: "[..], b"A"] {
        let mut huge = connect();
        let mut sent = endless.to_vec();
        sent.resize(1 << 20, b'x');
        // It is closed before all is sent.
        let _ = huge.write_all(&sent);
        let answer = rest(&huge);
        assert!(answer.is_empty() || answer.starts_with(b"HTTP/1.1 431 "), "{answer:?}");
    }
    for garbage in [&b"\x16\x03\x01\x02\x00\x01\x00"[..], b"\x00\x00", b"\x05\x00", b"\xff"] {
        let mut stream = connect();
        stream.write_all(garbage).unwrap();
        assert!(rest(&stream).len() <= 2, "{garbage:?}");
    }
    assert!(is_served());
    let mut read = [0];
    let end = slow.read(&mut read);
    assert!(matches!(end, Ok(0) | Err(_)), "{end:?}");
    drop(slow);
    sender.join().unwrap();
}

fn many_idle_connections() {
    let _ = host::limits::raise_open_files();
    // 3,000 that say nothing: the oldest of the address make way.
    let idle: Vec<TcpStream> = (0..3000).map_while(|_| TcpStream::connect(PROXY).ok()).collect();
    assert!(idle.len() > 500, "{}", idle.len());
    for _ in 0..20 {
        assert!(is_served());
    }
}

/// Together they have more of an address than may be, neither has alone.
fn two_listeners(events: &Receiver<Event>) {
    let _ = host::limits::raise_open_files();
    assert!(is_served());
    let connect = |to: &str| TcpStream::connect(to).unwrap();
    let idle = [PROXY, PROXY_WITH_TOKEN].map(|to| [to; 300].map(connect));
    let refused = std::iter::repeat_with(|| events.recv_timeout(TIMEOUT).unwrap());
    let why = refused.into_iter().find_map(|event| match event {
        Event::RequestRefused { why, .. } => Some(why),
        _ => None,
    });
    assert_eq!(why.as_deref(), Some("too many connections without a request"));
    drop(idle);
}

fn hostile_names() {
    let answer_to = |name: &[u8]| {
        let mut stream = connect();
        let length = u8::try_from(name.len()).unwrap();
        let request = [&b"\x05\x01\x00\x05\x01\x00\x03"[..], &[length], name, &[0, 80]].concat();
        stream.write_all(&request).unwrap();
        let answer = rest(&stream);
        assert_eq!(answer[..2], [5, 0]);
        answer[3]
    };
    assert_eq!(answer_to(&[b'a'; 255]), 1);
    assert_eq!(answer_to(b"www.example\0.evil.example"), 1);
    assert_eq!(answer_to(b""), 1);
    assert_eq!(answer_to(b"metadata.example"), 2);
    assert_eq!(answer_to(b"METADATA.example."), 2);
    let label = "a".repeat(63);
    assert_eq!(answer_to(format!("{label}.{label}.{label}.example").as_bytes()), 4);
}
