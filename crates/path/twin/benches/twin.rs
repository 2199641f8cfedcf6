//! Data packets a second that the twin simulates on one core, packet by packet and in trains.
//!
//! `cargo bench -p longhaul-twin` prints a line for each path: data packets simulated, with
//! their acknowledgements, per second of a core in either granularity, and what both say of
//! the path, beside each other: the error of trains. Then 1000 s of a 10 Gbit/s flow in
//! trains. Promised: 3 million packets a second one by one, 20 million in trains, with 1,000
//! flows half of what one has, and the 1000 s in less than 60 s.
//!
//! With a name as an argument, lines whose path contains it are printed alone.

use control::Algorithm;
use link::{Limit, LinkConfig, Loss, Queue, Rate};
use std::time::Duration;
use twin::{ConnectionConfig, Granularity, Outcome, Scenario};
use units::{BitRate, ByteCount};

/// Measurements, of which the fastest counts: the others were disturbed.
const REPEATS: usize = 5;

/// A path with a drop-tail queue of one BDP, and the flows over it.
#[derive(Clone, Copy)]
struct Line {
    name: &'static str,
    mbit: u64,
    rtt_ms: u64,
    loss: &'static str,
    algorithm: Algorithm,
    flows: u32,
    seconds: u64,
}

const LINES: [Line; 9] = [
    line("10 Mbit/s x 50 ms, cubic", 10, 50, 60),
    line("100 Mbit/s x 50 ms, cubic", 100, 50, 30),
    line("1 Gbit/s x 20 ms, cubic", 1_000, 20, 10),
    line("10 Gbit/s x 10 ms, cubic", 10_000, 10, 5),
    line("100 Gbit/s x 2 ms, cubic", 100_000, 2, 1),
    Line { loss: "0.1%", ..line("1 Gbit/s x 20 ms, loss 0.1 %, cubic", 1_000, 20, 60) },
    Line { algorithm: Algorithm::Bbr, ..line("1 Gbit/s x 20 ms, bbr", 1_000, 20, 10) },
    Line { flows: 8, ..line("1 Gbit/s x 20 ms, 8 x cubic", 1_000, 20, 10) },
    Line { flows: 1_000, ..line("10 Gbit/s x 20 ms, 1000 x cubic", 10_000, 20, 5) },
];

const fn line(name: &'static str, mbit: u64, rtt_ms: u64, seconds: u64) -> Line {
    Line { name, mbit, rtt_ms, loss: "0%", algorithm: Algorithm::Cubic, flows: 1, seconds }
}

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    // `cargo test --benches` runs this too; then once and shortly is enough.
    let quick = !arguments.iter().any(|argument| argument == "--bench");
    let only = arguments.iter().find(|argument| !argument.starts_with('-'));
    let wanted = |name: &str| only.is_none_or(|only| name.contains(only.as_str()));
    let repeats = if quick { 1 } else { REPEATS };
    println!(
        "{:36} {:>12} {:>12} {:>19} {:>17} {:>15}",
        "path, control",
        "Mpkt/s exact",
        "in trains",
        "goodput, Mbit/s",
        "median RTT, ms",
        "retransmits"
    );
    for line in LINES.into_iter().filter(|line| wanted(line.name)) {
        let line = if quick { Line { seconds: 1, flows: line.flows.min(8), ..line } } else { line };
        let [exact, trains] = [Granularity::Exact, Granularity::Trains]
            .map(|granularity| measure(&scenario(line, granularity), repeats));
        println!(
            "{:36} {:>12.2} {:>12.2} {:>9.1} {:>9.1} {:>8.2} {:>8.2} {:>7} {:>7}",
            line.name,
            exact.mega_packets,
            trains.mega_packets,
            exact.goodput_mbit,
            trains.goodput_mbit,
            exact.rtt_ms,
            trains.rtt_ms,
            exact.retransmits,
            trains.retransmits,
        );
    }
    let long = "10 Gbit/s x 100 ms, cubic, 1000 s";
    if !quick && wanted(long) {
        let line = line("", 10_000, 100, 1_000);
        let scenario = Scenario { max_packets: u64::MAX, ..scenario(line, Granularity::Trains) };
        let run = measure(&scenario, 1);
        println!("{long}: {:.1} s of a core, {:.2} Mpkt/s", run.seconds, run.mega_packets);
    }
}

/// Time that this thread has spent on a core, in seconds: what others do to the machine
/// meanwhile does not count.
fn core_seconds() -> f64 {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    let ns: u64 = text.split(' ').next().and_then(|ns| ns.parse().ok()).unwrap_or(0);
    ns as f64 / 1e9
}

/// What the runs of a scenario took, and what they say.
struct Figures {
    /// Of a core, in the fastest run.
    seconds: f64,
    /// Million data packets per second of it.
    mega_packets: f64,
    goodput_mbit: f64,
    rtt_ms: f64,
    retransmits: u64,
}

fn measure(scenario: &Scenario, repeats: usize) -> Figures {
    let timed = || {
        let begin = core_seconds();
        let outcome = twin::run(scenario);
        (outcome, core_seconds() - begin)
    };
    let (outcome, mut seconds) = timed();
    for _ in 1..repeats {
        seconds = seconds.min(timed().1);
    }
    Figures {
        seconds,
        mega_packets: outcome.packets as f64 / seconds / 1e6,
        goodput_mbit: goodput_mbit(scenario, &outcome),
        rtt_ms: median_rtt_ms(&outcome),
        retransmits: outcome.senders.iter().map(|sender| sender.retransmits).sum(),
    }
}

fn goodput_mbit(scenario: &Scenario, outcome: &Outcome) -> f64 {
    let mss = ConnectionConfig::default().mss;
    let packets: u64 = outcome.read.iter().sum();
    (packets * u64::from(mss) * 8) as f64 / scenario.duration.as_secs_f64() / 1e6
}

fn median_rtt_ms(outcome: &Outcome) -> f64 {
    let streams = outcome.measurement.streams.iter();
    let mut rtts: Vec<u32> =
        streams.flat_map(|stream| &stream.sender).map(|sample| sample.rtt_us).collect();
    rtts.sort_unstable();
    rtts.get(rtts.len() / 2).map_or(0.0, |rtt| f64::from(*rtt) / 1e3)
}

fn scenario(line: Line, granularity: Granularity) -> Scenario {
    let rate = BitRate::from_bps(line.mbit * 1_000_000);
    let delay = Duration::from_millis(line.rtt_ms) / 2;
    let queue = rate.bytes_in(delay * 2).bytes().max(64_000);
    let queue = Queue::drop_tail(Limit::Bytes(ByteCount::from_bytes(queue)));
    let loss = line.loss.parse().unwrap_or_else(|error| panic!("{error}"));
    let loss = if line.loss == "0%" { Loss::None } else { Loss::Bernoulli(loss) };
    let forward = LinkConfig { loss, ..LinkConfig::new(Rate::Constant(rate), delay, queue) };
    let reverse = LinkConfig::new(Rate::Constant(rate), delay, queue);
    let connections = (0..line.flows).map(|index| ConnectionConfig {
        algorithm: line.algorithm,
        // Not all in the same moment.
        start: Duration::from_micros(100) * index,
        ..ConnectionConfig::default()
    });
    Scenario {
        connections: connections.collect(),
        granularity,
        ..Scenario::new(forward, reverse, Duration::from_secs(line.seconds))
    }
}
