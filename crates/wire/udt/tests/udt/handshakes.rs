//! Who connects to whom, and what a server keeps of it.

use crate::path::{CLIENT, NATIVE, Path, config, ms, unlimited};
use link::{Link, LinkConfig, Loss, Train};
use std::time::Duration;
use udt::{
    CloseReason, Config, Connection, Control, ControlHeader, Handshake, Incoming, Listener, Packet,
    PeerAddress, Request, Sequence, SocketType,
};
use units::Nanos;

#[test]
fn a_handshake_takes_two_round_trips() {
    let mut path = Path::new(unlimited(100), config(1, NATIVE), config(2, NATIVE));
    path.run_until(|path| path.client.is_established());
    assert_eq!((path.now, path.client.peer_id()), (Nanos(200_000_000), 2));
    assert_eq!(path.server().peer_id(), 1);
}

#[test]
fn a_lost_answer_is_asked_for_again() {
    let [forward, reverse] = unlimited(20);
    for seed in 0..20 {
        let half = |link: &LinkConfig| LinkConfig {
            loss: Loss::Bernoulli("50%".parse().unwrap()),
            seed,
            ..link.clone()
        };
        let links = [half(&forward), half(&reverse)];
        let mut path = Path::new(links, config(1, NATIVE), config(2, NATIVE));
        path.run_until(|path| path.client.is_established() || path.client.closed().is_some());
        if path.client.is_established() {
            assert_eq!(path.listener.connections(), 1);
            path.listener.forget(&CLIENT, 1);
            assert_eq!(path.listener.connections(), 0);
        } else {
            assert_eq!(path.client.closed(), Some(CloseReason::HandshakeTimeout));
            assert_eq!(path.now, Nanos(3_000_000_000));
        }
    }
}

#[test]
fn another_socket_type_is_refused() {
    let messages = Config { socket_type: SocketType::Message, ..config(1, NATIVE) };
    let mut path = Path::new(unlimited(20), messages, config(2, NATIVE));
    path.run_until(|path| path.client.closed().is_some());
    assert_eq!(path.client.closed(), Some(CloseReason::Refused));
    assert!(path.server.is_none());
}

#[test]
fn the_smaller_packet_size_counts() {
    let ours = Config { packet_bytes: 9_000, ..config(1, NATIVE) };
    let mut path = Path::new(unlimited(20), ours, config(2, NATIVE));
    path.run_until(|path| path.client.is_established());
    assert_eq!(path.client.packet_bytes(), 1_472);
    assert_eq!(path.server().packet_bytes(), 1_472);
}

/// Both ends of a rendezvous, begun some time apart, behind the same delay.
fn meet(apart: Duration, loss: &str) -> (Connection, Connection) {
    let [forward, reverse] = unlimited(20);
    let lossy =
        |link: LinkConfig| LinkConfig { loss: Loss::Bernoulli(loss.parse().unwrap()), ..link };
    let (mut there, mut back) = (Link::new(lossy(forward)), Link::new(lossy(reverse)));
    let other = Config { initial_sequence: Sequence::new(5), ..config(2, NATIVE) };
    let mut ends = [Connection::rendezvous(Nanos(0), config(1, NATIVE)), {
        let begins = Nanos(0).plus(apart);
        Connection::rendezvous(begins, other)
    }];
    let mut out = Vec::new();
    let mut now = Nanos(0);
    while now < Nanos(20_000_000_000) {
        for (end, link) in ends.iter_mut().zip([&mut there, &mut back]) {
            end.on_timeout(now);
            while end.poll_transmit(now, 1, &mut out).is_some() {
                link.arrive(now, Train::single(28 + out.len() as u32), out.clone());
            }
        }
        now = now.plus_nanos(1_000_000);
        let [first, second] = &mut ends;
        while let Some(delivery) = there.release(now) {
            if now >= Nanos(0).plus(apart) {
                second.receive(now, now, [&delivery.payload[..]]);
            }
        }
        while let Some(delivery) = back.release(now) {
            first.receive(now, now, [&delivery.payload[..]]);
        }
    }
    let [first, second] = ends;
    (first, second)
}

#[test]
fn both_ends_of_a_rendezvous_meet() {
    for (apart, loss) in [(0, "0%"), (3_000, "0%"), (100, "30%"), (0, "60%")] {
        let (first, second) = meet(ms(apart), loss);
        assert!(first.is_established() && second.is_established(), "{apart} ms, {loss}");
        assert_eq!((first.peer_id(), second.peer_id()), (2, 1));
    }
}

fn asked(request: Request, cookie: u32) -> Handshake {
    Handshake {
        version: udt::VERSION,
        socket_type: 1,
        initial_sequence: Sequence::new(3),
        packet_bytes: 1_500,
        flow_window: 25_600,
        request,
        socket_id: 77,
        cookie,
        peer_address: [0; 4],
        native: None,
    }
}

fn cookie_in(answer: &[u8]) -> u32 {
    match Packet::parse(answer).unwrap() {
        Packet::Control(ControlHeader { destination: 77, .. }, Control::Handshake(answer)) => {
            answer.cookie
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_flood_of_requests_leaves_nothing_behind() {
    let mut listener = Listener::new([1; 32], 2);
    let accepts = config(2, NATIVE);
    let from =
        |n: u32| PeerAddress { address: [(n % 251) as u8; 16], port: (n % 60_000) as u16, zone: 0 };
    for n in 0..10_000 {
        for request in [asked(Request::Induction, 0), asked(Request::Conclusion, n)] {
            let incoming = listener.on_handshake(Nanos(0), &from(n), &request, &accepts);
            assert!(!matches!(incoming, Incoming::Accept(..)));
        }
    }
    assert_eq!(listener.connections(), 0);
}

#[test]
fn a_cookie_is_good_for_one_address_and_connections_are_limited() {
    let mut listener = Listener::new([1; 32], 2);
    let accepts = config(2, NATIVE);
    let from = |port| PeerAddress { address: [1; 16], port, zone: 0 };
    for port in 1..=3 {
        let induction = asked(Request::Induction, 0);
        let Incoming::Reply(answer) =
            listener.on_handshake(Nanos(0), &from(port), &induction, &accepts)
        else {
            panic!("no cookie")
        };
        let conclusion = asked(Request::Conclusion, cookie_in(&answer));
        let elsewhere = listener.on_handshake(Nanos(0), &from(9), &conclusion, &accepts);
        assert!(matches!(elsewhere, Incoming::Ignore));
        let incoming = listener.on_handshake(Nanos(0), &from(port), &conclusion, &accepts);
        assert_eq!(matches!(incoming, Incoming::Accept(..)), port <= 2, "{incoming:?}");
        // Asked again, it is answered again and not accepted twice.
        let incoming = listener.on_handshake(Nanos(0), &from(port), &conclusion, &accepts);
        assert!(matches!(incoming, Incoming::Reply(_)));
    }
    assert_eq!(listener.connections(), 2);
}

/// A forged sender would make two servers answer each other for ever.
#[test]
fn an_answer_is_not_answered() {
    let mut listener = Listener::new([1; 32], 1);
    let accepts = config(2, NATIVE);
    let answer = Handshake { socket_id: 0, ..asked(Request::Induction, 0) };
    for request in [asked(Request::Induction, 5), answer] {
        let incoming = listener.on_handshake(Nanos(0), &CLIENT, &request, &accepts);
        assert!(matches!(incoming, Incoming::Ignore), "{incoming:?}");
    }
}

/// Whoever does not know a client's socket ID cannot refuse or mislead it.
#[test]
fn a_client_takes_answers_to_its_socket_only() {
    for forged in [Request::Refused, Request::Induction] {
        let mut path = Path::new(unlimited(20), config(1, NATIVE), config(2, NATIVE));
        let mut datagram = Vec::new();
        let handshake = Control::Handshake(asked(forged, 666));
        handshake.write(ControlHeader::default(), &mut datagram);
        path.client.receive(Nanos(0), Nanos(0), [&datagram[..]]);
        path.run_until(|path| path.client.is_established());
    }
}
