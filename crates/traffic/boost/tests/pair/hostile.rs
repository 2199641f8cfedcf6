//! Peers that are not boxes, or have another key.

use crate::boxes::{LONG, Pair, Setup, accept, target, until};
use boost::{Event, FlowEnd};
use std::io::{Read, Write};
use std::net::TcpStream;

fn refusal(pair: &Pair) -> String {
    pair.far.event(|event| match event {
        Event::LaneRefused { why, .. } => Some(why.clone()),
        _ => None,
    })
}

/// Sends bytes to far, and waits until it closes the connection.
fn send(pair: &Pair, bytes: &[u8]) {
    let mut stream = TcpStream::connect(pair.far_address).unwrap();
    stream.set_read_timeout(Some(LONG)).unwrap();
    let _ = stream.write_all(bytes);
    let _ = stream.read_to_end(&mut Vec::new());
}

#[test]
fn garbage_at_far_is_refused() {
    for with_tls in [false, true] {
        for bytes in [&b"GET / HTTP/1.1\r\nHost: far\r\n\r\n"[..], &[0xff; 64]] {
            let (listener, address) = target();
            let pair = Pair::new(address, &Setup { with_tls, ..Setup::default() });
            send(&pair, bytes);
            assert!(refusal(&pair).contains("not a"), "{}", refusal(&pair));
            // It serves the next one.
            let mut application = pair.connect();
            let mut server = accept(&listener);
            server.write_all(b"x").unwrap();
            application.read_exact(&mut [0]).unwrap();
        }
    }
}

#[test]
fn messages_out_of_order_end_the_lane() {
    let (_listener, address) = target();
    let pair = Pair::new(address, &Setup::default());
    // A preface, then payload without a flow.
    send(&pair, &[&b"LHLANE\x01\x00"[..], &[4, 0, 0, 0, 0, 0, 0, 1, 1]].concat());
    until(|| (pair.far_totals().active_lanes == 0).then_some(()));
    assert_eq!(pair.far_totals().flows, 0);
}

#[test]
fn a_near_box_with_another_key_is_refused() {
    let (_listener, address) = target();
    let with_tls = Setup { with_tls: true, ..Setup::default() };
    let (one, other) = (Pair::new(address, &with_tls), Pair::new(address, &with_tls));
    // The preamble of a key that this far does not know.
    let mut preamble = b"LHBOOST\x01".to_vec();
    preamble.extend([7; 32]);
    send(&one, &preamble);
    assert!(refusal(&one).contains("its key is unknown here"), "{}", refusal(&one));
    drop(other);
}

#[test]
fn boxes_that_disagree_about_encryption_say_so() {
    let (_listener, address) = target();
    let with_tls = Pair::new(address, &Setup { with_tls: true, ..Setup::default() });
    send(&with_tls, b"LHLANE\x01\x00");
    assert!(refusal(&with_tls).contains("has no key"), "{}", refusal(&with_tls));
    let plain = Pair::new(address, &Setup::default());
    send(&plain, &[&b"LHBOOST\x01"[..], &[0; 32]].concat());
    assert!(refusal(&plain).contains("without any"), "{}", refusal(&plain));
}

#[test]
fn a_flow_without_far_is_reset_and_said_once() {
    let (_listener, address) = target();
    let pair = Pair::new(address, &Setup::default());
    pair.far.stop.raise();
    until(|| pair.far.has_ended().then_some(()));
    for index in 0..2 {
        assert!(pair.connect().read(&mut [0]).is_err());
        assert!(matches!(pair.near.flow_end(index), FlowEnd::LaneFailed(_)));
    }
    pair.near.event(|event| matches!(event, Event::FarUnreachable { .. }).then_some(()));
}

#[test]
fn flows_beyond_the_limit_are_refused() {
    for mux in [false, true] {
        let (listener, address) = target();
        let pair = Pair::new(address, &Setup { mux, max_flows: 1, ..Setup::default() });
        let first = (pair.connect(), accept(&listener));
        assert!(pair.connect().read(&mut [0]).is_err());
        pair.near.event(|event| match event {
            Event::RequestRefused { why, .. } => why.contains("too many flows").then_some(()),
            _ => None,
        });
        drop(first);
        pair.near.flow_end(0);
        let _next = (pair.connect(), accept(&listener));
    }
}
