//! Explicit congestion notification: marks instead of drops.

use crate::arrange::{ROOM, SECOND, config, drain, fates_of_all, ms, queueing, train, watched};
use link::{
    Cause, CoDel, EcnCodepoint, Fate, FateKind, Fifo, FqCoDel, Limit, LinkConfig, Pie, Queue, Red,
    Train,
};
use units::{ByteCount, Nanos};

/// At 8 Mbit/s a packet of 1000 bytes takes 1 ms.
const RATE: u64 = 8_000_000;

/// Each managed queue with ECN enabled.
fn managed() -> [(&'static str, Queue); 4] {
    let codel = CoDel { target: ms(5), interval: ms(100), limit: ROOM, ecn: true };
    let red = Red {
        min: ByteCount::from_bytes(10_000),
        max: ByteCount::from_bytes(100_000),
        probability: "10%".parse().unwrap(),
        weight: 6,
        limit: ROOM,
        ecn: true,
    };
    [
        ("CoDel", Queue::CoDel(codel)),
        ("FQ-CoDel", Queue::FqCoDel(FqCoDel { codel, flows: 1024, quantum: 1514 })),
        ("RED", Queue::Red(red)),
        ("PIE", Queue::Pie(pie(true))),
    ]
}

fn pie(ecn: bool) -> Pie {
    Pie { target: ms(15), update: ms(15), burst: ms(150), limit: ROOM, ecn }
}

/// An overload of 5 % for one second.
fn overloaded(queue: Queue, ecn: EcnCodepoint) -> (Vec<Fate<u32>>, link::Counters) {
    let mut link = queueing(RATE, queue);
    for packet in 0..1_050u64 {
        let train = Train::single(1000).with_ecn(ecn);
        link.arrive(Nanos(packet * SECOND / 1_050), train, 0);
    }
    (fates_of_all(&mut link), link.counters())
}

fn marked(fates: &[Fate<u32>]) -> Vec<u64> {
    let is = |f: &&Fate<u32>| matches!(f.kind, FateKind::Delivered { marked: true, .. });
    fates.iter().filter(is).map(|fate| fate.number).collect()
}

#[test]
fn ecn_capable_packets_are_marked_and_others_dropped() {
    for (name, queue) in managed() {
        let (fates, counters) = overloaded(queue, EcnCodepoint::Ect0);
        assert!(counters.marked > 0 && counters.aqm_drops == 0, "{name}: {counters:?}");
        assert_eq!(marked(&fates).len() as u64, counters.marked, "{name}");
        let (fates, counters) = overloaded(queue, EcnCodepoint::NotEct);
        assert!(counters.marked == 0 && counters.aqm_drops > 0, "{name}: {counters:?}");
        assert!(marked(&fates).is_empty());
    }
}

#[test]
fn queues_without_ecn_do_not_mark() {
    let without = |queue| match queue {
        Queue::CoDel(codel) => Queue::CoDel(CoDel { ecn: false, ..codel }),
        Queue::FqCoDel(fq) => {
            Queue::FqCoDel(FqCoDel { codel: CoDel { ecn: false, ..fq.codel }, ..fq })
        }
        Queue::Red(red) => Queue::Red(Red { ecn: false, ..red }),
        Queue::Pie(pie) => Queue::Pie(Pie { ecn: false, ..pie }),
        other => other,
    };
    for (name, queue) in managed() {
        let (_, counters) = overloaded(without(queue), EcnCodepoint::Ect0);
        assert!(counters.marked == 0 && counters.aqm_drops > 0, "{name}: {counters:?}");
    }
}

#[test]
fn codel_marks_by_the_control_law() {
    let queue = managed()[0].1;
    let mut link = queueing(RATE, queue);
    for packet in 0..2_000u64 {
        link.arrive(Nanos(packet * 500_000), Train::single(1000).with_ecn(EcnCodepoint::Ect0), 0);
    }
    let fates = fates_of_all(&mut link);
    let is = |f: &&Fate<u32>| matches!(f.kind, FateKind::Delivered { marked: true, .. });
    let times: Vec<f64> = fates.iter().filter(is).map(|f| f.decided.0 as f64 / 1e6).collect();
    let mut expected = times[0];
    for (count, time) in (1u32..).zip(&times[1..15]) {
        expected += 100.0 / f64::from(count).sqrt();
        assert!((time - expected).abs() <= 1.01, "mark {count} at {time} ms, not {expected}");
    }
}

#[test]
fn pie_stops_marking_above_ten_percent() {
    // Twice the rate from a sender that ignores marks: the probability rises to 100 %.
    let mut link = queueing(RATE, Queue::Pie(pie(true)));
    for packet in 0..20_000u64 {
        link.arrive(Nanos(packet * 500_000), Train::single(1000).with_ecn(EcnCodepoint::Ect0), 0);
    }
    let fates = fates_of_all(&mut link);
    let early = FateKind::Dropped(Cause::Aqm);
    let first_drop = fates.iter().filter(|f| f.kind == early).map(|f| f.number).min().unwrap();
    let last_mark = *marked(&fates).iter().max().unwrap();
    assert!(link.counters().marked > 5 && link.counters().aqm_drops > 5_000);
    assert!(last_mark < first_drop, "marked {last_mark} after dropping {first_drop}");
}

#[test]
fn red_drops_ecn_packets_beyond_twice_the_maximum() {
    let Queue::Red(red) = managed()[2].1 else { unreachable!() };
    let mut link = queueing(RATE, Queue::Red(Red { weight: 0, ..red }));
    for _ in 0..300 {
        link.arrive(Nanos(0), Train::single(1000).with_ecn(EcnCodepoint::Ect0), 0);
    }
    // All packets that found 200 000 bytes queued, and none before.
    assert_eq!((link.queued_bytes().bytes(), link.counters().aqm_drops), (200_000, 99));
    assert!(link.counters().marked > 20);
}

#[test]
fn step_marking_above_the_threshold() {
    let step = Fifo { limit: ROOM, mark: Some(Limit::Packets(10)) };
    let queue = Queue::DropTail(step);
    let mut link = watched(LinkConfig { queue, ..config(100_000_000_000, 1) });
    link.arrive(Nanos(0), train(45).with_ecn(EcnCodepoint::Ect0), 0);
    // Packet 11 of the train finds eleven before it: marks start there.
    let out: Vec<_> = drain(&mut link).iter().map(|d| (d.packets.clone(), d.marked)).collect();
    assert_eq!(out, [(0..11, false), (11..45, true)]);
    assert_eq!(link.counters().marked, 34);
    // Packets that are not ECN-capable are neither marked nor dropped.
    link.arrive(Nanos(SECOND), train(45), 0);
    assert_eq!(drain(&mut link).len(), 1);
    assert_eq!((link.counters().marked, link.counters().queue_drops), (34, 0));
}

#[test]
fn step_marking_in_bytes_and_a_full_queue() {
    let bytes = |bytes| Limit::Bytes(ByteCount::from_bytes(bytes));
    let queue = Queue::DropTail(Fifo { limit: bytes(30_000), mark: Some(bytes(15_000)) });
    let mut link = queueing(1_000_000, queue);
    link.arrive(Nanos(0), train(45).with_ecn(EcnCodepoint::Ect0), 0);
    // 15 000 bytes do not exceed the threshold, 16 500 do.
    assert_eq!(marked(&fates_of_all(&mut link)), (12..=20).collect::<Vec<_>>());
    assert_eq!((link.counters().marked, link.counters().queue_drops), (9, 25));
}

#[test]
fn a_mark_stays_through_a_change_of_the_queue() {
    let marking = Queue::DropTail(Fifo { limit: ROOM, mark: Some(Limit::Packets(3)) });
    let mut link = queueing(1_000_000, marking);
    link.arrive(Nanos(0), train(10).with_ecn(EcnCodepoint::Ect0), 0);
    let another = Queue::DropTail(Fifo { limit: ROOM, mark: Some(Limit::Packets(4)) });
    link.reschedule(Nanos(1), Nanos(0), LinkConfig { queue: another, ..config(1_000_000, 0) });
    assert_eq!(marked(&fates_of_all(&mut link)).len(), 6);
    assert_eq!(link.counters().marked, 6, "counted once");
}
