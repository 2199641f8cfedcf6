//! `longhaul watch`: running connections of any program, and what limits each.

mod ending;
mod keys;
mod screen;

use super::in_lab;
use super::reach::time;
use crate::console::Console;
use crate::failure::{DONE, Failure, Outcome};
use clap::{Args, ValueEnum};
use ending::Ending;
use host::clock;
use report::terminal::{self, Room};
use std::fs::File;
use std::io::{BufWriter, IsTerminal};
use std::net::ToSocketAddrs;
use std::path::{Path, PathBuf};
use std::time::Duration;
use watch::{Prefix, Recorder, Selection, Sort, WatchError, Watcher};

/// Watch running connections of any program: rate, round trip, windows, and why they are slow
///
/// The kernel's own account of every TCP connection of this network namespace, look by
/// look; what limits each comes from its clocks, as with `test`. Nothing is sent and
/// nothing is changed. Needs no privilege, but for other users' programs' names.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct WatchArgs {
    /// Only connections that this process has open
    #[arg(long, value_name = "PID")]
    pid: Option<u32>,
    /// Only connections to this host, address or prefix; may be given several times
    #[arg(long, value_name = "HOST")]
    dst: Vec<String>,
    /// Only connections with one of these ports at either end: 443 or 80,443
    #[arg(long, value_name = "PORT", value_delimiter = ',')]
    #[arg(value_parser = clap::value_parser!(u16).range(1..))]
    port: Vec<u16>,
    /// Only connections that carried payload over the interval
    #[arg(long)]
    busy: bool,
    /// What comes first
    #[arg(long, value_enum, value_name = "WHAT", default_value = "rate")]
    sort: Order,
    /// Connections to show at most; else what fits the screen, 20 in a table, all in JSON
    #[arg(long, value_name = "N")]
    top: Option<usize>,
    /// Time between looks, 100ms or more: 0.5 (seconds), 200ms
    #[arg(long, short, value_name = "TIME", default_value = "1s", value_parser = interval)]
    interval: Duration,
    /// Print so many tables and end; else until Ctrl-C
    #[arg(long, short, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    count: Option<u64>,
    /// Print one table, over one interval, and end
    #[arg(long, conflicts_with = "count")]
    once: bool,
    /// Keep every look in a file, for `longhaul explain FILE`
    #[arg(long, value_name = "FILE")]
    record: Option<PathBuf>,
    /// Show nothing: for --record
    #[arg(long, short, requires = "record", conflicts_with = "json")]
    quiet: bool,
    /// Print a line of JSON for each look instead
    #[arg(long, short = 'J')]
    json: bool,
    /// On a host of a running lab instead of this machine
    #[arg(long, value_name = "[LAB:]HOST")]
    in_lab: Option<String>,
}

const EXAMPLES: &str = "\
Examples:
  longhaul watch                             a screen of them; ? shows the keys
  longhaul watch --once --sort limit         one table: what windows and buffers hold back
  longhaul watch --pid $(pidof -s rsync)     those of one program
  longhaul watch --dst 192.0.2.0/24 --port 443
  longhaul watch --record monday.rec -q -c 600
  longhaul explain monday.rec                what limited each of them
  longhaul watch --json --busy | jq -c '.connections[] | [.remote, .limit]'

Keys: s sort, / filter, arrows and Enter follow one, Esc back, p pause, ? help, q quit.";

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Order {
    /// What carries most
    Rate,
    /// The longest round trip
    Rtt,
    /// Most segments sent again
    Retransmits,
    /// Held longest by a window or a buffer
    Limit,
}

/// Rows of a table where none is asked for.
const TABLE: usize = 20;

fn interval(text: &str) -> Result<Duration, String> {
    match time(text)? {
        interval if interval >= Duration::from_millis(100) => Ok(interval),
        _ => Err("give 100ms or more: the kernel's clocks are no finer than 10 ms".to_owned()),
    }
}

/// A look goes to the file, if there is one.
type Kept = Option<(PathBuf, Recorder<BufWriter<File>>)>;

pub(crate) fn run(args: &WatchArgs, console: &mut Console) -> Outcome {
    if let Some(place) = &args.in_lab {
        return in_lab::run(&in_lab::find(place)?, &[]);
    }
    let ending = Ending::on_signals().map_err(Failure::work)?;
    let to = args.dst.iter().map(|text| whither(text)).collect::<Result<Vec<_>, _>>()?.concat();
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
    let mut kept = match &args.record {
        Some(path) => Some((path.clone(), begin(path, args.interval)?)),
        None => None,
    };
    let plain = args.json || args.quiet || args.once || args.count.is_some();
    let dumb = std::env::var_os("TERM").is_some_and(|term| term == "dumb");
    let terminal = std::io::stdin().is_terminal() && std::io::stdout().is_terminal() && !dumb;
    if !plain && terminal {
        return screen::run(&mut watcher, args, &mut kept, &ending, console);
    }
    let count = if args.once { Some(1) } else { args.count };
    tables(&mut watcher, args, count, &mut kept, &ending, console)
}

/// Tables or lines of JSON, one after the other.
fn tables(
    watcher: &mut Watcher,
    args: &WatchArgs,
    count: Option<u64>,
    kept: &mut Kept,
    ending: &Ending,
    console: &mut Console,
) -> Outcome {
    look(watcher, kept)?;
    let begun = clock::now();
    let mut due = args.interval;
    let mut printed = 0;
    while count.is_none_or(|count| printed < count) {
        while let Some(left) = due.checked_sub(begun.elapsed()).filter(|left| !left.is_zero()) {
            if ending.wait(left) {
                return Ok(DONE);
            }
        }
        // A look that was late is not made up for.
        due = (due + args.interval).max(begun.elapsed());
        match look(watcher, kept) {
            Ok(()) => {}
            // What was asked for has run its course.
            Err(Ended::Process) if printed > 0 => return Ok(DONE),
            Err(ended) => return Err(ended.into()),
        }
        printed += 1;
        if args.quiet {
            console.live(&format!("{printed} looks"));
            continue;
        }
        let top = args.top.unwrap_or(if args.json { usize::MAX } else { TABLE });
        let report = watcher.report(top);
        let text = if args.json {
            serde_json::to_string(&report).map_err(Failure::work)? + "\n"
        } else {
            let gap = if printed > 1 { "\n" } else { "" };
            let order = watcher.sort.to_string();
            gap.to_owned() + &terminal::watch(&report, &order, Room::ALL, &console.out)
        };
        console.print(&text);
        if !console.is_read() && kept.is_none() {
            break;
        }
    }
    console.clear();
    Ok(DONE)
}

/// Why no look follows.
enum Ended {
    /// The process asked for is gone.
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

/// One look, kept where it is to be.
fn look(watcher: &mut Watcher, kept: &mut Kept) -> Result<(), Ended> {
    watcher.look().map_err(|error| match error {
        WatchError::NoProcess(_) => Ended::Process,
        other => Ended::Failure(Failure::work(other)),
    })?;
    if let Some((path, recorder)) = kept {
        let failed = |error| Ended::Failure(unwritten(path, &error));
        recorder.write(watcher).map_err(failed)?;
    }
    Ok(())
}

fn begin(path: &Path, interval: Duration) -> Result<Recorder<BufWriter<File>>, Failure> {
    File::create(path)
        .and_then(|file| Recorder::begin(BufWriter::new(file), interval))
        .map_err(|error| unwritten(path, &error))
}

fn unwritten(path: &Path, error: &std::io::Error) -> Failure {
    let remedy = "name a file in a folder that you may write to, with room";
    Failure::work(format!("cannot write {}: {error}; {remedy}", path.display()))
}

/// An address or a prefix as it stands; of a name, all its addresses.
fn whither(text: &str) -> Result<Vec<Prefix>, Failure> {
    let wrong = match text.parse::<Prefix>() {
        Ok(prefix) => return Ok(vec![prefix]),
        Err(error) => error,
    };
    // What has the form of a prefix is none that could be looked up.
    if text.contains('/') || text.is_empty() {
        return Err(Failure::usage(wrong));
    }
    match (text, 0).to_socket_addrs() {
        Ok(found) => Ok(found.map(|address| Prefix::of(address.ip())).collect()),
        Err(error) => {
            let name: String = text.chars().filter(|c| !c.is_control()).take(60).collect();
            Err(Failure::usage(format!(
                "--dst {name}: {error}; give an address, a prefix or a name that resolves"
            )))
        }
    }
}
