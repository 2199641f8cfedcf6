//! `longhaul server`: serves `longhaul test` and iperf3 clients.

mod admission;
mod copies;
mod counters;
mod http;
mod lines;
mod observer;
mod settings;
mod unit;

use crate::console::Console;
use crate::failure::{DONE, Failure, Outcome};
use crate::http_host::OwnNames;
use crate::stop;
use clap::Args;
use counters::Counters;
use host::clock;
use host::lock::lock;
use lines::{Form, Log};
use longhaul::Problem;
use observer::Show;
use perf::server::Server;
use settings::{AdmissionArgs, LimitArgs, ListenArgs};
use std::net::{SocketAddr, TcpListener};
use std::sync::{Arc, Mutex};

/// Serve throughput tests for longhaul and iperf3 clients
///
/// On SIGTERM the server refuses new clients and exits when running tests have
/// finished. On a second SIGTERM, or Ctrl-C, it ends them and exits at once.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct ServerArgs {
    #[command(flatten)]
    listen: ListenArgs,
    #[command(flatten, next_help_heading = "Limits")]
    limits: LimitArgs,
    #[command(flatten, next_help_heading = "Copies")]
    copies: copies::CopiesArgs,
    #[command(flatten, next_help_heading = "Authentication")]
    admission: AdmissionArgs,
    /// Serve Prometheus metrics at http://127.0.0.1:PORT/metrics
    ///
    /// ADDRESS:PORT listens on another address.
    #[arg(long, value_name = "[ADDRESS:]PORT", value_parser = metrics_address)]
    #[arg(help_heading = "Output")]
    metrics: Option<SocketAddr>,
    /// Answer metrics requests for this host name, too; repeatable
    ///
    /// Requests for IP addresses and localhost are always answered; those for any
    /// other name get 421, so that no web page can read the metrics by DNS rebinding.
    #[arg(long, value_name = "NAME", requires = "metrics", value_parser = crate::http_host::name)]
    #[arg(help_heading = "Output")]
    metrics_host: Vec<String>,
    /// Log each event as a line of JSON
    #[arg(long, help_heading = "Output")]
    json: bool,
    /// Log interval reports of every test
    #[arg(long, short, help_heading = "Output")]
    verbose: bool,
    /// Seconds between interval reports
    #[arg(long, short, value_name = "SECONDS", default_value_t = 1, help_heading = "Output")]
    #[arg(value_parser = clap::value_parser!(u64).range(1..=3600))]
    interval: u64,
    /// Print a systemd unit that runs a server with these flags
    #[arg(long, conflicts_with_all = ["file", "one_off", "root"], help_heading = "Output")]
    systemd_unit: bool,
}

const EXAMPLES: &str = "\
Examples:
  longhaul server
  longhaul server -p 5202 --one-off
  longhaul server --max-tests 8 --max-per-address 2 --max-rate 1gbit
  longhaul server --tokens tokens.txt --metrics 9201
  longhaul server --root /srv/data --tokens tokens.txt
  longhaul server --private-key private.pem --users users.csv
  longhaul server --max-tests 8 --systemd-unit > longhaul.service";

pub(crate) fn run(args: &ServerArgs, console: &mut Console) -> Outcome {
    if args.systemd_unit {
        return unit::print(args, console);
    }
    let (stop, drain) = stop::for_server();
    let mut config = settings::config(&args.listen, &args.limits);
    config.report_every = std::time::Duration::from_secs(args.interval);
    config.drain = drain;
    admission::read(&args.admission, &mut config, console)?;
    let copies = copies::start(&args.copies, &args.admission, &args.listen, console)?;
    let server = Arc::new(Server::bind(&config).map_err(Problem::from)?);
    let counters = Arc::new(Mutex::new(Counters::new(clock::unix_time().as_secs_f64())));
    let metrics = match args.metrics {
        Some(at) => Some(serve_metrics(at, OwnNames::new(&args.metrics_host), &server, &counters)?),
        None => None,
    };
    let form = if args.json { Form::Json } else { Form::Text { style: console.out } };
    let log = Log::new(form, args.verbose);
    for line in log.listening(&server, &config.limits, metrics) {
        console.log(&line);
    }
    let show = Show::new(console, log, counters)
        .map_err(|error| Failure::work(format!("cannot start the log's thread: {error}")))?;
    std::thread::scope(|scope| {
        if let Some(copies) = &copies {
            scope.spawn(|| copies.serve(&stop, &config.drain, &|event| show.copy(&event)));
        }
        let served = server.serve(&stop, &show).map_err(Problem::from);
        // It ended with its last test, or failed: so do the copies.
        config.drain.raise();
        served
    })?;
    show.stopped();
    Ok(DONE)
}

/// Serves metrics on a separate port until the process ends.
fn serve_metrics(
    at: SocketAddr,
    names: OwnNames,
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
        let counters = lock(&counters);
        counters.text(server.half_open())
    };
    http::serve(listener, names, page).map_err(wrong)?;
    Ok(address)
}

/// A port of the loopback address, or an address with its port.
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
    fn metrics_listen_on_loopback_by_default() {
        let read = |text| metrics_address(text).map(|address| address.to_string());
        assert_eq!(read("9201").unwrap(), "127.0.0.1:9201");
        assert_eq!(read("0.0.0.0:1").unwrap(), "0.0.0.0:1");
        assert_eq!(read("[::1]:1").unwrap(), "[::1]:1");
        for wrong in ["", "x", "70000", "::1", "host:1", "-1"] {
            assert!(read(wrong).is_err(), "{wrong}");
        }
    }
}
