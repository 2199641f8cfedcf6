//! `longhaul doctor`: checks whether this host can sustain a rate at an RTT.

use crate::console::{self, Console};
use crate::failure::{DONE, FAILED, Failure, Outcome};
use crate::host_port;
use crate::input;
use crate::stop;
use clap::{Args, ValueEnum, value_parser};
use longhaul::doctor::{self, CommandsRequest, DoctorEvent, DoctorRequest, PastedRequest, System};
use longhaul::ping::Family;
use record::Verdict;
use report::terminal;
use std::path::{Path, PathBuf};
use units::{BitRate, Rtt};

/// Check whether this host can sustain a rate at a given RTT
///
/// Checks the kernel's settings and version, the network device, CPUs and
/// memory; with --to, the path; with --disk, a disk. Prints the checks that did not
/// pass, each with a fix, and counts the rest. Changes nothing and needs no
/// privileges; a check that cannot run is reported as unknown. Sends packets
/// only with --to (a few dozen).
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct DoctorArgs {
    /// Total rate, such as 10gbit [default: link rate]
    #[arg(long)]
    rate: Option<BitRate>,
    /// RTT, such as 200ms [default: measured to --to]
    #[arg(long)]
    rtt: Option<Rtt>,
    /// Far end: measure its RTT, path MTU and TCP options
    #[arg(long, value_name = "HOST")]
    to: Option<String>,
    /// Open TCP port at the far end
    #[arg(long, value_name = "PORT", default_value_t = 5201, requires = "to")]
    #[arg(value_parser = value_parser!(u16).range(1..))]
    port: u16,
    /// Use IPv4 only
    #[arg(short = '4', long = "ipv4", conflicts_with = "ipv6", requires = "to")]
    ipv4: bool,
    /// Use IPv6 only
    #[arg(short = '6', long = "ipv6", requires = "to")]
    ipv6: bool,
    /// Parallel connections that share the rate
    #[arg(long, short = 'P', value_name = "N", default_value_t = 1)]
    #[arg(value_parser = value_parser!(u32).range(1..=65_535))]
    streams: u32,
    /// Also measure this disk, using up to 256 MiB
    #[arg(long, value_name = "DIR")]
    disk: Option<PathBuf>,
    /// Network device [default: the one on the route]
    #[arg(long, value_name = "NAME")]
    device: Option<String>,
    /// Print commands for another host: linux, macos, windows
    #[arg(long = "for", value_enum, value_name = "SYSTEM", hide_possible_values = true)]
    #[arg(requires = "rate", requires = "rtt")]
    #[arg(conflicts_with_all = ["to", "disk", "device"])]
    system: Option<RemoteSystem>,
    /// Show every check, also those that passed
    #[arg(long, conflicts_with_all = ["system", "read", "json"])]
    all: bool,
    /// Explain saved output of netstat -s or ss -tin; - is stdin
    ///
    /// Accepts netstat -s and netstat -st from Linux and macOS, nstat and ss -tin from Linux.
    /// Prints totals, shares and their meaning. The format is recognised by its content.
    #[arg(long, value_name = "FILE")]
    #[arg(conflicts_with_all = ["to", "disk", "device", "system", "rate", "rtt", "streams"])]
    read: Option<PathBuf>,
    /// Print JSON, with every fact read
    #[arg(long, short = 'J')]
    json: bool,
    /// Directory used as / (tests)
    #[arg(long, hide = true, conflicts_with = "system")]
    root: Option<PathBuf>,
}

impl DoctorArgs {
    /// Splits `HOST:PORT`.
    pub(crate) fn split_port(&mut self) -> Result<(), Failure> {
        match &mut self.to {
            Some(host) => host_port::split(host, &mut self.port),
            None => Ok(()),
        }
    }
}

/// The system of another host.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum RemoteSystem {
    Linux,
    Macos,
    Windows,
}

const EXAMPLES: &str = "\
Examples:
  longhaul doctor --rate 10gbit --rtt 200ms   can this host sustain it?
  longhaul doctor --to HOST                   link rate and measured RTT
  longhaul doctor --to HOST --all             every check
  longhaul doctor --to HOST --rate 1gbit --disk /data
  longhaul doctor --for macos --rate 1gbit --rtt 100ms
  netstat -st | longhaul doctor --read -      what the counters mean
  longhaul doctor --to HOST -J | jq '.checks[] | select(.verdict==\"fail\").id'

Exit codes: 0 no check failed (some may warn or be unknown), 1 a check failed
or the host of --to is unreachable, 2 usage error.";

pub(crate) fn run(args: &DoctorArgs, console: &mut Console) -> Outcome {
    if let Some(file) = &args.read {
        return read(file, args.json, console);
    }
    if let (Some(kind), Some(rate), Some(rtt)) = (args.system, args.rate, args.rtt) {
        let system = match kind {
            RemoteSystem::Linux => System::Linux,
            RemoteSystem::Macos => System::MacOs,
            RemoteSystem::Windows => System::Windows,
        };
        let request = CommandsRequest { system, rate, rtt, streams: args.streams };
        let commands = doctor::commands(&request)?;
        let text = if args.json {
            console::json(&commands)?
        } else {
            terminal::doctor_commands(&commands, &console.out)
        };
        console.print(&text);
        return Ok(DONE);
    }
    if args.rtt.is_none() && args.to.is_none() {
        return Err(Failure::usage(
            "the RTT is missing: give it, as in longhaul doctor --rtt 100ms, or measure it with \
             longhaul doctor --to HOST",
        ));
    }
    let request = request(args);
    request.check()?;
    let stop = stop::on_signals();
    let mut on_event = |event: DoctorEvent| match event {
        DoctorEvent::Probing { host, what } => console.live(&format!("Probing {host}: {what}")),
        DoctorEvent::MeasuringDisk(folder) => {
            console.live(&format!("Writing to {} and reading it back", folder.display()));
        }
    };
    let document = doctor::run(&request, &mut on_event, &stop)?;
    console.clear();
    let text = if args.json {
        console::json(&document)?
    } else {
        terminal::doctor(&document.report, args.all, &console.out)
    };
    console.print(&text);
    Ok(if document.report.verdict == Verdict::Fail { FAILED } else { DONE })
}

fn request(args: &DoctorArgs) -> DoctorRequest {
    DoctorRequest {
        rate: args.rate,
        rtt: args.rtt,
        to: args.to.clone(),
        port: args.port,
        family: Family::from_flags(args.ipv4, args.ipv6),
        streams: args.streams,
        disk: args.disk.clone(),
        device: args.device.clone(),
        root: args.root.clone(),
    }
}

/// Explains the text of another tool.
fn read(file: &Path, as_json: bool, console: &mut Console) -> Outcome {
    let name = file.display();
    let text = input::text_or_stdin(file, input::COUNTERS)
        .map_err(|error| Failure::usage(format!("cannot read '{name}': {error}")))?;
    let report = doctor::pasted(&PastedRequest { text })
        .map_err(|problem| Failure::usage(format!("cannot explain '{name}': {problem}")))?;
    let text =
        if as_json { console::json(&report)? } else { terminal::pasted(&report, &console.out) };
    console.print(&text);
    Ok(DONE)
}
