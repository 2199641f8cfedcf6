//! `longhaul trace`: the route to a host, hop by hop.

use super::probe_args::{Destination, time};
use crate::console::{self, Console};
use crate::failure::{DONE, FAILED, Failure, Outcome};
use crate::host_port;
use crate::output_path::OutputPath;
use crate::stop;
use crate::test_report;
use clap::Args;
use longhaul::calc::Location;
use longhaul::trace::{self, TraceMethod, TraceRequest};
use record::TraceReport;
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
    /// Where this host is, for the map: a city, an IATA code, or coordinates
    ///
    /// Positions farther than light travels within the RTT are then left out.
    #[arg(long, value_name = "PLACE", allow_hyphen_values = true)]
    from: Option<Location>,
    /// Write a page with a map of the route
    ///
    /// Places are those of the location database; without one, airport codes in
    /// the names of routers give hints.
    #[arg(long, value_name = "FILE")]
    html: Option<OutputPath>,
    /// Write the map as KML, for Google Earth
    #[arg(long, value_name = "FILE")]
    kml: Option<OutputPath>,
    /// Write the map as GeoJSON
    #[arg(long, value_name = "FILE")]
    geojson: Option<OutputPath>,
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
  longhaul trace HOST --html route.html --from Eugene --mmdb GeoLite2-City.mmdb
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
        from: args.from.clone(),
    };
    for file in [&args.html, &args.kml, &args.geojson] {
        test_report::check_writable(file.as_deref())?;
    }
    let mut show = |report: &TraceReport| console.frame(&terminal::route(report, &console.err));
    let report = trace::run(&request, &mut show, &stop)?;
    let text =
        if args.json { console::json(&report)? } else { terminal::route(&report, &console.out) };
    console.print(&text);
    write_files(args, &report, console)?;
    Ok(if report.reached { DONE } else { FAILED })
}

/// Writes the page and the maps that were asked for.
fn write_files(
    args: &TraceArgs,
    report: &TraceReport,
    console: &mut Console,
) -> Result<(), Failure> {
    if let Some(file) = &args.html {
        console.write("page", file, &report::html::route_page(report))?;
    }
    if let Some(file) = &args.kml {
        console.write("map", file, &report::kml(report))?;
    }
    if let Some(file) = &args.geojson {
        console.write("map", file, &format!("{:#}\n", report::geojson(report)))?;
    }
    let maps = args.html.is_some() || args.kml.is_some() || args.geojson.is_some();
    if maps && report.map.is_none() {
        console.say(NO_MAP);
    }
    Ok(())
}

const NO_MAP: &str = "no map: fewer than two places of the route are known; --from names yours, \
                      and --mmdb gives a location database";
