//! How the sender came to retransmit, at the sender and at the receiver.

use crate::exchange::{ACK, Exchange, SYN, Sent, sack, syn_options, timestamps};
use tcp_analysis::{CapturePoint, RetransmissionKind, Rules};

fn flight() -> Exchange {
    let mut x = Exchange::open(Rules::default());
    for seq in [1001, 2001, 3001, 4001] {
        x.data(seq, 1000);
    }
    x
}

#[test]
fn the_first_upon_sack_is_fast_and_the_others_are_its_recovery() {
    let mut x = flight();
    x.at_us += 40_000;
    for edge in [3001, 4001, 5001] {
        x.ack_with(1001, 1000, sack(&[(2001, edge)]));
    }
    assert_eq!(x.data(1001, 500).kind, Some(RetransmissionKind::Fast));
    assert_eq!(x.data(1501, 500).kind, Some(RetransmissionKind::Recovery));
    x.at_us += 40_000;
    x.ack(5001, 1000);
    // A new one.
    x.data(5001, 1000);
    x.data(6001, 1000);
    x.ack_with(5001, 1000, sack(&[(6001, 7001)]));
    assert_eq!(x.data(5001, 1000).kind, Some(RetransmissionKind::Fast));
    let counts = x.connection().retransmissions(x.sent_by_a());
    assert_eq!((counts.total(), counts.seen_before, counts.not_seen_before), (3, 3, 0));
    assert_eq!(counts.first_packet[RetransmissionKind::Fast as usize], 12);
}

#[test]
fn without_evidence_the_last_segment_is_a_probe_and_the_first_a_timeout() {
    let mut x = flight();
    x.at_us += 90_000;
    assert_eq!(x.data(4001, 1000).kind, Some(RetransmissionKind::TailLossProbe));
    x.at_us += 250_000;
    assert_eq!(x.data(1001, 1000).kind, Some(RetransmissionKind::Timeout));
    x.at_us += 40_000;
    x.ack(2001, 1000);
    assert_eq!(x.data(2001, 1000).kind, Some(RetransmissionKind::AfterTimeout));
    // It expires once more.
    x.at_us += 500_000;
    assert_eq!(x.data(2001, 1000).kind, Some(RetransmissionKind::Timeout));
    x.ack(5001, 1000);
    x.data(5001, 1000);
    x.at_us += 90_000;
    assert_eq!(x.data(5001, 1000).kind, Some(RetransmissionKind::TailLossProbe));
}

#[test]
fn a_silence_within_a_recovery_ends_in_a_timeout() {
    for (wait_us, expected) in
        [(170_000, RetransmissionKind::Recovery), (190_000, RetransmissionKind::Timeout)]
    {
        let mut x = flight();
        x.ack_with(1001, 1000, sack(&[(2001, 3001)]));
        assert_eq!(x.data(1001, 1000).kind, Some(RetransmissionKind::Fast));
        x.at_us += wait_us;
        assert_eq!(x.data(1001, 1000).kind, Some(expected));
    }
}

#[test]
fn a_hole_that_is_filled_was_lost_before_this_point() {
    let mut x = Exchange::open(Rules::default());
    x.data(1001, 1000);
    x.data(3001, 1000);
    x.ack_with(2001, 1000, sack(&[(3001, 4001)]));
    x.at_us += 45_000;
    let found = x.data(2001, 1000);
    assert_eq!((found.kind, found.seen_before), (Some(RetransmissionKind::Fast), false));
    let counts = x.connection().retransmissions(x.sent_by_a());
    assert_eq!((counts.not_seen_before, counts.reordered), (1, 0));
}

#[test]
fn a_hole_filled_within_an_rtt_was_overtaken() {
    let mut x = Exchange::open(Rules::default());
    x.data(1001, 1000);
    x.data(3001, 1000);
    x.at_us += 5_000;
    assert_eq!(x.data(2001, 1000).kind, None);
    let counts = x.connection().retransmissions(x.sent_by_a());
    assert_eq!((counts.total(), counts.reordered), (0, 1));
}

#[test]
fn a_duplicate_sack_makes_the_retransmission_spurious() {
    let mut x = flight();
    x.ack_with(1001, 1000, sack(&[(2001, 3001)]));
    x.data(1001, 1000);
    x.ack(5001, 1000);
    x.ack_with(5001, 1000, sack(&[(1001, 2001)]));
    // Twice on the path, and not retransmitted.
    x.ack_with(5001, 1000, sack(&[(3001, 4001)]));
    let counts = x.connection().retransmissions(x.sent_by_a());
    assert_eq!((counts.spurious_dsack, counts.duplicated), (1, 1));
}

#[test]
fn the_handshake_shows_the_capture_point() {
    let x = flight();
    let vantage = x.connection().vantage(x.sent_by_a());
    assert_eq!(vantage.point, CapturePoint::Sender);
    assert!(vantage.uncertainty.is_some_and(|share| share < 0.02), "{vantage:?}");
    let other = x.connection().vantage(x.sent_by_a().reverse());
    assert_eq!(other.point, CapturePoint::Receiver);
}

/// A connection captured at the receiver, B, over 40 ms.
fn at_receiver() -> Exchange {
    let mut x = Exchange::new(Rules::default());
    let options = syn_options(2);
    x.send(Sent {
        seq: 1000,
        window: 1000,
        flags: SYN,
        options: options.clone(),
        ..Sent::default()
    });
    let answer = Sent {
        from_b: true,
        seq: 5000,
        ack: 1001,
        window: 2000,
        flags: SYN | ACK,
        options,
        ..Sent::default()
    };
    x.send(answer);
    x.at_us += 40_000;
    x.data(1001, 0);
    assert_eq!(x.connection().vantage(x.sent_by_a()).point, CapturePoint::Receiver);
    x
}

#[test]
fn at_the_receiver_new_data_upon_a_timeout_shows_the_timeout() {
    // The flight from 2001 to 6001 was lost as a whole; what comes after `wait_us` of silence
    // is its first segment, and an RTT later F-RTO sends new data.
    for (wait_us, expected) in
        [(300_000, RetransmissionKind::AfterTimeout), (100_000, RetransmissionKind::Fast)]
    {
        let mut x = at_receiver();
        x.data(1001, 1000);
        x.ack(2001, 1000);
        x.at_us += wait_us;
        assert_eq!(x.data(2001, 1000).kind, None);
        x.ack(3001, 1000);
        x.at_us += 40_000;
        x.data(6001, 1000);
        x.ack_with(3001, 1000, sack(&[(6001, 7001)]));
        x.at_us += 40_000;
        assert_eq!(x.data(3001, 1000).kind, Some(expected), "{wait_us}");
    }
}

#[test]
fn at_the_receiver_what_is_on_the_way_belongs_to_the_recovery_that_ended() {
    let mut x = at_receiver();
    for seq in [1001, 3001, 4001] {
        x.data(seq, 1000);
    }
    x.at_us += 300_000;
    // The timer: all of it is retransmitted.
    assert_eq!(x.data(2001, 1000).kind, Some(RetransmissionKind::Timeout));
    x.ack(5001, 1000);
    assert_eq!(x.data(3001, 1000).kind, Some(RetransmissionKind::AfterTimeout));
    assert_eq!(x.data(4001, 1000).kind, Some(RetransmissionKind::AfterTimeout));
}

#[test]
fn a_late_copy_is_the_original_if_its_timestamp_is_earlier() {
    let mut x = at_receiver();
    let mut send = |seq, value| {
        let options = timestamps(value, 7);
        x.send(Sent {
            seq,
            ack: 5001,
            window: 1000,
            flags: ACK,
            len: 1000,
            options,
            ..Sent::default()
        })
    };
    send(1001, 100);
    send(3001, 101);
    // Retransmitted an RTT later; then the original, and another retransmission.
    assert!(send(2001, 145).kind.is_some());
    assert_eq!(send(2001, 100).kind, None);
    assert!(send(2001, 150).kind.is_some());
    let counts = x.connection().retransmissions(x.sent_by_a());
    assert_eq!((counts.total(), counts.reordered), (2, 1));
}

#[test]
fn the_ack_that_proves_a_retransmission_spurious_names_it() {
    let mut x = flight();
    x.ack_with(1001, 1000, sack(&[(2001, 3001)]));
    x.data(1001, 1000);
    assert_eq!(x.ack(5001, 1000).proves_spurious, None);
    // The handshake has four packets, the flight as many, and then there is one ACK.
    assert_eq!(x.ack_with(5001, 1000, sack(&[(1001, 2001)])).proves_spurious, Some(10));
}
