//! `longhaul web`: serves a speed test to browsers.

use crate::console::Console;
use crate::failure::{DONE, Outcome};
use crate::stop;
use clap::Args;
use std::net::SocketAddr;
use units::ByteCount;
use web::{Origin, Peer, Tls, WebEvent, WebLimits, WebLine, WebRequest};

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
    /// Also serve tests of responsiveness here: networkQuality, mach rpm
    #[arg(long, value_name = "[ADDRESS:]PORT", value_parser = host::address::parse_listen)]
    responsiveness: Option<SocketAddr>,
    /// Encrypt: self-signed, credentials (of systemd), or CERTIFICATE,KEY
    #[arg(long, value_name = "HOW")]
    tls: Option<Tls>,
    /// Also answer requests for this host name; repeatable
    #[arg(long, value_name = "NAME")]
    host_name: Vec<String>,
    /// Do not measure loss by WebTransport on UDP
    #[arg(long)]
    no_webtransport: bool,
    /// Serve only clients whose URL has ?token=TOKEN
    #[arg(long, value_name = "TOKEN")]
    token: Option<String>,
    /// Second server, for "Wi-Fi, line or far away?": its page, with ?token= if it asks for one
    #[arg(long, value_name = "URL")]
    peer: Option<Peer>,
    /// Also measure for the page of this server, which has this one as its peer; repeatable
    #[arg(long, value_name = "URL")]
    allow_origin: Vec<Origin>,
    /// Let visitors keep results in this file and share them
    #[arg(long, value_name = "FILE")]
    history: Option<std::path::PathBuf>,
    /// Maximum bytes of a run, both directions together
    #[arg(long, value_name = "SIZE", default_value = "4GB")]
    max_bytes_per_run: ByteCount,
    /// Maximum concurrent runs; others get 429
    #[arg(long, value_name = "N", default_value_t = WebLimits::default().runs)]
    max_runs: u32,
    /// Maximum concurrent runs of an address, or of an IPv6 /64
    #[arg(long, value_name = "N", default_value_t = WebLimits::default().runs_per_address)]
    max_runs_per_address: u32,
    /// Log each event as a line of JSON
    #[arg(long)]
    json: bool,
}

const EXAMPLES: &str = "\
Examples:
  longhaul web
  longhaul web --listen [::]:443 --tls cert.pem,key.pem --host-name speed.example
  longhaul web --listen 0.0.0.0:8443 --tls self-signed --max-bytes-per-run 500MB";

pub(crate) fn run(args: &WebArgs, console: &mut Console) -> Outcome {
    let (runs, runs_per_address) = (args.max_runs, args.max_runs_per_address);
    let limits = WebLimits { runs, runs_per_address, ..WebLimits::default() };
    let request = WebRequest {
        listen: args.listen,
        responsiveness: args.responsiveness,
        webtransport: !args.no_webtransport,
        tls: args.tls.clone().unwrap_or_default(),
        names: args.host_name.clone(),
        token: args.token.clone(),
        peer: args.peer.clone(),
        allow_origins: args.allow_origin.clone(),
        history: args.history.clone(),
        limits,
        max_bytes_per_run: args.max_bytes_per_run,
        ..WebRequest::default()
    };
    let (stop, drain) = stop::for_server();
    let mut on_event = |event: WebEvent| console.print(&WebLine::now(&event).text(args.json));
    web::serve(&request, &mut on_event, &drain, &stop)?;
    Ok(DONE)
}
