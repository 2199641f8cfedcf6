//! `DualPI2` against RFC 9332: the step, the coupling, the classic queue, overload.

use crate::arrange::{ROOM, SECOND, fates_of_all, ms, queueing};
use link::{Cause, DualPi2, EcnCodepoint, Fate, FateKind, Link, Queue, Train};
use units::Nanos;

/// At 8 Mbit/s a packet of 1000 bytes takes 1 ms.
const RATE: u64 = 8_000_000;

fn dual() -> DualPi2 {
    DualPi2 {
        target: ms(15),
        update: ms(16),
        step: ms(1),
        coupling: 2,
        classic_share: "10%".parse().unwrap(),
        limit: ROOM,
    }
}

fn packet(ecn: EcnCodepoint) -> Train {
    Train::single(1000).with_ecn(ecn)
}

fn link() -> Link<EcnCodepoint> {
    let mut link = Link::new(queueing(RATE, Queue::DualPi2(dual())).config().clone());
    link.watch(true);
    link
}

/// Packets of two kinds, each every so many µs, for `seconds`.
fn offered(kinds: &[(EcnCodepoint, u64)], seconds: u64) -> Vec<Fate<EcnCodepoint>> {
    let mut arrivals: Vec<(u64, EcnCodepoint)> = kinds
        .iter()
        .flat_map(|(ecn, gap_us)| {
            (0..seconds * 1_000_000 / gap_us).map(move |number| (number * gap_us * 1000, *ecn))
        })
        .collect();
    arrivals.sort_by_key(|(at, _)| *at);
    let mut link = link();
    for (at, ecn) in arrivals {
        while link.release(Nanos(at)).is_some() {}
        link.arrive(Nanos(at), packet(ecn), ecn);
    }
    while let Some(due) = link.next_due() {
        while link.release(due).is_some() {}
    }
    link.fates().collect()
}

/// Of the packets of one kind that arrived from a moment on: the share that was dropped, the
/// share of the others that was marked, and their mean delay in ms.
fn figures(fates: &[Fate<EcnCodepoint>], ecn: EcnCodepoint, from_s: u64) -> (f64, f64, f64) {
    let (mut all, mut dropped, mut marks, mut delay) = (0.0, 0.0, 0.0, 0.0);
    for fate in fates.iter().filter(|f| f.payload == ecn && f.arrived.0 >= from_s * SECOND) {
        all += 1.0;
        match fate.kind {
            FateKind::Dropped(_) => dropped += 1.0,
            FateKind::Delivered { queued, marked, .. } => {
                marks += f64::from(u8::from(marked));
                delay += queued.as_secs_f64() * 1e3;
            }
        }
    }
    let passed: f64 = all - dropped;
    (dropped / all, marks / passed, delay / passed)
}

#[test]
fn l4s_packets_are_marked_above_the_step() {
    let mut link = queueing(RATE, Queue::DualPi2(dual()));
    for _ in 0..10 {
        link.arrive(Nanos(0), packet(EcnCodepoint::Ect1), 0);
    }
    let fates = fates_of_all(&mut link);
    let is = |f: &&Fate<u32>| matches!(f.kind, FateKind::Delivered { marked: true, .. });
    let marked: Vec<u64> = fates.iter().filter(is).map(|fate| fate.number).collect();
    // Packet 2 waits for just 1 ms, and nothing waits behind packet 10.
    assert_eq!(marked, (3..=9).collect::<Vec<_>>());
    assert_eq!((link.counters().marked, link.counters().aqm_drops), (7, 0));
}

#[test]
fn a_mark_upstream_is_an_l4s_packet() {
    let mut link = link();
    for ecn in [EcnCodepoint::NotEct, EcnCodepoint::Ect0, EcnCodepoint::Ect0, EcnCodepoint::Ce] {
        link.arrive(Nanos(0), packet(ecn), ecn);
    }
    let due = link.next_due().unwrap();
    assert_eq!(link.release(due).unwrap().payload, EcnCodepoint::NotEct);
    let due = link.next_due().unwrap();
    assert_eq!(link.release(due).unwrap().payload, EcnCodepoint::Ce, "before classic packets");
}

#[test]
fn marks_are_coupled_to_the_square_root_of_classic_drops() {
    // 5 % too much of packets that do not react, beside a few L4S packets.
    for classic in [EcnCodepoint::NotEct, EcnCodepoint::Ect0] {
        let fates = offered(&[(classic, 1_000), (EcnCodepoint::Ect1, 20_000)], 40);
        let (dropped, marked, delay) = figures(&fates, classic, 20);
        let (l4s_dropped, l4s_marked, l4s_delay) = figures(&fates, EcnCodepoint::Ect1, 20);
        if classic == EcnCodepoint::NotEct {
            assert!((dropped - 0.05).abs() < 0.01 && marked == 0.0, "{dropped} {marked}");
            assert!((l4s_marked - 2.0 * dropped.sqrt()).abs() < 0.05, "{l4s_marked} {dropped}");
            assert!((delay - 15.0).abs() < 3.0, "{delay} ms of delay");
            assert!(l4s_dropped == 0.0);
        } else {
            // Marks do not help against these: the overload ends them.
            assert!((dropped - 0.05).abs() < 0.02, "{dropped} {marked}");
        }
        assert!(l4s_delay < 1.5, "{l4s_delay} ms of delay of L4S packets");
    }
}

#[test]
fn overload_is_dropped_from_both_queues() {
    // Twice the rate of either kind, marked in vain.
    let fates = offered(&[(EcnCodepoint::Ect0, 1_000), (EcnCodepoint::Ect1, 1_000)], 30);
    for ecn in [EcnCodepoint::Ect0, EcnCodepoint::Ect1] {
        let (dropped, _, delay) = figures(&fates, ecn, 15);
        assert!((dropped - 0.5).abs() < 0.1, "{ecn:?}: {dropped}");
        assert!(delay < 60.0, "{ecn:?}: {delay} ms");
    }
    let causes = fates.iter().filter(|f| f.kind == FateKind::Dropped(Cause::Aqm)).count();
    assert!(causes > 20_000, "{causes}");
}

#[test]
fn both_queues_share_one_limit() {
    let limit = link::Limit::Packets(10);
    let mut link = queueing(RATE, Queue::DualPi2(DualPi2 { limit, ..dual() }));
    for number in 0..30 {
        let ecn = if number % 2 == 0 { EcnCodepoint::Ect1 } else { EcnCodepoint::NotEct };
        link.arrive(Nanos(0), packet(ecn), 0);
    }
    // The first packet is being sent.
    assert_eq!((link.queued_packets(), link.counters().queue_drops), (10, 19));
}
