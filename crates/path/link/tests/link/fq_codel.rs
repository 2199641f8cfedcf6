//! FQ-CoDel against RFC 8290.

use crate::arrange::{ROOM, SECOND, at_ms, config, fates_of_all, ms, queueing, train};
use crate::senders::{self, Passed};
use link::{Cause, CoDel, FateKind, FqCoDel, Limit, LinkConfig, Queue, Train};
use units::{ByteCount, Nanos};

/// Queue of one second at 20 Mbit/s.
const A_SECOND: Limit = Limit::Bytes(ByteCount::from_bytes(2_500_000));

fn codel(limit: Limit) -> CoDel {
    CoDel { target: ms(5), interval: ms(100), limit, ecn: false }
}

fn fq_codel(limit: Limit) -> Queue {
    Queue::FqCoDel(FqCoDel { codel: codel(limit), flows: 1024, quantum: 1514 })
}

/// 20 Mbit/s, RTT 40 ms.
fn path(queue: Queue) -> LinkConfig {
    LinkConfig { queue, ..config(20_000_000, 20) }
}

/// Longest queueing delay of a flow's packets after the first ten seconds, ms.
fn longest(passed: &[Passed], flow: u32) -> f64 {
    let late = passed.iter().filter(|p| p.flow == flow && p.arrived.0 > 10 * SECOND);
    late.map(|p| p.queued.as_secs_f64() * 1e3).fold(0.0, f64::max)
}

#[test]
fn a_ping_beside_a_bulk_flow_is_hardly_delayed() {
    let run = |queue| senders::run(path(queue), &[1500], Some(50_000_000), 60 * SECOND);
    let ping = 1;
    let drop_tail = run(Queue::drop_tail(A_SECOND));
    assert!(longest(&drop_tail, ping) > 500.0, "{}", longest(&drop_tail, ping));
    // A shared queue with CoDel: the bulk flow's standing queue is short, but delays the
    // ping.
    let shared = run(Queue::CoDel(codel(A_SECOND)));
    assert!(longest(&shared, ping) < 60.0, "{}", longest(&shared, ping));
    // Separate queues: a delay of at most one quantum of the other flow, 0.6 ms.
    let fair = run(fq_codel(A_SECOND));
    assert!(longest(&fair, ping) < 2.0, "{}", longest(&fair, ping));
    let bulk = fair.iter().filter(|p| p.flow == 0);
    let bytes: u64 = bulk.map(|p| u64::from(p.size)).sum();
    let share = bytes as f64 * 8.0 / (60.0 * 20e6);
    assert!(share > 0.85, "the bulk flow used {share} of the link");
}

#[test]
fn two_bulk_flows_share_by_bytes() {
    // Each flow offers more than the link rate, in packets of different sizes.
    let mut link = queueing(20_000_000, fq_codel(ROOM));
    let end = 5 * SECOND;
    for (flow, size) in [(0, 1500u64), (1, 300)] {
        // 30 Mbit/s each.
        assert_eq!(size * 8 * SECOND % 30_000_000, 0, "{flow}");
    }
    let mut next = [0u64; 2];
    let sizes = [1500u32, 300];
    while next[0].min(next[1]) < end {
        let flow = usize::from(next[1] < next[0]);
        link.arrive(
            Nanos(next[flow]),
            Train::single(sizes[flow]).of_flow(flow as u32),
            flow as u32,
        );
        next[flow] += u64::from(sizes[flow]) * 8 * SECOND / 30_000_000;
    }
    let fates: Vec<_> = link.fates().collect();
    let mut bytes = [0u64; 2];
    for fate in fates {
        if matches!(fate.kind, FateKind::Delivered { .. }) && fate.decided.0 > SECOND {
            bytes[fate.payload as usize] += u64::from(fate.train.size(fate.index));
        }
    }
    // DRR keeps any two within a quantum and a packet of each other.
    assert!(bytes[0].abs_diff(bytes[1]) <= 2 * (1514 + 1500), "{bytes:?}");
    assert!(bytes[0] > 4_900_000, "{bytes:?}");
}

#[test]
fn overflow_drops_half_of_the_longest_queue() {
    let mut link = queueing(1_000_000, fq_codel(Limit::Packets(100)));
    let (fat, thin) = (7, 8);
    for _ in 0..100 {
        link.arrive(Nanos(0), Train::single(1500).of_flow(fat), fat);
    }
    link.arrive(Nanos(0), Train::single(1500).of_flow(thin), thin);
    assert_eq!((link.counters().queue_drops, link.queued_packets()), (0, 100));
    // The packet that exceeds the limit is of the thin flow. It is kept.
    link.arrive(Nanos(0), Train::single(1500).of_flow(thin), thin);
    assert_eq!((link.counters().queue_drops, link.queued_packets()), (50, 51));
    let fates = fates_of_all(&mut link);
    let full = FateKind::Dropped(Cause::QueueFull);
    let numbers: Vec<u64> = fates.iter().filter(|f| f.kind == full).map(|f| f.number).collect();
    // Packet 1 is being sent already.
    assert_eq!(numbers, (2..=51).collect::<Vec<_>>());
}

#[test]
fn overflow_drops_at_most_64_at_once() {
    let mut link = queueing(1_000_000, fq_codel(Limit::Packets(1_000)));
    for _ in 0..1_001 {
        link.arrive(Nanos(0), Train::single(1500), 0);
    }
    assert_eq!(link.counters().queue_drops, 0);
    link.arrive(Nanos(0), Train::single(1500), 0);
    assert_eq!((link.counters().queue_drops, link.queued_packets()), (64, 937));
    // The same for a train that is longer than the remaining space.
    link.arrive(Nanos(0), train(45), 0);
    link.arrive(Nanos(0), train(45), 0);
    assert_eq!((link.counters().queue_drops, link.queued_packets()), (128, 963));
}

#[test]
fn new_flows_go_first_and_then_take_turns() {
    let mut link = queueing(12_000_000, fq_codel(ROOM));
    // Flow 1 has a standing queue; flows 2 and 3 start later, with two packets each.
    link.arrive(Nanos(0), train(10).of_flow(1), 1);
    for flow in [2, 3] {
        link.arrive(at_ms(2), train(2).of_flow(flow), flow);
    }
    let order: Vec<u32> = fates_of_all(&mut link).iter().map(|fate| fate.payload).collect();
    // Flow 1 sends at 0, 1 and 2 ms. The second packet uses up its quantum of 1514 bytes, as
    // for each flow: two packets per turn, as the first leaves 14 bytes.
    assert_eq!(order, [1, 1, 1, 2, 2, 3, 3, 1, 1, 1, 1, 1, 1, 1]);
}

#[test]
fn alternating_new_flows_do_not_starve_others() {
    // Two flows alternate so that one of them is new whenever the link is free, beside one
    // that waits. Each becomes an old queue once before it is new again.
    let mut link = queueing(12_000_000, fq_codel(ROOM));
    for _ in 0..30 {
        link.arrive(Nanos(0), train(45).of_flow(1), 1);
    }
    for turn in 10..1_000 {
        let flow = 2 + (turn % 2) as u32;
        let now = at_ms(turn).plus(ms(1) / 2);
        link.arrive(now, Train::single(1500).of_flow(flow), flow);
    }
    let sent = link.fates().filter(|f| f.payload == 1 && f.decided <= at_ms(1_000)).count();
    assert!((300..600).contains(&sent), "{sent} of 1000");
}

#[test]
fn a_flow_is_new_whenever_the_link_was_idle() {
    let mut link = queueing(12_000_000, fq_codel(ROOM));
    for round in 0..20 {
        link.arrive(at_ms(round * 10), Train::single(1500).of_flow(1), 1);
    }
    // It sent 30 000 bytes; if it had a deficit, flow 2 would go first.
    link.arrive(at_ms(200), Train::single(1500).of_flow(3), 3);
    link.arrive(at_ms(200), train(1).of_flow(1), 1);
    link.arrive(at_ms(200), train(1).of_flow(2), 2);
    let order: Vec<u32> = fates_of_all(&mut link).iter().map(|f| f.payload).skip(20).collect();
    assert_eq!(order, [3, 1, 2]);
}

#[test]
fn the_seed_decides_which_flows_share_a_queue() {
    // With 64 flows in 64 queues about 23 queues stay empty; which ones depends on the seed.
    let order = |seed| {
        let queue = Queue::FqCoDel(FqCoDel { codel: codel(ROOM), flows: 64, quantum: 1500 });
        let mut link = crate::arrange::watched(LinkConfig { queue, seed, ..config(12_000_000, 0) });
        link.arrive(Nanos(0), Train::single(1500), 99);
        for flow in 0..64 {
            link.arrive(Nanos(0), train(2).of_flow(flow), flow);
        }
        fates_of_all(&mut link).iter().map(|fate| fate.payload).collect::<Vec<_>>()
    };
    assert_eq!(order(1), order(1));
    assert_ne!(order(1), order(2));
}
