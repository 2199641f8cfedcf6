//! Any path and any traffic: what must always hold.

use control::Algorithm;
use link::{
    Blackhole, Bursts, CoDel, Distribution, DualPi2, Fifo, FqCoDel, Jitter, Limit, LinkConfig,
    Loss, Pie, Queue, Rate, Red, Reorder, TokenBucket, Xcp,
};
use proptest::prelude::*;
use std::time::Duration;
use tcp::{Application, BufferCheck, BufferSize, KernelVersion, Reader, WindowSize, WriteLimit};
use twin::{ConnectionConfig, DatagramSource, Ecn, Scenario};
use units::{BitRate, ByteCount, LossRatio};

fn millis(range: std::ops::Range<u64>) -> impl Strategy<Value = Duration> {
    range.prop_map(Duration::from_millis)
}

fn shares() -> impl Strategy<Value = LossRatio> {
    prop_oneof![
        3 => Just(LossRatio::NONE),
        1 => (1u32..40).prop_map(|percent| format!("{percent}%").parse().unwrap()),
    ]
}

fn limits() -> impl Strategy<Value = Limit> {
    prop_oneof![
        (1u64..200).prop_map(Limit::Packets),
        (1_500u64..300_000).prop_map(|bytes| Limit::Bytes(ByteCount::from_bytes(bytes))),
    ]
}

fn rates() -> impl Strategy<Value = BitRate> {
    (100_000u64..200_000_000).prop_map(BitRate::from_bps)
}

fn queues() -> impl Strategy<Value = Queue> {
    let codels = || {
        (limits(), any::<bool>()).prop_map(|(limit, ecn)| CoDel {
            target: Duration::from_millis(5),
            interval: Duration::from_millis(100),
            limit,
            ecn,
        })
    };
    let fifos =
        || (limits(), prop::option::of(limits())).prop_map(|(limit, mark)| Fifo { limit, mark });
    prop_oneof![
        fifos().prop_map(Queue::DropTail),
        fifos().prop_map(Queue::DropHead),
        codels().prop_map(Queue::CoDel),
        codels().prop_map(|codel| Queue::FqCoDel(FqCoDel { codel, flows: 16, quantum: 1514 })),
        (limits(), any::<bool>()).prop_map(|(limit, ecn)| Queue::Red(Red {
            min: ByteCount::from_bytes(30_000),
            max: ByteCount::from_bytes(90_000),
            probability: "10%".parse::<LossRatio>().unwrap().into(),
            weight: 9,
            limit,
            ecn,
        })),
        (limits(), any::<bool>()).prop_map(|(limit, ecn)| Queue::Pie(Pie {
            target: Duration::from_millis(15),
            update: Duration::from_millis(15),
            burst: Duration::from_millis(150),
            limit,
            ecn,
        })),
        limits().prop_map(|limit| Queue::Xcp(Xcp { limit })),
        limits().prop_map(|limit| Queue::DualPi2(DualPi2 {
            target: Duration::from_millis(15),
            update: Duration::from_millis(16),
            step: Duration::from_millis(1),
            coupling: 2,
            classic_share: "10%".parse::<LossRatio>().unwrap().into(),
            limit,
        })),
    ]
}

fn jitters() -> impl Strategy<Value = Jitter> {
    let distributions = prop_oneof![
        Just(Distribution::Normal),
        Just(Distribution::Uniform),
        Just(Distribution::Exponential),
        Just(Distribution::Pareto),
    ];
    (distributions, millis(1..10), any::<bool>())
        .prop_map(|(distribution, scale, overtake)| Jitter { distribution, scale, overtake })
}

fn links() -> impl Strategy<Value = LinkConfig> {
    let rates = prop_oneof![
        4 => rates().prop_map(Rate::Constant),
        1 => rates().prop_map(|rate| Rate::TokenBucket(TokenBucket {
            rate,
            burst: ByteCount::from_bytes(20_000),
        })),
    ];
    let policers = rates_and_bursts();
    let effects = (
        prop::option::weighted(0.3, jitters()),
        prop::option::weighted(0.2, (1u32..30, millis(50..500))),
        prop::option::weighted(0.2, (millis(10..900), millis(1_000..3_000))),
        prop::option::weighted(0.3, (shares(), millis(1..20))),
        prop::option::weighted(0.2, policers),
    );
    (rates, millis(0..100), queues(), (shares(), shares(), shares()), effects, any::<u64>())
        .prop_map(|(rate, delay, queue, (loss, duplicate, corrupt), effects, seed)| {
            let (jitter, bursts, blackhole, reorder, policer) = effects;
            LinkConfig {
                jitter,
                loss: Loss::Bernoulli(loss),
                bursts: bursts.map(|(packets, every)| Bursts { packets, every }),
                blackhole: blackhole.map(|(length, every)| Blackhole { length, every }),
                reorder: reorder.map(|(share, by)| Reorder { share, by }),
                duplicate,
                corrupt,
                policer,
                seed,
                ..LinkConfig::new(rate, delay, queue)
            }
        })
}

fn rates_and_bursts() -> impl Strategy<Value = TokenBucket> {
    (rates(), 3_000u64..200_000)
        .prop_map(|(rate, burst)| TokenBucket { rate, burst: ByteCount::from_bytes(burst) })
}

fn connections() -> impl Strategy<Value = ConnectionConfig> {
    let applications = prop_oneof![
        3 => Just(Application::Bulk),
        1 => rates().prop_map(|rate| Application::Rate {
            rate,
            block: ByteCount::from_bytes(131_072),
        }),
        1 => (millis(10..900), millis(10..900)).prop_map(|(on, off)| Application::OnOff { on, off }),
    ];
    let bytes = || (1u64..3_000_000).prop_map(ByteCount::from_bytes);
    let buffers =
        prop_oneof![bytes().prop_map(BufferSize::Fixed), bytes().prop_map(BufferSize::Auto)];
    let checks = prop_oneof![Just(BufferCheck::Always), Just(BufferCheck::Unsent)];
    let windows =
        prop_oneof![bytes().prop_map(WindowSize::Fixed), bytes().prop_map(WindowSize::Auto)];
    let readers = prop_oneof![
        3 => Just(Reader::Immediate),
        1 => rates().prop_map(|rate| Reader::Rate { rate, block: ByteCount::from_bytes(65_536) }),
    ];
    let kernels = prop_oneof![Just(KernelVersion::V6_1), Just(KernelVersion::V6_18)];
    let algorithms = prop_oneof![
        Just(Algorithm::NewReno),
        Just(Algorithm::Cubic),
        Just(Algorithm::Bbr),
        Just(Algorithm::Prague)
    ];
    (
        algorithms,
        applications,
        (buffers, checks, windows, readers),
        prop::option::weighted(0.2, rates()),
        (prop_oneof![Just(Ecn::Off), Just(Ecn::Classic), Just(Ecn::L4s)], kernels),
        millis(0..1_000),
    )
        .prop_map(
            |(
                algorithm,
                application,
                (buffer, buffer_check, window, reader),
                pacing,
                (ecn, kernel),
                start,
            )| {
                ConnectionConfig {
                    start,
                    limit: WriteLimit::default(),
                    measured: true,
                    algorithm,
                    mss: 1448,
                    application,
                    buffer,
                    buffer_check,
                    max_pacing_rate: pacing,
                    window,
                    reader,
                    ecn,
                    kernel,
                    ..ConnectionConfig::default()
                }
            },
        )
}

fn scenarios() -> impl Strategy<Value = Scenario> {
    let sources = (rates(), millis(10..500), millis(0..500)).prop_map(|(rate, on, off)| {
        DatagramSource { rate, size: 1_200, on, off, start: Duration::from_millis(100) }
    });
    (
        links(),
        links(),
        prop::collection::vec(connections(), 1..4),
        prop::collection::vec(sources, 0..2),
    )
        .prop_map(|(forward, reverse, connections, datagrams)| Scenario {
            connections,
            datagrams,
            max_packets: 40_000,
            ..Scenario::new(forward, reverse, Duration::from_secs(3))
        })
}

proptest! {
    #[test]
    fn every_simulation_ends_and_its_figures_agree(scenario in scenarios()) {
        let outcome = twin::run(&scenario);
        for (index, (sender, read)) in outcome.senders.iter().zip(&outcome.read).enumerate() {
            // Delivered once and in order: what is read was written, what is
            // acknowledged arrived.
            prop_assert!(sender.acked <= sender.sent && sender.sent <= sender.written);
            prop_assert!(*read <= sender.sent);
            prop_assert!(sender.in_flight <= sender.sent - sender.acked + 1);
            prop_assert!(sender.cwnd >= 1);
            let samples = &outcome.measurement.streams[index].sender;
            for pair in samples.windows(2) {
                prop_assert!(pair[0].t_s < pair[1].t_s);
                prop_assert!(pair[0].acked_bytes <= pair[1].acked_bytes);
                prop_assert!(pair[0].written_bytes <= pair[1].written_bytes);
                prop_assert!(pair[0].retransmits <= pair[1].retransmits);
                prop_assert!(pair[0].busy_us <= pair[1].busy_us);
            }
            for sample in samples {
                let passed = sample.t_s * 1e6 + 1.0;
                prop_assert!(sample.busy_us as f64 <= passed);
                prop_assert!(sample.rwnd_limited_us + sample.sndbuf_limited_us <= sample.busy_us + 2);
            }
        }
    }

    #[test]
    fn the_same_scenario_gives_the_same_outcome(scenario in scenarios()) {
        let (one, other) = (twin::run(&scenario), twin::run(&scenario));
        prop_assert_eq!(one.measurement, other.measurement);
        prop_assert_eq!(one.truth, other.truth);
        prop_assert_eq!(one.forward, other.forward);
    }
}
