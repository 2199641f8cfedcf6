//! `longhaul web`: serves a speed test to browsers.

use crate::console::Console;
use crate::failure::{DONE, Outcome};
use crate::web_flags::{STOP_S, WebFlags, is_low};
use crate::{stop, unit};
use clap::Args;
use longhaul::systemd_unit::Unit;
use std::net::SocketAddr;
use web::{WebEvent, WebLine, WebRequest};

/// Serve a speed test to browsers that says what limited it
///
/// On SIGTERM it refuses new runs and exits when running ones have finished.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct WebArgs {
    /// Address and port to listen on: PORT alone is on 127.0.0.1
    #[arg(long, short, value_name = "[ADDRESS:]PORT", default_value = "127.0.0.1:8080")]
    #[arg(value_parser = host::address::parse_listen)]
    listen: SocketAddr,
    #[command(flatten)]
    flags: WebFlags,
    /// Serve Prometheus metrics at http://127.0.0.1:PORT/metrics
    #[arg(long, value_name = "[ADDRESS:]PORT", value_parser = host::address::parse_listen)]
    metrics: Option<SocketAddr>,
    /// Log each event as a line of JSON
    #[arg(long)]
    json: bool,
    /// Print a systemd unit that runs a server with these flags
    #[arg(long)]
    systemd_unit: bool,
}

const EXAMPLES: &str = "\
Examples:
  longhaul web
  longhaul web --listen [::]:443 --tls cert.pem,key.pem --host-name speed.example
  longhaul web --listen 0.0.0.0:8443 --tls self-signed --max-bytes-per-run 500MB
  longhaul web --listen 8080 --trusted-proxy 127.0.0.1 --host-name speed.example";

pub(crate) fn run(args: &WebArgs, console: &mut Console) -> Outcome {
    let request = WebRequest { metrics: args.metrics, ..args.flags.request(args.listen) };
    request.check()?;
    if args.systemd_unit {
        let (tasks, memory_max) = args.flags.most();
        let unit = Unit {
            description: "Longhaul speed test for browsers",
            stop_s: STOP_S,
            tasks,
            memory_max,
            memory_of: "Messages, and the socket buffers of the flows of --max-runs",
            low_port: args.flags.has_low_port(args.listen) || args.metrics.is_some_and(is_low),
            ..Unit::default()
        };
        return unit::print(&unit, console);
    }
    let (stop, drain) = stop::for_server();
    let mut on_event = |event: WebEvent| console.log(&WebLine::now(&event).text(args.json));
    web::serve(&request, &mut on_event, &drain, &stop)?;
    Ok(DONE)
}
