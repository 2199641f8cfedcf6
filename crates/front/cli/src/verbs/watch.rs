//! `longhaul watch`: running TCP connections of any program, and what limits each.

mod ending;
mod keys;
mod screen;

use super::in_lab;
use super::probe_args::time;
use crate::console::{self, Console};
use crate::failure::{DONE, Failure, Outcome};
use crate::output_path::OutputPath;
use clap::{Args, ValueEnum};
use ending::Ending;
use host::{clock, output_file};
use report::terminal::{self, Viewport};
use report::untrusted;
use std::fs::File;
use std::io::{BufWriter, IsTerminal};
use std::net::ToSocketAddrs;
use std::path::Path;
use std::time::Duration;
use units::ByteCount;
use watch::{Prefix, Recorder, Selection, Sort, WatchError, Watcher, Written};

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
    /// By default as many as fit the screen, 20 in a table, all in JSON.
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
    /// Print nothing, with --record
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
    /// Longest limited by a window or a buffer first
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

/// The recording, if any, and its maximum size.
struct Recording {
    file: Option<(OutputPath, Recorder<BufWriter<File>>)>,
    limit: ByteCount,
}

pub(crate) fn run(args: &WatchArgs, console: &mut Console) -> Outcome {
    if let Some(host) = &args.in_lab {
        return in_lab::run(&in_lab::find(host)?, &[]);
    }
    let ending = Ending::on_signals().map_err(Failure::work)?;
    let to =
        args.dst.iter().map(|text| destinations(text)).collect::<Result<Vec<_>, _>>()?.concat();
    let selection = Selection {
        pid: args.pid,
        to,
        ports: args.port.clone(),
        busy: args.busy,
        text: String::new(),
    };
    let sort = match args.sort {
        Order::Rate => Sort::Rate,
        Order::Rtt => Sort::Rtt,
        Order::Retransmits => Sort::Retransmits,
        Order::Limit => Sort::Limit,
    };
    let mut watcher = Watcher::open(selection, sort).map_err(Failure::usage)?;
    let limit = args.record_max;
    let file = match &args.record {
        Some(path) => Some((path.clone(), start_recording(path, args.interval, limit)?)),
        None => None,
    };
    let mut recording = Recording { file, limit };
    let plain = args.json || args.quiet || args.once || args.count.is_some();
    let dumb = std::env::var_os("TERM").is_some_and(|term| term == "dumb");
    let terminal = std::io::stdin().is_terminal() && std::io::stdout().is_terminal() && !dumb;
    if !plain && terminal {
        return screen::run(&mut watcher, args, &mut recording, &ending, console);
    }
    let count = if args.once { Some(1) } else { args.count };
    tables(&mut watcher, args, count, &mut recording, &ending, console)
}

/// Prints tables or lines of JSON.
fn tables(
    watcher: &mut Watcher,
    args: &WatchArgs,
    count: Option<u64>,
    recording: &mut Recording,
    ending: &Ending,
    console: &mut Console,
) -> Outcome {
    if let Some(note) = poll(watcher, recording)? {
        console.say(&note);
    }
    let started = clock::now();
    let mut due = args.interval;
    let mut printed = 0;
    while count.is_none_or(|count| printed < count) {
        while let Some(left) = due.checked_sub(started.elapsed()).filter(|left| !left.is_zero()) {
            if ending.wait(left) {
                return Ok(DONE);
            }
        }
        // A late poll delays the next ones: no bursts.
        due = (due + args.interval).max(started.elapsed());
        match poll(watcher, recording) {
            Ok(None) => {}
            Ok(Some(note)) => {
                console.say(&note);
                if args.quiet {
                    return Ok(DONE);
                }
            }
            // The selected process has ended.
            Err(Ended::Process) if printed > 0 => return Ok(DONE),
            Err(ended) => return Err(ended.into()),
        }
        printed += 1;
        if args.quiet {
            console.live(&format!("{printed} samples"));
            continue;
        }
        let top = args.top.unwrap_or(if args.json { usize::MAX } else { TABLE_ROWS });
        let report = watcher.report(top);
        let text = if args.json {
            console::json_line(&report)?
        } else {
            let gap = if printed > 1 { "\n" } else { "" };
            let order = watcher.sort.to_string();
            gap.to_owned() + &terminal::watch(&report, &order, Viewport::ALL, &console.out)
        };
        console.print(&text);
        if !console.is_open() && recording.file.is_none() {
            break;
        }
    }
    console.clear();
    Ok(DONE)
}

/// Why polling ended.
enum Ended {
    /// The selected process has ended.
    Process,
    Failure(Failure),
}

impl From<Ended> for Failure {
    fn from(ended: Ended) -> Failure {
        match ended {
            Ended::Process => Failure::work("the process has ended"),
            Ended::Failure(failure) => failure,
        }
    }
}

/// Polls once and records it; returns a note if the recording reached its limit.
fn poll(watcher: &mut Watcher, recording: &mut Recording) -> Result<Option<String>, Ended> {
    watcher.poll().map_err(|error| match error {
        WatchError::NoProcess(_) => Ended::Process,
        other => Ended::Failure(Failure::work(other)),
    })?;
    let Some((path, recorder)) = &mut recording.file else { return Ok(None) };
    let failed = |error| Ended::Failure(write_failure(path, &error));
    match recorder.write(watcher).map_err(failed)? {
        Written::Complete => Ok(None),
        Written::LimitReached => {
            let note = format!(
                "recording stopped at {} (--record-max); {} is complete up to that point",
                recording.limit,
                path.display()
            );
            recording.file = None;
            Ok(Some(note))
        }
    }
}

fn start_recording(
    path: &Path,
    interval: Duration,
    limit: ByteCount,
) -> Result<Recorder<BufWriter<File>>, Failure> {
    output_file::create(path)
        .and_then(|file| Recorder::start(BufWriter::new(file), interval, limit))
        .map_err(|error| write_failure(path, &error))
}

fn write_failure(path: &Path, error: &std::io::Error) -> Failure {
    let remedy = "choose a directory that is writable and has free space";
    Failure::work(format!("cannot write {}: {error}; {remedy}", path.display()))
}

/// Parses an address or a prefix, or resolves a name to all its addresses.
fn destinations(text: &str) -> Result<Vec<Prefix>, Failure> {
    let wrong = match text.parse::<Prefix>() {
        Ok(prefix) => return Ok(vec![prefix]),
        Err(error) => error,
    };
    // Neither can be a host name.
    if text.contains('/') || text.is_empty() {
        return Err(Failure::usage(wrong));
    }
    match (text, 0).to_socket_addrs() {
        Ok(found) => Ok(found.map(|address| Prefix::of(address.ip())).collect()),
        Err(error) => {
            let name = untrusted::excerpt(text, 60);
            Err(Failure::usage(format!(
                "cannot resolve --dst {name}: {error}; give an address, a prefix or a host name"
            )))
        }
    }
}
