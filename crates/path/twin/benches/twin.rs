//! Data packets a second that the twin simulates on one core.
//!
//! `cargo bench -p longhaul-twin` prints a line for each path: data packets simulated,
//! with their acknowledgements, per second of a core, and how long a run takes. The
//! goal is 3 million a second for one CUBIC connection over a drop-tail queue.

#![expect(clippy::disallowed_methods, reason = "a measurement of time asks the system's clock")]

use control::Algorithm;
use link::{Limit, LinkConfig, Loss, Queue, Rate};
use std::time::{Duration, Instant};
use twin::{ConnectionConfig, Scenario};
use units::{BitRate, ByteCount};

/// Measurements, of which the fastest counts: the others were disturbed.
const REPEATS: usize = 5;

fn main() {
    // `cargo test --benches` runs this too; then once and shortly is enough.
    let quick = !std::env::args().any(|argument| argument == "--bench");
    let (repeats, seconds) = if quick { (1, 1) } else { (REPEATS, 10) };
    println!("{:36} {:>10} {:>9} {:>8}", "path, control", "packets", "Mpkt/s", "ms/run");
    for (name, mbit, rtt_ms, loss, algorithm, connections) in [
        ("10 Mbit/s x 50 ms, cubic", 10, 50, "0%", Algorithm::Cubic, 1),
        ("100 Mbit/s x 50 ms, cubic", 100, 50, "0%", Algorithm::Cubic, 1),
        ("1 Gbit/s x 20 ms, cubic", 1_000, 20, "0%", Algorithm::Cubic, 1),
        ("10 Gbit/s x 10 ms, cubic", 10_000, 10, "0%", Algorithm::Cubic, 1),
        ("1 Gbit/s x 20 ms, loss 0.1 %, cubic", 1_000, 20, "0.1%", Algorithm::Cubic, 1),
        ("1 Gbit/s x 20 ms, bbr", 1_000, 20, "0%", Algorithm::Bbr, 1),
        ("1 Gbit/s x 20 ms, 8 x cubic", 1_000, 20, "0%", Algorithm::Cubic, 8),
    ] {
        let scenario = scenario(mbit, rtt_ms, loss, algorithm, connections, seconds);
        let (mut packets, mut least) = (0, f64::MAX);
        for _ in 0..repeats {
            let begin = Instant::now();
            packets = twin::run(&scenario).packets;
            least = least.min(begin.elapsed().as_secs_f64());
        }
        let rate = packets as f64 / least / 1e6;
        println!("{name:36} {packets:>10} {rate:>9.2} {:>8.1}", least * 1e3);
    }
}

fn scenario(
    mbit: u64,
    rtt_ms: u64,
    loss: &str,
    algorithm: Algorithm,
    connections: usize,
    seconds: u64,
) -> Scenario {
    let rate = BitRate::from_bps(mbit * 1_000_000);
    let delay = Duration::from_millis(rtt_ms) / 2;
    let queue = rate.bytes_in(delay * 2).bytes().max(64_000);
    let queue = Queue::drop_tail(Limit::Bytes(ByteCount::from_bytes(queue)));
    let loss = loss.parse().unwrap_or_else(|error| panic!("{error}"));
    let forward = LinkConfig {
        loss: Loss::Bernoulli(loss),
        ..LinkConfig::new(Rate::Constant(rate), delay, queue)
    };
    let reverse = LinkConfig::new(Rate::Constant(rate), delay, queue);
    let connection = ConnectionConfig { algorithm, ..ConnectionConfig::default() };
    Scenario {
        connections: vec![connection; connections],
        ..Scenario::new(forward, reverse, Duration::from_secs(seconds))
    }
}
