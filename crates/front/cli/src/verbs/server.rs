//! `longhaul server`: serves `longhaul test` and iperf3 clients.

mod copies;
mod lines;
mod log;
mod settings;

use crate::console::Console;
use crate::failure::{DONE, Failure, Outcome};
use crate::web_flags::{STOP_S, WebFlags, is_low};
use crate::{stop, unit};
use clap::Args;
use lines::{Form, Lines};
use log::LogQueue;
use longhaul::server::{self, ClientLines, Front, Limits, ServerEvent};
use longhaul::systemd_unit::{self, Unit};
use report::terminal::Style;
use settings::{AdmissionArgs, LimitArgs, ListenArgs};
use std::net::SocketAddr;
use web::{BothEvent, WebLine};

/// Serve throughput tests for longhaul and iperf3 clients
///
/// On SIGTERM the server refuses new clients and exits when running tests have
/// finished. On a second SIGTERM, or Ctrl-C, it ends them and exits at once.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES, mut_group("WebFlags", |flags| flags.requires("web")))]
pub(crate) struct ServerArgs {
    #[command(flatten)]
    listen: ListenArgs,
    #[command(flatten, next_help_heading = "Limits")]
    limits: LimitArgs,
    #[command(flatten, next_help_heading = "Copies")]
    copies: copies::CopiesArgs,
    #[command(flatten, next_help_heading = "Authentication")]
    admission: AdmissionArgs,
    /// Also serve the speed test for browsers, as `longhaul web` does
    ///
    /// PORT alone is on 127.0.0.1. Both servers end together.
    #[arg(long, value_name = "[ADDRESS:]PORT", value_parser = host::address::parse_listen)]
    #[arg(help_heading = "Speed test for browsers")]
    web: Option<SocketAddr>,
    #[command(flatten, next_help_heading = "Speed test for browsers")]
    web_flags: WebFlags,
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
  longhaul server --web 0.0.0.0:8080
  longhaul server --max-tests 8 --systemd-unit > longhaul.service";

/// The answer to a request of metrics for a host name that is not this server's.
const MISDIRECTED: &str = "This host name is not allowed. \
    Use the server's IP address, or start it with --metrics-host NAME.\n";

/// Grace period in seconds: a stop may take this much longer than the longest test.
const GRACE_S: u64 = 60;

/// The style of lines for clients, independent of the server's terminal.
const PLAIN: Style = Style { colour: false, width: 80, unicode: false };

pub(crate) fn run(args: &ServerArgs, console: &mut Console) -> Outcome {
    let request = settings::request(args);
    request.check()?;
    if args.systemd_unit {
        return unit::print(&systemd_unit(args), console);
    }
    let (stop, drain) = stop::for_server();
    let client_lines = || -> ClientLines {
        let mut lines = Lines::new(Form::Text { style: PLAIN });
        Box::new(move |event| lines.of(event).pop())
    };
    let front = Front {
        drain: Some(&drain),
        client_lines: Some(&client_lines),
        misdirected: MISDIRECTED,
        ..Front::PLAIN
    };
    let form = if args.json { Form::Json } else { Form::Text { style: console.out } };
    let mut log = LogQueue::start(console, Lines::new(form))
        .map_err(|error| Failure::work(format!("cannot start the log's thread: {error}")))?;
    let mut on_event = |event: BothEvent| match event {
        BothEvent::Web(event) => log.put_line(WebLine::now(&event).text(args.json)),
        BothEvent::Server(event) => match lines::remark(&event) {
            Some(remark) => console.say(&remark),
            None => log.put(&event),
        },
    };
    if let Some(listen) = args.web {
        let web = args.web_flags.request(listen);
        web::serve_both(&request, &front, &web, &mut on_event, &drain, &stop)?;
    } else {
        let mut on_event = |event: ServerEvent| on_event(BothEvent::Server(Box::new(event)));
        server::serve(&request, &front, &mut on_event, &stop)?;
    }
    log.finish();
    Ok(DONE)
}

/// A unit for a server with these flags.
fn systemd_unit(args: &ServerArgs) -> Unit {
    let limits = &args.limits;
    let streams = (2 * u64::from(limits.max_tests) * u64::from(limits.max_streams))
        .min(limits.max_total_streams.into());
    let buffers =
        limits.max_memory.bytes().saturating_add(Limits::default().message_memory.bytes());
    let (web_tasks, web_memory) = args.web.map_or((0, 0), |_| args.web_flags.most());
    Unit {
        description: "Longhaul server for network throughput tests",
        stop_s: (limits.max_time + GRACE_S).max(args.web.map_or(0, |_| STOP_S)),
        // A thread for each stream, one for each test, and those that authenticate a client.
        tasks: streams
            + u64::from(limits.max_tests)
            + u64::from(limits.max_half_open)
            + 64
            + web_tasks,
        memory_max: systemd_unit::memory_max(buffers.saturating_add(web_memory), streams),
        memory_of: "Messages, --max-memory and the socket buffers of --max-total-streams",
        low_port: (1..1024).contains(&args.listen.port)
            || args.web.is_some_and(|at| args.web_flags.has_low_port(at))
            || args.metrics.is_some_and(is_low),
        ..Unit::default()
    }
}
