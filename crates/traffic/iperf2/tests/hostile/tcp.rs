//! TCP connections that try to occupy the slots of an iperf 2 server, or to crash it.

use crate::network::{
    SERVER, TestServer, address, address_v6, client, header, in_a_network, run, totals, until,
};
use host::stop::StopFlag;
use iperf2::server::{Server, ServerConfig};
use iperf2_proto::{Amount, ClientHeader, Mode};
use socket2::{Domain, Socket, Type};
use std::io::{self, Read, Write};
use std::net::{IpAddr, SocketAddr, TcpStream};
use std::process::{Command, Stdio};
use std::time::Duration;

/// Sends `bytes` every `pause`; returns how often until the server closes.
fn rounds_until_closed(stream: &mut TcpStream, bytes: &[u8], pause: Duration, most: u32) -> u32 {
    stream.set_read_timeout(Some(pause)).unwrap();
    stream.set_write_timeout(Some(Duration::from_secs(10))).unwrap();
    for round in 0..most {
        if stream.write_all(bytes).is_err() {
            return round;
        }
        match stream.read(&mut [0; 4096]) {
            Ok(0) => return round,
            Ok(_) => {}
            Err(error) if matches!(error.kind(), io::ErrorKind::WouldBlock) => {}
            Err(_) => return round,
        }
    }
    panic!("still served after {most} rounds");
}

/// Asserts that a client is served eventually.
fn serves(server: &TestServer, from: Option<IpAddr>) {
    until("a slot", || {
        let config = from.map_or_else(|| server.config(false), |from| client(server, from, false));
        let amount = Amount::Bytes(100_000);
        let served = run(&iperf2::client::ClientConfig { amount, ..config });
        // A client counts what it wrote, even to a connection that was refused.
        served.is_ok_and(|events| totals(&events)[0].bytes >= 100_000)
            && totals(&server.events()).iter().any(|row| row.bytes >= 100_000)
    });
}

#[test]
fn a_trickled_header_has_one_deadline() {
    let server = TestServer::with(false, |config| {
        config.limits.streams = 1;
        config.limits.header_timeout = Duration::from_millis(300);
    });
    let mut stream = TcpStream::connect(server.address).unwrap();
    // Version 1, and a header of 255 bytes.
    stream.write_all(&[0x80, 1, 1, 0xfe]).unwrap();
    rounds_until_closed(&mut stream, &[0], Duration::from_millis(10), 250);
    assert!(server.peer_error().contains("header is incomplete"));
    // An incomplete header, then nothing.
    let mut stream = TcpStream::connect(server.address).unwrap();
    stream.write_all(&[0x80]).unwrap();
    serves(&server, None);
}

#[test]
fn an_occasional_byte_does_not_occupy_a_slot() {
    let server = TestServer::with(false, |config| {
        config.limits.streams = 1;
        config.limits.idle_timeout = Duration::from_millis(500);
    });
    let mut stream = TcpStream::connect(server.address).unwrap();
    stream.write_all(b"0123").unwrap();
    rounds_until_closed(&mut stream, b"4", Duration::from_millis(50), 400);
    assert!(server.peer_error().contains("less than 1024 bytes"));
    serves(&server, None);
}

#[test]
fn a_session_has_a_deadline() {
    let server = TestServer::with(false, |config| {
        config.limits.streams = 2;
        config.limits.duration = Duration::from_secs(1);
        config.limits.grace = Duration::from_millis(200);
    });
    let request = header(Mode::Normal, 0, 0, Amount::Time(Duration::from_millis(100)));
    for opening in [&request.encode()[..], b"0123"] {
        let mut stream = TcpStream::connect(server.address).unwrap();
        stream.write_all(opening).unwrap();
        rounds_until_closed(&mut stream, &[b'0'; 2048], Duration::from_millis(20), 1500);
    }
    assert!(server.peer_error().contains("‹max_time›"));
    serves(&server, None);
}

#[test]
fn a_client_that_left_does_not_occupy_a_slot() {
    let server = TestServer::with(false, |config| config.limits.streams = 1);
    let asked = header(Mode::Reverse, 0, 1000, Amount::Time(Duration::from_secs(3600)));
    let mut stream = TcpStream::connect(server.address).unwrap();
    // The second write would be due after 1000 s. A client that has read everything
    // closes without a reset.
    stream.write_all(&ClientHeader { rate_bps: 8, ..asked }.encode()).unwrap();
    stream.read_exact(&mut [0; 1]).unwrap();
    drop(stream);
    serves(&server, None);
}

fn connect(from: IpAddr, to: SocketAddr) -> TcpStream {
    let socket = Socket::new(Domain::for_address(to), Type::STREAM, None).unwrap();
    socket.bind(&SocketAddr::new(from, 0).into()).unwrap();
    socket.connect(&to.into()).unwrap();
    let mut stream: TcpStream = socket.into();
    let _ = stream.write_all(b"0123456789");
    stream
}

#[test]
fn one_address_holds_half_of_the_slots() {
    in_a_network(|| {
        for (bind, attacker, other) in [
            (SERVER, [2, 2, 2, 2, 2, 2].map(address), address(3)),
            (address_v6(1, 1), [1, 2, 3, 4, 5, 6].map(|n| address_v6(2, n)), address_v6(1, 2)),
        ] {
            let server = TestServer::with(false, |config| {
                config.bind = Some((bind, 0).into());
                config.limits.streams = 4;
            });
            let held = attacker.map(|from| connect(from, server.address));
            assert!(server.peer_error().contains("‹max_per_address›"));
            serves(&server, Some(other));
            drop(held);
        }
    });
}

/// Set in the server process of the test: its port.
const PORT: &str = "LONGHAUL_TEST_PORT";

/// An unused user id: RLIMIT_NPROC counts threads per user.
const USER: &str = "61207";

#[test]
fn a_thread_that_cannot_be_started_does_not_end_the_server() {
    if let Ok(port) = std::env::var(PORT) {
        let bind = Some(([127, 0, 0, 1], 0).into());
        let port = port.parse().unwrap();
        let time = Some(Duration::from_secs(60));
        let config = ServerConfig { bind, port, time, ..ServerConfig::default() };
        let server = Server::bind(&config).unwrap();
        return server.serve(&StopFlag::new(), &|event| println!("{event:?}")).unwrap();
    }
    let user = [&format!("--reuid={USER}"), &format!("--regid={USER}"), "--clear-groups"];
    let able = |program: &str, arguments: &[&str]| {
        let output = Command::new(program).args(arguments).arg("true").output();
        output.is_ok_and(|output| output.status.success())
    };
    if !able("setpriv", &user) || !able("prlimit", &[]) {
        eprintln!("skipped: not root, or without setpriv and prlimit");
        return;
    }
    let port = stall_retry::free_port();
    // The test's two threads, and two more.
    let mut server = Command::new("setpriv")
        .args(user)
        .args(["prlimit", "--nproc=4:4", "/proc/self/fd/0", "--exact", "--nocapture"])
        .arg("tcp::a_thread_that_cannot_be_started_does_not_end_the_server")
        .env(PORT, port.to_string())
        // That user may not be able to open the program's path.
        .stdin(std::fs::File::open("/proc/self/exe").unwrap())
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    let address = SocketAddr::from(([127, 0, 0, 1], port));
    let served = std::panic::catch_unwind(|| {
        until("the server", || TcpStream::connect(address).is_ok());
        let mut streams = Vec::new();
        for _ in 0..6 {
            let mut stream = TcpStream::connect(address).unwrap();
            stream.write_all(b"0123").unwrap();
            stream.set_read_timeout(Some(Duration::from_millis(1))).unwrap();
            streams.push(stream);
        }
        let closed = |mut stream: &TcpStream| match stream.read(&mut [0; 10]) {
            Ok(read) => read == 0,
            Err(error) => !matches!(error.kind(), io::ErrorKind::WouldBlock),
        };
        until("a refusal", || streams.iter().any(closed));
        drop(streams);
        let asked = header(Mode::Reverse, 0, 0, Amount::Bytes(1000)).encode();
        until("service", || {
            let Ok(mut stream) = TcpStream::connect(address) else { return false };
            let mut came = [0; 1000];
            stream.write_all(&asked).is_ok() && stream.read_exact(&mut came).is_ok()
        });
    });
    server.kill().unwrap();
    server.wait().unwrap();
    served.unwrap();
}
