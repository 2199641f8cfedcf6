//! Clients that break ndt7's protocol, or do not end it.

use crate::ndt7::{MASK, Peer, SUBPROTOCOL, now, refusal};
use crate::server::Server;
use std::time::Duration;
use websocket::frame::{self, Opcode};

/// The code that the server closes with.
fn code(server: &Server, target: &str, bytes: &[u8]) -> u16 {
    let mut peer = Peer::begin(server, target);
    let began = now();
    assert!(peer.client.send(bytes).is_ok());
    let code = peer.close().and_then(|close| close.code).map_or(0, websocket::CloseCode::get);
    assert!(began.elapsed() < Duration::from_secs(5), "{:?}", began.elapsed());
    code
}

#[test]
fn forbidden_frames_close_with_their_code() {
    let server = Server::start(|_| ());
    let too_big = frame::header(Opcode::Binary, (16 << 20) + 1, MASK);
    let cases: [(&str, Vec<u8>, u16); 7] = [
        ("/ndt/v7/upload", too_big.to_vec(), 1009),
        ("/ndt/v7/upload", frame::header(Opcode::Text, 65_537, MASK).to_vec(), 1009),
        ("/ndt/v7/upload", frame::message(Opcode::Binary, b"not masked", None), 1002),
        ("/ndt/v7/upload", frame::message(Opcode::Text, &[0xff], MASK), 1007),
        ("/ndt/v7/upload", vec![0xff; 14], 1002),
        // Load flows in the tested direction alone.
        ("/ndt/v7/download", frame::message(Opcode::Binary, b"x", MASK), 1008),
        ("/ndt/v7/download", frame::message(Opcode::Close, &1001u16.to_be_bytes(), MASK), 1001),
    ];
    for (target, bytes, expected) in cases {
        assert_eq!(code(&server, target, &bytes), expected, "{:x?}", &bytes[..bytes.len().min(14)]);
    }
}

#[test]
fn whatever_arrives_counts_in_the_budget() {
    let server = Server::start(|request| {
        request.limits.bytes_per_hour_per_address = units::ByteCount::from_bytes(1 << 20);
    });
    let texts = frame::message(Opcode::Text, &[b'x'; 65_536], MASK).repeat(40);
    let mut peer = Peer::begin(&server, "/ndt/v7/upload");
    let _ = peer.client.send(&texts);
    let code = peer.close().and_then(|close| close.code).map(websocket::CloseCode::get);
    assert_eq!(code, Some(1013));
}

#[test]
fn whoever_does_not_read_is_cut_off_and_frees_its_place() {
    let server = Server::start(|request| request.limits.transfers_per_address = 2);
    let deaf = Peer::begin(&server, "/ndt/v7/download");
    let silent = Peer::begin(&server, "/ndt/v7/upload");
    let refused = refusal(&server, "/ndt/v7/download", SUBPROTOCOL);
    assert_eq!(refused.status, 429);
    assert!(refused.header("retry-after").is_some());
    std::thread::sleep(Duration::from_secs(15));
    let mut third = Peer::begin(&server, "/ndt/v7/upload");
    assert!(third.send(Opcode::Close, &[]).is_ok());
    assert_eq!(
        third.close().and_then(|close| close.code).map(websocket::CloseCode::get),
        Some(1000)
    );
    drop((deaf, silent));
}

#[test]
fn pings_are_answered_and_a_flood_of_them_is_not_stored() {
    let server = Server::start(|_| ());
    let mut peer = Peer::begin(&server, "/ndt/v7/upload");
    let flood: Vec<u8> = (0..100_000u32)
        .flat_map(|n| frame::message(Opcode::Ping, &n.to_be_bytes(), MASK))
        .collect();
    assert!(peer.client.send(&flood).is_ok());
    assert!(peer.send(Opcode::Ping, b"last").is_ok());
    let mut pongs = 0;
    loop {
        match peer.event() {
            Some(websocket::Event::Pong(payload)) => {
                pongs += 1;
                if payload == b"last" {
                    break;
                }
            }
            Some(_) => {}
            None => panic!("the last Ping was not answered"),
        }
    }
    assert!((1..=100_001).contains(&pongs));
}
