//! Settings that change while packets are queued or in flight.

use crate::arrange::{ROOM, SECOND, at_ms, config, drain, fates_of_all, ms, train, watched};
use link::{
    CoDel, Fate, FateKind, Fifo, FqCoDel, Limit, Link, LinkConfig, Pie, Queue, Red, Schedule,
};
use std::time::Duration;
use units::{ByteCount, Nanos};

/// At 12 Mbit/s a packet of 1500 bytes takes 1 ms.
const SLOW: u64 = 12_000_000;
const FAST: u64 = 24_000_000;

fn ends(fates: &[Fate<u32>]) -> Vec<u64> {
    fates.iter().map(|fate| fate.decided.0).collect()
}

#[test]
fn a_rate_step_takes_effect_at_its_moment() {
    let changes = vec![(Nanos(5 * SECOND), config(FAST, 0))];
    let mut link = Link::new(Schedule { start: config(SLOW, 0), changes, repeat: None });
    link.watch(true);
    for _ in 0..400 {
        link.arrive(Nanos(0), train(45), 0);
    }
    let ends = ends(&fates_of_all(&mut link));
    for (number, end) in (1u64..).zip(&ends) {
        // The packet that starts to be sent at 5 s is the first with the new rate.
        let half_ms = if number <= 5_000 { 2 * number } else { 10_000 + (number - 5_000) };
        assert_eq!(*end, half_ms * 500_000, "packet {number}");
    }
    assert_eq!(ends.len(), 18_000);
}

#[test]
fn the_packet_being_sent_keeps_its_rate() {
    // A change in the middle of a packet of 1 ms.
    let changes = vec![(Nanos(2_500_000), config(FAST, 0))];
    let mut link = Link::new(Schedule { start: config(SLOW, 0), changes, repeat: None });
    link.watch(true);
    link.arrive(Nanos(0), train(5), 0);
    let ends: Vec<u64> = ends(&fates_of_all(&mut link)).iter().map(|end| end / 1_000).collect();
    assert_eq!(ends, [1_000, 2_000, 3_000, 3_500, 4_000]);
}

#[test]
fn a_schedule_repeats() {
    let changes = vec![(at_ms(100), config(FAST, 0))];
    let schedule = Schedule { start: config(SLOW, 0), changes, repeat: Some(ms(200)) };
    let mut link = Link::new(schedule);
    link.watch(true);
    for _ in 0..40 {
        link.arrive(Nanos(0), train(45), 0);
    }
    let ends = ends(&fates_of_all(&mut link));
    // 100 packets, then 200, and so on.
    for lap in 0..5u64 {
        let within = |from, to| {
            let range = at_ms(200 * lap + from).0 + 1..=at_ms(200 * lap + to).0;
            ends.iter().filter(|end| range.contains(end)).count()
        };
        assert_eq!((within(0, 100), within(100, 200)), (100, 200), "lap {lap}");
    }
}

#[test]
fn a_change_after_the_repeat_period_is_never_reached() {
    let changes = vec![(at_ms(100), config(FAST, 0)), (at_ms(500), config(1_000, 0))];
    let schedule = Schedule { start: config(SLOW, 0), changes, repeat: Some(ms(200)) };
    assert_eq!(schedule.at(at_ms(150)).1, Some(at_ms(200)));
    assert_eq!(schedule.at(at_ms(200)), (&config(SLOW, 0), Some(at_ms(300))));
}

#[test]
fn a_shorter_delay_lets_nothing_overtake() {
    let changes = vec![(at_ms(10), config(SLOW, 5))];
    let mut link = Link::new(Schedule { start: config(SLOW, 100), changes, repeat: None });
    link.arrive(Nanos(0), train(20), 0);
    let out = drain(&mut link);
    assert!(out.is_sorted_by_key(|delivery| (delivery.due, delivery.packets.start)));
    assert_eq!(out.last().unwrap().due, at_ms(110), "right after the one before");
}

/// Every discipline, with space.
fn queues() -> [Queue; 6] {
    let codel = CoDel { target: ms(5), interval: ms(100), limit: ROOM, ecn: false };
    let red = Red {
        min: ByteCount::from_bytes(1 << 20),
        max: ByteCount::from_bytes(1 << 21),
        probability: "10%".parse().unwrap(),
        weight: 9,
        limit: ROOM,
        ecn: false,
    };
    let pie = Pie { target: ms(15), update: ms(15), burst: ms(150), limit: ROOM, ecn: false };
    [
        Queue::drop_tail(ROOM),
        Queue::DropHead(Fifo { limit: ROOM, mark: None }),
        Queue::CoDel(codel),
        Queue::FqCoDel(FqCoDel { codel, flows: 16, quantum: 1514 }),
        Queue::Red(red),
        Queue::Pie(pie),
    ]
}

#[test]
fn queued_packets_move_to_the_new_queue() {
    for before in queues() {
        for after in queues() {
            let mut link = watched(LinkConfig { queue: before, ..config(SLOW, 3) });
            for number in 0..9 {
                link.arrive(Nanos(0), train(10).of_flow(number % 3), number);
            }
            assert_eq!(link.queued_packets(), 89);
            let now = Nanos(10_300_000);
            link.reschedule(now, Nanos(0), LinkConfig { queue: after, ..config(SLOW, 3) });
            // Eleven packets have started to be sent, at 0 to 10 ms.
            assert_eq!((link.queued_packets(), link.queued_bytes().bytes()), (79, 79 * 1500));
            // Within CoDel's interval and PIE's burst allowance nothing is dropped.
            let fates = fates_of_all(&mut link);
            let came = |fate: &Fate<u32>| matches!(fate.kind, FateKind::Delivered { .. });
            assert_eq!(fates.iter().filter(|fate| came(fate)).count(), 90, "{before:?} {after:?}");
            for flow in 0..3 {
                let of_flow = fates.iter().filter(|fate| fate.payload % 3 == flow);
                assert!(of_flow.is_sorted_by_key(|fate| fate.number), "{before:?} {after:?}");
            }
            // The queueing delay counts from the arrival.
            let last = fates.iter().max_by_key(|fate| fate.decided).unwrap();
            let FateKind::Delivered { queued, .. } = last.kind else { unreachable!() };
            assert_eq!(queued, Duration::from_millis(89));
        }
    }
}

#[test]
fn a_smaller_queue_keeps_what_fits() {
    let mut link = watched(config(SLOW, 0));
    link.arrive(Nanos(0), train(45), 0);
    let queue = Queue::drop_tail(Limit::Packets(10));
    link.reschedule(Nanos(1), Nanos(0), LinkConfig { queue, ..config(SLOW, 0) });
    assert_eq!((link.queued_packets(), link.counters().queue_drops), (10, 34));
    assert_eq!(fates_of_all(&mut link).len(), 45);
}

#[test]
fn a_change_on_an_idle_link_takes_effect_at_once() {
    let changes = vec![(Nanos(SECOND), config(FAST, 7))];
    let mut link = Link::new(Schedule { start: config(SLOW, 3), changes, repeat: None });
    assert_eq!(link.next_due(), None);
    link.arrive(Nanos(2 * SECOND), train(1), 0);
    assert_eq!(link.next_due(), Some(Nanos(2 * SECOND + 7_500_000)));
    assert_eq!(link.config().delay, ms(7));
}
