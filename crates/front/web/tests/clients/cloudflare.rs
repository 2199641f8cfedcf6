//! Cloudflare's client.

use crate::http::Client;
use crate::server::Server;
use std::time::Duration;
use web::{TransferDirection, WebEvent};

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

/// A download ends with its last byte's acknowledgement, and a latency probe is no transfer.
#[test]
fn transfers_are_logged_where_that_is_asked_for() {
    let server = Server::start(|request| request.log_transfers = true);
    let mut client = Client::new(server.address);
    for bytes in [0, 3_000_000] {
        assert_eq!(client.get(&format!("/__down?bytes={bytes}")).status, 200);
    }
    assert_eq!(client.post("/__up", "text/plain", &[b'0'; 70_000]).status, 200);
    let mut told: Vec<(TransferDirection, u64)> = (0..2)
        .map(|_| match server.events.recv_timeout(Duration::from_secs(10)).unwrap() {
            WebEvent::Transferred { client: from, direction, bytes, seconds, .. } => {
                assert_eq!(from, client.0.local_addr().unwrap());
                assert!(seconds > 0.0, "{direction:?}");
                (direction, bytes)
            }
            other => panic!("{other:?}"),
        })
        .collect();
    told.sort_by_key(|(_, bytes)| *bytes);
    let expected = [(TransferDirection::Upload, 70_000), (TransferDirection::Download, 3_000_000)];
    assert_eq!(told, expected);
    let silent = Server::start(|_| ());
    let mut client = Client::new(silent.address);
    assert_eq!(client.post("/__up", "text/plain", &[b'0'; 70_000]).status, 200);
    assert!(silent.events.recv_timeout(Duration::from_millis(200)).is_err());
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
