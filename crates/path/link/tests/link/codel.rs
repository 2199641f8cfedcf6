//! CoDel against a reference implementation of RFC 8289, drop for drop.

use crate::arrange::{MILLISECOND, ROOM, at_ms, drain, fates_of_all, ms, queueing};
use link::{Cause, CoDel, Fate, FateKind, Limit, Link, Queue, Train};
use proptest::prelude::*;
use std::collections::VecDeque;
use units::Nanos;

/// At 8 Mbit/s a byte takes 1 µs.
const RATE: u64 = 8_000_000;
const BYTE: u64 = 1_000;

const TARGET: u64 = 5 * MILLISECOND;
const INTERVAL: u64 = 100 * MILLISECOND;

fn codel() -> Queue {
    Queue::CoDel(CoDel { target: ms(5), interval: ms(100), limit: ROOM, ecn: false })
}

/// Section 5 of the RFC, implemented literally, beside a bottleneck that dequeues
/// whenever it is free, also if the queue is empty.
#[derive(Default)]
struct Reference {
    /// Arrival, size, number.
    waiting: VecDeque<(u64, u64, u64)>,
    largest: u64,
    /// Zero: not above the target.
    first_above_time: u64,
    drop_next: u64,
    count: u64,
    last_count: u64,
    dropping: bool,
    free_at: u64,
    busy: bool,
    /// Number and time.
    drops: Vec<(u64, u64)>,
}

impl Reference {
    fn arrive(&mut self, now: u64, sizes: &[u64], first: u64) {
        self.serve_until(now);
        for (number, size) in (first..).zip(sizes) {
            self.largest = self.largest.max(*size);
            self.waiting.push_back((now, *size, number));
        }
        if !self.busy {
            self.free_at = now;
            self.busy = true;
            self.serve_until(now);
        }
    }

    fn serve_until(&mut self, now: u64) {
        while self.busy && self.free_at <= now {
            match self.dequeue(self.free_at) {
                Some(size) => self.free_at += size * BYTE,
                None => self.busy = false,
            }
        }
    }

    fn may_drop(&mut self, now: u64) -> (Option<(u64, u64, u64)>, bool) {
        let Some(packet) = self.waiting.pop_front() else {
            self.first_above_time = 0;
            return (None, false);
        };
        let left: u64 = self.waiting.iter().map(|(_, size, _)| size).sum();
        if now - packet.0 < TARGET || left <= self.largest {
            self.first_above_time = 0;
        } else if self.first_above_time == 0 {
            self.first_above_time = now + INTERVAL;
        } else if now >= self.first_above_time {
            return (Some(packet), true);
        }
        (Some(packet), false)
    }

    fn dequeue(&mut self, now: u64) -> Option<u64> {
        let (mut packet, mut may_drop) = self.may_drop(now);
        if self.dropping {
            if !may_drop {
                self.dropping = false;
            }
            while self.dropping && now >= self.drop_next {
                self.drops.push((packet?.2, now));
                self.count += 1;
                (packet, may_drop) = self.may_drop(now);
                if may_drop {
                    self.drop_next += spacing(self.count);
                } else {
                    self.dropping = false;
                }
            }
        } else if may_drop {
            self.drops.push((packet?.2, now));
            (packet, _) = self.may_drop(now);
            self.dropping = true;
            let delta = self.count - self.last_count;
            let recent = now.saturating_sub(self.drop_next) < 16 * INTERVAL;
            self.count = if delta > 1 && recent { delta } else { 1 };
            self.drop_next = now + spacing(self.count);
            self.last_count = self.count;
        }
        packet.map(|(_, size, _)| size)
    }
}

fn spacing(count: u64) -> u64 {
    (INTERVAL as f64 / (count as f64).sqrt()) as u64
}

fn drops_of(fates: &[Fate<u32>]) -> Vec<(u64, u64)> {
    let drop = |fate: &Fate<u32>| match fate.kind {
        FateKind::Dropped(cause) => {
            assert_eq!(cause, Cause::Aqm);
            Some((fate.number, fate.decided.0))
        }
        FateKind::Delivered { .. } => None,
    };
    fates.iter().filter_map(drop).collect()
}

/// Offers packets of that size at a multiple of the rate; returns the end time.
fn offer(link: &mut Link<u32>, from: u64, time: u64, load: f64, size: u32) -> u64 {
    let gap = (f64::from(size) * BYTE as f64 / load) as u64;
    let mut now = from;
    while now < from + time {
        link.arrive(Nanos(now), Train::single(size), 0);
        now += gap;
    }
    now
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    /// Phases of overload and underload, with packets and trains of any size: the same
    /// packets are dropped at the same times.
    #[test]
    fn drops_what_the_rfc_drops(
        phases in prop::collection::vec((20u64..700, 0.1f64..3.0, 60u32..1500, 1u32..6), 1..12),
    ) {
        let (mut link, mut reference) = (queueing(RATE, codel()), Reference::default());
        let (mut now, mut number) = (0, 1);
        for (time, load, size, packets) in phases {
            let train = Train::segmented(40, packets * size - size / 2, size);
            let sizes: Vec<u64> = (0..train.packets()).map(|i| train.size(i).into()).collect();
            let gap = (sizes.iter().sum::<u64>() as f64 * BYTE as f64 / load) as u64;
            let end = now + time * MILLISECOND;
            while now < end {
                link.arrive(Nanos(now), train, 0);
                reference.arrive(now, &sizes, number);
                number += sizes.len() as u64;
                now += gap;
            }
        }
        reference.serve_until(u64::MAX);
        prop_assert_eq!(drops_of(&fates_of_all(&mut link)), reference.drops);
        prop_assert_eq!(link.counters().sent + link.counters().aqm_drops, number - 1);
    }
}

#[test]
fn drops_come_by_the_control_law() {
    let mut link = queueing(RATE, codel());
    offer(&mut link, 0, 4_000 * MILLISECOND, 2.0, 1000);
    let times: Vec<u64> =
        drops_of(&fates_of_all(&mut link)).iter().map(|(_, at)| *at).take(60).collect();
    // At twice the rate the delay grows by half of the time that passes: 5 ms are reached
    // after 10 ms, and the first drop follows an interval later.
    assert!((105 * MILLISECOND..120 * MILLISECOND).contains(&times[0]), "{}", times[0]);
    let mut expected = times[0] as f64;
    for (count, at) in (1u32..).zip(&times[1..]) {
        expected += INTERVAL as f64 / f64::from(count).sqrt();
        // A drop happens when a packet leaves: up to a millisecond later.
        let late = *at as f64 - expected;
        assert!((-100.0..=MILLISECOND as f64 + 100.0).contains(&late), "drop {count}: {late} ns");
    }
}

#[test]
fn dropping_resumes_near_the_previous_rate() {
    // Two phases of overload. If the second follows within 16 intervals of the next drop
    // time, it starts at the previous drop rate, otherwise with one drop per interval.
    let mut seen = [0, 0];
    for pause in (500..2_500).step_by(10) {
        let mut link = queueing(RATE, codel());
        let end = offer(&mut link, 0, 1_000 * MILLISECOND, 1.3, 1000);
        let again = end + pause * MILLISECOND;
        offer(&mut link, again, 1_000 * MILLISECOND, 1.3, 1000);
        let drops = drops_of(&fates_of_all(&mut link));
        let (first, second): (Vec<u64>, Vec<u64>) =
            drops.iter().map(|drop| drop.1).partition(|at| *at < again);
        // At the end of the first phase the distance of drops was at most 20 ms.
        let since = second[0] - first[first.len() - 1];
        let fast = second[1] - second[0] < 60 * MILLISECOND;
        if !(16 * INTERVAL..16 * INTERVAL + 40 * MILLISECOND).contains(&since) {
            assert_eq!(fast, since < 16 * INTERVAL, "after {since} ns");
            let near = since.abs_diff(16 * INTERVAL) < 60 * MILLISECOND;
            seen[usize::from(fast)] += u32::from(near);
        }
    }
    assert!(seen.iter().all(|near| *near > 0), "no pause near the edge: {seen:?}");
}

#[test]
fn short_queues_and_bursts_pass() {
    // A single packet of MTU size waits behind another for longer than the target: at
    // 1 Mbit/s each takes 12 ms. A queue cannot be shorter than that.
    let mut slow = queueing(1_000_000, codel());
    for packet in 0..500 {
        slow.arrive(at_ms(12 * packet), Train::single(1500), 0);
        slow.arrive(at_ms(12 * packet), Train::single(40), 0);
        drain(&mut slow);
    }
    assert_eq!(slow.counters().aqm_drops, 0);
    // A burst of 90 ms drains within an interval.
    let mut burst = queueing(RATE, codel());
    for _ in 0..90 {
        burst.arrive(Nanos(0), Train::single(1000), 0);
    }
    drain(&mut burst);
    assert_eq!((burst.counters().aqm_drops, burst.counters().sent), (0, 90));
}

#[test]
fn a_full_queue_drops_what_comes() {
    let codel = CoDel { target: ms(5), interval: ms(100), limit: Limit::Packets(10), ecn: true };
    let mut link = queueing(RATE, Queue::CoDel(codel));
    link.arrive(Nanos(0), Train::segmented(0, 30_000, 1000), 0);
    assert_eq!((link.counters().queue_drops, drain(&mut link).len()), (20, 10));
}
