//! Transfers between our endpoint and libudt's, every byte checked at the receiver.

use crate::peer::Peer;
use crate::relay::{Impairments, Relay};
use control::{Algorithm, UdtRules};
use std::net::{SocketAddr, UdpSocket};
use std::time::Duration;
use udt::{CloseReason, Config, Connection, Listener, Sequence, SocketType};
use udt_socket::{Driver, Next};
use units::Nanos;

pub(crate) const TESTS: [(&str, fn()); 9] = [
    ("a_stream_to_libudt", || to_libudt(SocketType::Stream, clean_total(), None)),
    ("a_stream_from_libudt", || from_libudt(SocketType::Stream, clean_total(), None)),
    ("messages_to_libudt", || to_libudt(SocketType::Message, 20_000_000, None)),
    ("messages_from_libudt", || from_libudt(SocketType::Message, 20_000_000, None)),
    ("a_libudt_client_sends_a_stream", || libudt_connects(false)),
    ("a_libudt_client_receives_a_stream", || libudt_connects(true)),
    ("a_rendezvous_with_libudt", a_rendezvous_with_libudt),
    ("impaired_paths_to_libudt", || impaired(to_libudt)),
    ("impaired_paths_from_libudt", || impaired(from_libudt)),
];

/// Bytes over a clean path: `make long` sends 1 GB.
fn clean_total() -> u64 {
    if is_long() { 1_000_000_000 } else { 200_000_000 }
}

fn is_long() -> bool {
    std::env::var_os("LONGHAUL_LONG").is_some()
}

const TIMEOUT: Duration = Duration::from_secs(100);

/// The byte at a position of the pattern.
fn pattern(at: u64) -> u8 {
    (at.wrapping_mul(2_654_435_761) >> 13) as u8
}

fn filled(from: u64, length: u64) -> Vec<u8> {
    (from..from + length).map(pattern).collect()
}

/// Sends a part of the pattern. A stream is closed then; after messages the peer is left to
/// close: the library loses a message that it reads while the connection ends.
fn sender(total: u64) -> impl FnMut(Nanos, &mut Connection) -> Next {
    let (mut sent, mut block, mut offset, mut is_stream) = (0, Vec::new(), 0, false);
    move |now, connection| {
        assert!(now < Nanos(0).plus(TIMEOUT), "not sent in time: {:?}", connection.statistics(now));
        while connection.is_established() {
            if offset == block.len() {
                if sent == total {
                    if is_stream {
                        connection.close();
                    }
                    break;
                }
                block = filled(sent, (total - sent).min(10_000));
                (sent, offset) = (sent + block.len() as u64, 0);
            }
            let written = connection.write(&block[offset..]);
            is_stream |= written > 0;
            if written == 0 && !connection.write_message(&block[offset..], true, None) {
                break;
            }
            offset = if written == 0 { block.len() } else { offset + written };
        }
        Next::At(now.plus(Duration::from_secs(1)))
    }
}

/// Receives a part of the pattern, and says whether all of it came.
fn receiver(total: u64, received: &mut u64) -> impl FnMut(Nanos, &mut Connection) -> Next {
    let mut buffer = vec![0; 1 << 20];
    move |now, connection| {
        assert!(
            now < Nanos(0).plus(TIMEOUT),
            "not received in time: {:?}",
            connection.statistics(now)
        );
        loop {
            let mut count = connection.read(&mut buffer);
            if count == 0 {
                count = connection.read_message(&mut buffer).map_or(0, Result::unwrap);
            }
            if count == 0 {
                break;
            }
            let wrong =
                buffer[..count].iter().zip(*received..).find(|(byte, at)| **byte != pattern(*at));
            assert_eq!(wrong, None, "after byte {received}");
            *received += count as u64;
        }
        if *received >= total { Next::Never } else { Next::At(now.plus(Duration::from_secs(1))) }
    }
}

fn until_closed(_: Nanos, _: &mut Connection) -> Next {
    Next::OnEvent
}

fn name(socket_type: SocketType) -> &'static str {
    match socket_type {
        SocketType::Stream => "stream",
        SocketType::Message => "message",
    }
}

/// Sequence numbers that wrap around soon.
fn config(socket_type: SocketType) -> Config {
    let first = Sequence::new(0x7FFF_FFFF - 3_000);
    Config { socket_type, ..Config::new(77, first, Algorithm::Udt(UdtRules::Udt)) }
}

fn free_port() -> u16 {
    UdpSocket::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}

fn driver_to(address: SocketAddr) -> Driver {
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    socket.connect(address).unwrap();
    Driver::new(socket).unwrap()
}

/// A client of ours with a server of libudt, through a relay if there are impairments.
fn connected(
    port: u16,
    impairments: Option<Impairments>,
    socket_type: SocketType,
) -> (Driver, Connection, Option<Relay>) {
    let server = SocketAddr::from(([127, 0, 0, 1], port));
    let relay = impairments.map(|impairments| Relay::start(server, impairments));
    let driver = driver_to(relay.as_ref().map_or(server, |relay| relay.address));
    let connection = Connection::client(driver.now(), config(socket_type));
    (driver, connection, relay)
}

fn to_libudt(socket_type: SocketType, total: u64, impairments: Option<Impairments>) {
    let (port, bytes) = (free_port(), total.to_string());
    let peer = Peer::start(&["listen", &port.to_string(), name(socket_type), "receive", &bytes]);
    let (mut driver, mut connection, _relay) = connected(port, impairments, socket_type);
    driver.run(&mut connection, &mut sender(total)).unwrap();
    assert!(peer.succeeds(TIMEOUT));
    let now = driver.now();
    println!("{total} bytes in {:.2} s, {:?}", now.secs_f64(), connection.statistics(now).sent);
}

fn from_libudt(socket_type: SocketType, total: u64, impairments: Option<Impairments>) {
    let (port, bytes) = (free_port(), total.to_string());
    let peer = Peer::start(&["listen", &port.to_string(), name(socket_type), "send", &bytes]);
    let (mut driver, mut connection, _relay) = connected(port, impairments, socket_type);
    let mut received = 0;
    driver.run(&mut connection, &mut receiver(total, &mut received)).unwrap();
    assert_eq!((received, connection.closed()), (total, None));
    // The library waits until all it sent is acknowledged.
    driver.run(&mut connection, &mut until_closed).unwrap();
    assert_eq!(connection.closed(), Some(CloseReason::Peer));
    assert!(peer.succeeds(TIMEOUT));
    let now = driver.now();
    println!("{total} bytes in {:.2} s, {:?}", now.secs_f64(), connection.statistics(now).received);
}

/// Our server, and libudt's client.
fn libudt_connects(receives: bool) {
    let total = 20_000_000;
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    let port = socket.local_addr().unwrap().port().to_string();
    let mut driver = Driver::new(socket).unwrap();
    let what = if receives { "receive" } else { "send" };
    let peer = Peer::start(&["connect", &port, "stream", what, &total.to_string()]);
    let mut listener = Listener::new([1; 32], 4);
    let (_, mut connection) =
        udt_socket::accept(&driver, &mut listener, &config(SocketType::Stream), |now| {
            now > Nanos(0).plus(TIMEOUT)
        })
        .unwrap()
        .unwrap();
    if receives {
        driver.run(&mut connection, &mut sender(total)).unwrap();
    } else {
        let mut received = 0;
        driver.run(&mut connection, &mut receiver(total, &mut received)).unwrap();
        assert_eq!(received, total);
        driver.run(&mut connection, &mut until_closed).unwrap();
    }
    assert!(peer.succeeds(TIMEOUT));
}

fn a_rendezvous_with_libudt() {
    let total = 5_000_000;
    let ours = UdpSocket::bind("127.0.0.1:0").unwrap();
    let (own, theirs) = (ours.local_addr().unwrap().port().to_string(), free_port());
    let port = theirs.to_string();
    let peer = Peer::start(&["rendezvous", &own, "stream", "receive", &total.to_string(), &port]);
    ours.connect(SocketAddr::from(([127, 0, 0, 1], theirs))).unwrap();
    let mut driver = Driver::new(ours).unwrap();
    let mut connection = Connection::rendezvous(driver.now(), config(SocketType::Stream));
    driver.run(&mut connection, &mut sender(total)).unwrap();
    assert!(peer.succeeds(TIMEOUT));
}

/// Loss, reordering and duplicates, each alone and together; the first client's sequence
/// numbers wrap around.
fn impaired(transfer: fn(SocketType, u64, Option<Impairments>)) {
    let none = Impairments { loss: "0%", reordered: "0%", duplicated: "0%" };
    // `make long` sends 50 MB each.
    let total = if is_long() { 50_000_000 } else { 1_500_000 };
    for (impairments, socket_type) in [
        (Impairments { loss: "1%", ..none }, SocketType::Stream),
        (Impairments { reordered: "5%", ..none }, SocketType::Stream),
        (Impairments { duplicated: "5%", ..none }, SocketType::Stream),
        (Impairments { loss: "0.5%", reordered: "1%", duplicated: "1%" }, SocketType::Message),
    ] {
        println!("{impairments:?}, {socket_type:?}");
        transfer(socket_type, total, Some(impairments));
    }
}
