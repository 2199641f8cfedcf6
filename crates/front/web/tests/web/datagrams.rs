//! Loss by datagrams of WebTransport.

use crate::page::{Conversation, Server, begin, carry_out_with, hello_by_requests, short};
use crate::session::{Relay, receive};
use serde_json::{Value, json};
use std::net::{SocketAddr, UdpSocket};
use std::time::Duration;
use units::ByteCount;
use web::{WebEvent, WebRequest};

/// A server that offers datagrams, at the port's number.
fn server(request: WebRequest) -> Server {
    let server = Server::start(request);
    server.wait(|event| match event {
        WebEvent::ListeningForDatagrams { address } => *address == server.address,
        _ => false,
    });
    server
}

/// A run of a page that can receive datagrams, through a relay with a loss.
fn run(server: &Server, loss: f64) -> Conversation {
    let mut hello = hello_by_requests();
    hello["transports"] = json!(["http", "webtransport"]);
    hello["thorough"] = json!(false);
    let relay = Relay::start(server.address, loss, 77);
    carry_out_with(server.address, &hello, |run, step| {
        let datagrams = &step["datagrams"];
        assert_eq!(datagrams["port"], server.address.port());
        let certificate = datagrams["certificate"].as_str().unwrap();
        let count = datagrams["count"].as_u64().unwrap() as usize;
        let path = format!("/api/run/{run}/datagrams");
        receive(relay.address, certificate, &path, count).map(|received| received.hex())
    })
}

fn loss(told: &Conversation) -> Value {
    told.messages.last().unwrap()["loss"].clone()
}

#[test]
fn lost_datagrams_are_counted() {
    let server = server(WebRequest { step_seconds: 1.0, ..short() });
    let told = run(&server, 0.05);
    let loss = loss(&told);
    assert_eq!((&loss["from"], &loss["sent"]), (&json!("webtransport"), &json!(480)), "{loss}");
    let [ratio, low, high] = ["ratio", "low", "high"].map(|name| loss[name].as_f64().unwrap());
    // Of 480 datagrams with a probability of 0.05, fewer than 5 or more than 57 are never lost.
    assert!((0.01..0.12).contains(&ratio) && low < ratio && ratio < high, "{loss}");
    let step = told.of("step-result").into_iter().find(|step| step["kind"] == "loss").unwrap();
    assert!(step["sentence"].as_str().unwrap().contains("of 480 datagrams were lost"), "{step}");
    // What the kernel knows of ECN is told in any case.
    let ecn = &told.messages.last().unwrap()["ecn"];
    assert!(ecn["sentence"].as_str().unwrap().starts_with("ECN"), "{ecn}");
}

#[test]
fn without_a_session_loss_is_estimated_from_retransmissions() {
    let server = server(short());
    let mut hello = hello_by_requests();
    hello["transports"] = json!(["http", "webtransport"]);
    hello["thorough"] = json!(false);
    let told = carry_out_with(server.address, &hello, |_, _| None);
    let loss = loss(&told);
    assert_eq!((&loss["from"], &loss["low"]), (&json!("retransmissions"), &json!(null)), "{loss}");
    let step = told.of("step-result").into_iter().find(|step| step["kind"] == "loss").unwrap();
    assert!(step["sentence"].as_str().unwrap().contains("UDP may be blocked"), "{step}");
}

#[test]
fn a_page_that_cannot_receive_has_no_such_step() {
    let server = server(short());
    let told = crate::page::carry_out(server.address, &hello_by_requests());
    assert!(told.of("step").iter().all(|step| step["kind"] != "loss"));
    let request = WebRequest { webtransport: false, ..short() };
    let without = Server::start(request);
    let bound = UdpSocket::bind(without.address);
    assert!(bound.is_ok(), "the port is free: {bound:?}");
}

#[test]
fn a_small_budget_keeps_bytes_for_datagrams() {
    // The transfers use up the rest, but a busy machine has a rate of them, too.
    let max_bytes_per_run = ByteCount::from_bytes(80_000_000);
    let server = server(WebRequest { max_bytes_per_run, ..short() });
    assert_eq!(loss(&run(&server, 0.0))["sent"], 240);
}

#[test]
fn a_session_needs_a_run_that_waits_for_it() {
    let server = server(short());
    let (_control, welcome) = begin(server.address);
    let run = welcome["run"].as_str().unwrap();
    // Any certificate's hash but the right one is refused by the client.
    assert!(receive(server.address, &"0".repeat(64), "/", 8).is_none());
    let certificate = certificate(&server);
    for path in [
        "/".to_owned(),
        format!("/api/run/{}/datagrams", "0".repeat(32)),
        // It runs, and is at its first step.
        format!("/api/run/{run}/datagrams"),
    ] {
        let refused = receive(server.address, &certificate, &path, 8);
        assert_eq!(refused.map(|received| received.status), Some(Some(404)), "{path}");
    }
}

/// The hash of the server's certificate, which a run is told.
fn certificate(server: &Server) -> String {
    let told = run(server, 0.0);
    let step = told.of("step").into_iter().find(|step| step["kind"] == "loss").unwrap();
    step["datagrams"]["certificate"].as_str().unwrap().to_owned()
}

#[test]
fn an_address_that_is_not_validated_gets_no_more_than_it_sent() {
    let server = server(short());
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    socket.set_read_timeout(Some(Duration::from_millis(500))).unwrap();
    let sent = initial(socket.local_addr().unwrap());
    socket.send_to(&sent, server.address).unwrap();
    let (mut answers, mut bytes, mut buffer) = (Vec::new(), 0, [0; 2048]);
    while let Ok(count) = socket.recv(&mut buffer) {
        answers.push(buffer[0]);
        bytes += count;
    }
    // One Retry packet (RFC 9000, section 17.2.5), and nothing after it.
    assert_eq!(answers.len(), 1, "{answers:?}");
    assert_eq!(answers[0] & 0xf0, 0xf0, "{answers:?}");
    assert!(bytes < sent.len() / 3, "{bytes}");
    for length in [1, 20, 1200] {
        let _ = socket.send_to(&vec![0xc0; length], server.address);
        let _ = socket.send_to(&vec![0x40; length], server.address);
    }
    // What is no first packet gets at most a reset as short as itself.
    let mut left = 0;
    while let Ok(count) = socket.recv(&mut buffer) {
        left += count;
    }
    assert!(left <= 2 * 1221, "{left}");
}

/// The first packet of a client, as QUIC's own sends it.
fn initial(_own: SocketAddr) -> Vec<u8> {
    let catcher = UdpSocket::bind("127.0.0.1:0").unwrap();
    catcher.set_read_timeout(Some(Duration::from_secs(5))).unwrap();
    let address = catcher.local_addr().unwrap();
    std::thread::spawn(move || receive(address, "", "/", 8));
    let mut buffer = [0; 2048];
    let count = catcher.recv(&mut buffer).unwrap();
    buffer[..count].to_vec()
}
