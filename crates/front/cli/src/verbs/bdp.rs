//! `longhaul bdp`: bandwidth-delay product, window and buffers of a path.

use crate::console::{self, Console};
use crate::failure::{DONE, Outcome};
use crate::output_path::OutputPath;
use crate::test_report::check_writable;
use clap::Args;
use longhaul::calc::{self, BdpQuestion};
use report::{html::bdp_page, terminal};
use units::{BitRate, ByteCount, Rtt};

/// Compute BDP, window and buffers for a path, with the equations
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct BdpArgs {
    /// Bottleneck rate, with unit: 100mbit, 2.5gbit, 200m
    rate: BitRate,
    /// Round-trip time, with unit: 173ms, 250us, 1.5s
    rtt: Rtt,
    /// Also compute the throughput of this window: 64KiB
    #[arg(long, short, value_name = "SIZE")]
    window: Option<ByteCount>,
    /// Parallel connections that share the rate
    #[arg(long, short = 'P', value_name = "N", default_value_t = 1)]
    streams: u32,
    /// Path MTU, in bytes
    #[arg(long, value_name = "BYTES", default_value_t = 1500)]
    mtu: u32,
    /// Write a page that draws the window in flight
    ///
    /// The sender's idle time is shaded. Without --window, 64 KiB are drawn.
    #[arg(long, value_name = "FILE")]
    html: Option<OutputPath>,
    /// Print the result as JSON
    #[arg(long, short = 'J')]
    json: bool,
}

const EXAMPLES: &str = "\
Examples:
  longhaul bdp 100mbit 173ms
  longhaul bdp 10gbit 100ms --streams 8 --mtu 9000
  longhaul bdp 1gbit 200ms --window 4MiB --json
  longhaul bdp 100mbit 173ms --window 64KiB --html window.html";

pub(crate) fn run(args: &BdpArgs, console: &mut Console) -> Outcome {
    let &BdpArgs { rate, rtt, window, streams, mtu, ref html, json } = args;
    let question = BdpQuestion { rate, rtt, window, streams, mtu };
    let result = calc::bdp(&question)?;
    check_writable(html.as_deref())?;
    let text =
        if json { console::json(&result)? } else { terminal::bdp_report(&result, &console.out) };
    console.print(&text);
    if let Some(file) = html {
        console.write("page", file, &bdp_page(&result, env!("CARGO_PKG_VERSION")))?;
    }
    Ok(DONE)
}
