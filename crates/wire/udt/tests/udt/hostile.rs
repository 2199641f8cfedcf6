//! Whatever arrives, nothing panics, memory is bounded, and work per datagram is.

use crate::path::{NATIVE, Path, bottleneck, config, unlimited, wire_bytes};
use proptest::prelude::*;
use std::time::Duration;
use udt::{
    Ack, CloseReason, Control, ControlHeader, DataHeader, FullAck, LossList, MessageNumber,
    MessagePart, Sequence, SocketType,
};

fn control(control: &Control<'_>, destination: u32) -> Vec<u8> {
    let mut out = Vec::new();
    control.write(ControlHeader { timestamp_us: 0, destination }, &mut out);
    out
}

fn data(sequence: u32, destination: u32, bytes: usize) -> Vec<u8> {
    let message = MessageNumber::FIRST;
    let part = MessagePart { first: true, last: true, in_order: false, message };
    let sequence = Sequence::new(sequence);
    let header = DataHeader { sequence, part, timestamp_us: 0, destination };
    [&header.bytes()[..], &vec![1; bytes]].concat()
}

#[test]
fn packets_for_another_socket_are_ignored() {
    let mut path = Path::established(unlimited(20), config(1, NATIVE));
    let now = path.now;
    path.client.receive(now, now, [&control(&Control::Shutdown, 3)[..], &data(77, 3, 10)]);
    assert!(path.client.is_established());
    assert_eq!(path.client.statistics(now).received.packets, 0);
    path.client.receive(now, now, [&control(&Control::Shutdown, 1)[..]]);
    assert_eq!(path.client.closed(), Some(CloseReason::Peer));
}

#[test]
fn an_acknowledgement_of_what_was_never_sent_breaks_the_connection() {
    let mut path = Path::established(unlimited(20), config(1, NATIVE));
    let ack = Ack { next: Sequence::new(78), full: None };
    let now = path.now;
    path.client.receive(now, now, [&control(&Control::Ack(ack), 1)[..]]);
    assert!(matches!(path.client.closed(), Some(CloseReason::Protocol(_))));
}

#[test]
fn data_beyond_the_window_is_discarded() {
    let mut path = Path::established(unlimited(20), config(1, NATIVE));
    let now = path.now;
    for ahead in [8_192, 100_000, 0x3FFF_FFFF, 0x4000_0000, 0x7FFF_FFFF] {
        path.server().receive(now, now, [&data(77_u32.wrapping_add(ahead), 2, 100)[..]]);
    }
    path.server().receive(now, now, [&data(77, 2, wire_bytes())[..]]);
    let received = path.server().statistics(now).received;
    assert_eq!((received.packets, received.discarded, received.missing), (6, 6, 0));
}

#[test]
fn a_window_of_zero_and_rates_of_any_size_stop_nothing_for_good() {
    let mut path = Path::established(bottleneck(10, 20, 2.0), config(1, NATIVE));
    path.client.write(&[1; 100_000]);
    let now = path.now;
    for rates in [None, Some((0, 0)), Some((u32::MAX, u32::MAX)), Some((1, u32::MAX))] {
        let full = FullAck {
            number: Sequence::new(9),
            rtt_us: u32::MAX,
            rtt_variance_us: u32::MAX,
            window: 0,
            rates,
        };
        let ack = Ack { next: Sequence::new(77), full: Some(full) };
        path.client.receive(now, now, [&control(&Control::Ack(ack), 1)[..]]);
    }
    path.run_until(|path| {
        path.server().discard();
        path.client.is_flushed() || path.client.closed().is_some()
    });
}

/// The library marks what it sends of a stream like messages, which may be delivered early.
#[test]
fn a_stream_has_no_messages_whatever_its_packets_are_marked_as() {
    let mut path = Path::established(bottleneck(10, 20, 2.0), config(1, NATIVE));
    let (now, mut buffer) = (path.now, [0; 2_000]);
    // The packet before it is missing.
    path.server().receive(now, now, [&data(78, 2, 100)[..]]);
    assert_eq!(path.server().read_message(&mut buffer), None);
    path.server().receive(now, now, [&data(77, 2, 100)[..]]);
    assert_eq!(path.server().read_message(&mut buffer), None);
    assert_eq!(path.server().read(&mut buffer), 200);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// Well-formed packets with any content, in any order, between those of a transfer.
    #[test]
    fn any_packets_do_no_harm(
        packets in prop::collection::vec((0_u8..9, any::<u32>(), any::<u32>(), 0_usize..2_000), 1..60),
        messages: bool,
    ) {
        let socket_type = if messages { SocketType::Message } else { SocketType::Stream };
        let ours = udt::Config { socket_type, ..config(1, NATIVE) };
        let mut path = Path::established(bottleneck(10, 20, 2.0), ours);
        let mut buffer = vec![0; 3_000_000];
        for (kind, one, other, length) in packets {
            // Near what is in flight as often as anywhere.
            let near = Sequence::new(if one % 2 == 0 { one } else { 77 + one % 200 });
            let list: Vec<u8> =
                [one | 1 << 31, other, one, 77 | 1 << 31, 300].iter().flat_map(|word| word.to_be_bytes()).collect();
            let full = FullAck {
                number: Sequence::new(other),
                rtt_us: one,
                rtt_variance_us: other,
                window: other,
                rates: Some((one, other)),
            };
            for destination in [1, 2] {
                let datagram = match kind {
                    0 => control(&Control::Ack(Ack { next: near, full: Some(full) }), destination),
                    1 => control(&Control::Ack(Ack { next: near, full: None }), destination),
                    2 => control(&Control::Nak(LossList::parse(&list).unwrap()), destination),
                    3 => control(&Control::Ack2(near), destination),
                    4 => control(
                        &Control::MessageDrop(MessageNumber::new(one), near, near.after(u64::from(other % 900))),
                        destination,
                    ),
                    5 => control(&Control::CongestionWarning, destination),
                    6 => list.clone(),
                    7 => data(near.number(), destination, length),
                    _ => control(&Control::UserDefined(7, &list), destination),
                };
                let now = path.now;
                path.client.receive(now, now, [&datagram[..]]);
                path.server().receive(now, now, [&datagram[..]]);
            }
            path.client.write(&[1; 5_000]);
            path.client.write_message(&[1; 5_000], one % 2 == 0, Some(path.now));
            path.run_for(Duration::from_millis(20), |path| {
                path.server().read(&mut buffer);
                path.server().read_message(&mut buffer);
            });
        }
        let statistics = path.client.statistics(path.now);
        prop_assert!(statistics.in_flight <= 1 << 20);
    }
}
