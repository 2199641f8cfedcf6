//! `--mux` where the kernel caps socket buffers: one connection beside eight.

use crate::LONGHAUL;
use crate::lab::Security;
use crate::relay::Chain;
use crate::sites::{FORWARDED, Sites, TARGET};
use bench_harness::{Fallible, Ratios, median, note, rounds, row};
use std::process::Command;

/// 2.5 MB of BDP.
const PATH: &str = "rate=200mbit,rtt=100ms";
/// What autotuning reaches: `net.core.rmem_max`, which `auto` compares, is the machine's and not a
/// namespace's, so the number of connections is set.
const CAPPED: &str = "4096 131072 425984";
const CONGESTION: &str = "bbr";

/// Goodput of one flow in Mbit/s.
fn carry(connections: &str, seconds: u32, omit: u32) -> Fallible<f64> {
    let (rate, not_valid) = Sites::with_buffers(PATH, CONGESTION, CAPPED, |sites| {
        let mut server = Command::new(LONGHAUL);
        server.args(["server", "-p", &TARGET.to_string()]);
        let mut chain = Chain { port: FORWARDED, programs: Vec::new() };
        chain.programs.push(Sites::start(sites.far(), &mut server, TARGET)?);
        let Security { near, far } = Security::plaintext();
        let near = [&near, "--mux", "--connections", connections, "-C", CONGESTION];
        let boxes = sites.boxes([&near, &[&far, "-C", CONGESTION]])?;
        let rate = sites.forwarded(seconds, omit)?;
        drop((boxes, chain));
        Ok(rate)
    })?;
    if let Some(reason) = not_valid {
        println!("  {connections} connections, {rate:.0} Mbit/s: not valid: {reason}");
    }
    Ok(rate)
}

pub(crate) fn measure(count: usize, is_short: bool) -> Fallible<()> {
    let (seconds, omit) = if is_short { (5, 5) } else { (15, 5) };
    let numbers = ["1", "8"];
    let figures = rounds(&numbers, count, |number, _| carry(number, seconds, omit))?;
    let [one, eight] = figures.as_slice() else { return Ok(()) };
    note(
        "boost --mux: 200 Mbit/s x 100 ms, 208 KiB, 1 connection",
        &format!("{:.0} Mbit/s", median(one)),
    );
    let rate = median(eight);
    row(
        "boost: the same, 8 connections",
        "150 Mbit/s",
        &format!("{rate:.0} Mbit/s"),
        rate >= 150.0,
    );
    let ratio = Ratios::of(eight, one);
    row("boost: the same, 8 to 1", "6", &ratio.to_string(), ratio.median() >= 6.0);
    Ok(())
}
