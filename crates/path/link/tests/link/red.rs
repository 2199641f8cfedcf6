//! RED against the paper.

use crate::arrange::{MILLISECOND, ROOM, drain, queueing};
use crate::statistics::{CHI_SQUARE_18, chi_square};
use link::{Cause, FateKind, Limit, Link, Queue, Red, Train};
use proptest::prelude::*;
use units::{ByteCount, Nanos, Probability};

/// At 8 Mbit/s a packet of 1000 bytes takes 1 ms.
const RATE: u64 = 8_000_000;

fn bytes(bytes: u64) -> ByteCount {
    ByteCount::from_bytes(bytes)
}

fn red(weight: u8) -> Red {
    Red {
        min: bytes(30_000),
        max: bytes(90_000),
        probability: "10%".parse().unwrap(),
        weight,
        limit: ROOM,
        ecn: false,
    }
}

/// Keeps the queue so that each arrival finds exactly `found` bytes; returns which of
/// `packets` were dropped, after as many to let the average converge.
fn hold(link: &mut Link<u32>, found: u64, packets: u64) -> Vec<bool> {
    let mut now = 0;
    let mut offered = 0;
    while offered < 2 * packets {
        while link.queued_bytes().bytes() <= found && offered < 2 * packets {
            offered += 1;
            link.arrive(Nanos(now), Train::single(1000), 0);
        }
        now += MILLISECOND;
        drain_until(link, now);
    }
    drain(link);
    let mut fates: Vec<_> = link.fates().collect();
    fates.sort_by_key(|fate| fate.number);
    let dropped = |kind| matches!(kind, FateKind::Dropped(Cause::Aqm));
    fates.iter().skip(packets as usize).map(|fate| dropped(fate.kind)).collect()
}

fn drain_until(link: &mut Link<u32>, now: u64) {
    while link.release(Nanos(now)).is_some() {}
}

#[test]
fn drops_are_uniform_between_one_and_the_inverse_of_the_probability() {
    // Halfway between min and max: p_b = 5 %. With the paper's counting the distances
    // 1..=19 packets are equally likely; their mean is 10.
    let mut link = queueing(RATE, Queue::Red(red(9)));
    let drops = hold(&mut link, 60_000, 100_000);
    let share = drops.iter().filter(|drop| **drop).count() as f64 / drops.len() as f64;
    let mut distances = [0u64; 19];
    let mut distance = 0;
    for drop in drops.iter().skip_while(|drop| !**drop).skip(1) {
        distance += 1;
        if *drop {
            distances[distance - 1] += 1;
            distance = 0;
        }
    }
    assert!((share - 0.1).abs() < 0.003, "{share}");
    let expected = [distances.iter().sum::<u64>() as f64 / 19.0; 19];
    let statistic = chi_square(&distances, &expected);
    assert!(statistic < CHI_SQUARE_18, "{statistic}: {distances:?}");
}

#[test]
fn the_share_follows_the_average() {
    // 0 below min; from max to 2 max rising from 10 % to 100 % (gentle); then 1.
    // p_b = 25 % at 105 000 bytes: 1..=3 packets from drop to drop.
    for (found, share) in [(29_000, 0.0), (105_000, 0.5)] {
        let mut link = queueing(RATE, Queue::Red(red(9)));
        let drops = hold(&mut link, found, 30_000);
        let came = drops.iter().filter(|drop| **drop).count() as f64 / drops.len() as f64;
        assert!((came - share).abs() < 0.005, "{found} bytes: {came}");
    }
    // With weight 0 the average is the queue itself: 180 packets of 1000 bytes, no more.
    let certain =
        Red { probability: Probability::NEVER, min: bytes(179_999), max: bytes(90_000), ..red(0) };
    let mut link = queueing(RATE, Queue::Red(certain));
    for _ in 0..500 {
        link.arrive(Nanos(0), Train::single(1000), 0);
    }
    assert_eq!((link.queued_bytes().bytes(), link.counters().aqm_drops), (180_000, 319));
}

#[test]
fn a_full_queue_drops_whatever_the_average() {
    let mut link = queueing(RATE, Queue::Red(Red { limit: Limit::Packets(20), ..red(9) }));
    link.arrive(Nanos(0), Train::segmented(0, 45_000, 1000), 0);
    assert_eq!((link.counters().queue_drops, link.counters().aqm_drops), (25, 0));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    /// With `min` nearly equal to `max` and certain drops, RED is a threshold on its average,
    /// including idle times: the paper's recurrence gives for each packet on which side it
    /// is.
    #[test]
    fn the_average_is_that_of_the_paper(
        weight in 2u8..8,
        // Bursts, and idle times up to a second.
        phases in prop::collection::vec((1u32..80, 0u64..1_000_000), 1..60),
    ) {
        let edge = 20_000.0;
        let (min, max) = (bytes(20_000), bytes(20_001));
        let settings = Red { min, max, probability: Probability::ALWAYS, ..red(weight) };
        let mut link = queueing(RATE, Queue::Red(settings));
        let wq = libm::exp2(-f64::from(weight));
        let (mut now, mut average) = (0u64, 0.0f64);
        let mut emptied = None;
        for (packets, pause) in phases {
            for _ in 0..packets {
                // Advances to here; a packet that left the queue empty started to be sent a
                // millisecond before its end.
                drain_until(&mut link, now);
                let left = link.fates().filter(|f| matches!(f.kind, FateKind::Delivered { .. }));
                let latest = left.last().map(|fate| fate.decided.0 - MILLISECOND);
                let waiting = link.queued_bytes().bytes();
                if waiting > 0 {
                    emptied = None;
                    average += wq * (waiting as f64 - average);
                } else if let Some(since) = latest.or(emptied) {
                    // A typical packet takes 1 ms.
                    average *= libm::pow(1.0 - wq, (now - since) as f64 / MILLISECOND as f64);
                    emptied = Some(now);
                }
                // At the threshold itself rounding may decide.
                prop_assume!((average - edge).abs() > 1.5);
                let before = link.counters().aqm_drops;
                link.arrive(Nanos(now), Train::single(1000), 0);
                let dropped = link.counters().aqm_drops > before;
                prop_assert_eq!(dropped, average > edge, "average {} at {} ns", average, now);
                now += 137_000;
            }
            now += pause * 1_000;
        }
    }
}
