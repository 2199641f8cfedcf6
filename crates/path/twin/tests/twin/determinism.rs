//! The same scenario gives the same outcome, bit by bit, in debug and release builds and with
//! any code generation; `scripts/determinism` runs this test in several of them.

use crate::arrange::ms;
use control::{Algorithm, Arithmetic, UdtRules};
use std::fmt::{self, Write};
use std::time::Duration;
use tcp::{Application, BufferSize, Reader, WindowSize};
use topology::PathSpec;
use twin::{ConnectionConfig, DatagramSource, Ecn, Granularity, HostPauses, Outcome, Scenario};
use units::{BitRate, ByteCount};

/// Hashes what is written.
struct Digest(blake3::Hasher);

impl fmt::Write for Digest {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        self.0.update(text.as_bytes());
        Ok(())
    }
}

/// Of every sample, interval, state and counter; a number prints with all its bits.
fn digest(outcome: &Outcome) -> String {
    let Outcome { measurement, truth, senders, read, forward, reverse, packets, .. } = outcome;
    let mut digest = Digest(blake3::Hasher::new());
    for stream in &measurement.streams {
        write!(digest, "{:?}{:?}", stream.sender, stream.receiver).unwrap();
    }
    write!(digest, "{truth:?}{senders:?}{read:?}{forward:?}{reverse:?}{packets}").unwrap();
    digest.0.finalize().to_hex()[..16].to_owned()
}

/// Connections with these algorithms, 200 ms apart, over a path.
fn over(path: &str, algorithms: &[Algorithm]) -> Scenario {
    let path: PathSpec = path.parse().unwrap();
    let [forward, reverse] = path.schedules(42);
    let connections = (0..).zip(algorithms).map(|(index, algorithm)| ConnectionConfig {
        algorithm: *algorithm,
        start: ms(200) * index,
        ..ConnectionConfig::default()
    });
    Scenario {
        connections: connections.collect(),
        ..Scenario::new(forward, reverse, Duration::from_secs(6))
    }
}

/// The same for its only connection.
fn with(scenario: Scenario, change: impl Fn(&mut ConnectionConfig)) -> Scenario {
    let mut scenario = scenario;
    scenario.connections.iter_mut().for_each(change);
    scenario
}

fn scenarios() -> Vec<(&'static str, Scenario)> {
    use Algorithm::{Bbr, Bbr3, Cubic, FixedRate, NewReno, Udt};
    let fast = "rate=2gbit,rtt=10ms,queue=0.5bdp";
    let pauses = |seed| Some(HostPauses::Random { every: ms(40), length: ms(2), seed });
    vec![
        ("reno, random loss", over("rate=20mbit,rtt=40ms,queue=1bdp,loss=0.1%", &[NewReno])),
        ("cubic, shallow queue", over("rate=50mbit,rtt=40ms,queue=0.1bdp", &[Cubic])),
        ("bbr, normal jitter", over("rate=20mbit,rtt=40ms,queue=1bdp,jitter=2ms", &[Bbr, Cubic])),
        (
            "bbr3, policer, reordering",
            over("rate=50mbit,rtt=30ms,queue=1bdp,police=20mbit:64KiB,reorder=1%:5ms", &[Bbr3]),
        ),
        (
            "cubic and reno, fq-codel with ECN",
            with(
                over("rate=30mbit,rtt=30ms,queue=fq_codel,ecn=yes", &[Cubic, NewReno, Bbr3]),
                |c| {
                    c.ecn = Ecn::Classic;
                },
            ),
        ),
        (
            "on and off, red, exponential jitter",
            with(
                over("rate=30mbit,rtt=30ms,queue=red,jitter=exponential:1ms", &[Cubic, Cubic]),
                |c| c.application = Application::OnOff { on: ms(300), off: ms(400) },
            ),
        ),
        (
            "pie, pareto jitter, clustered loss",
            over(
                "rate=30mbit,rtt=30ms,queue=pie,jitter=pareto:1ms,loss=ge:0.1%:20%",
                &[Cubic, Bbr],
            ),
        ),
        (
            "schedule, datagrams, pauses, autotuning",
            Scenario {
                datagrams: vec![DatagramSource {
                    rate: BitRate::from_bps(5_000_000),
                    size: 1200,
                    on: ms(300),
                    off: ms(200),
                    start: ms(100),
                }],
                sending_host: pauses(1),
                receiving_host: pauses(2),
                ..with(
                    over("rate=30mbit,rtt=30ms,queue=1bdp,@2s.rate=8mbit,@3s.rtt=60ms", &[Cubic]),
                    |c| {
                        c.buffer = BufferSize::Auto(ByteCount::from_bytes(4 << 20));
                        c.window = WindowSize::Auto(ByteCount::from_bytes(3 << 20));
                        let rate = BitRate::from_bps(40_000_000);
                        c.reader = Reader::Rate { rate, block: ByteCount::from_bytes(65_536) };
                    },
                )
            },
        ),
        (
            "udt and a fixed rate, outages, copies, bit errors",
            over(
                "rate=30mbit,rtt=30ms,queue=1bdp,blackhole=200ms@2s,duplicate=0.1%,corrupt=0.1%",
                &[Udt(UdtRules::Udt), FixedRate(BitRate::from_bps(4_000_000))],
            ),
        ),
        ("trains at 2 Gbit/s", over(fast, &[Cubic])),
        ("single packets at 2 Gbit/s", exact(over(fast, &[Cubic]))),
        ("every control in Linux's arithmetic", every_control(Arithmetic::Kernel)),
        ("every control by its paper", every_control(Arithmetic::Paper)),
    ]
}

/// All share a queue of DualPI2; Prague alone is in its L4S half.
fn every_control(arithmetic: Arithmetic) -> Scenario {
    with(over("rate=100mbit,rtt=30ms,queue=dualpi2", &Algorithm::ALL), |c| {
        c.arithmetic = arithmetic;
        c.ecn = if c.algorithm == Algorithm::Prague { Ecn::L4s } else { Ecn::Classic };
    })
}

fn exact(scenario: Scenario) -> Scenario {
    Scenario { granularity: Granularity::Exact, ..scenario }
}

/// A change of what is simulated changes them, and says why in its message.
const DIGESTS: [&str; 13] = [
    "4b1800c4d8a1bd43", // reno, random loss
    "af829773a9c6e669", // cubic, shallow queue
    "e1f0897d2b1a50c6", // bbr, normal jitter
    "b45a1d2e3dfa072c", // bbr3, policer, reordering
    "159c17bdd9dfde05", // cubic and reno, fq-codel with ECN
    "6e8476bf5322b74d", // on and off, red, exponential jitter
    "bf25de9649d0c064", // pie, pareto jitter, clustered loss
    "f1ccfc4b17b314c8", // schedule, datagrams, pauses, autotuning
    "cb091e7c15ed8acc", // udt and a fixed rate, outages, copies, bit errors
    "0dd89d63693179e4", // trains at 2 Gbit/s
    "4d8d40183b5c51af", // single packets at 2 Gbit/s
    "f2fa15d664b1a034", // every control in Linux's arithmetic
    "47486c37d8e531b0", // every control by its paper
];

#[test]
fn outcomes_are_the_same_bit_by_bit_in_every_build() {
    let scenarios = scenarios();
    let digests: Vec<String> =
        scenarios.iter().map(|(_, scenario)| digest(&twin::run(scenario))).collect();
    let table: Vec<String> = scenarios
        .iter()
        .zip(&digests)
        .map(|((name, _), digest)| format!("    \"{digest}\", // {name}\n"))
        .collect();
    assert!(digests == DIGESTS, "the digests are now\n{}", table.concat());
}

/// The error of trains: what is handled together is handled late by at most 60 us.
#[test]
fn trains_agree_with_single_packets() {
    for path in [
        "rate=500mbit,rtt=20ms,queue=1bdp",
        "rate=1gbit,rtt=10ms,queue=0.3bdp",
        "rate=2gbit,rtt=10ms,loss=0.01%",
    ] {
        let trains = over(path, &[Algorithm::Cubic]);
        let single = twin::run(&exact(trains.clone()));
        let trains = twin::run(&trains);
        let ratio = trains.read[0] as f64 / single.read[0] as f64;
        assert!((0.95..1.05).contains(&ratio), "{path}: goodput {ratio}");
        let rtt_us = |outcome: &Outcome| {
            let mut rtts: Vec<u32> =
                outcome.measurement.streams[0].sender.iter().map(|sample| sample.rtt_us).collect();
            rtts.sort_unstable();
            f64::from(rtts[rtts.len() / 2])
        };
        let ratio = rtt_us(&trains) / rtt_us(&single);
        assert!((0.9..1.1).contains(&ratio), "{path}: RTT {ratio}");
    }
}
