//! Rate, delay, queue and loss: exact values.

use crate::arrange::{config, drain};
use link::{COALESCE, Delivery, Limit, Link, LinkConfig, Loss, Queue, Train};
use proptest::prelude::*;
use units::{ByteCount, LossRatio, Nanos};

#[test]
fn one_packet_takes_serialisation_plus_delay() {
    let mut link = Link::new(config(100_000_000, 50));
    link.arrive(Nanos(1_000), Train::single(1500), 7);
    let due = Nanos(1_000 + 120_000 + 50_000_000);
    assert_eq!(link.next_due(), Some(due));
    assert_eq!(link.release(Nanos(due.0 - 1)), None);
    let delivery = link.release(due).unwrap();
    assert_eq!((delivery.payload, delivery.packets, delivery.due), (7, 0..1, due));
    assert_eq!(link.next_due(), None);
}

#[test]
fn framing_counts_on_every_packet() {
    let mut link = Link::new(LinkConfig { overhead: 38, ..config(1_000_000_000, 0) });
    link.arrive(Nanos(0), Train::segmented(52, 14_480, 1448), 0);
    let last = drain(&mut link).pop().unwrap();
    assert_eq!(last.due, Nanos(10 * 1538 * 8));
}

#[test]
fn a_rate_that_does_not_divide_a_second_has_no_drift() {
    // 1500 bytes at 7 Mbit/s take 1 714 285.714… ns.
    let mut link = Link::new(config(7_000_000, 0));
    for _ in 0..7_000 {
        link.arrive(Nanos(0), Train::single(1500), 0);
    }
    assert_eq!(drain(&mut link).last().unwrap().due, Nanos(12_000_000_000));
}

#[test]
fn trains_stay_whole_at_10_gbit_and_split_at_100_mbit() {
    let train = Train::segmented(52, 45 * 1448, 1448);
    for (rate, deliveries) in [(10_000_000_000, 1), (100_000_000, 45)] {
        let mut link = Link::new(config(rate, 50));
        link.arrive(Nanos(0), train, 0);
        let out = drain(&mut link);
        assert_eq!(out.len(), deliveries, "at {rate} bit/s");
        assert_eq!(out.iter().map(|d| d.packets.len()).sum::<usize>(), 45);
    }
}

#[test]
fn coalescing_is_bounded() {
    // 1500 bytes at 1 Gbit/s are 12 µs: six packets span 60 µs from first to last.
    let mut link = Link::new(config(1_000_000_000, 10));
    link.arrive(Nanos(0), Train::segmented(52, 30 * 1448, 1448), 0);
    for delivery in drain(&mut link) {
        assert!(delivery.due.since(delivery.first_due) <= COALESCE);
        assert_eq!(delivery.packets.len(), 6);
    }
}

#[test]
fn neighbours_of_different_trains_are_never_merged() {
    let mut link = Link::new(config(10_000_000_000, 1));
    for payload in 0..4 {
        link.arrive(Nanos(0), Train::segmented(52, 2 * 1448, 1448), payload);
    }
    let out = drain(&mut link);
    assert_eq!(
        out.iter().map(|d| (d.payload, d.packets.clone())).collect::<Vec<_>>(),
        (0..4).map(|p| (p, 0..2)).collect::<Vec<_>>()
    );
}

#[test]
fn a_queue_of_ten_packets_holds_ten_beside_the_one_being_sent() {
    for (offered, drops) in [(11, 0), (12, 1)] {
        let mut link = Link::new(LinkConfig {
            queue: Queue::drop_tail(Limit::Packets(10)),
            ..config(1_000_000, 0)
        });
        for _ in 0..offered {
            link.arrive(Nanos(0), Train::single(1500), 0);
        }
        assert_eq!(link.counters().queue_drops, drops, "{offered} offered");
    }
}

#[test]
fn a_queue_of_bytes_drops_the_tail_of_a_train() {
    let queue = Queue::drop_tail(Limit::Bytes(ByteCount::from_bytes(15_000)));
    let mut link = Link::new(LinkConfig { queue, ..config(1_000_000, 0) });
    link.arrive(Nanos(0), Train::segmented(52, 45 * 1448, 1448), 0);
    // All packets of a train arrive at the same time: even if the first one can be sent at
    // once, it passes through the queue.
    let counters = link.counters();
    assert_eq!(counters.arrived, 45);
    assert_eq!(counters.queue_drops, 35);
    assert_eq!(drain(&mut link).iter().map(|d| d.packets.len()).sum::<usize>(), 10);
}

#[test]
fn the_queue_empties_at_the_rate() {
    let queue = Queue::drop_tail(Limit::Packets(1));
    let mut link = Link::new(LinkConfig { queue, ..config(12_000_000, 0) });
    // One packet leaves per ms; offered at the same rate nothing is dropped.
    for ms in 0..1000 {
        link.arrive(Nanos(ms * 1_000_000), Train::single(1500), 0);
    }
    assert_eq!(link.counters().queue_drops, 0);
    // Offered at twice that rate half of it is dropped.
    let start = 1_000_000_000;
    for half in 0..1000 {
        link.arrive(Nanos(start + half * 500_000), Train::single(1500), 0);
    }
    assert!(link.counters().queue_drops.abs_diff(500) <= 2, "{:?}", link.counters());
}

#[test]
fn loss_is_within_the_binomial_interval() {
    // 99 % interval of a binomial share: p ± 2.576 sqrt(p (1 - p) / n).
    let n = 1_000_000u32;
    for (text, p) in [("0.1%", 0.001), ("1%", 0.01), ("30%", 0.3)] {
        for seed in [1, 2, 3] {
            let mut link = Link::new(LinkConfig {
                loss: Loss::Bernoulli(text.parse().unwrap()),
                seed,
                ..config(10_000_000_000, 0)
            });
            for packet in 0..n / 40 {
                link.arrive(
                    Nanos(u64::from(packet) * 60_000),
                    Train::segmented(52, 40 * 1448, 1448),
                    0,
                );
            }
            drain(&mut link);
            let counters = link.counters();
            assert_eq!(counters.sent, u64::from(n));
            let share = counters.lost as f64 / f64::from(n);
            let bound = 2.576 * (p * (1.0 - p) / f64::from(n)).sqrt();
            assert!((share - p).abs() < bound, "{text} seed {seed}: {share}");
        }
    }
}

#[test]
fn a_seed_repeats_and_another_differs() {
    let run = |seed| {
        let mut link = Link::new(LinkConfig {
            loss: Loss::Bernoulli("10%".parse().unwrap()),
            seed,
            ..config(1_000_000_000, 0)
        });
        link.arrive(Nanos(0), Train::segmented(52, 40 * 1448, 1448), 0);
        drain(&mut link).into_iter().map(|d| d.packets).collect::<Vec<_>>()
    };
    assert_eq!(run(42), run(42));
    assert_ne!(run(42), run(43));
}

#[test]
fn lost_packets_break_a_run_and_use_their_share_of_the_rate() {
    let mut link = Link::new(LinkConfig {
        loss: Loss::Bernoulli("50%".parse().unwrap()),
        ..config(10_000_000_000, 0)
    });
    link.arrive(Nanos(0), Train::segmented(52, 40 * 1448, 1448), 0);
    let out = drain(&mut link);
    let counters = link.counters();
    assert_eq!(counters.sent_bytes, 40 * 1500);
    assert_eq!(out.iter().map(|d| d.packets.len() as u64).sum::<u64>(), 40 - counters.lost);
    assert!(out.windows(2).all(|pair| pair[0].packets.end < pair[1].packets.start));
}

#[test]
fn runs_of_different_trains_are_not_merged() {
    // At 50 % loss a train will at some point end early just where the next one starts late:
    // the two must not be merged.
    let mut link = Link::new(LinkConfig {
        loss: Loss::Bernoulli("50%".parse().unwrap()),
        ..config(100_000_000_000, 0)
    });
    for payload in 0..2_000 {
        link.arrive(Nanos(0), Train::segmented(52, 4 * 1448, 1448), payload);
    }
    let by_train = |out: &[Delivery<u32>]| out.iter().map(|d| d.packets.len() as u64).sum::<u64>();
    let out = drain(&mut link);
    assert_eq!(by_train(&out), 8_000 - link.counters().lost);
    let serialisation = |packets: u64| packets * 120;
    for delivery in out {
        // Packet k of train n has a unique serialisation end.
        let sent_before = u64::from(delivery.payload) * 4 + u64::from(delivery.packets.end);
        assert_eq!(delivery.due, Nanos(serialisation(sent_before)));
    }
}

proptest! {
    /// For any arrivals: order is kept, nothing is early, nothing is invented, and the
    /// bottleneck never exceeds its rate.
    #[test]
    fn conservation_and_order(
        rate in 1_000u64..=100_000_000_000,
        delay_ms in 0u64..300,
        limit in 0u64..200,
        loss in 0u32..60,
        trains in prop::collection::vec((0u64..3_000_000, 0u32..66_000, 0u32..9_000), 1..60),
    ) {
        let loss: LossRatio = format!("{loss}%").parse().unwrap();
        let mut link = Link::new(LinkConfig {
            loss: Loss::Bernoulli(loss),
            queue: Queue::drop_tail(Limit::Packets(limit)),
            ..config(rate, delay_ms)
        });
        let mut now = 0;
        let mut out = Vec::new();
        for (number, (gap, payload, segment)) in trains.into_iter().enumerate() {
            now += gap;
            link.arrive(Nanos(now), Train::segmented(52, payload, segment), number as u32);
            while let Some(delivery) = link.release(Nanos(now)) {
                prop_assert!(delivery.due <= Nanos(now));
                out.push(delivery);
            }
        }
        out.extend(drain(&mut link));
        let counters = link.counters();
        let delivered: u64 = out.iter().map(|d| d.packets.len() as u64).sum();
        prop_assert_eq!(counters.arrived, counters.queue_drops + counters.sent);
        prop_assert_eq!(counters.sent, counters.lost + delivered);
        prop_assert_eq!(link.queued_bytes().bytes(), 0);
        let mut last = (0, 0);
        for pair in out.windows(2) {
            prop_assert!(pair[0].due <= pair[1].first_due || pair[0].due <= pair[1].due);
        }
        for delivery in &out {
            prop_assert!((delivery.payload, delivery.packets.start) >= last);
            last = (delivery.payload, delivery.packets.end);
            prop_assert!(delivery.due.since(delivery.first_due) <= COALESCE);
        }
        let busy = counters.busy.as_nanos() * u128::from(rate);
        let bits = u128::from(counters.sent_bytes) * 8 * 1_000_000_000;
        prop_assert!(busy <= bits && bits < busy + u128::from(counters.sent + 1) * u128::from(rate));
    }
}
