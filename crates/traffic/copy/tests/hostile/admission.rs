//! Connections without a proven key, of few and of many addresses.

use copy::{
    Choice, CopyEnd, CopyRequest, CopyServer, CopyServerConfig, Event, Progress, Root, Transport,
    copy,
};
use host::stop::StopFlag;
use socket2::{Domain, Socket, Type};
use std::collections::VecDeque;
use std::io::{Read, Write};
use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpStream};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

const TOKEN: &str = "0123456789abcdef0123456789abcdef";
/// Copies of the client with a token.
const COPIES: usize = 4;

/// The bytes that name the key of the token's clients, as whoever records one can replay them.
fn preamble() -> Vec<u8> {
    let seed = blake3::derive_key("longhaul copy 1: key of a token's client", TOKEN.as_bytes());
    let key = pinned_tls::Identity::new(&seed).unwrap().public_key();
    let id = blake3::hash(key.to_string().as_bytes());
    [b"LHCOPY\x00\x01".as_slice(), id.as_bytes()].concat()
}

fn connect(from: u8, to: SocketAddr, sent: &[u8]) -> Option<TcpStream> {
    let socket = Socket::new(Domain::IPV4, Type::STREAM, None).ok()?;
    socket.bind(&SocketAddr::from(([127, 0, 3, from], 0)).into()).ok()?;
    socket.connect(&to.into()).ok()?;
    let mut stream = TcpStream::from(socket);
    stream.write_all(sent).ok()?;
    Some(stream)
}

/// The reasons for which the attacker's connections were closed, and the client's.
type Refusals = [Vec<String>; 2];

/// Copies of a client at 127.0.0.1, while so many addresses hold `held` connections together and
/// replace the oldest ones all the time.
fn serves_beside(addresses: u8, held: usize, sent: &[u8]) -> Refusals {
    let (near, far) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    std::fs::write(far.path().join("file"), "x").unwrap();
    let config = CopyServerConfig {
        bind: Some((Ipv4Addr::LOCALHOST, 0).into()),
        port: 0,
        root: Root::below(far.path(), false).unwrap(),
        tokens: vec![TOKEN.into()],
        max_copies: 4,
    };
    let server = CopyServer::bind(config).unwrap();
    let address = server.local_address().unwrap();
    let refusals = Mutex::new(Refusals::default());
    let report = |event: Event| {
        if let Event::Refused { from, reason } = event {
            let is_client = from.ip() == IpAddr::V4(Ipv4Addr::LOCALHOST);
            refusals.lock().unwrap()[usize::from(is_client)].push(reason);
        }
    };
    let (stop, is_over, opened) = (StopFlag::new(), AtomicBool::new(false), AtomicUsize::new(0));
    thread::scope(|scope| {
        scope.spawn(|| server.serve(&stop, &StopFlag::new(), &report));
        scope.spawn(|| {
            let mut connections = VecDeque::new();
            for from in (1..=addresses).cycle() {
                if is_over.load(Ordering::Relaxed) {
                    break;
                }
                connections.extend(connect(from, address, sent));
                opened.fetch_add(1, Ordering::Relaxed);
                if connections.len() > held {
                    connections.pop_front();
                    thread::sleep(Duration::from_millis(1));
                }
            }
        });
        while opened.load(Ordering::Relaxed) < held {
            thread::sleep(Duration::from_millis(1));
        }
        let copied: Vec<_> = (0..COPIES)
            .map(|number| {
                let transport = [Transport::Tcp, Transport::UdtNative][number % 2];
                let from = CopyEnd::Remote { host: "127.0.0.1".into(), path: "file".into() };
                let to = CopyEnd::Local(near.path().join(number.to_string()));
                let plan = CopyRequest {
                    token: Some(TOKEN.into()),
                    port: address.port(),
                    transport: Choice::Only(transport),
                    streams: 3,
                    ..CopyRequest::new(vec![from], to)
                };
                copy(&plan, &Progress::default(), &StopFlag::new(), &|_| {})
            })
            .collect();
        is_over.store(true, Ordering::Relaxed);
        stop.raise();
        for summary in copied {
            assert_eq!(summary.unwrap().problems, [""; 0]);
        }
    });
    refusals.into_inner().unwrap()
}

#[test]
fn silent_connections_lock_no_client_with_a_token_out() {
    thread::scope(|scope| {
        for (addresses, held) in [(1, 300), (8, 300), (64, 300)] {
            scope.spawn(move || {
                let [others, client] = serves_beside(addresses, held, b"");
                assert_eq!(client, [""; 0], "{addresses} addresses");
                assert!(others.iter().any(|why| why.contains("its address had the most")));
            });
        }
    });
}

#[test]
fn replayed_preambles_lock_no_client_with_a_token_out() {
    let preamble = preamble();
    thread::scope(|scope| {
        for (addresses, held) in [(1, 200), (64, 200)] {
            let preamble = &preamble;
            scope.spawn(move || {
                let [others, client] = serves_beside(addresses, held, preamble);
                assert_eq!(client, [""; 0], "{addresses} addresses");
                assert!(others.iter().any(|why| why.contains("its address had the most")));
            });
        }
    });
}

#[test]
fn a_connection_that_makes_way_is_closed_at_once() {
    let far = tempfile::tempdir().unwrap();
    let config = CopyServerConfig {
        bind: Some((Ipv4Addr::LOCALHOST, 0).into()),
        port: 0,
        root: Root::below(far.path(), false).unwrap(),
        tokens: vec![TOKEN.into()],
        max_copies: 4,
    };
    let server = CopyServer::bind(config).unwrap();
    let (address, stop) = (server.local_address().unwrap(), StopFlag::new());
    let preamble = preamble();
    thread::scope(|scope| {
        scope.spawn(|| server.serve(&stop, &StopFlag::new(), &|_| {}));
        let mut first = connect(1, address, &preamble).unwrap();
        // 128 connections are to prove a key at most; each has the deadline of 10 s.
        let more: Vec<_> = (0..128).map(|_| connect(1, address, &preamble).unwrap()).collect();
        first.set_read_timeout(Some(Duration::from_secs(8))).unwrap();
        let read = first.read(&mut [0; 1]);
        let timed_out =
            matches!(&read, Err(error) if error.kind() == std::io::ErrorKind::WouldBlock);
        stop.raise();
        drop(more);
        assert!(!matches!(read, Ok(1)) && !timed_out, "{read:?}");
    });
}
