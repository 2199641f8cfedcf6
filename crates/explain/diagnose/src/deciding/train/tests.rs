//! Trains through simulated bottlenecks.

use super::{Growth, Train};
use record::{Limit, TimedDatagram};

/// A bottleneck, in units of datagrams: what it holds, and the µs that it serves one in.
#[derive(Debug, Clone, Copy)]
struct Bottleneck {
    polices: bool,
    holds: f64,
    interval: f64,
}

/// Knuth's MMIX generator; uniform in 0..1.
struct Random(u64);

impl Random {
    fn next(&mut self) -> f64 {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 11) as f64 / (1u64 << 53) as f64
    }

    /// Half-normal with this scale, by the sum of twelve.
    fn late(&mut self, scale: f64) -> f64 {
        let normal = (0..12).map(|_| self.next()).sum::<f64>() - 6.0;
        scale * normal.abs()
    }
}

/// Sends `count` datagrams at `overdrive` times the rate; the clocks differ by an hour.
fn train(b: Bottleneck, overdrive: f64, count: u64, noise: f64, seed: u64) -> Vec<TimedDatagram> {
    rising(b, [overdrive; 2], count, noise, seed)
}

/// The same with a rate that rises with each datagram.
fn rising(
    b: Bottleneck,
    [first, top]: [f64; 2],
    count: u64,
    noise: f64,
    seed: u64,
) -> Vec<TimedDatagram> {
    let (mut random, mut level, mut last) = (Random(seed), 0.0f64, 0.0f64);
    let mut arrivals = Vec::new();
    let mut sent = 1e6;
    for number in 1..=count {
        let overdrive = first + (top - first) * number as f64 / count as f64;
        sent += b.interval / overdrive;
        level = f64::max(0.0, level - (sent - last) / b.interval);
        last = sent;
        if level + 1.0 > b.holds {
            continue;
        }
        let waits = if b.polices { 0.0 } else { level * b.interval };
        level += 1.0;
        let arrived = sent + 3.6e9 + 20_000.0 + waits + random.late(noise);
        arrivals.push(TimedDatagram { number, sent_us: sent as u64, arrived_us: arrived as u64 });
    }
    arrivals
}

const KINDS: [(bool, Limit); 2] = [(true, Limit::Policer), (false, Limit::ShallowQueue)];

#[test]
fn a_policer_and_a_queue_are_told_apart_at_any_overdrive() {
    for (polices, limit) in KINDS {
        for holds in [4.0, 20.0, 300.0] {
            for overdrive in [1.08, 1.25, 1.6, 2.0] {
                let b = Bottleneck { polices, holds, interval: 1_000.0 };
                let count = (holds / (1.0 - 1.0 / overdrive)) as u64 + 400;
                let read = Train::read(&train(b, overdrive, count, 20.0, 7));
                if read.before_loss < 10 {
                    assert_eq!(read.limit(), None, "{b:?} {overdrive}");
                    continue;
                }
                assert_eq!(read.limit(), Some(limit), "{b:?} {overdrive} {read:?}");
                assert!((read.overdrive.unwrap() / overdrive - 1.0).abs() < 0.02, "{read:?}");
            }
        }
    }
}

/// The bottleneck's rate is anywhere between 0.2 and 0.63 of the last one.
#[test]
fn the_rate_need_not_be_known() {
    for (polices, limit) in KINDS {
        for holds in [4.0, 20.0, 300.0] {
            for first in [0.4, 0.5, 0.8, 1.2] {
                let b = Bottleneck { polices, holds, interval: 200.0 };
                let read = Train::read(&rising(b, [first, 4.0 * first], 4_000, 20.0, 5));
                assert_eq!(read.limit(), Some(limit), "{b:?} {first} {read:?}");
            }
        }
    }
}

/// A few datagrams are lost before the bottleneck is full.
#[test]
fn other_losses_come_first() {
    for (polices, limit) in KINDS {
        let b = Bottleneck { polices, holds: 30.0, interval: 200.0 };
        let mut arrivals = rising(b, [0.5, 2.0], 2_000, 20.0, 5);
        arrivals.retain(|datagram| ![50, 51, 170, 400].contains(&datagram.number));
        let read = Train::read(&arrivals);
        assert_eq!(read.limit(), Some(limit), "{read:?}");
    }
}

/// 2880 trains over paths of 4 to 400 Mbit/s with the noise of timestamps from 0.02 to 2 ms.
#[test]
fn noise_leaves_trains_undecided_rather_than_wrong() {
    let (mut all, mut decided, mut wrong) = (0u32, 0u32, 0u32);
    for (polices, limit) in KINDS {
        for interval in [30.0, 120.0, 600.0, 3_000.0] {
            for holds in [4.0, 12.0, 60.0] {
                for noise in [20.0, 200.0, 2_000.0] {
                    for seed in 1..=40 {
                        let b = Bottleneck { polices, holds, interval };
                        let count = (5.0 * holds) as u64 + 150;
                        let read = Train::read(&train(b, 1.25, count, noise, seed));
                        all += 1;
                        decided += u32::from(read.limit().is_some());
                        wrong += u32::from(read.limit().is_some_and(|found| found != limit));
                    }
                }
            }
        }
    }
    assert!(f64::from(wrong) <= 0.01 * f64::from(decided), "{wrong} of {decided} of {all}");
    assert!(f64::from(decided) >= 0.5 * f64::from(all), "{decided} of {all}");
}

/// Receive offload gives up to eight datagrams the time of the last one.
#[test]
fn batches_of_receive_offload_do_not_matter() {
    for (polices, limit) in KINDS {
        let b = Bottleneck { polices, holds: 30.0, interval: 100.0 };
        let mut arrivals = train(b, 1.25, 400, 20.0, 3);
        for batch in arrivals.chunks_mut(8) {
            let last = batch.iter().map(|datagram| datagram.arrived_us).max().unwrap();
            batch.iter_mut().for_each(|datagram| datagram.arrived_us = last);
        }
        assert_eq!(Train::read(&arrivals).limit(), Some(limit));
    }
}

/// A sender that stalls for 5 ms and catches up at twice the rate.
#[test]
fn stalls_of_the_sender_do_not_matter() {
    for (polices, limit) in KINDS {
        let (mut level, mut last) = (0.0f64, 0.0f64);
        let mut arrivals = Vec::new();
        for number in 1..=500u64 {
            let due = number as f64 * 80.0;
            let sent = if due < 1_600.0 { due } else { due.max(6_600.0 + (due - 1_600.0) / 2.0) };
            level = f64::max(0.0, level - (sent - last) / 100.0);
            last = sent;
            if level < 40.0 {
                let waits = if polices { 0.0 } else { level * 100.0 };
                level += 1.0;
                let (sent_us, arrived_us) = (sent as u64, (sent + 9_000.0 + waits) as u64);
                arrivals.push(TimedDatagram { number, sent_us, arrived_us });
            }
        }
        let read = Train::read(&arrivals);
        assert_eq!(read.limit(), Some(limit), "{read:?}");
    }
}

#[test]
fn random_loss_decides_nothing() {
    for share in [0.001, 0.01, 0.05, 0.1, 0.2, 0.4, 0.6] {
        for seed in 1..=100 {
            let mut random = Random(seed);
            let arrivals: Vec<_> = train(
                Bottleneck { polices: true, holds: 1e9, interval: 100.0 },
                1.25,
                2_000,
                50.0,
                seed,
            )
            .into_iter()
            .filter(|_| random.next() >= share)
            .collect();
            let read = Train::read(&arrivals);
            assert_eq!(read.limit(), None, "{share} {seed} {read:?}");
        }
    }
}

/// Gilbert-Elliott: runs of five lost datagrams on average.
#[test]
fn loss_in_clusters_decides_nothing() {
    for seed in 1..=200 {
        let (mut random, mut bad) = (Random(seed), false);
        let path = Bottleneck { polices: true, holds: 1e9, interval: 100.0 };
        let mut arrivals = train(path, 1.25, 2_000, 50.0, seed);
        arrivals.retain(|_| {
            bad = random.next() < if bad { 0.8 } else { 0.02 };
            !bad
        });
        assert_eq!(Train::read(&arrivals).limit(), None, "{seed}");
    }
}

#[test]
fn without_losses_or_with_few_datagrams_nothing_is_decided() {
    let queue = Bottleneck { polices: false, holds: 1e9, interval: 100.0 };
    let read = Train::read(&train(queue, 1.25, 2_000, 50.0, 1));
    assert_eq!((read.limit(), read.overdrive, read.received), (None, None, 2_000));
    assert_eq!(read.saw(), "none of 2000 datagrams was lost");
    let small = Bottleneck { polices: false, holds: 2.0, interval: 100.0 };
    assert_eq!(Train::read(&train(small, 1.25, 500, 1.0, 1)).limit(), None);
    let short = Bottleneck { polices: false, holds: 20.0, interval: 100.0 };
    assert_eq!(Train::read(&train(short, 1.25, 120, 1.0, 1)).limit(), None, "few losses");
    assert_eq!(Train::read(&[]).limit(), None);
}

/// Arrivals come from the other end.
#[test]
fn invalid_arrivals_decide_nothing() {
    let at = |number, sent_us, arrived_us| TimedDatagram { number, sent_us, arrived_us };
    let extreme = [0, 1, u64::MAX - 1, u64::MAX];
    let mut wild = Vec::new();
    for number in extreme {
        for sent_us in extreme {
            wild.extend(extreme.map(|arrived_us| at(number, sent_us, arrived_us)));
        }
    }
    assert_eq!(Train::read(&wild).limit(), None);
    let same: Vec<_> = (1..500).filter(|n| n % 5 != 0).map(|n| at(n, 7, 7)).collect();
    assert_eq!(Train::read(&same).limit(), None);
    let backwards: Vec<_> =
        (1..500).filter(|n| n % 5 != 0).map(|n| at(n, 1_000_000 - n, 9)).collect();
    assert_eq!(Train::read(&backwards).limit(), None);
}

#[test]
fn what_was_seen_is_said() {
    for (polices, clause) in [(true, "0 %"), (false, "100 %")] {
        let b = Bottleneck { polices, holds: 40.0, interval: 1_000.0 };
        let saw = Train::read(&train(b, 1.25, 500, 0.0, 1)).saw();
        assert!(saw.contains("1.25 times the bottleneck's rate"), "{saw}");
        assert!(saw.contains(clause), "{saw}");
    }
}

#[test]
fn near_the_threshold_nothing_is_decided() {
    let growth = |ratio, error| Growth { delay_us: 1.0, ratio, error }.limit();
    assert_eq!(growth(0.1, 0.04), Some(Limit::Policer));
    assert_eq!(growth(0.1, 0.06), None);
    assert_eq!(growth(0.3, 0.04), Some(Limit::ShallowQueue));
    assert_eq!(growth(0.3, 0.06), None);
    assert_eq!(growth(3.0, 0.01), None, "another queue");
}
