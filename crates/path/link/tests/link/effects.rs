//! Effects of the wire on packets.

use crate::arrange::{
    MILLISECOND, SECOND, at_ms, config, drain, dropped, fates_of_all, flights, ms, train, watched,
};
use link::{
    Blackhole, Bursts, Cause, DATA_ABOVE, Distribution, FateKind, Jitter, Link, LinkConfig, Loss,
    PacketList, Reorder, Train,
};
use std::sync::Arc;
use units::Nanos;

/// 12 Mbit/s: a packet of 1500 bytes takes 1 ms. Delay: 10 ms.
fn path() -> LinkConfig {
    config(12_000_000, 10)
}

#[test]
fn a_list_loses_exactly_its_packets() {
    let list: PacketList = [3..=4, 46..=46, 1_000..=2_000].into_iter().collect();
    let mut link = watched(LinkConfig { loss: Loss::List(Arc::new(list)), ..path() });
    link.arrive(Nanos(0), train(45), 0);
    link.arrive(Nanos(0), train(45), 0);
    assert_eq!(dropped(&fates_of_all(&mut link)), [3, 4, 46]);
    let counters = link.counters();
    assert_eq!((counters.lost, counters.loss_expected, counters.loss_variance), (3, 3.0, 0.0));
}

#[test]
fn drops_can_be_watched_alone() {
    let list: PacketList = [3..=4, 46..=46].into_iter().collect();
    let mut link = Link::new(LinkConfig { loss: Loss::List(Arc::new(list)), ..path() });
    link.watch_drops(true);
    link.arrive(Nanos(0), train(45), 0);
    link.arrive(Nanos(0), train(45), 0);
    drain(&mut link);
    let fates: Vec<_> = link.fates().collect();
    assert_eq!(dropped(&fates), [3, 4, 46]);
    assert_eq!(fates.len(), 3);
}

#[test]
fn packet_numbers_count_arrivals() {
    // Packets 1 and 2 exceed the MTU, 5 is the third that reaches the wire.
    let list: PacketList = [5..=5].into_iter().collect();
    let loss = Loss::List(Arc::new(list));
    let mut link = watched(LinkConfig { loss, mtu: Some(1000), ..path() });
    for size in [1500, 1500, 1000, 1000, 1000, 1000] {
        link.arrive(Nanos(0), Train::single(size), 0);
    }
    assert_eq!(dropped(&fates_of_all(&mut link)), [1, 2, 5]);
    assert_eq!((link.counters().too_long, link.counters().lost), (2, 1));
}

#[test]
fn data_packets_are_counted_as_they_leave_the_bottleneck() {
    // The first is too long, and short ones have no number.
    let list: PacketList = [2..=3].into_iter().collect();
    let loss = Loss::DataList(Arc::new(list));
    let mut link = watched(LinkConfig { loss, mtu: Some(1500), ..path() });
    for size in [1501, 52, 1500, 1500, DATA_ABOVE, DATA_ABOVE + 1, 1500] {
        link.arrive(Nanos(0), Train::single(size), 0);
    }
    assert_eq!(dropped(&fates_of_all(&mut link)), [1, 4, 6]);
    assert_eq!((link.counters().too_long, link.counters().lost), (1, 2));
}

#[test]
fn bursts_lose_the_configured_packets() {
    let bursts = Some(Bursts { packets: 3, every: ms(50) });
    let mut link = watched(LinkConfig { bursts, ..path() });
    link.arrive(Nanos(0), train(45), 0);
    link.arrive(Nanos(0), train(45), 0);
    link.arrive(Nanos(0), train(45), 0);
    // Packet k has left at k ms: 50, 51, 52 and 100, 101, 102.
    assert_eq!(dropped(&fates_of_all(&mut link)), [50, 51, 52, 100, 101, 102]);
    assert_eq!((link.counters().burst_lost, link.counters().lost), (6, 0));
}

#[test]
fn bursts_follow_a_new_schedule_origin() {
    let bursts = Some(Bursts { packets: 3, every: ms(50) });
    let mut link = watched(LinkConfig { bursts, ..path() });
    let some = |link: &mut Link<u32>, now| {
        [45, 45, 20].into_iter().for_each(|packets| link.arrive(now, train(packets), 0));
        dropped(&fates_of_all(link))
    };
    assert_eq!(some(&mut link, Nanos(0)), [50, 51, 52, 100, 101, 102]);
    link.reschedule(at_ms(130), at_ms(130), LinkConfig { bursts, ..path() });
    assert_eq!(some(&mut link, at_ms(130)), [160, 161, 162, 210, 211, 212]);
}

#[test]
fn a_restart_resets_numbers_counters_and_draws() {
    let loss = Loss::Bernoulli("30%".parse().unwrap());
    let mut link = watched(LinkConfig { loss, seed: 3, ..path() });
    let some = |link: &mut Link<u32>, now| {
        link.arrive(now, train(40), 0);
        dropped(&fates_of_all(link))
    };
    let first = some(&mut link, Nanos(0));
    assert!(first.len() > 5, "{first:?}");
    link.restart(at_ms(100));
    assert_eq!(some(&mut link, at_ms(100)), first);
    assert_eq!((link.counters().arrived, link.counters().sent), (40, 40));
}

#[test]
fn a_blackhole_is_at_the_end_of_each_period() {
    let blackhole = Some(Blackhole { length: ms(5), every: ms(40) });
    let mut link = watched(LinkConfig { blackhole, ..path() });
    link.arrive(Nanos(0), train(45), 0);
    link.arrive(Nanos(0), train(45), 0);
    let fates = fates_of_all(&mut link);
    assert_eq!(dropped(&fates), (35..40).chain(75..80).collect::<Vec<_>>());
    assert!(fates.iter().any(|fate| fate.kind == FateKind::Dropped(Cause::Blackhole)));
    assert_eq!(link.counters().blackhole_lost, 10);
}

#[test]
fn copies_directly_follow_the_original() {
    let duplicate = "20%".parse().unwrap();
    let mut link = watched(LinkConfig { duplicate, seed: 1, ..path() });
    for _ in 0..2_000 {
        link.arrive(Nanos(0), train(45), 0);
    }
    let out = drain(&mut link);
    let counters = link.counters();
    let came: u64 = out.iter().map(|d| d.packets.len() as u64).sum();
    assert_eq!(came, counters.sent + counters.duplicated);
    // 99 % interval of a binomial share: 2.576 standard deviations.
    let n = counters.sent as f64;
    let off = counters.duplicated as f64 - 0.2 * n;
    assert!(off.abs() < 2.576 * (n * 0.2 * 0.8).sqrt(), "{off} of {n}");
    // Each copy directly follows its original and equals it.
    let pairs = out.windows(2).filter(|pair| pair[0] == pair[1]).count();
    assert_eq!(pairs as u64, counters.duplicated);
    let told = |kind| matches!(kind, FateKind::Delivered { duplicated: true, .. });
    assert_eq!(link.fates().filter(|f| told(f.kind)).count() as u64, counters.duplicated);
}

#[test]
fn one_bit_is_flipped_in_single_packets() {
    let corrupt = "5%".parse().unwrap();
    let rate = 100_000_000_000;
    let mut link = watched(LinkConfig { corrupt, ..config(rate, 1) });
    for number in 0..2_000 {
        link.arrive(Nanos(number * 1_000_000), train(45), 0);
    }
    let out = drain(&mut link);
    let counters = link.counters();
    let flipped: Vec<_> = out.iter().filter(|delivery| delivery.flip.is_some()).collect();
    assert!(flipped.iter().all(|delivery| delivery.packets.len() == 1));
    assert_eq!(flipped.len() as u64, counters.corrupted);
    let off = counters.corrupted as f64 - 0.05 * 90_000.0;
    assert!(off.abs() < 2.576 * (90_000.0f64 * 0.05 * 0.95).sqrt(), "{off}");
    // Nothing is lost, and each packet has another bit flipped.
    assert_eq!(out.iter().map(|d| d.packets.len()).sum::<usize>(), 90_000);
    let mut bits: Vec<_> = flipped.iter().filter_map(|delivery| delivery.flip).collect();
    bits.sort_unstable();
    bits.dedup();
    assert_eq!(bits.len(), flipped.len());
}

#[test]
fn reordered_packets_are_overtaken_and_others_keep_order() {
    let reorder = Some(Reorder { share: "10%".parse().unwrap(), by: ms(5) });
    let mut link = watched(LinkConfig { reorder, ..path() });
    for _ in 0..100 {
        link.arrive(Nanos(0), train(45), 0);
    }
    let out = drain(&mut link);
    let fates: Vec<_> = link.fates().collect();
    let held = 15 * MILLISECOND;
    assert_eq!(
        flights(&fates).iter().filter(|flight| **flight == held).count() as u64,
        link.counters().reordered
    );
    assert!(flights(&fates).iter().all(|flight| [held, 10 * MILLISECOND].contains(flight)));
    assert!((300..600).contains(&link.counters().reordered));
    // In order of release: a delayed packet arrives after the five that were sent after it,
    // the others stay in order.
    let due: Vec<u64> = out.iter().map(|delivery| delivery.due.0).collect();
    assert!(due.is_sorted());
    assert_eq!(out.len(), 4_500, "each at its own time");
}

#[test]
fn a_packet_that_overtakes_is_not_released_late() {
    // The first is delayed by 100 ms. The second waits for the bottleneck and is due at
    // 12 ms; the link must ask to be called then.
    let reorder = Reorder { share: "50%".parse().unwrap(), by: ms(100) };
    let mut seen = false;
    for seed in 0..20 {
        let mut link = watched(LinkConfig { reorder: Some(reorder), seed, ..path() });
        link.arrive(Nanos(0), train(2), 0);
        let mut releases = Vec::new();
        while let Some(now) = link.next_due() {
            while let Some(delivery) = link.release(now) {
                assert_eq!(delivery.due, now, "seed {seed}");
                releases.push((now.0 / MILLISECOND, delivery.packets));
            }
        }
        seen |= releases == [(12, 1..2), (111, 0..1)];
    }
    assert!(seen, "no seed of twenty held just the first");
}

#[test]
fn jitter_keeps_the_order_unless_packets_may_overtake() {
    for distribution in [
        Distribution::Normal,
        Distribution::Uniform,
        Distribution::Exponential,
        Distribution::Pareto,
    ] {
        for overtake in [false, true] {
            let jitter = Some(Jitter { distribution, scale: ms(5), overtake });
            let mut link = watched(LinkConfig { jitter, ..path() });
            for number in 0..40 {
                link.arrive(Nanos(0), train(45), number);
            }
            let out = drain(&mut link);
            assert!(out.is_sorted_by_key(|delivery| delivery.due));
            let in_order = out.is_sorted_by_key(|d| (d.payload, d.packets.start));
            assert_eq!(in_order, !overtake, "{distribution:?}");
            assert_eq!(out.iter().map(|d| d.packets.len()).sum::<usize>(), 40 * 45);
        }
    }
}

#[test]
fn jitter_never_delivers_before_sending() {
    // A standard deviation three times the delay.
    let jitter = Jitter { distribution: Distribution::Normal, scale: ms(30), overtake: true };
    let mut link = watched(LinkConfig { jitter: Some(jitter), ..path() });
    for number in 0..100 {
        link.arrive(at_ms(number * 45), train(45), 0);
    }
    let flights = flights(&fates_of_all(&mut link));
    assert_eq!(flights.len(), 4_500);
    // A third of a standard deviation below the mean lie 37 % of a normal distribution:
    // these arrive at once.
    let at_once = flights.iter().filter(|flight| **flight == 0).count() as f64 / 4_500.0;
    assert!((at_once - 0.369).abs() < 0.02, "{at_once}");
}

#[test]
fn an_effect_leaves_the_draws_of_the_others_alone() {
    let lost = |config: LinkConfig| {
        let mut link = watched(config);
        for _ in 0..100 {
            link.arrive(Nanos(0), train(45), 0);
        }
        dropped(&fates_of_all(&mut link))
    };
    let loss = || LinkConfig { loss: Loss::Bernoulli("2%".parse().unwrap()), ..path() };
    let alone = lost(loss());
    assert!(alone.len() > 50);
    let jitter = Jitter { distribution: Distribution::Normal, scale: ms(1), overtake: true };
    let all = LinkConfig {
        jitter: Some(jitter),
        duplicate: "10%".parse().unwrap(),
        corrupt: "10%".parse().unwrap(),
        reorder: Some(Reorder { share: "10%".parse().unwrap(), by: ms(1) }),
        ..loss()
    };
    assert_eq!(lost(all), alone);
}

#[test]
fn fates_are_recorded_only_while_watched() {
    let mut link = watched(path());
    link.watch(false);
    link.arrive(Nanos(0), train(5), 0);
    assert_eq!(fates_of_all(&mut link).len(), 0);
    link.watch(true);
    link.arrive(Nanos(SECOND), train(5), 0);
    assert_eq!(fates_of_all(&mut link).len(), 5);
    assert_eq!(link.fates().count(), 0, "told once");
}
