//! `longhaul server`: the far end of `longhaul test`, and of iperf3.

mod admission;
mod counters;
mod http;
mod lines;
mod settings;
mod show;
mod unit;

use crate::console::Console;
use crate::failure::{DONE, Failure, Outcome};
use crate::stop;
use crate::verbs::test;
use clap::Args;
use counters::Counters;
use host::clock;
use lines::{Form, Log};
use probe::server::Server;
use settings::{AdmissionArgs, LimitArgs, ListenArgs};
use show::Show;
use std::net::{SocketAddr, TcpListener};
use std::sync::{Arc, Mutex, PoisonError};

/// Serve tests, ours and iperf3's
///
/// SIGTERM lets running tests finish and turns new clients away; a second one,
/// or Ctrl-C, ends at once, and clients are told.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct ServerArgs {
    #[command(flatten)]
    listen: ListenArgs,
    #[command(flatten, next_help_heading = "Limits")]
    limits: LimitArgs,
    #[command(flatten, next_help_heading = "Who may run tests")]
    admission: AdmissionArgs,
    /// Counters for Prometheus at http://ADDRESS:PORT/metrics [address: 127.0.0.1]
    #[arg(long, value_name = "[ADDRESS:]PORT", value_parser = metrics_address)]
    #[arg(help_heading = "Output")]
    metrics: Option<SocketAddr>,
    /// One line of JSON for each event
    #[arg(long, help_heading = "Output")]
    json: bool,
    /// Show a row a second for every test, not only its end
    #[arg(long, short, help_heading = "Output")]
    verbose: bool,
    /// Seconds between those rows
    #[arg(long, short, value_name = "SECONDS", default_value_t = 1, help_heading = "Output")]
    #[arg(value_parser = clap::value_parser!(u64).range(1..=3600))]
    interval: u64,
    /// Print a systemd unit for a server with these flags, and exit
    #[arg(long, conflicts_with_all = ["file", "one_off"], help_heading = "Output")]
    systemd_unit: bool,
}

const EXAMPLES: &str = "\
Examples:
  longhaul server
  longhaul server -p 5202 --one-off
  longhaul server --max-tests 8 --max-per-address 2 --max-streams 16 --max-time 60 --max-rate 1gbit
  longhaul server --tokens words.txt --metrics 9201
  longhaul server --private-key private.pem --users users.csv
  longhaul server --max-tests 8 --systemd-unit > /etc/systemd/system/longhaul.service";

pub(crate) fn run(args: &ServerArgs, console: &mut Console) -> Outcome {
    if args.systemd_unit {
        return unit::print(args, console);
    }
    let (stop, drain) = stop::for_server();
    let mut config = settings::config(&args.listen, &args.limits);
    config.report_every = std::time::Duration::from_secs(args.interval);
    config.drain = drain;
    admission::read(&args.admission, &mut config, console)?;
    let server = Arc::new(Server::bind(&config).map_err(test::failure)?);
    let counters = Arc::new(Mutex::new(Counters::new(clock::unix_time().as_secs_f64())));
    let metrics = args.metrics.map(|at| serve_metrics(at, &server, &counters)).transpose()?;
    let form = if args.json { Form::Json } else { Form::Text { style: console.out } };
    let log = Log::new(form, args.verbose);
    for line in log.listening(&server, &config.limits, metrics) {
        console.log(&line);
    }
    let show = Show::new(console, log, counters)
        .map_err(|error| Failure::work(format!("cannot start the log's thread: {error}")))?;
    server.serve(&stop, &show).map_err(test::failure)?;
    show.stopped();
    Ok(DONE)
}

/// Answers scrapes on a port of its own for as long as the process lives.
fn serve_metrics(
    at: SocketAddr,
    server: &Arc<Server>,
    counters: &Arc<Mutex<Counters>>,
) -> Result<SocketAddr, Failure> {
    let wrong = |error: std::io::Error| {
        Failure::work(format!(
            "cannot listen on {at} for metrics: {error}; choose another address or port"
        ))
    };
    let listener = TcpListener::bind(at).map_err(wrong)?;
    let address = listener.local_addr().map_err(wrong)?;
    let (server, counters) = (Arc::clone(server), Arc::clone(counters));
    let page = move || {
        let counters = counters.lock().unwrap_or_else(PoisonError::into_inner);
        counters.text(server.half_open())
    };
    http::serve(listener, page).map_err(wrong)?;
    Ok(address)
}

/// A port on this host alone, or an address with its port.
fn metrics_address(text: &str) -> Result<SocketAddr, String> {
    if let Ok(port) = text.parse::<u16>() {
        return Ok(SocketAddr::from(([127, 0, 0, 1], port)));
    }
    text.parse().map_err(|_| "give a port, such as 9201, or ADDRESS:PORT, such as [::]:9201".into())
}

#[cfg(test)]
mod tests {
    use super::metrics_address;

    #[test]
    fn metrics_stay_on_this_host_unless_told() {
        let read = |text| metrics_address(text).map(|address| address.to_string());
        assert_eq!(read("9201").unwrap(), "127.0.0.1:9201");
        assert_eq!(read("0.0.0.0:1").unwrap(), "0.0.0.0:1");
        assert_eq!(read("[::1]:1").unwrap(), "[::1]:1");
        for wrong in ["", "x", "70000", "::1", "host:1", "-1"] {
            assert!(read(wrong).is_err(), "{wrong}");
        }
    }
}
