//! Published cases: hosts with their original settings, tuned only by what the findings
//! print, one remedy after the other.

use crate::KEPT;
use crate::causes::short;
use crate::hosts::Pair;
use bench_harness::Fallible;
use record::{Finding, Limit};
use units::BitRate;

/// The buffers of a case, and its expected diagnosis.
pub(crate) struct Seed {
    pub(crate) name: &'static str,
    link: &'static str,
    /// `tcp_rmem` and `tcp_wmem` of both hosts.
    buffers: [&'static str; 2],
    /// Acceptable limits.
    limits: &'static [Limit],
    /// Length of a test, in seconds.
    seconds: f64,
}

/// 64 KiB and 128 KiB of window are about 107 kB and 214 kB of buffer (0.61).
pub(crate) const ALL: [Seed; 4] = [
    Seed {
        name: "seed0-64KiB",
        link: "rate=100mbit,rtt=173ms",
        buffers: ["4096 107437 107437", "4096 16384 4194304"],
        limits: &[Limit::ReceiveWindow],
        seconds: 20.0,
    },
    Seed {
        name: "seed0-128KiB",
        link: "rate=100mbit,rtt=173ms",
        buffers: ["4096 131072 214873", "4096 16384 4194304"],
        limits: &[Limit::ReceiveWindow],
        seconds: 20.0,
    },
    Seed {
        name: "seed2-defaults",
        link: "rate=1gbit,rtt=200ms",
        buffers: ["4096 131072 6291456", "4096 16384 4194304"],
        limits: &[Limit::ReceiveWindow, Limit::SendBuffer],
        seconds: 40.0,
    },
    Seed {
        name: "seed3-200ms",
        link: "rate=2.5gbit,rtt=200ms",
        buffers: ["4096 131072 4194304", "4096 16384 4194304"],
        limits: &[Limit::ReceiveWindow, Limit::SendBuffer],
        seconds: 60.0,
    },
];

/// Maximum number of remedies, one after the other.
const ROUNDS: usize = 4;

/// Checks the steady share of the path's rate that is reached in the end.
pub(crate) fn hold(seed: &Seed) -> Fallible<()> {
    let mut pair = Pair::new(seed.link, seed.seconds)?;
    let [rmem, wmem] = seed.buffers;
    for commands in &mut pair.commands {
        commands.push(format!("sysctl -w net.ipv4.tcp_rmem=\"{rmem}\""));
        commands.push(format!("sysctl -w net.ipv4.tcp_wmem=\"{wmem}\""));
    }
    // Rate of the path as payload: 1448 of 1500 bytes per packet.
    let most = pair.link.rate().ok_or("the path has a rate")?.scaled(1448.0 / 1500.0);
    let mut first = true;
    for _ in 0..=ROUNDS {
        let measurement = pair.measure()?;
        let valid = measurement.path.as_ref().is_some_and(|path| path.valid);
        let finding = diagnose::explain(&measurement);
        print_step(seed, &finding, most, first, valid);
        // Up to the first remedy with a prediction; those before it are applied together with it.
        let promising = finding.remedies.iter().position(|one| one.expects_bps.is_some());
        let Some(last) = promising else { return Ok(()) };
        for remedy in finding.remedies.iter().take(last + 1) {
            println!("    {}", remedy.command);
            pair = pair.with(remedy)?;
        }
        first = false;
    }
    Err("the remedies come to no end".into())
}

fn print_step(seed: &Seed, finding: &Finding, most: BitRate, first: bool, valid: bool) {
    let rate = finding.throughput_bps;
    let share = rate.as_f64() / most.as_f64();
    let limit = finding.limit.map_or("nothing", Limit::name);
    let last = finding.remedies.iter().all(|one| one.expects_bps.is_none());
    let right = !first || finding.limit.is_some_and(|limit| seed.limits.contains(&limit));
    let verdict = match (right, last) {
        (false, _) => "NOT KEPT: diagnosed otherwise",
        (true, true) if share >= KEPT => "kept",
        (true, true) => "NOT KEPT",
        (true, false) => "goes on",
    };
    let [before, now] =
        if first { [short(rate), String::new()] } else { [String::new(), short(rate)] };
    let doubt = if valid { "" } else { "; not valid" };
    println!(
        "{:<46} {before:>11} {:>11} {now:>11}  {limit}, {:.1} % of the path: {verdict}{doubt}",
        seed.name,
        "",
        share * 100.0
    );
}
