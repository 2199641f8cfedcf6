//! How long one hour of samples takes to explain: `cargo bench -p longhaul-verify --bench
//! explain`. The goal is 0.1 s.
//!
//! The samples are those of simulated transfers of an hour, as a test takes them: every
//! 10 ms for 2 s, then every 100 ms.

use std::time::Duration;
use topology::PathSpec;
use twin::Scenario;

/// Each is explained so often, and the median counts.
const REPEATS: usize = 11;

fn main() {
    // `cargo test --benches` runs this too; then once and shortly is enough.
    let quick = !std::env::args().any(|argument| argument == "--bench");
    let (repeats, seconds) = if quick { (1, 10) } else { (REPEATS, 3600) };
    println!("{:48} {:>8} {:>9} {:>7}", "path", "samples", "segments", "ms");
    for text in [
        "rate=20mbit,rtt=40ms,queue=1bdp",
        "rate=20mbit,rtt=40ms,queue=1bdp,loss=0.1%",
        "rate=20mbit,rtt=40ms,queue=1bdp,@600s.rate=5mbit,@1200s.rate=20mbit",
    ] {
        let path: PathSpec = text.parse().unwrap_or_else(|error| panic!("{text}: {error}"));
        let [forward, reverse] = path.schedules(1);
        let scenario = Scenario::new(forward, reverse, Duration::from_secs(seconds));
        let measurement = twin::run(&scenario).measurement;
        let samples: usize = measurement.streams.iter().map(|stream| stream.sender.len()).sum();
        let mut times = Vec::new();
        let mut segments = 0;
        for _ in 0..repeats {
            let began = host::clock::now();
            segments = diagnose::explain(&measurement).segments.len();
            times.push(began.elapsed().as_secs_f64() * 1e3);
        }
        times.sort_by(f64::total_cmp);
        println!("{text:48} {samples:>8} {segments:>9} {:>7.1}", times[repeats / 2]);
    }
}
