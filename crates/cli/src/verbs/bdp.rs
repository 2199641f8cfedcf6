//! `longhaul bdp`: what a path needs, with the equations.

use crate::console::Console;
use crate::failure::{DONE, Failure, Outcome};
use clap::Args;
use model::Question;
use report::terminal;
use units::{BitRate, ByteCount, Rtt};

/// Compute what a path needs: window, buffers, payload rate, each with its equation
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct BdpArgs {
    /// Rate of the bottleneck, with its unit: 100mbit, 2.5gbit, 200m
    rate: BitRate,
    /// Round trip, with its unit: 173ms, 250us, 1.5s
    rtt: Rtt,
    /// Also say what this window gives: 64KiB, 4MiB
    #[arg(long, short, value_name = "SIZE")]
    window: Option<ByteCount>,
    /// Parallel connections that share the rate
    #[arg(long, short = 'P', value_name = "N", default_value_t = 1)]
    streams: u32,
    /// Largest IP packet, in bytes
    #[arg(long, value_name = "BYTES", default_value_t = 1500)]
    mtu: u32,
    /// Print JSON instead
    #[arg(long, short = 'J')]
    json: bool,
}

const EXAMPLES: &str = "\
Examples:
  longhaul bdp 100mbit 173ms
  longhaul bdp 10gbit 100ms --streams 8 --mtu 9000
  longhaul bdp 1gbit 200ms --window 4MiB --json";

pub(crate) fn run(args: &BdpArgs, console: &mut Console) -> Outcome {
    let &BdpArgs { rate, rtt, window, streams, mtu, json } = args;
    let question = Question { rate, rtt, window, streams, mtu };
    let sheet = model::worksheet(&question).map_err(Failure::usage)?;
    let text = if json {
        serde_json::to_string_pretty(&sheet).map_err(Failure::work)? + "\n"
    } else {
        terminal::worksheet(&sheet, &console.out)
    };
    console.print(&text);
    Ok(DONE)
}
