//! How long one hour of samples takes to explain: `cargo bench -p longhaul-verify --bench
//! explain`. The goal is 0.1 s.
//!
//! The samples are those of simulated transfers of an hour, as a test takes them: every
//! 10 ms for 2 s, then every 100 ms.

use bench_harness::{Arguments, Fallible, median, timed};
use std::process::ExitCode;
use std::time::Duration;
use topology::PathSpec;
use twin::Scenario;

/// Each is explained so often, and the median counts.
const REPEATS: usize = 11;

fn main() -> ExitCode {
    bench_harness::run("cargo bench -p longhaul-verify --bench explain", measure)
}

fn measure(arguments: Arguments) -> Fallible<()> {
    // `cargo test --benches` runs this too; then once and shortly is enough.
    let (repeats, seconds) = if arguments.is_bench() { (REPEATS, 3600) } else { (1, 10) };
    arguments.end()?;
    println!("{:48} {:>8} {:>9} {:>7}", "path", "samples", "segments", "ms");
    for text in [
        "rate=20mbit,rtt=40ms,queue=1bdp",
        "rate=20mbit,rtt=40ms,queue=1bdp,loss=0.1%",
        "rate=20mbit,rtt=40ms,queue=1bdp,@600s.rate=5mbit,@1200s.rate=20mbit",
    ] {
        let path: PathSpec = text.parse()?;
        let [forward, reverse] = path.schedules(1);
        let scenario = Scenario::new(forward, reverse, Duration::from_secs(seconds));
        let measurement = twin::run(&scenario).measurement;
        let samples: usize = measurement.streams.iter().map(|stream| stream.sender.len()).sum();
        let mut times = Vec::new();
        let mut segments = 0;
        for _ in 0..repeats {
            let (time, finding) = timed(|| diagnose::explain(&measurement));
            segments = finding.segments.len();
            times.push(time * 1e3);
        }
        println!("{text:48} {samples:>8} {segments:>9} {:>7.1}", median(&times));
    }
    Ok(())
}
