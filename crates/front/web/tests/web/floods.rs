//! Slow, compressed and forged requests, floods, reverse proxies, and what the metrics say of them.

use crate::page::{Server, Socket, ask, hello, short};
use host::clock::now;
use socket2::{Domain, Socket as Socket2, Type};
use std::io::{Read, Write};
use std::net::{IpAddr, SocketAddr, TcpStream};
use std::time::Duration;
use units::ByteCount;
use web::{Tls, WebEvent, WebRequest};

/// The status of an answer that a stream has, and the answer.
fn answer(stream: &mut TcpStream) -> (u16, String) {
    stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    let mut answer = Vec::new();
    let _ = stream.read_to_end(&mut answer);
    let answer = String::from_utf8_lossy(&answer).to_lowercase();
    let status = answer.split(' ').nth(1).and_then(|status| status.parse().ok()).unwrap_or(0);
    (status, answer)
}

#[test]
fn a_slow_header_is_told_so() {
    let mut request = short();
    request.limits.header = Duration::from_secs(1);
    let server = Server::start(request);
    let mut stream = TcpStream::connect(server.address).unwrap();
    let began = now();
    stream.write_all(b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\n").unwrap();
    for byte in b"X-Slow" {
        std::thread::sleep(Duration::from_millis(100));
        stream.write_all(&[*byte]).unwrap();
    }
    let (status, answer) = answer(&mut stream);
    assert_eq!(status, 408, "{answer}");
    assert!(answer.ends_with("the header did not come in time.\n"), "{answer}");
    assert!(began.elapsed() < Duration::from_secs(5), "{:?}", began.elapsed());
    // Between two requests nothing is said.
    let mut idle = TcpStream::connect(server.address).unwrap();
    assert_eq!(self::answer(&mut idle), (0, String::new()));
}

#[test]
fn compressed_bodies_are_not_unpacked() {
    let server = Server::start(short());
    let post = |target: &str, body: &[u8]| {
        let mut stream = TcpStream::connect(server.address).unwrap();
        let head = format!(
            "POST {target} HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\
             Content-Encoding: gzip\r\nContent-Type: application/x-www-form-urlencoded\r\n\
             Content-Length: {}\r\n\r\n",
            body.len()
        );
        stream.write_all(head.as_bytes()).unwrap();
        let _ = stream.write_all(body);
        answer(&mut stream).0
    };
    // 64 MiB of zeros in 64 kB.
    let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::best());
    gzip.write_all(&vec![0; 64 << 20]).unwrap();
    let bomb = gzip.finish().unwrap();
    assert!(bomb.len() < 100_000);
    let before = host::memory::resident().unwrap();
    assert_eq!(post("/results/telemetry", &bomb), 415);
    assert_eq!(post("/explain", &bomb), 415);
    // Uploads are bytes, whatever they say: LibreSpeed's have this header.
    assert_eq!(post("/empty", &bomb), 200);
    assert_eq!(post("/__up", &bomb), 200);
    let grown = host::memory::resident().unwrap().bytes().saturating_sub(before.bytes());
    assert!(grown < 200 << 20, "{grown}");
}

#[test]
fn a_flood_of_handshakes_leaves_the_page_reachable() {
    let server = Server::start(WebRequest { tls: Tls::SelfSigned, ..short() });
    let resident = host::memory::resident().unwrap();
    // A client's first message that is never followed by another, of another address.
    let hello = [&[0x16, 3, 1, 0x40, 0][..], &[1; 100]].concat();
    let flood: Vec<TcpStream> = (0..500)
        .map(|_| {
            let socket = Socket2::new(Domain::IPV4, Type::STREAM, None).unwrap();
            socket.bind(&SocketAddr::from(([127, 0, 0, 2], 0)).into()).unwrap();
            socket.connect(&server.address.into()).unwrap();
            let mut stream = TcpStream::from(socket);
            let _ = stream.write_all(&hello);
            stream
        })
        .collect();
    // And those that complete none, one after the other.
    for _ in 0..500 {
        let mut stream = TcpStream::connect(server.address).unwrap();
        let _ = stream.write_all(b"nonsense that is no handshake");
    }
    let grown = host::memory::resident().unwrap().bytes().saturating_sub(resident.bytes());
    assert!(grown < 100 << 20, "{grown}");
    // While they wait, well within the time of a handshake; this address has to be rid of its own.
    let until = now() + Duration::from_secs(5);
    while crate::attacks::status_over_tls(server.address) != Some(200) {
        assert!(now() < until);
        std::thread::sleep(Duration::from_millis(100));
    }
    drop(flood);
}

fn get(server: SocketAddr, headers: &str) -> (u16, String) {
    ask(
        server,
        &format!("GET /getIP HTTP/1.1\r\nHost: {server}\r\nConnection: close\r\n{headers}\r\n"),
    )
}

#[test]
fn forwarded_addresses_are_believed_of_trusted_proxies_alone() {
    let forged = "X-Forwarded-For: 203.0.113.9\r\n";
    let server = Server::start(short());
    assert!(get(server.address, forged).1.contains("127.0.0.1"));
    let open = |server: &Server, client: &str| {
        let headers = format!("X-Forwarded-For: {client}\r\n");
        Socket::try_open(server.address, "/api/run", &headers)
    };
    let limited = |trusted_proxies: Vec<IpAddr>| {
        let mut request = WebRequest { trusted_proxies, ..short() };
        request.limits.runs_per_address = 1;
        request.limits.connections_per_address = 4;
        Server::start(request)
    };
    // Without trust all are one address.
    let server = limited(Vec::new());
    let _first = open(&server, "203.0.113.1").unwrap();
    assert_eq!(open(&server, "203.0.113.2").err(), Some(429));
    let server = limited(vec![IpAddr::from([127, 0, 0, 1])]);
    assert!(get(server.address, forged).1.contains("203.0.113.9"));
    let mut runs: Vec<_> =
        (1..=10).map(|last| open(&server, &format!("203.0.113.{last}")).unwrap()).collect();
    assert_eq!(open(&server, "203.0.113.1").err(), Some(429));
    // What the client itself put before is not believed.
    assert_eq!(open(&server, "198.51.100.1, 203.0.113.1").err(), Some(429));
    runs[4].say(&hello());
    let welcome = runs[4].text().unwrap();
    assert_eq!((&welcome["client"], &welcome["proxied"]), (&"203.0.113.5".into(), &true.into()));
}

#[test]
fn metrics_follow_runs_and_refusals() {
    let at = SocketAddr::from(([127, 0, 0, 1], 0));
    let server = Server::start(WebRequest { metrics: Some(at), ..short() });
    let event = server.wait(|event| matches!(event, WebEvent::ListeningForMetrics { .. }));
    let WebEvent::ListeningForMetrics { address } = event else { unreachable!() };
    let page = |host: &str| ask(address, &format!("GET /metrics HTTP/1.1\r\nHost: {host}\r\n\r\n"));
    assert_eq!(page("evil.example").0, 421);
    let before = page("localhost");
    assert_eq!(before.0, 200);
    assert!(before.1.contains("\nlonghaul_web_runs_running 0\n"), "{}", before.1);
    assert!(before.1.contains("\nprocess_resident_memory_bytes "), "{}", before.1);
    assert_eq!(ask(server.address, "GET / HTTP/1.1\r\nHost: evil.example\r\n\r\n").0, 421);
    let told = crate::page::carry_out(server.address, &hello());
    assert_eq!(told.messages.last().unwrap()["type"], "result");
    server.wait(|event| matches!(event, WebEvent::RunFinished { .. }));
    let value = |series: &str| -> f64 {
        let page = page("localhost").1;
        let line = page.lines().find_map(|line| line.strip_prefix(series)?.strip_prefix(' '));
        line.unwrap_or_else(|| panic!("no {series} in\n{page}")).parse().unwrap()
    };
    assert_eq!(value("longhaul_web_runs_total{outcome=\"finished\"}"), 1.0);
    assert_eq!(value("longhaul_web_refused_total{reason=\"host\"}"), 1.0);
    // Connections are counted when they have ended.
    let until = now() + Duration::from_secs(10);
    let (down, up) = (told.downloaded as f64, told.uploaded as f64);
    while value("longhaul_web_bytes_total{direction=\"send\"}") < down * 0.9
        || value("longhaul_web_bytes_total{direction=\"receive\"}") < up * 0.5
    {
        assert!(now() < until);
        std::thread::sleep(Duration::from_millis(100));
    }
}

#[test]
fn a_budget_of_a_run_ends_an_endless_post() {
    let most = 3_000_000;
    let max_bytes_per_run = ByteCount::from_bytes(most);
    let server = Server::start(WebRequest { max_bytes_per_run, ..short() });
    let told = crate::page::carry_out(server.address, &crate::page::hello_by_requests());
    let counted: u64 =
        told.of("step-result").iter().map(|step| step["bytes"].as_u64().unwrap()).sum();
    assert!(counted <= most + (6 << 20), "{counted}");
}
