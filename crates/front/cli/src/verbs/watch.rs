//! `longhaul watch`: running TCP connections of any program, and what limits each.

mod ending;
mod keys;
mod screen;

use super::in_lab;
use super::probe_args::time;
use crate::console::{self, Console};
use crate::failure::{DONE, Failure, Outcome};
use crate::output_path::OutputPath;
use crate::stop;
use clap::{Args, ValueEnum};
use ending::Ending;
use longhaul::watch::{self, Sort, WatchEvent, WatchRequest, WatchSession};
use report::terminal::{self, Viewport};
use std::io::IsTerminal;
use std::path::Path;
use std::time::Duration;
use units::ByteCount;

/// Show running TCP connections: rate, RTT, windows and limits
///
/// Polls the kernel's TCP_INFO of every TCP connection in this network namespace and
/// explains what limits each, as `test` does. Sends no packets and changes no settings.
/// Needs no privilege, except to name other users' programs.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct WatchArgs {
    /// Show only connections of this process
    #[arg(long, value_name = "PID")]
    pid: Option<u32>,
    /// Show only connections to this host or prefix
    ///
    /// A name, an address or a prefix such as 192.0.2.0/24; repeatable.
    #[arg(long, value_name = "HOST")]
    dst: Vec<String>,
    /// Show only these ports, local or remote
    ///
    /// One port, or several: 80,443.
    #[arg(long, value_name = "PORT", value_delimiter = ',')]
    #[arg(value_parser = clap::value_parser!(u16).range(1..))]
    port: Vec<u16>,
    /// Show only connections that carry payload
    #[arg(long)]
    busy: bool,
    /// Sort: rate, rtt, retransmits, limit
    #[arg(
        long,
        value_enum,
        value_name = "ORDER",
        hide_possible_values = true,
        default_value = "rate"
    )]
    sort: Order,
    /// Maximum number of connections to show
    ///
    /// Default: as many as fit on the screen, 20 in a table, all in JSON.
    #[arg(long, value_name = "N")]
    top: Option<usize>,
    /// Poll interval, at least 100ms
    ///
    /// In seconds, or with a unit: 0.5, 200ms.
    #[arg(long, short, value_name = "TIME", default_value = "1s", value_parser = interval)]
    interval: Duration,
    /// Stop after N tables [default: until Ctrl-C]
    #[arg(long, short, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    count: Option<u64>,
    /// Print one table, after one interval
    #[arg(long, conflicts_with = "count")]
    once: bool,
    /// Record all samples, for `longhaul explain`
    #[arg(long, value_name = "FILE")]
    record: Option<OutputPath>,
    /// Maximum size of the recording
    #[arg(long, value_name = "SIZE", default_value = "1GB", requires = "record")]
    record_max: ByteCount,
    /// With --record, print nothing
    #[arg(long, short, requires = "record", conflicts_with = "json")]
    quiet: bool,
    /// Print one line of JSON per poll
    #[arg(long, short = 'J')]
    json: bool,
    /// Watch a host of a running lab
    #[arg(long, value_name = "[LAB:]HOST")]
    in_lab: Option<String>,
}

const EXAMPLES: &str = "\
Examples:
  longhaul watch                             full screen; ? lists the keys
  longhaul watch --once --sort limit         one table, most limited first
  longhaul watch --pid $(pidof -s rsync)     connections of one program
  longhaul watch --dst 192.0.2.0/24 --port 443
  longhaul watch --record monday.rec -q -c 600
  longhaul explain monday.rec                what limited each connection
  longhaul watch --json --busy | jq -c '.connections[] | [.remote, .limit]'

Keys: s sort, / filter, arrows and Enter follow, Esc back, p pause, ? help,
q quit.";

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Order {
    /// Highest rate first
    Rate,
    /// Longest RTT first
    Rtt,
    /// Most retransmissions first
    Retransmits,
    /// Longest time limited by a window or a buffer first
    Limit,
}

/// Default number of rows of a table.
const TABLE_ROWS: usize = 20;

fn interval(text: &str) -> Result<Duration, String> {
    match time(text)? {
        interval if interval >= Duration::from_millis(100) => Ok(interval),
        _ => Err("give at least 100ms: the kernel's timers have a resolution of 10 ms".to_owned()),
    }
}

pub(crate) fn run(args: &WatchArgs, console: &mut Console) -> Outcome {
    if let Some(host) = &args.in_lab {
        return in_lab::run(&in_lab::find(host)?, &[]);
    }
    let request = request(args);
    let plain = args.json || args.quiet || args.once || args.count.is_some();
    let dumb = std::env::var_os("TERM").is_some_and(|term| term == "dumb");
    let terminal = std::io::stdin().is_terminal() && std::io::stdout().is_terminal() && !dumb;
    if !plain && terminal {
        let ending = Ending::on_signals().map_err(Failure::work)?;
        let mut session = WatchSession::open(&request)?;
        return screen::run(&mut session, args, &ending, console);
    }
    tables(&request, args, console)
}

fn request(args: &WatchArgs) -> WatchRequest {
    WatchRequest {
        pid: args.pid,
        destinations: args.dst.clone(),
        ports: args.port.clone(),
        busy: args.busy,
        sort: match args.sort {
            Order::Rate => Sort::Rate,
            Order::Rtt => Sort::Rtt,
            Order::Retransmits => Sort::Retransmits,
            Order::Limit => Sort::Limit,
        },
        top: match (args.quiet, args.json) {
            (true, _) => Some(0),
            (_, true) => args.top,
            _ => Some(args.top.unwrap_or(TABLE_ROWS)),
        },
        interval: args.interval,
        count: if args.once { Some(1) } else { args.count },
        record: args.record.as_deref().map(Path::to_owned),
        record_max: args.record_max,
    }
}

/// Prints tables or lines of JSON.
fn tables(request: &WatchRequest, args: &WatchArgs, console: &mut Console) -> Outcome {
    let stop = stop::on_signals();
    let (mut printed, mut is_recording) = (0, args.record.is_some());
    let mut failed = None;
    let mut on_event = |event: WatchEvent| match event {
        WatchEvent::RecordingFull => {
            console.say(&full(args));
            is_recording = false;
            if args.quiet {
                stop.raise();
            }
        }
        WatchEvent::Report(_) if args.quiet => {
            printed += 1;
            console.live(&format!("{printed} samples"));
        }
        WatchEvent::Report(report) => {
            printed += 1;
            let text = if args.json {
                console::json_line(&report)
            } else {
                let gap = if printed > 1 { "\n" } else { "" };
                let order = request.sort.to_string();
                Ok(gap.to_owned() + &terminal::watch(&report, &order, Viewport::ALL, &console.out))
            };
            match text {
                Ok(text) => console.print(&text),
                Err(failure) => failed = Some(failure),
            }
            if failed.is_some() || !console.is_open() && !is_recording {
                stop.raise();
            }
        }
    };
    watch::run(request, &mut on_event, &stop)?;
    console.clear();
    failed.map_or(Ok(DONE), Err)
}

/// The message when the recording has ended.
fn full(args: &WatchArgs) -> String {
    let path = args.record.as_deref().unwrap_or(Path::new(""));
    format!(
        "recording stopped at {} (--record-max); {} is complete up to that point",
        args.record_max,
        path.display()
    )
}
