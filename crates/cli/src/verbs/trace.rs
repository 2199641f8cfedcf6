//! `longhaul trace`: the way to a host, hop by hop.

use super::reach::{Whither, failure, time};
use crate::console::Console;
use crate::failure::{DONE, FAILED, Failure, Outcome};
use crate::stop;
use clap::Args;
use reach::{TraceConfig, TraceMethod};
use report::terminal;
use std::path::PathBuf;
use std::time::Duration;

/// Show the way to a host: each hop with its loss and round trips
///
/// Each round sends one probe to each hop. Loss at one hop that those behind
/// it do not share is that router's reluctance to answer, not lost traffic:
/// many answer once a second. UDP and TCP (since Linux 5.9) need no privilege.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct TraceArgs {
    #[command(flatten)]
    whither: Whither,
    /// End after so many rounds; 0 is until Ctrl-C
    #[arg(long, short = 'c', value_name = "N", default_value_t = 10)]
    #[arg(visible_alias = "count")]
    rounds: u64,
    /// Hops at most
    #[arg(long, short, value_name = "N", default_value_t = 30)]
    #[arg(value_parser = clap::value_parser!(u8).range(1..))]
    max_hops: u8,
    /// Time between rounds, 10ms or more: 0.5 (seconds), 500ms
    #[arg(long, short, value_name = "TIME", default_value = "1s", value_parser = time)]
    interval: Duration,
    /// An answer after more than this counts for nothing; TCP's is 990ms at most
    #[arg(long, short = 'W', value_name = "TIME", default_value = "1s", value_parser = time)]
    timeout: Duration,
    /// Send UDP, the default
    #[arg(long)]
    udp: bool,
    /// Send ICMP echoes
    #[arg(long, conflicts_with = "udp")]
    icmp: bool,
    /// Connect by TCP
    #[arg(long, conflicts_with_all = ["udp", "icmp"])]
    tcp: bool,
    /// UDP's or TCP's port [default: 33434 or 443]
    #[arg(long, short, value_name = "PORT")]
    #[arg(value_parser = clap::value_parser!(u16).range(1..), conflicts_with = "icmp")]
    port: Option<u16>,
    /// Ask for no names
    #[arg(long, short = 'n')]
    numeric: bool,
    /// Tell networks and places from this MaxMind database; repeatable
    #[arg(long, value_name = "FILE")]
    mmdb: Vec<PathBuf>,
    /// Print JSON instead
    #[arg(long, short = 'J')]
    json: bool,
}

const EXAMPLES: &str = "\
Examples:
  longhaul trace HOST                      ten rounds, a second apart
  longhaul trace HOST --tcp -p 443 -n      as a web browser's packets go
  longhaul trace HOST --mmdb GeoLite2-ASN.mmdb --mmdb GeoLite2-City.mmdb
  longhaul trace HOST -c 0                 until Ctrl-C
  longhaul trace HOST --json | jq '.hops[].address'

Exit codes: 0 the host answered, 1 it did not, 2 wrong usage or privileges.";

pub(crate) fn run(args: &TraceArgs, console: &mut Console) -> Outcome {
    let stop = stop::on_signals();
    let config = TraceConfig {
        host: args.whither.host.clone(),
        family: args.whither.family(),
        method: match (args.icmp, args.tcp) {
            (true, _) => TraceMethod::Icmp,
            (_, true) => TraceMethod::Tcp,
            _ => TraceMethod::Udp,
        },
        port: args.port,
        rounds: args.rounds,
        most_hops: args.max_hops,
        interval: args.interval,
        timeout: args.timeout,
        bind: args.whither.bind,
        names: !args.numeric,
        databases: args.mmdb.clone(),
    };
    let mut show = |report: &record::TraceReport| {
        let block = terminal::route(report, &console.err);
        console.frame(&block);
    };
    let report = reach::trace(&config, &mut show, &|| stop.is_raised()).map_err(failure)?;
    let text = if args.json {
        serde_json::to_string_pretty(&report).map_err(Failure::work)? + "\n"
    } else {
        terminal::route(&report, &console.out)
    };
    console.print(&text);
    Ok(if report.reached { DONE } else { FAILED })
}
