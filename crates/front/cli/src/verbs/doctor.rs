//! `longhaul doctor`: whether this host can sustain a rate at an RTT.

use super::probe_args::failure as probe_failure;
use crate::console::{self, Console};
use crate::failure::{DONE, FAILED, Failure, Outcome};
use crate::host_port;
use crate::input;
use crate::stop;
use clap::{Args, ValueEnum, value_parser};
use doctor::{Asked, Fact, Facts, Nic, PathProbe, Root, System, Target};
use host::{clock, identity};
use probe::ProbeError;
use record::{DoctorReport, Verdict};
use report::terminal;
use serde::Serialize;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;
use units::{BitRate, ByteCount, Rtt};

/// Limits of the disk measurement.
const DISK_BYTES: ByteCount = ByteCount::from_bytes(256 << 20);
const DISK_TIME: Duration = Duration::from_secs(3);

/// Start of the path MTU search where the device's MTU is unknown.
const USUAL_MTU: u32 = 1_500;

/// Check whether this host can sustain a rate at a given RTT
///
/// Checks the kernel's settings and version, the network device, CPUs and
/// memory; with --to the path, with --disk a disk. Prints what is not in order,
/// each with a fix, and counts the rest. Changes nothing and needs no privileges; a check that cannot be made
/// is reported as unknown. Sends packets only with --to: a few dozen.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct DoctorArgs {
    /// Rate of all streams, such as 10gbit [default: link rate]
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
    /// Also measure this disk, with up to 256 MiB
    #[arg(long, value_name = "DIR")]
    disk: Option<PathBuf>,
    /// Network device [default: the one on the route]
    #[arg(long, value_name = "NAME")]
    device: Option<String>,
    /// Print commands for another host: linux, macos, windows
    #[arg(long = "for", value_enum, value_name = "SYSTEM", hide_possible_values = true)]
    #[arg(requires = "rate", requires = "rtt")]
    #[arg(conflicts_with_all = ["to", "disk", "device"])]
    system: Option<Kind>,
    /// Show every check, also those that passed
    #[arg(long, conflicts_with_all = ["system", "read", "json"])]
    all: bool,
    /// Explain saved output of netstat -s or ss -tin; - is stdin
    ///
    /// netstat -s and netstat -st of Linux and macOS, ss -tin of Linux: totals, shares and
    /// what each means. The format is recognised by its content.
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
enum Kind {
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

/// What `--json` prints.
#[derive(Serialize)]
struct Document<'a> {
    #[serde(flatten)]
    report: &'a DoctorReport,
    facts: &'a Facts,
}

pub(crate) fn run(args: &DoctorArgs, console: &mut Console) -> Outcome {
    if let Some(file) = &args.read {
        return read(file, args.json, console);
    }
    if args.rtt.is_none() && args.to.is_none() {
        return Err(Failure::usage(
            "the RTT is missing: give it, as in longhaul doctor --rtt 100ms, or measure it with \
             longhaul doctor --to HOST",
        ));
    }
    let asked = "asked";
    if args.rtt == Some(Rtt::ZERO) {
        return Err(Failure::usage(
            "an RTT of zero needs no window; measure it with longhaul ping",
        ));
    }
    let mut target = Target {
        rate: args.rate.unwrap_or(BitRate::ZERO),
        rate_from: asked.to_owned(),
        rtt: args.rtt,
        rtt_from: asked.to_owned(),
        streams: args.streams,
        mss: None,
    };
    if let Some(kind) = args.system {
        let system = match kind {
            Kind::Linux => System::Linux,
            Kind::Macos => System::MacOs,
            Kind::Windows => System::Windows,
        };
        let commands = doctor::commands(system, &target);
        let text = if args.json {
            json(&commands)?
        } else {
            terminal::doctor_commands(&commands, &console.out)
        };
        console.print(&text);
        return Ok(DONE);
    }
    let facts = gather(args, console)?;
    if args.rate.is_none() {
        target.rate = link_rate(&facts)?;
        target.rate_from = "the link's".to_owned();
    }
    if target.rtt.is_none() {
        target.rtt = facts.path.as_ref().and_then(|path| path.rtt_ns.seen()).copied();
        target.rtt_from = "measured".to_owned();
    }
    target.mss = segment(&facts);
    let report = doctor::report(&facts, &target, identity::hostname(), clock::unix_seconds());
    let text = if args.json {
        json(&Document { report: &report, facts: &facts })?
    } else {
        terminal::doctor(&report, args.all, &console.out)
    };
    console.print(&text);
    Ok(if report.verdict == Verdict::Fail { FAILED } else { DONE })
}

/// Explains the text of another tool.
fn read(file: &Path, as_json: bool, console: &mut Console) -> Outcome {
    let name = file.display();
    let text = input::text_or_stdin(file, input::COUNTERS)
        .map_err(|error| Failure::usage(format!("cannot read '{name}': {error}")))?;
    let report = doctor::pasted(&text)
        .map_err(|error| Failure::usage(format!("cannot explain '{name}': {error}")))?;
    let text = if as_json { json(&report)? } else { terminal::pasted(&report, &console.out) };
    console.print(&text);
    Ok(DONE)
}

/// Payload of a segment, where the MSS was negotiated.
fn segment(facts: &Facts) -> Option<u32> {
    let shook = facts.path.as_ref()?.handshake.seen()?;
    let options = if shook.timestamps { 12 } else { 0 };
    shook.segment_bytes.checked_sub(options)
}

/// Reads and measures everything that was requested.
fn gather(args: &DoctorArgs, console: &mut Console) -> Result<Facts, Failure> {
    let stop = stop::on_signals();
    let to = match &args.to {
        Some(host) => Some(address(args, host, &|| stop.is_raised())?),
        None => None,
    };
    let asked = Asked {
        device: args.device.clone(),
        zone: to.and_then(host::address::zone_name),
        to: to.map(|to| to.ip()),
    };
    let mut facts = match &args.root {
        Some(root) => {
            doctor::gather(&Root::at(root), &asked, &|_| Nic::unread("not read below --root"))
        }
        None => doctor::gather(&Root::machine(), &asked, &doctor::this_nic),
    };
    if let (Some(name), Fact::Unread { not_readable }) = (&args.device, &facts.device) {
        return Err(Failure::usage(format!("cannot read device '{name}': {not_readable}")));
    }
    if args.rate.is_none() {
        // Before anything is sent or written.
        link_rate(&facts)?;
    }
    if let (Some(to), Some(host)) = (to, &args.to) {
        let mtu = facts.device.seen().and_then(|device| device.mtu.seen()).copied();
        let mut tell = |what: &str| console.live(&format!("Probing {host}: {what}"));
        let mut path = PathProbe {
            host,
            to,
            mtu: mtu.unwrap_or(USUAL_MTU),
            tell: &mut tell,
            stop: &|| stop.is_raised(),
        };
        facts.path = Some(doctor::path(&mut path).map_err(|error| match error {
            ProbeError::Interrupted => Failure::work("interrupted while probing the path"),
            error => probe_failure(error),
        })?);
    }
    if let Some(folder) = &args.disk {
        console.live(&format!("Writing to {} and reading it back", folder.display()));
        let measured = doctor::disk(folder, DISK_BYTES, DISK_TIME, &|| stop.is_raised());
        if stop.is_raised() {
            return Err(Failure::work("interrupted while measuring the disk; no file is left"));
        }
        let shown = folder.display();
        let refused = |error| {
            format!(
                "cannot measure the disk at {shown}: {error}; name a directory that you may write \
                 to"
            )
        };
        let measured = measured.map_err(|error| match error.kind() {
            std::io::ErrorKind::NotFound
            | std::io::ErrorKind::NotADirectory
            | std::io::ErrorKind::PermissionDenied => Failure::usage(refused(error)),
            _ => Failure::work(refused(error)),
        })?;
        facts.disk = Some(Fact::Seen(measured));
    }
    console.clear();
    Ok(facts)
}

fn link_rate(facts: &Facts) -> Result<BitRate, Failure> {
    doctor::link_rate(facts).ok_or_else(|| {
        let why = facts.device.seen().map_or_else(
            || facts.device.why_not().to_owned(),
            |device| format!("{}: {}", device.name, device.speed_mbps.why_not()),
        );
        Failure::usage(format!("the link rate is unknown ({why}): give --rate"))
    })
}

fn address(args: &DoctorArgs, host: &str, stop: &dyn Fn() -> bool) -> Result<SocketAddr, Failure> {
    let family = probe::Family::from_flags(args.ipv4, args.ipv6);
    probe::resolve(host, args.port, family, None, stop).map_err(probe_failure)
}

fn json(document: &impl Serialize) -> Result<String, Failure> {
    console::json(document)
}
