//! `longhaul server`: serves `longhaul test` and iperf3 clients.

mod copies;
mod lines;
mod log;
mod settings;
mod unit;

use crate::console::Console;
use crate::failure::{DONE, Failure, Outcome};
use crate::stop;
use clap::Args;
use lines::{Form, Lines};
use log::LogQueue;
use longhaul::server::{self, ClientLines, Front, ServerEvent};
use report::terminal::Style;
use settings::{AdmissionArgs, LimitArgs, ListenArgs};
use std::net::SocketAddr;

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
    #[arg(long, value_name = "[ADDRESS:]PORT", value_parser = host::address::parse_listen)]
    #[arg(help_heading = "Output")]
    metrics: Option<SocketAddr>,
    /// Also answer metrics requests for this host name; repeatable
    ///
    /// Requests for IP addresses and localhost are always answered; those for any
    /// other name get 421, so that no web page can read the metrics by DNS rebinding.
    #[arg(long, value_name = "NAME", requires = "metrics")]
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

/// The answer to a request of metrics for a host name that is not this server's.
const MISDIRECTED: &str = "This host name is not allowed. \
    Use the server's IP address, or start it with --metrics-host NAME.\n";

/// The style of lines for clients, independent of the server's terminal.
const PLAIN: Style = Style { colour: false, width: 80, unicode: false };

pub(crate) fn run(args: &ServerArgs, console: &mut Console) -> Outcome {
    let request = settings::request(args);
    request.check()?;
    if args.systemd_unit {
        return unit::print(args, console);
    }
    let (stop, drain) = stop::for_server();
    let client_lines = || -> ClientLines {
        let mut lines = Lines::new(Form::Text { style: PLAIN });
        Box::new(move |event| lines.of(event).pop())
    };
    let front =
        Front { drain: Some(&drain), client_lines: Some(&client_lines), misdirected: MISDIRECTED };
    let form = if args.json { Form::Json } else { Form::Text { style: console.out } };
    let mut log = LogQueue::start(console, Lines::new(form))
        .map_err(|error| Failure::work(format!("cannot start the log's thread: {error}")))?;
    let mut on_event = |event: ServerEvent| match lines::remark(&event) {
        Some(remark) => console.say(&remark),
        None => log.put(&event),
    };
    server::serve(&request, &front, &mut on_event, &stop)?;
    log.finish();
    Ok(DONE)
}
