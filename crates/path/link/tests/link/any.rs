//! Invariants under any combination of effects, queues and arrivals.

use crate::arrange::{SECOND, ms};
use link::{
    Blackhole, Bursts, COALESCE, Cause, CoDel, Counters, Delivery, Distribution, DualPi2,
    EcnCodepoint, Fate, FateKind, Fifo, FqCoDel, GilbertElliott, Jitter, Limit, Link, LinkConfig,
    Loss, Pie, Queue, Rate, Red, Reorder, Schedule, TokenBucket, Trace, Train, Xcp,
};
use proptest::prelude::*;
use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;
use units::{BitRate, ByteCount, LossRatio, Nanos, Probability};

fn limits() -> impl Strategy<Value = Limit> {
    prop_oneof![
        (0u64..200).prop_map(Limit::Packets),
        (0u64..300_000).prop_map(|bytes| Limit::Bytes(ByteCount::from_bytes(bytes))),
    ]
}

fn times(most_ms: u64) -> impl Strategy<Value = Duration> {
    (0..most_ms * 1_000_000).prop_map(Duration::from_nanos)
}

fn share(percent: u32) -> LossRatio {
    format!("{percent}%").parse().unwrap()
}

fn shares() -> impl Strategy<Value = LossRatio> {
    prop_oneof![Just(LossRatio::NONE), (1u32..50).prop_map(share)]
}

fn probabilities() -> impl Strategy<Value = Probability> {
    prop_oneof![Just(Probability::ALWAYS), (0u32..100).prop_map(|p| share(p).into())]
}

fn queues() -> impl Strategy<Value = Queue> {
    let codels = || {
        (times(20), times(200), limits(), any::<bool>())
            .prop_map(|(target, interval, limit, ecn)| CoDel { target, interval, limit, ecn })
    };
    let bytes = || (0u64..100_000).prop_map(ByteCount::from_bytes);
    let fifos =
        || (limits(), prop::option::of(limits())).prop_map(|(limit, mark)| Fifo { limit, mark });
    prop_oneof![
        fifos().prop_map(Queue::DropTail),
        fifos().prop_map(Queue::DropHead),
        codels().prop_map(Queue::CoDel),
        (codels(), 1u32..8, 64u32..9_000)
            .prop_map(|(codel, flows, quantum)| Queue::FqCoDel(FqCoDel { codel, flows, quantum })),
        (bytes(), bytes(), probabilities(), 0u8..12, limits(), any::<bool>()).prop_map(
            |(min, max, probability, weight, limit, ecn)| {
                Queue::Red(Red { min, max, probability, weight, limit, ecn })
            }
        ),
        (times(40), times(40), times(200), limits(), any::<bool>()).prop_map(
            |(target, update, burst, limit, ecn)| {
                Queue::Pie(Pie { target, update, burst, limit, ecn })
            }
        ),
        limits().prop_map(|limit| Queue::Xcp(Xcp { limit })),
        (times(40), times(40), times(5), 1u32..4, probabilities(), limits()).prop_map(
            |(target, update, step, coupling, classic_share, limit)| {
                Queue::DualPi2(DualPi2 { target, update, step, coupling, classic_share, limit })
            }
        ),
    ]
}

fn buckets() -> impl Strategy<Value = TokenBucket> {
    (10_000u64..1_000_000_000, 0u64..100_000).prop_map(|(rate, burst)| TokenBucket {
        rate: BitRate::from_bps(rate),
        burst: ByteCount::from_bytes(burst),
    })
}

fn rates() -> impl Strategy<Value = Rate> {
    prop_oneof![
        Just(Rate::Unlimited),
        (10_000u64..20_000_000_000).prop_map(|bps| Rate::Constant(BitRate::from_bps(bps))),
        buckets().prop_map(Rate::TokenBucket),
        prop::collection::vec(0u64..5, 1..20).prop_map(|gaps| {
            let stamps = gaps.iter().scan(0, |at, gap| {
                *at += gap;
                Some(format!("{at}\n"))
            });
            Rate::Trace(Arc::new(Trace::parse(&(stamps.collect::<String>() + "100")).unwrap()))
        }),
    ]
}

fn loss_models() -> impl Strategy<Value = Loss> {
    prop_oneof![
        Just(Loss::None),
        shares().prop_map(Loss::Bernoulli),
        [probabilities(), probabilities(), probabilities(), probabilities()]
            .prop_map(|[p, r, bad, good]| Loss::GilbertElliott(GilbertElliott { p, r, bad, good })),
        prop::collection::vec((1u64..500, 0u64..9), 0..9).prop_map(|runs| {
            Loss::List(Arc::new(runs.into_iter().map(|(from, more)| from..=from + more).collect()))
        }),
        prop::collection::vec(1u64..500, 0..9).prop_map(|numbers| {
            Loss::DataList(Arc::new(numbers.into_iter().map(|number| number..=number).collect()))
        }),
    ]
}

fn configs() -> impl Strategy<Value = LinkConfig> {
    let distributions = prop_oneof![
        Just(Distribution::Normal),
        Just(Distribution::Uniform),
        Just(Distribution::Exponential),
        Just(Distribution::Pareto),
    ];
    let jitters = (distributions, times(30), any::<bool>())
        .prop_map(|(distribution, scale, overtake)| Jitter { distribution, scale, overtake });
    let reorders = (shares(), times(50)).prop_map(|(share, by)| Reorder { share, by });
    let bursts = (0u32..20, times(100)).prop_map(|(packets, every)| Bursts { packets, every });
    let blackholes =
        (times(50), times(200)).prop_map(|(length, every)| Blackhole { length, every });
    let effects = (
        prop::option::of(jitters),
        loss_models(),
        prop::option::of(bursts),
        prop::option::of(blackholes),
        prop::option::of(reorders),
        shares(),
        shares(),
    );
    let doors = (prop::option::of(500u32..9_000), prop::option::of(buckets()), 0u32..100);
    (rates(), times(100), queues(), effects, doors, any::<u64>()).prop_map(
        |(rate, delay, queue, effects, (mtu, policer, overhead), seed)| {
            let (jitter, loss, bursts, blackhole, reorder, duplicate, corrupt) = effects;
            LinkConfig {
                jitter,
                loss,
                bursts,
                blackhole,
                reorder,
                duplicate,
                corrupt,
                mtu,
                policer,
                overhead,
                seed,
                ..LinkConfig::new(rate, delay, queue)
            }
        },
    )
}

fn schedules() -> impl Strategy<Value = Schedule> {
    let changes = prop::collection::vec((1u64..200, configs()), 0..3);
    (configs(), changes, prop::option::of(600u64..900)).prop_map(|(start, changes, repeat)| {
        let mut at = 0;
        let timed = changes.into_iter().map(|(gap, config)| {
            at += gap * 1_000_000;
            (Nanos(at), config)
        });
        Schedule { start, changes: timed.collect(), repeat: repeat.map(ms) }
    })
}

fn trains() -> impl Strategy<Value = Vec<(u64, Train)>> {
    let train =
        (0u32..66_000, 100u32..9_000, 0u32..6, 0u8..4).prop_map(|(payload, segment, flow, ecn)| {
            let ecn = EcnCodepoint::of_traffic_class(ecn);
            Train::segmented(52, payload, segment).of_flow(flow).with_ecn(ecn)
        });
    prop::collection::vec((0u64..20_000_000, train), 1..60)
}

/// Minimum delay from the bottleneck to the far end over all settings.
fn least_delay(schedule: &Schedule) -> u64 {
    let least = |config: &LinkConfig| {
        let ahead = config.jitter.map_or(Duration::ZERO, |jitter| match jitter.distribution {
            Distribution::Normal => config.delay,
            Distribution::Uniform => jitter.scale,
            Distribution::Exponential | Distribution::Pareto => Duration::ZERO,
        });
        config.delay.saturating_sub(ahead)
    };
    let all = schedule.changes.iter().map(|(_, config)| config).chain([&schedule.start]);
    u64::try_from(all.map(least).min().unwrap().as_nanos()).unwrap()
}

/// Whether packets of one flow stay in order under all settings.
fn keeps_order(schedule: &Schedule) -> bool {
    let all = schedule.changes.iter().map(|(_, config)| config).chain([&schedule.start]);
    all.into_iter().all(|c| c.reorder.is_none() && c.jitter.is_none_or(|jitter| !jitter.overtake))
}

/// Releases all packets due by `now`, at the times that the link asks for.
fn release_until(link: &mut Link<u32>, now: Nanos, out: &mut Vec<Delivery<u32>>) {
    while let Some(due) = link.next_due().filter(|due| *due <= now) {
        while let Some(delivery) = link.release(due) {
            // Released when due: neither early nor late.
            assert_eq!(delivery.due, due);
            out.push(delivery);
        }
    }
}

fn check_sums(counters: &Counters, fates: &[Fate<u32>], out: &[Delivery<u32>]) {
    let of = |cause| fates.iter().filter(|f| f.kind == FateKind::Dropped(cause)).count() as u64;
    let (before, after) = (
        [
            (Cause::TooLong, counters.too_long),
            (Cause::Policed, counters.policed),
            (Cause::QueueFull, counters.queue_drops),
            (Cause::Aqm, counters.aqm_drops),
        ],
        [
            (Cause::Lost, counters.lost),
            (Cause::Burst, counters.burst_lost),
            (Cause::Blackhole, counters.blackhole_lost),
        ],
    );
    for (cause, count) in before.iter().chain(&after) {
        assert_eq!(of(*cause), *count, "{cause:?}");
    }
    let sum = |counts: &[(Cause, u64)]| counts.iter().map(|(_, count)| count).sum::<u64>();
    assert_eq!(counters.arrived, sum(&before) + counters.sent);
    let came: u64 = out.iter().map(|delivery| delivery.packets.len() as u64).sum();
    assert_eq!(counters.sent + counters.duplicated, sum(&after) + came);
    assert_eq!(fates.len() as u64, counters.arrived, "each packet has one fate");
    let count = |is: fn(&FateKind) -> bool| fates.iter().filter(|f| is(&f.kind)).count() as u64;
    let doubled = count(|kind| matches!(kind, FateKind::Delivered { duplicated: true, .. }));
    let corrupted = count(|kind| matches!(kind, FateKind::Delivered { corrupted: true, .. }));
    let marked = count(|kind| matches!(kind, FateKind::Delivered { marked: true, .. }));
    assert_eq!((doubled, corrupted), (counters.duplicated, counters.corrupted));
    assert!(marked <= counters.marked, "a marked packet may be lost, no other is marked");
}

fn check_deliveries(fates: &[Fate<u32>], out: &[Delivery<u32>], least: u64) {
    assert!(out.is_sorted_by_key(|delivery| delivery.due));
    let mut copies = HashMap::<(u32, u32), u64>::new();
    for delivery in out {
        assert!(delivery.due.since(delivery.first_due) <= COALESCE);
        for index in delivery.packets.clone() {
            *copies.entry((delivery.payload, index)).or_default() += 1;
        }
    }
    for fate in fates {
        let came = copies.remove(&(fate.payload, fate.index)).unwrap_or(0);
        match fate.kind {
            FateKind::Dropped(_) => assert_eq!(came, 0, "{fate:?}"),
            FateKind::Delivered { due, queued, duplicated, marked, .. } => {
                assert_eq!(came, 1 + u64::from(duplicated), "{fate:?}");
                assert!(due >= Nanos(fate.decided.0 + least), "{fate:?}");
                assert!(fate.decided.0 >= fate.arrived.plus(queued).0, "{fate:?}");
                assert!(!marked || fate.train.is_ecn_capable(), "{fate:?}");
            }
        }
    }
    assert!(copies.is_empty(), "made up: {copies:?}");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn counters_are_consistent_on_any_link(schedule in schedules(), trains in trains()) {
        let (least, ordered) = (least_delay(&schedule), keeps_order(&schedule));
        let mut link = Link::new(schedule);
        link.watch(true);
        let (mut now, mut out) = (0, Vec::new());
        for (number, (gap, train)) in trains.into_iter().enumerate() {
            now += gap;
            release_until(&mut link, Nanos(now), &mut out);
            link.arrive(Nanos(now), train, number as u32);
            let counters = link.counters();
            let waits = link.queued_packets();
            let gone = counters.too_long + counters.policed + counters.queue_drops;
            let passed = counters.aqm_drops + counters.sent;
            prop_assert_eq!(counters.arrived, gone + passed + waits);
            prop_assert_eq!(waits == 0, link.queued_bytes() == ByteCount::ZERO);
        }
        // The slowest of these links sends 10 kbit/s.
        release_until(&mut link, Nanos(now + 100_000 * SECOND), &mut out);
        prop_assert_eq!(link.next_due(), None);
        prop_assert_eq!((link.queued_packets(), link.queued_bytes()), (0, ByteCount::ZERO));
        let fates: Vec<_> = link.fates().collect();
        check_sums(&link.counters(), &fates, &out);
        check_deliveries(&fates, &out, least);
        if ordered {
            for flow in 0..6 {
                // L4S packets may overtake classic ones.
                for l4s in [false, true] {
                    let of_flow = out
                        .iter()
                        .filter(|d| d.train.flow() == flow && d.train.is_l4s() == l4s);
                    prop_assert!(of_flow.is_sorted_by_key(|d| (d.payload, d.packets.start)));
                }
            }
        }
    }
}
