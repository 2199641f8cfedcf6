//! `longhaul boost edge`: a cache near the clients.

mod lines;

use crate::console::{self, Console};
use crate::failure::{DONE, Outcome};
use crate::stop;
use crate::verbs::probe_args::seconds;
use clap::Args;
use longhaul::boost::edge::{self, EdgeEvent, EdgeRequest};
use std::net::SocketAddr;
use std::path::PathBuf;
use units::ByteCount;

/// Cache the objects of one HTTP server near its clients, with nginx
///
/// Writes a configuration for nginx, has nginx check it, and runs it until Ctrl-C or SIGTERM: nginx
/// never outlives this command. Objects are stored for as long as the origin permits; further
/// clients that ask for an object while it is fetched wait for it; expired ones are confirmed by
/// the origin, and sent as they are while it fails. Only GET and HEAD are answered, and requests
/// with credentials or cookies pass by the cache.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct EdgeArgs {
    /// Server whose objects are cached: http://HOST, https://HOST:PORT/PREFIX
    #[arg(long, value_name = "URL")]
    origin: String,
    /// Address and port to listen on: PORT alone is on 127.0.0.1
    #[arg(long, short, value_name = "[ADDRESS:]PORT", value_parser = host::address::parse_listen)]
    #[arg(default_value = "127.0.0.1:8080")]
    listen: SocketAddr,
    /// Fetch objects in parts of this size; 0: as a whole
    ///
    /// With slices a range does not fetch the whole object, and each slice costs an RTT to the
    /// origin. Whole objects are renewed in the background.
    #[arg(long, value_name = "SIZE", default_value = "8MiB", help_heading = "Cache")]
    slice: ByteCount,
    /// Maximum size of the cache on disk
    #[arg(long, value_name = "SIZE", default_value = "10GB", help_heading = "Cache")]
    max_size: ByteCount,
    /// Seconds to keep objects whose age the origin does not limit
    ///
    /// By default such objects are not stored. Cache-Control and Expires always have precedence.
    #[arg(long, value_name = "SECONDS", help_heading = "Cache")]
    fresh: Option<u64>,
    /// Keep the cache in this directory [default: a temporary one]
    #[arg(long, value_name = "DIR", help_heading = "Cache")]
    cache: Option<PathBuf>,
    /// Print the configuration for an nginx of your own, and exit
    #[arg(long, conflicts_with = "json", help_heading = "Output")]
    print: bool,
    /// Seconds between reports
    #[arg(long, short, value_name = "SECONDS", value_parser = seconds, default_value = "10")]
    #[arg(help_heading = "Output")]
    interval: f64,
    /// Log each event as a line of JSON
    #[arg(long, help_heading = "Output")]
    json: bool,
}

const EXAMPLES: &str = "\
Examples:
  longhaul boost edge --origin http://origin.example
  longhaul boost edge --origin https://origin.example/pub --listen 0.0.0.0:80
  longhaul boost edge --origin http://origin.example --cache /var/cache/edge --max-size 1TB
  longhaul boost edge --origin http://10.0.0.2 --fresh 600 --json
  longhaul boost edge --origin https://origin.example --print > edge.conf

Prediction: longhaul calc cdn 1MB --rate 100mbit --rtt 170ms --edge-rtt 4ms";

pub(super) fn run(args: &EdgeArgs, console: &mut Console) -> Outcome {
    let request = EdgeRequest {
        listen: args.listen,
        slice: Some(args.slice).filter(|slice| *slice != ByteCount::ZERO),
        max_size: args.max_size,
        fresh_s: args.fresh,
        cache: args.cache.clone(),
        interval_s: args.interval,
        ..EdgeRequest::new(&args.origin)
    };
    if args.print {
        console.print(&edge::configuration(&request)?);
        return Ok(DONE);
    }
    request.check()?;
    let stop = stop::on_signals();
    let mut log = console.clone();
    let mut on_event = |event: EdgeEvent| log.log(&lines::line(&event, args.json));
    let document = edge::run(&request, &mut on_event, &stop)?;
    let text = match args.json {
        true => console::json_line(&document)?,
        false => lines::summary(&document),
    };
    console.print(&text);
    Ok(DONE)
}
