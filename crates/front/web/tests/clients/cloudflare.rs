//! Cloudflare's client.

use crate::http::Client;
use crate::server::Server;
use std::time::Duration;

#[test]
fn downloads_have_their_size_and_share_their_timing() {
    let server = Server::start(|_| ());
    let mut client = Client::new(server.address);
    for bytes in [0, 1, 100_000, 10_000_000] {
        let answer = client.get(&format!("/__down?measId=123&bytes={bytes}"));
        assert_eq!((answer.status, answer.body.len()), (200, bytes));
        assert_eq!(answer.header("access-control-allow-origin"), Some("*"));
        assert_eq!(answer.header("timing-allow-origin"), Some("*"));
        assert_eq!(answer.header("access-control-expose-headers"), Some("Server-Timing"));
        let timing = answer.header("server-timing").unwrap();
        let milliseconds: f64 = timing.strip_prefix("cfReqDur;dur=").unwrap().parse().unwrap();
        assert!((0.0..1000.0).contains(&milliseconds));
    }
}

#[test]
fn an_upload_is_answered_after_its_last_byte() {
    let server = Server::start(|_| ());
    let mut client = Client::new(server.address);
    let head = "POST /__up?measId=1 HTTP/1.1\r\nHost: localhost\r\nOrigin: http://a.example\r\n\
                Content-Type: text/plain;charset=UTF-8\r\nContent-Length: 1000000\r\n\r\n";
    client.send(head.as_bytes()).unwrap();
    client.send(&vec![b'0'; 999_999]).unwrap();
    client.0.set_read_timeout(Some(Duration::from_millis(300))).unwrap();
    assert!(client.0.peek(&mut [0]).is_err(), "the client would take this for the end");
    client.0.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    client.send(b"0").unwrap();
    let answer = client.answer();
    assert_eq!(answer.status, 200);
    assert_eq!(answer.header("timing-allow-origin"), Some("*"));
}

#[test]
fn sizes_that_are_none_are_refused() {
    let server = Server::start(|_| ());
    let mut client = Client::new(server.address);
    for bytes in ["x", "-1", "1e9", "1000000001", "99999999999999999999"] {
        let answer = client.get(&format!("/__down?bytes={bytes}"));
        assert_eq!(
            (answer.status, answer.text()),
            (400, "bytes must be a number up to 1000000000\n")
        );
    }
    assert_eq!(client.request("DELETE", "/__down", "", b"").status, 405);
}
