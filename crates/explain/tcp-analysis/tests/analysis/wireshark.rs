//! Each of Wireshark's flags: a segment that has it, and one that nearly has.

use crate::exchange::{ACK, Exchange, FIN, SYN, Sent, sack};
use tcp_analysis::{Flags, PacketAnalysis, Rules, WindowScale};

fn old() -> Exchange {
    Exchange::open(Rules::Wireshark40)
}

fn flags(found: PacketAnalysis) -> Vec<&'static str> {
    found.flags.names().collect()
}

#[test]
fn segments_in_order_have_no_flag() {
    let mut x = old();
    assert!(flags(x.data(1001, 1000)).is_empty());
    assert!(flags(x.data(2001, 1000)).is_empty());
    assert!(flags(x.ack(3001, 1000)).is_empty());
    assert_eq!(x.connection().initial_rtt_ns(), Some(40_040_000));
    assert_eq!(x.connection().window_scale(x.sent_by_a()), WindowScale::Shift(2));
    assert_eq!(x.connection().completeness(), 15);
}

#[test]
fn an_ack_at_the_end_of_a_segment_gives_an_rtt() {
    let mut x = old();
    x.data(1001, 1000);
    x.data(2001, 1000);
    x.at_us += 40_000;
    assert_eq!(x.ack(2001, 1000).acknowledges, Some((5, 40_020_000)));
    assert_eq!(x.ack(2500, 1000).acknowledges, None);
    assert_eq!(x.ack(3001, 1000).acknowledges, Some((6, 40_030_000)));
}

#[test]
fn bytes_in_flight_are_without_what_sack_reports() {
    let mut x = old();
    assert_eq!(x.data(1001, 1000).bytes_in_flight, Some(1000));
    assert_eq!(x.data(2001, 1000).bytes_in_flight, Some(2000));
    x.ack_with(1001, 1000, sack(&[(2001, 3001)]));
    assert_eq!(x.data(3001, 500).bytes_in_flight, Some(1500));
    x.ack(3001, 1000);
    assert_eq!(x.data(3501, 500).bytes_in_flight, Some(1000));
}

#[test]
fn a_gap_hides_the_bytes_in_flight_until_the_next_ack() {
    let mut x = old();
    x.data(1001, 1000);
    let late = x.data(3001, 500);
    assert_eq!(flags(late), ["lost_segment"]);
    assert_eq!(late.bytes_in_flight, None);
    assert!(flags(x.data(3501, 500)).is_empty());
    x.ack(2001, 1000);
    assert!(x.data(4001, 500).bytes_in_flight.is_some());
}

#[test]
fn a_retransmission_is_fast_after_two_duplicates_within_20_ms() {
    for (duplicates, wait_us, expected) in [
        (2, 19_970, ["retransmission", "fast_retransmission"].as_slice()),
        // Later than the initial RTT, or it counts as out of order.
        (1, 41_000, &["retransmission"]),
        (2, 41_000, &["retransmission"]),
        // Within it.
        (1, 100, &["out_of_order"]),
        (2, 20_000, &["out_of_order"]),
    ] {
        let mut x = old();
        for seq in [1001, 2001, 3001, 4001] {
            x.data(seq, 1000);
        }
        for _ in 0..duplicates {
            assert_eq!(flags(x.ack(1001, 1000)), ["duplicate_ack"]);
        }
        x.at_us += wait_us;
        assert_eq!(flags(x.data(1001, 1000)), expected, "{duplicates} {wait_us}");
    }
}

#[test]
fn duplicate_acks_are_counted_from_the_one_they_repeat() {
    let mut x = old();
    for seq in [1001, 2001, 3001] {
        x.data(seq, 1000);
    }
    x.ack(2001, 1000);
    let (first, second) = (x.ack(2001, 1000), x.ack(2001, 1000));
    assert_eq!([first.duplicate_ack, second.duplicate_ack], [1, 2]);
    assert_eq!((first.repeats_packet, second.repeats_packet), (8, 8));
    assert_eq!(x.ack(3001, 1000).duplicate_ack, 0);
    // Another window: an update.
    assert_eq!(flags(x.ack(3001, 999)), ["window_update"]);
}

#[test]
fn a_window_update_with_sack_is_a_duplicate_in_44() {
    for (rules, expected) in
        [(Rules::Wireshark40, "window_update"), (Rules::Wireshark44, "duplicate_ack")]
    {
        let mut x = Exchange::open(rules);
        x.data(1001, 1000);
        x.data(2001, 1000);
        assert_eq!(flags(x.ack_with(1001, 900, sack(&[(2001, 3001)]))), [expected]);
    }
}

#[test]
fn more_than_two_segments_of_sack_make_a_fast_retransmission_in_44() {
    for (rules, sacked, fast) in [
        (Rules::Wireshark40, 3, false),
        (Rules::Wireshark44, 2, false),
        (Rules::Wireshark44, 3, true),
    ] {
        let mut x = Exchange::open(rules);
        for seq in [1001, 2001, 3001, 4001] {
            x.data(seq, 1000);
        }
        // The MSS is 1000: the edge is two, or just more than two, beyond the ACK.
        let edge = 1001 + sacked * 1000;
        x.ack_with(1001, 999, sack(&[(2001, edge)]));
        let found = x.data(1001, 1000);
        assert_eq!(found.flags.has(Flags::FAST_RETRANSMISSION), fast, "{rules:?} {sacked}");
    }
}

#[test]
fn what_was_acknowledged_is_retransmitted_spuriously() {
    let mut x = old();
    x.data(1001, 1000);
    x.data(2001, 1000);
    x.ack(2001, 1000);
    assert_eq!(flags(x.data(1001, 1000)), ["retransmission", "spurious_retransmission"]);
    x.at_us += 100_000;
    // One byte of it is not acknowledged.
    assert_eq!(flags(x.data(1001, 1001)), ["retransmission"]);
}

#[test]
fn a_fin_with_data_is_spurious_in_40_only() {
    for (rules, spurious) in [(Rules::Wireshark40, true), (Rules::Wireshark44, false)] {
        let mut x = Exchange::open(rules);
        let fin = Sent {
            seq: 1001,
            ack: 5001,
            window: 1000,
            flags: ACK | FIN,
            len: 10,
            ..Sent::default()
        };
        x.send(fin.clone());
        x.ack(1012, 1000);
        x.at_us += 100_000;
        let found = x.send(fin);
        assert_eq!(found.flags.has(Flags::SPURIOUS_RETRANSMISSION), spurious);
        assert!(found.flags.has(Flags::RETRANSMISSION));
    }
}

#[test]
fn an_ack_beyond_what_was_captured_is_of_an_unseen_segment() {
    let mut x = old();
    x.data(1001, 1000);
    assert!(flags(x.ack(2001, 1000)).is_empty());
    assert_eq!(flags(x.ack(2002, 1000)), ["ack_lost_segment"]);
    // Once for each gap.
    assert!(flags(x.ack(3001, 1000)).is_empty());
}

#[test]
fn an_ack_of_unseen_segments_is_compared_with_all_that_was_captured() {
    let mut x = old();
    x.data(1001, 1000);
    assert_eq!(flags(x.data(3001, 1000)), ["lost_segment"]);
    // What came behind the gap counts as captured from here on.
    assert_eq!(flags(x.ack(4001, 1000)), ["ack_lost_segment"]);
    x.data(4001, 1000);
    assert!(flags(x.ack(5001, 1000)).is_empty());
}

#[test]
fn a_retransmission_after_an_ack_of_unseen_segments_is_fast() {
    let mut x = old();
    x.data(1001, 1000);
    let mut from_b = || {
        let sent = Sent {
            from_b: true,
            seq: 5001,
            ack: 2002,
            window: 1000,
            flags: ACK,
            len: 100,
            ..Sent::default()
        };
        flags(x.send(sent))
    };
    assert_eq!(from_b(), ["ack_lost_segment"]);
    assert_eq!(from_b(), ["retransmission", "fast_retransmission"]);
}

#[test]
fn a_fourth_sack_block_is_not_subtracted() {
    for (blocks, expected) in [(3, 9000), (4, 9000)] {
        let mut x = old();
        for number in 0..11 {
            x.data(1001 + 1000 * number, 1000);
        }
        let all = [(3001, 4001), (5001, 6001), (7001, 8001), (9001, 10_001)];
        x.ack_with(1001, 1000, sack(&all[..blocks]));
        assert_eq!(x.data(12_001, 1000).bytes_in_flight, Some(expected), "{blocks}");
    }
}

#[test]
fn completeness_begins_with_the_second_packet() {
    let segment = |flags| Sent { seq: 1001, ack: 5001, window: 1000, flags, ..Sent::default() };
    let mut x = Exchange::new(Rules::Wireshark40);
    for (flags, expected) in [(FIN | ACK, 0), (FIN, 0), (ACK, 4), (FIN | ACK, 20)] {
        x.send(segment(flags));
        assert_eq!(x.connection().completeness(), expected);
    }
    // A SYN counts at once.
    let mut x = Exchange::new(Rules::Wireshark40);
    x.send(segment(SYN));
    assert_eq!(x.connection().completeness(), 1);
}

#[test]
fn a_closed_window_its_probe_and_the_answer() {
    let mut x = old();
    x.data(1001, 1000);
    assert_eq!(flags(x.ack(2001, 0)), ["zero_window"]);
    x.at_us += 200_000;
    assert_eq!(flags(x.data(2001, 1)), ["zero_window_probe"]);
    x.at_us += 40_000;
    assert_eq!(flags(x.ack(2001, 0)), ["zero_window", "zero_window_probe_ack"]);
    // Two bytes are no probe.
    assert!(flags(x.data(2001, 2)).is_empty());
}

#[test]
fn an_answer_that_takes_the_probes_byte_counts_in_44() {
    for (rules, answers) in [(Rules::Wireshark40, false), (Rules::Wireshark44, true)] {
        let mut x = Exchange::open(rules);
        x.data(1001, 1000);
        x.ack(2001, 0);
        x.data(2001, 1);
        let found = x.ack(2002, 0);
        assert_eq!(found.flags.has(Flags::ZERO_WINDOW_PROBE_ACK), answers);
    }
}

#[test]
fn the_window_is_full_at_its_edge_exactly() {
    // 1000 scaled by 4: up to 5001.
    let mut x = old();
    for seq in [1001, 2001, 3001] {
        assert!(flags(x.data(seq, 1000)).is_empty());
    }
    assert!(flags(x.data(4001, 999)).is_empty());
    assert_eq!(flags(x.data(5000, 1)), ["window_full"]);
    // Beyond it, it is not: the window that counts was not captured.
    assert!(flags(x.data(5001, 1)).is_empty());
}

#[test]
fn without_the_handshake_no_window_is_full() {
    let mut x = Exchange::new(Rules::Wireshark40);
    x.ack(1001, 1000);
    assert!(flags(x.data(1001, 1000)).is_empty());
}

#[test]
fn a_keep_alive_and_its_answer() {
    let mut x = old();
    x.data(1001, 1000);
    x.ack(2001, 1000);
    x.at_us += 1_000_000;
    assert_eq!(flags(x.data(2000, 0)), ["keep_alive"]);
    assert_eq!(flags(x.ack(2001, 1000)), ["keep_alive_ack"]);
    // The one before is not.
    assert!(flags(x.data(1999, 0)).is_empty());
    assert_eq!(flags(x.ack(2001, 1000)), ["duplicate_ack"]);
    // One byte of data is one too, two are a retransmission.
    assert_eq!(flags(x.data(2000, 1)), ["keep_alive"]);
    assert!(flags(x.data(1999, 2)).contains(&"spurious_retransmission"));
}

#[test]
fn scaling_takes_both_sides() {
    let mut x = Exchange::new(Rules::Wireshark40);
    let syn = Sent {
        seq: 1000,
        window: 1000,
        flags: SYN,
        options: crate::exchange::syn_options(7),
        ..Sent::default()
    };
    x.send(syn);
    x.send(Sent {
        from_b: true,
        seq: 5000,
        ack: 1001,
        window: 1000,
        flags: SYN | ACK,
        ..Sent::default()
    });
    let direction = x.sent_by_a();
    assert_eq!(x.connection().window_scale(direction), WindowScale::Off);
    assert_eq!(x.connection().window_scale(direction.reverse()), WindowScale::Off);
    x.data(1001, 0);
    x.ack(1001, 1000);
    // Not scaled: 1000 bytes fill it.
    assert_eq!(flags(x.data(1001, 1000)), ["window_full"]);
}
