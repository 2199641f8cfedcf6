//! Clients that take what they can: limits hold, each with a status and a reason.

use crate::http::Client;
use crate::ndt7::{Peer, now};
use crate::server::Server;
use std::io::Read;
use std::time::Duration;
use units::ByteCount;
use websocket::Opcode;

fn begin(server: &Server, target: &str) -> Client {
    let mut client = Client::new(server.address);
    let head = format!("GET {target} HTTP/1.1\r\nHost: localhost\r\n\r\n");
    assert!(client.send(head.as_bytes()).is_ok());
    client
}

#[test]
fn transfers_of_an_address_are_limited_and_given_back() {
    let server = Server::start(|request| request.limits.transfers_per_address = 2);
    let mut held: Vec<Client> = (0..2).map(|_| begin(&server, "/garbage?ckSize=1024")).collect();
    for client in &mut held {
        assert!(client.head().starts_with("HTTP/1.1 200"));
    }
    let mut third = begin(&server, "/__down?bytes=1000000");
    let refused = third.answer();
    assert_eq!(refused.status, 429);
    assert!((1..=60).contains(&refused.header("retry-after").unwrap().parse().unwrap()));
    assert_eq!(refused.text(), "your address has reached its limit\n");
    assert_eq!(third.get("/empty").status, 200, "pings are no transfers");
    assert_eq!(third.post("/empty", "x", b"x").status, 429);
    drop(held);
    let given_back = (0..100).any(|_| {
        std::thread::sleep(Duration::from_millis(50));
        Client::new(server.address).get("/__down?bytes=1000").status == 200
    });
    assert!(given_back);
}

#[test]
fn bytes_of_an_hour_are_limited() {
    const BUDGET: usize = 8 << 20;
    let server = Server::start(|request| {
        request.limits.bytes_per_hour_per_address = ByteCount::from_bytes(BUDGET as u64);
    });
    // A download ends where the budget does, and its connection with it.
    let mut client = begin(&server, "/garbage?ckSize=1024");
    client.head();
    let mut body = Vec::new();
    let _ = client.0.read_to_end(&mut body);
    assert!((BUDGET / 2..=BUDGET).contains(&body.len()), "{}", body.len());
    let refused = begin(&server, "/garbage").answer();
    assert_eq!(refused.status, 429);
    let seconds: u64 = refused.header("retry-after").unwrap().parse().unwrap();
    assert!((1..=3600).contains(&seconds), "{seconds}");
    assert_eq!(Client::new(server.responsiveness).get("/responsiveness/large").status, 429);
}

#[test]
fn an_endless_upload_ends_with_the_budget() {
    const BUDGET: u64 = 20 << 20;
    let server = Server::start(|request| {
        request.limits.bytes_per_hour_per_address = ByteCount::from_bytes(BUDGET);
    });
    for target in ["/empty", "/__up"] {
        let mut client = Client::new(server.address);
        let head = format!(
            "POST {target} HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n"
        );
        client.send(head.as_bytes()).unwrap();
        let mut chunk = b"100000\r\n".to_vec();
        chunk.extend(vec![0; 1 << 20]);
        chunk.extend(b"\r\n");
        let sent = (0..1000).take_while(|_| client.send(&chunk).is_ok()).count();
        assert!(sent < 100, "{sent} MiB were taken");
        assert!(client.is_closed());
    }
}

#[test]
fn transfers_end_in_time_whatever_the_client_does() {
    let server = Server::start(|request| request.limits.transfer = Duration::from_secs(1));
    let began = now();
    // One that sends a byte now and then is told.
    let mut slow = Client::new(server.address);
    let head = "POST /empty HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100\r\n\r\n";
    slow.send(head.as_bytes()).unwrap();
    // One that does not read is cut off.
    let mut deaf = begin(&server, "/garbage?ckSize=1024");
    for _ in 0..8 {
        std::thread::sleep(Duration::from_millis(100));
        slow.send(b"x").unwrap();
    }
    let refused = slow.answer();
    assert_eq!((refused.status, refused.text()), (408, "the upload took too long\n"));
    assert!((1.0..3.0).contains(&began.elapsed().as_secs_f64()));
    std::thread::sleep(Duration::from_secs(6));
    let mut rest = Vec::new();
    let _ = deaf.0.read_to_end(&mut rest);
    assert!(rest.len() < 64 << 20, "{}", rest.len());
    // One that reads slowly is cut off as well.
    let mut lazy = begin(&server, "/__down?bytes=1000000000");
    let (began, mut buffer) = (now(), [0; 1000]);
    while lazy.0.read(&mut buffer).is_ok_and(|read| read > 0) {
        std::thread::sleep(Duration::from_millis(20));
        assert!(began.elapsed() < Duration::from_secs(20));
        if began.elapsed() > Duration::from_secs(7) {
            break;
        }
    }
    let rest = lazy.0.read_to_end(&mut Vec::new());
    assert!(rest.is_err() || began.elapsed() < Duration::from_secs(20));
}

#[test]
fn a_draining_server_ends_with_its_last_transfer() {
    let server = Server::start(|_| ());
    let mut peer = Peer::begin(&server, "/ndt/v7/upload");
    server.drain.raise();
    let refused = begin(&server, "/garbage").answer();
    assert_eq!((refused.status, refused.text()), (503, "the server is about to stop\n"));
    std::thread::sleep(Duration::from_millis(500));
    assert!(!server.has_ended());
    assert!(peer.send(Opcode::Close, &[]).is_ok());
    peer.close().unwrap();
    let ended = (0..100).any(|_| {
        std::thread::sleep(Duration::from_millis(50));
        server.has_ended()
    });
    assert!(ended);
}

#[test]
fn a_token_is_asked_for_and_passed_on() {
    let server = Server::start(|request| request.token = Some("secret".to_owned()));
    let mut client = Client::new(server.address);
    for path in ["/garbage", "/empty", "/__down", "/ndt/v7/download", "/ndt/ndt7", "/results/"] {
        assert_eq!(client.get(path).status, 401, "{path}");
        assert_eq!(client.get(&format!("{path}?token=wrong1")).status, 401, "{path}");
    }
    let located = client.get("/v2/nearest/ndt/ndt7?a=b&token=secret").json();
    let url = located["results"][0]["urls"]["ws:///ndt/v7/upload"].as_str().unwrap().to_owned();
    let target = url.strip_prefix("ws://localhost").unwrap();
    let mut peer = Peer::begin(&server, target);
    assert!(peer.send(Opcode::Close, &[]).is_ok());
    let list = client.get("/.well-known/librespeed?token=secret").json();
    let ping = format!("/{}", list[0]["pingURL"].as_str().unwrap());
    assert_eq!(client.get(&ping).status, 200, "{ping}");
    let mut client = Client::new(server.responsiveness);
    assert_eq!(client.get("/.well-known/nq").status, 401);
    let configuration = client.get("/.well-known/nq?token=secret").json();
    let small = configuration["urls"]["small_download_url"].as_str().unwrap();
    assert_eq!(client.get(small.strip_prefix("http://localhost").unwrap()).status, 200);
}

#[test]
fn malformed_requests_have_a_status() {
    let server = Server::start(|_| ());
    for (request, status) in [
        ("POST /garbage HTTP/1.1\r\nHost: localhost\r\nContent-Length: 0\r\n\r\n", 405),
        ("GET /garbage HTTP/1.1\r\nHost: evil.example\r\n\r\n", 421),
        ("GET /ndt/v7/download HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n", 400),
        (
            "POST /empty HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
            400,
        ),
    ] {
        let mut client = Client::new(server.address);
        client.send(request.as_bytes()).unwrap();
        assert_eq!(client.answer().status, status, "{request}");
    }
}
