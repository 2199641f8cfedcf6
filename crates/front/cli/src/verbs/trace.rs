//! `longhaul trace`: the route to a host, hop by hop.

use super::probe_args::{Destination, time};
use crate::console::{self, Console};
use crate::failure::{DONE, FAILED, Failure, Outcome};
use crate::host_port;
use crate::stop;
use clap::Args;
use longhaul::trace::{self, TraceMethod, TraceRequest};
use report::terminal;
use std::path::PathBuf;
use std::time::Duration;

/// Trace the route to a host, with the loss and RTT of each hop
///
/// Each round sends one probe to each hop. Loss at a hop that later hops do not
/// share is ICMP rate limiting by that router, not lost traffic. UDP and TCP
/// (since Linux 5.9) need no privilege.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct TraceArgs {
    #[command(flatten)]
    destination: Destination,
    /// Number of rounds; 0 for no limit
    #[arg(long, short = 'c', value_name = "N", default_value_t = 10)]
    #[arg(alias = "count")]
    rounds: u64,
    /// Maximum number of hops
    #[arg(long, short, value_name = "N", default_value_t = 30)]
    #[arg(value_parser = clap::value_parser!(u8).range(1..))]
    max_hops: u8,
    /// Interval between rounds, at least 10ms
    ///
    /// In seconds, or with a unit: 0.5, 500ms.
    #[arg(long, short, value_name = "TIME", default_value = "1s", value_parser = time)]
    interval: Duration,
    /// Time after which a probe counts as lost
    ///
    /// At most 990ms with TCP: the kernel retransmits a SYN after a second.
    #[arg(long, short = 'W', value_name = "TIME", default_value = "1s", value_parser = time)]
    timeout: Duration,
    /// Send UDP datagrams (default)
    #[arg(long)]
    udp: bool,
    /// Send ICMP echo requests
    #[arg(long, conflicts_with = "udp")]
    icmp: bool,
    /// Send TCP SYNs
    #[arg(long, conflicts_with_all = ["udp", "icmp"])]
    tcp: bool,
    /// Destination port [default: UDP 33434, TCP 443]
    #[arg(long, short, value_name = "PORT")]
    #[arg(value_parser = clap::value_parser!(u16).range(1..), conflicts_with = "icmp")]
    port: Option<u16>,
    /// Do not resolve addresses to names
    #[arg(long, short = 'n')]
    numeric: bool,
    /// Show AS or location from this MaxMind database
    ///
    /// Repeatable: GeoLite2-ASN for the AS, GeoLite2-City for the location.
    #[arg(long, value_name = "FILE")]
    mmdb: Vec<PathBuf>,
    /// Print JSON
    #[arg(long, short = 'J')]
    json: bool,
}

impl TraceArgs {
    /// Splits `HOST:PORT`.
    pub(crate) fn split_port(&mut self) -> Result<(), Failure> {
        host_port::split(&mut self.destination.host, &mut self.port)
    }
}

const EXAMPLES: &str = "\
Examples:
  longhaul trace HOST                      ten rounds, one per second
  longhaul trace HOST --tcp -p 443 -n      like HTTPS traffic, without names
  longhaul trace HOST --mmdb GeoLite2-ASN.mmdb --mmdb GeoLite2-City.mmdb
  longhaul trace HOST -c 0                 until Ctrl-C
  longhaul trace HOST --json | jq '.hops[].address'

Exit codes: 0 the host replied, 1 it did not, 2 usage error or missing privileges.";

pub(crate) fn run(args: &TraceArgs, console: &mut Console) -> Outcome {
    let stop = stop::on_signals();
    let request = TraceRequest {
        host: args.destination.host.clone(),
        family: args.destination.family(),
        method: match (args.icmp, args.tcp) {
            (true, _) => TraceMethod::Icmp,
            (_, true) => TraceMethod::Tcp,
            _ => TraceMethod::Udp,
        },
        port: args.port,
        rounds: args.rounds,
        max_hops: args.max_hops,
        interval: args.interval,
        timeout: args.timeout,
        bind: args.destination.bind,
        resolve_names: !args.numeric,
        databases: args.mmdb.clone(),
    };
    let mut show = |report: &record::TraceReport| {
        let block = terminal::route(report, &console.err);
        console.frame(&block);
    };
    let report = trace::run(&request, &mut show, &stop)?;
    let text =
        if args.json { console::json(&report)? } else { terminal::route(&report, &console.out) };
    console.print(&text);
    Ok(if report.reached { DONE } else { FAILED })
}
