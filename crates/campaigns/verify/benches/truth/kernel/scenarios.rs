//! The scenarios.

use control::Algorithm::{self, Bbr, Cubic, NewReno};
use rand_pcg::Pcg64Mcg;
use rand_pcg::rand_core::SeedableRng;
use simulator::{CrossFlow, Scenario};
use units::{BitRate, ByteCount};

type Named = (&'static str, Scenario);

fn case(name: &'static str, path: &str, seconds: f64) -> Named {
    (name, Scenario { family: name, ..Scenario::new(path, seconds) })
}

fn with(named: Named, change: impl FnOnce(&mut Scenario)) -> Named {
    let (name, mut case) = named;
    change(&mut case);
    (name, case)
}

/// Each with one thing that must be visible in its ground truth.
pub(crate) fn shown() -> Vec<Named> {
    let mbit = |rate: u64| Some(BitRate::from_bps(rate * 1_000_000));
    vec![
        case("deep", "rate=100mbit,rtt=40ms,queue=3bdp", 5.0),
        case("shallow", "rate=100mbit,rtt=40ms,queue=0.1bdp", 5.0),
        case("fq-codel", "rate=50mbit,rtt=30ms,queue=fq_codel", 5.0),
        case("policer", "rate=200mbit,rtt=30ms,police=30mbit:100000", 5.0),
        case("random", "rate=100mbit,rtt=40ms,loss=0.1%", 5.0),
        case("gilbert", "rate=100mbit,rtt=40ms,loss=ge:0.05%:30%", 5.0),
        with(case("shared", "rate=60mbit,rtt=30ms,queue=1bdp", 5.0), |case| {
            case.cross = vec![
                CrossFlow::Tcp { congestion: Cubic, start_s: 0.0 },
                CrossFlow::Tcp { congestion: Cubic, start_s: 2.0 },
            ];
        }),
        with(case("datagrams", "rate=60mbit,rtt=30ms,queue=1bdp", 5.0), |case| {
            case.cross = vec![CrossFlow::OnOffUdp {
                rate: BitRate::from_bps(40_000_000),
                on_s: 0.5,
                off_s: 0.5,
            }];
        }),
        with(case("receive-window", "rate=100mbit,rtt=40ms", 4.0), |case| {
            case.receive_window = Some(ByteCount::from_bytes(150_000));
        }),
        with(case("send-buffer", "rate=100mbit,rtt=40ms", 4.0), |case| {
            case.send_buffer = Some(ByteCount::from_bytes(200_000));
        }),
        with(case("application", "rate=100mbit,rtt=40ms", 4.0), |case| case.rate = mbit(20)),
        with(case("pacing", "rate=100mbit,rtt=40ms", 4.0), |case| case.pacing = mbit(20)),
        with(case("slow-reader", "rate=100mbit,rtt=20ms", 4.0), |case| case.reader = mbit(20)),
        case("ramp", "rate=500mbit,rtt=100ms,queue=1bdp", 1.0),
        case(
            "rate-change",
            "rate=100mbit,rtt=30ms,queue=1bdp,@2s.rate=20mbit,@3.5s.rate=60mbit",
            5.0,
        ),
        with(case("reverse-acks", "up.rate=0.4mbit,down.rate=100mbit,rtt=30ms", 4.0), |case| {
            case.reverse = true;
        }),
        with(case("marks", "rate=50mbit,rtt=30ms,queue=fq_codel,ecn=yes", 4.0), |case| {
            case.ecn = true;
        }),
        case("reordering", "rate=50mbit,rtt=30ms,reorder=0.5%:5ms", 4.0),
        with(case("cpu", "rate=2gbit,rtt=5ms", 4.0), |case| {
            case.block = Some(ByteCount::from_bytes(16));
        }),
        with(case("memory", "rate=unlimited,rtt=0.1ms", 4.0), |case| case.streams = 4),
        with(case("bbr", "rate=100mbit,rtt=40ms,queue=1bdp", 5.0), |case| case.congestion = Bbr),
        case("gigabit", "rate=1gbit,rtt=20ms,queue=1bdp", 5.0),
    ]
}

/// Random losses, as scenarios have them: one in a thousand.
const RANDOM_LOSS: &str = ",loss=0.1%";
const PACKETS_PER_LOSS: f64 = 1e3;
/// More data packets than any of these scenarios sends.
const MOST_PACKETS: u64 = 100_000;

/// The scenario of one run: random losses are drawn here, so that kernel and simulation lose the
/// same data packets, by their number at the bottleneck. A loss more or less would decide.
pub(crate) fn of_run(case: &Scenario, seed: u64) -> Scenario {
    let Some(path) = case.path.strip_suffix(RANDOM_LOSS) else { return case.clone() };
    let mut draws = Pcg64Mcg::seed_from_u64(seed);
    let gap = || 1 + (link::random::exponential(&mut draws) * PACKETS_PER_LOSS) as u64;
    let lost = std::iter::repeat_with(gap).scan(0, |at, gap| {
        *at += gap;
        (*at < MOST_PACKETS).then(|| at.to_string())
    });
    let lost = lost.collect::<Vec<String>>().join("+");
    Scenario { path: format!("{path},up.loss=data:{lost}"), ..case.clone() }
}

/// Those that are run under the kernel and in the simulation.
pub(crate) fn compared() -> Vec<Named> {
    let both = |control: Algorithm, name: &'static str, path: &str, seconds: f64| {
        with(case(name, path, seconds), |case| case.congestion = control)
    };
    vec![
        both(Cubic, "CUBIC, drop-tail 1 BDP", "rate=50mbit,rtt=40ms,queue=1bdp", 10.0),
        both(NewReno, "Reno, drop-tail 1 BDP", "rate=50mbit,rtt=40ms,queue=1bdp", 10.0),
        both(Bbr, "BBR, drop-tail 1 BDP", "rate=50mbit,rtt=40ms,queue=1bdp", 10.0),
        both(Cubic, "CUBIC, drop-tail 0.1 BDP", "rate=50mbit,rtt=40ms,queue=0.1bdp", 10.0),
        both(Bbr, "BBR, drop-tail 0.1 BDP", "rate=50mbit,rtt=40ms,queue=0.1bdp", 10.0),
        both(Cubic, "CUBIC, fq_codel", "rate=50mbit,rtt=40ms,queue=fq_codel", 10.0),
        both(Bbr, "BBR, fq_codel", "rate=50mbit,rtt=40ms,queue=fq_codel", 10.0),
        both(Cubic, "CUBIC, 0.1 % random loss", "rate=50mbit,rtt=40ms,loss=0.1%", 10.0),
        both(NewReno, "Reno, 0.1 % random loss", "rate=50mbit,rtt=40ms,loss=0.1%", 10.0),
        both(Bbr, "BBR, 0.1 % random loss", "rate=50mbit,rtt=40ms,loss=0.1%", 10.0),
        both(Cubic, "CUBIC, policer", "rate=100mbit,rtt=40ms,police=20mbit:100000", 10.0),
        both(Bbr, "BBR, policer", "rate=100mbit,rtt=40ms,police=20mbit:100000", 10.0),
    ]
}
