//! Drops: full queues, MTU, policer; and rates that are not constant.

use crate::arrange::{
    SECOND, at_ms, config, drain, dropped, fates_of_all, queueing, train, watched,
};
use link::{
    Cause, FateKind, Fifo, Limit, LinkConfig, Protocol, ProtocolFilter, Queue, Rate, TokenBucket,
    Trace, Train,
};
use proptest::prelude::*;
use std::sync::Arc;
use units::{BitRate, ByteCount, Nanos};

fn bucket(rate: u64, burst: u64) -> TokenBucket {
    TokenBucket { rate: BitRate::from_bps(rate), burst: ByteCount::from_bytes(burst) }
}

fn drop_head(limit: Limit) -> Queue {
    Queue::DropHead(Fifo { limit, mark: None })
}

#[test]
fn drop_head_drops_the_oldest() {
    let mut link = queueing(1_000_000, drop_head(Limit::Packets(3)));
    for _ in 0..6 {
        link.arrive(Nanos(0), Train::single(1500), 0);
    }
    // The first is being sent; of the others the newest three are kept.
    assert_eq!(dropped(&fates_of_all(&mut link)), [2, 3]);
    // Of a train larger than the queue the end is kept.
    link.arrive(Nanos(SECOND), train(10), 0);
    let gone = dropped(&fates_of_all(&mut link));
    assert_eq!(gone, (7..=13).collect::<Vec<_>>());
}

#[test]
fn drop_head_drops_as_much_as_needed() {
    let limit = Limit::Bytes(ByteCount::from_bytes(3_000));
    let mut link = queueing(1_000_000, drop_head(limit));
    // One packet being sent, then 3000 bytes queued.
    for size in [1500, 1000, 1000, 1000] {
        link.arrive(Nanos(0), Train::single(size), 0);
    }
    link.arrive(Nanos(0), Train::single(1001), 0);
    assert_eq!(dropped(&fates_of_all(&mut link)), [2, 3]);
}

#[test]
fn a_byte_limit_takes_a_short_last_packet_that_fits() {
    let limit = Limit::Bytes(ByteCount::from_bytes(3_500));
    let mut link = queueing(1_000_000, Queue::drop_tail(limit));
    link.arrive(Nanos(0), Train::single(1500), 0);
    // 1500, 1500, 1500 and 400 bytes: the third does not fit, the fourth does.
    link.arrive(Nanos(0), Train::segmented(52, 3 * 1448 + 348, 1448), 0);
    assert_eq!(dropped(&fates_of_all(&mut link)), [4]);
}

#[test]
fn without_a_rate_limit_nothing_is_queued() {
    let queue = Queue::drop_tail(Limit::Packets(0));
    let mut link = watched(LinkConfig { rate: Rate::Unlimited, queue, ..config(1, 5) });
    link.arrive(at_ms(1), train(45), 0);
    let out = drain(&mut link);
    assert_eq!((out.len(), out[0].packets.clone(), out[0].due), (1, 0..45, at_ms(6)));
    assert_eq!(link.counters().queue_drops, 0);
}

#[test]
fn longer_than_the_mtu_is_dropped_and_nothing_else() {
    let mut link = watched(LinkConfig { mtu: Some(1400), ..config(1_000_000_000, 0) });
    for size in [1400, 1401] {
        link.arrive(Nanos(0), Train::single(size), 0);
    }
    // Of a train only the short last packet passes. Framing does not count towards the MTU.
    link.arrive(Nanos(0), Train::segmented(52, 3 * 1448 + 100, 1448), 0);
    let fates = fates_of_all(&mut link);
    assert_eq!(dropped(&fates), [2, 3, 4, 5]);
    assert!(fates[..4].iter().any(|fate| fate.kind == FateKind::Dropped(Cause::TooLong)));
    assert_eq!(link.counters().too_long, 4);
}

#[test]
fn a_policer_passes_its_burst_and_its_rate() {
    // 8 Mbit/s are one byte per µs. Offered: the burst, and ten times the rate.
    let policer = Some(bucket(8_000_000, 30_000));
    let mut link = watched(LinkConfig { policer, ..config(10_000_000_000, 0) });
    link.arrive(Nanos(0), Train::segmented(0, 30_000, 1000), 0);
    for packet in 0..10_000u64 {
        link.arrive(Nanos(packet * 100_000), Train::single(1000), 0);
    }
    let fates = fates_of_all(&mut link);
    assert!(dropped(&fates).iter().all(|number| *number > 30));
    let mut passed = 0;
    for fate in fates.iter().filter(|fate| matches!(fate.kind, FateKind::Delivered { .. })) {
        passed += 1000;
        let most = 30_000 + fate.arrived.0 / 1000;
        // Never more, and less by under one packet.
        assert!(
            passed <= most && (passed + 1000 > most || passed < 30_000),
            "{passed} bytes at {:?}",
            fate.arrived
        );
    }
    // 30 packets at once, then one per ms up to 999.9 ms.
    assert_eq!(link.counters().sent, 1_029);
    assert_eq!(link.counters().policed, 10_030 - 1_029);
}

#[test]
fn protocols_are_filtered_alone() {
    let policed = ProtocolFilter { policer: Some(bucket(8_000_000, 3_000)), blackhole: false };
    let blocked = ProtocolFilter { policer: None, blackhole: true };
    let mut link = watched(LinkConfig { filters: [policed, blocked], ..config(1 << 40, 0) });
    let protocols = [Some(Protocol::Udp), Some(Protocol::Tcp), None];
    for packet in 0..30u64 {
        let protocol = protocols[packet as usize % 3];
        link.arrive(Nanos(packet), Train::single(1000).of_protocol(protocol), 0);
    }
    // UDP's burst, no TCP, and all of the rest.
    let fates = fates_of_all(&mut link);
    let passed: Vec<u64> = (1..=30).filter(|number| !dropped(&fates).contains(number)).collect();
    assert_eq!(passed, [1, 3, 4, 6, 7, 9, 12, 15, 18, 21, 24, 27, 30]);
    assert_eq!(link.counters().policed, 17);
}

proptest! {
    /// For any arrivals: between any two times at most burst + rate × time passes (RFC 2475),
    /// and every dropped packet would have exceeded that.
    #[test]
    fn a_policer_conforms_between_any_two_moments(
        rate in 10_000u64..100_000_000,
        burst in 0u64..50_000,
        trains in prop::collection::vec((0u64..20_000_000, 0u32..10_000), 1..80),
    ) {
        let config = LinkConfig { policer: Some(bucket(rate, burst)), ..config(1 << 40, 0) };
        let mut link = watched(config);
        let mut now = 0;
        for (gap, payload) in trains {
            now += gap;
            link.arrive(Nanos(now), Train::segmented(52, payload, 1448), 0);
        }
        let mut fates = fates_of_all(&mut link);
        fates.sort_by_key(|fate| fate.number);
        // Bits × 10^9: exact.
        let size = |fate: &link::Fate<u32>| i128::from(fate.train.size(fate.index)) * 8 * 1_000_000_000;
        let mut tokens = i128::from(burst) * 8 * 1_000_000_000;
        let (full, mut before) = (tokens, 0);
        for fate in &fates {
            tokens = full.min(tokens + i128::from(fate.arrived.0 - before) * i128::from(rate));
            before = fate.arrived.0;
            let policed = fate.kind == FateKind::Dropped(Cause::Policed);
            prop_assert_eq!(policed, size(fate) > tokens);
            tokens -= if policed { 0 } else { size(fate) };
        }
    }
}

#[test]
fn a_token_bucket_sends_its_burst_at_once_and_then_its_rate() {
    let rate = Rate::TokenBucket(bucket(8_000_000, 10_000));
    let mut link = watched(LinkConfig { rate, ..config(1, 0) });
    let mut offer = |now, packets| {
        for _ in 0..packets {
            link.arrive(now, Train::single(1000), 0);
        }
        drain(&mut link).iter().map(|d| (d.due.0 - now.0) / 1_000).collect::<Vec<_>>()
    };
    let burst_then_rate: Vec<u64> = (1..=20u64).map(|k| k.saturating_sub(10) * 1_000).collect();
    assert_eq!(offer(Nanos(0), 20), burst_then_rate);
    // After 4 ms of idle time there are tokens for 4000 bytes, after a second for 10 000.
    assert_eq!(offer(at_ms(14), 6), [0, 0, 0, 0, 1_000, 2_000]);
    assert_eq!(offer(at_ms(1_016), 11), [[0; 10].as_slice(), &[1_000]].concat());
}

#[test]
fn a_trace_sends_at_its_times() {
    let trace = Arc::new(Trace::parse("2\n2\n5\n").unwrap());
    let mut link = watched(LinkConfig { rate: Rate::Trace(trace), ..config(1, 10) });
    link.arrive(Nanos(0), train(6), 0);
    let ends: Vec<u64> = drain(&mut link).iter().map(|d| d.due.0 / 1_000_000).collect();
    // The two at the same time are one delivery; the trace repeats from 5.
    assert_eq!(ends, [12, 15, 17, 20]);
    // A later arrival waits for the next opportunity only: at 22, 22 and 25 ms.
    link.arrive(at_ms(21), train(1), 0);
    link.arrive(at_ms(23), train(1), 0);
    let ends: Vec<u64> = drain(&mut link).iter().map(|d| d.due.0 / 1_000_000).collect();
    assert_eq!(ends, [32, 35]);
}

#[test]
fn a_full_queue_admits_packets_that_need_not_wait() {
    for queue in [Queue::drop_tail(Limit::Packets(0)), drop_head(Limit::Packets(0))] {
        let mut link = queueing(12_000_000, queue);
        for (now, kept) in [(0, true), (0, false), (1, true)] {
            let before = link.counters().queue_drops;
            link.arrive(at_ms(now), Train::single(1500), 0);
            assert_eq!(link.counters().queue_drops == before, kept, "{queue:?}");
        }
    }
}
