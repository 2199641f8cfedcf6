//! PIE against RFC 8033.

use crate::arrange::{MILLISECOND, ROOM, SECOND, at_ms, config, drain, fates_of_all, ms, queueing};
use crate::senders;
use link::{Cause, Fate, FateKind, LinkConfig, Pie, Queue, Train};
use units::Nanos;

/// At 8 Mbit/s a packet of 1000 bytes takes 1 ms.
const RATE: u64 = 8_000_000;

fn pie() -> Pie {
    Pie { target: ms(15), update: ms(15), burst: ms(150), limit: ROOM, ecn: false }
}

/// Times of AQM drops.
fn drop_times(fates: &[Fate<u32>]) -> Vec<u64> {
    let early = |fate: &&Fate<u32>| fate.kind == FateKind::Dropped(Cause::Aqm);
    fates.iter().filter(early).map(|fate| fate.decided.0).collect()
}

/// Offers packets of 1000 bytes every `gap` µs for `time` ms.
fn offered(pie: Pie, gap: u64, time: u64) -> Vec<Fate<u32>> {
    let mut link = queueing(RATE, Queue::Pie(pie));
    for packet in 0..time * 1000 / gap {
        link.arrive(Nanos(packet * gap * 1000), Train::single(1000), 0);
    }
    fates_of_all(&mut link)
}

#[test]
fn holds_the_delay_at_its_target() {
    for (target, update) in [(15, 15), (15, 5), (40, 15)] {
        let pie = Pie { target: ms(target), update: ms(update), ..pie() };
        let path = LinkConfig { queue: Queue::Pie(pie), ..config(20_000_000, 20) };
        let passed = senders::run(path, &[1500; 8], None, 60 * SECOND);
        let steady: Vec<_> = passed.iter().filter(|p| p.arrived.0 > 20 * SECOND).collect();
        let mean =
            steady.iter().map(|p| p.queued.as_secs_f64() * 1e3).sum::<f64>() / steady.len() as f64;
        let target = target as f64;
        assert!((mean - target).abs() < 0.25 * target, "{mean} ms for {target} ms");
        let used = steady.iter().map(|p| f64::from(p.size) * 8.0).sum::<f64>() / (40.0 * 20e6);
        assert!(used > 0.95, "{used} of the link");
    }
}

#[test]
fn a_burst_within_the_allowance_passes() {
    // Three times the rate. Without an allowance the controller takes 150 ms to reach a
    // probability that drops; an allowance of 400 ms is used up in steps of 15 ms, once the
    // delay is no longer small.
    for (burst, earliest, latest) in [(0, 11, 200), (400, 400, 450)] {
        let fates = offered(Pie { burst: ms(burst), ..pie() }, 333, 800);
        let first = drop_times(&fates)[0] / MILLISECOND;
        assert!((earliest..latest).contains(&first), "{burst} ms: first drop at {first} ms");
    }
    // 130 ms of overload, then none: no drop.
    assert!(drop_times(&offered(pie(), 333, 130)).is_empty());
}

#[test]
fn never_drops_if_the_link_would_be_idle() {
    // Two packets of the mean size of 1024 bytes are always admitted. At 1 Mbit/s packets of
    // 1000 bytes take 8 ms: with two of them queued the delay is permanently above the
    // target, and nothing is dropped.
    let mut link = queueing(1_000_000, Queue::Pie(Pie { target: ms(2), ..pie() }));
    for packet in 0..3_000 {
        if link.queued_packets() < 2 {
            link.arrive(at_ms(8 * packet), Train::single(1000), 0);
        }
        link.arrive(at_ms(8 * packet), Train::single(1000), 0);
        while link.release(at_ms(8 * packet + 4)).is_some() {}
    }
    assert_eq!(link.counters().aqm_drops, 0, "{:?}", link.counters());
}

#[test]
fn drops_are_spaced() {
    // Not clustered (section 5.4): the probabilities from drop to drop add up to at least
    // 0.85, so at less than 10 % there are nine packets in between.
    let mut link = queueing(RATE, Queue::Pie(pie()));
    for packet in 0..8_000u64 {
        // 1 % more than the rate: small probabilities suffice.
        link.arrive(Nanos(packet * 990_000), Train::single(1000), 0);
    }
    let mut numbers: Vec<u64> = fates_of_all(&mut link)
        .iter()
        .filter(|fate| fate.kind == FateKind::Dropped(Cause::Aqm))
        .map(|fate| fate.number)
        .collect();
    numbers.sort_unstable();
    assert!(numbers.len() > 20, "{numbers:?}");
    assert!(numbers.windows(2).all(|pair| pair[1] - pair[0] >= 9), "{numbers:?}");
    let late = link.counters();
    assert_eq!(late.queue_drops, 0);
}

#[test]
fn the_probability_decays_without_congestion() {
    let mut link = queueing(RATE, Queue::Pie(pie()));
    for packet in 0..6_000u64 {
        link.arrive(Nanos(packet * 333_000), Train::single(1000), 0);
    }
    drain(&mut link);
    let before = link.counters().aqm_drops;
    assert!(before > 500);
    // Empty from 2 s on. From two thirds the probability decays to zero within 1.6 s; by alpha
    // alone it would take 5 s. Then a burst passes again.
    for packet in 0..120u64 {
        link.arrive(Nanos(5 * SECOND + packet * 333_000), Train::single(1000), 0);
    }
    drain(&mut link);
    assert_eq!(link.counters().aqm_drops, before);
}
