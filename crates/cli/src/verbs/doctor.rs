//! `longhaul doctor`: whether this host can carry a rate over a round trip.

use super::reach::failure as reach_failure;
use crate::console::Console;
use crate::failure::{DONE, FAILED, Failure, Outcome};
use crate::stop;
use clap::{Args, ValueEnum, value_parser};
use doctor::{Asked, Course, Fact, Facts, Nic, Root, System, Target};
use host::{clock, identity};
use reach::ReachError;
use record::{DoctorReport, Verdict};
use report::terminal;
use serde::Serialize;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;
use units::{BitRate, ByteCount, Rtt};

/// The most that is written to a disk, and for how long.
const DISK_BYTES: ByteCount = ByteCount::from_bytes(256 << 20);
const DISK_TIME: Duration = Duration::from_secs(3);

/// Where a search for the path's MTU begins if the device's is not known.
const USUAL_MTU: u32 = 1_500;

/// Hold this host against a target: pass, warn, fail, each with why and the remedy
///
/// Looks at the kernel's settings and version, the network device, processors,
/// memory, with --to at the path, with --disk at a disk. Changes nothing, needs
/// no privileges; what cannot be looked at is said and left open. Sends a few
/// dozen packets to the host of --to, and nothing without it.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct DoctorArgs {
    /// Rate to carry, of all streams together: 10gbit; else the link's
    #[arg(long)]
    rate: Option<BitRate>,
    /// Round trip to carry it over: 200ms; else the one measured to --to
    #[arg(long, required_unless_present = "to")]
    rtt: Option<Rtt>,
    /// The far end: its round trip, MTU and TCP options are asked for
    #[arg(long, value_name = "HOST")]
    to: Option<String>,
    /// A TCP port that answers there; longhaul's and iperf3's servers do at 5201
    #[arg(long, value_name = "PORT", default_value_t = 5201, requires = "to")]
    #[arg(value_parser = value_parser!(u16).range(1..))]
    port: u16,
    /// Only IPv4
    #[arg(short = '4', long = "ipv4", conflicts_with = "ipv6", requires = "to")]
    ipv4: bool,
    /// Only IPv6
    #[arg(short = '6', long = "ipv6", requires = "to")]
    ipv6: bool,
    /// Parallel connections that share the rate
    #[arg(long, short = 'P', value_name = "N", default_value_t = 1)]
    #[arg(value_parser = value_parser!(u32).range(1..=65_535))]
    streams: u32,
    /// Also write and read a file of up to 256 MiB there; it never has a name
    #[arg(long, value_name = "DIR")]
    disk: Option<PathBuf>,
    /// The network device, where the route does not tell it
    #[arg(long, value_name = "NAME")]
    device: Option<String>,
    /// Print commands for another system instead; needs --rate and --rtt
    #[arg(long = "for", value_enum, value_name = "SYSTEM", requires = "rate", requires = "rtt")]
    #[arg(conflicts_with_all = ["to", "disk", "device"])]
    system: Option<Kind>,
    /// Print JSON instead, with every fact seen
    #[arg(long, short = 'J')]
    json: bool,
    /// A folder that stands for / (tests)
    #[arg(long, hide = true, conflicts_with = "system")]
    root: Option<PathBuf>,
}

/// A system that longhaul does not run on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Kind {
    /// Apple's
    Macos,
    /// Microsoft's
    Windows,
}

const EXAMPLES: &str = "\
Examples:
  longhaul doctor --rate 10gbit --rtt 200ms      whether this host can carry it
  longhaul doctor --to HOST                      at the link's rate, over the path as it is
  longhaul doctor --to HOST --rate 1gbit --disk /data
  longhaul doctor --rate 2.5gbit --rtt 163ms -P 4 --json | jq '.checks[] | select(.verdict==\"fail\")'
  longhaul doctor --for macos --rate 1gbit --rtt 100ms

Exit codes: 0 no check failed (some may warn or be open), 1 at least one failed or the host of
--to cannot be reached, 2 wrong usage.";

/// What `--json` prints.
#[derive(Serialize)]
struct Document<'a> {
    #[serde(flatten)]
    report: &'a DoctorReport,
    facts: &'a Facts,
}

pub(crate) fn run(args: &DoctorArgs, console: &mut Console) -> Outcome {
    let asked = "asked";
    if args.rtt == Some(Rtt::ZERO) {
        return Err(Failure::usage(
            "a round trip of zero needs no window; measure it with longhaul ping",
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
    let facts = look(args, console)?;
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
        terminal::doctor(&report, &console.out)
    };
    console.print(&text);
    Ok(if report.verdict == Verdict::Fail { FAILED } else { DONE })
}

/// Payload of a segment, where a handshake told how long segments are.
fn segment(facts: &Facts) -> Option<u32> {
    let shook = facts.path.as_ref()?.handshake.seen()?;
    let options = if shook.timestamps { 12 } else { 0 };
    shook.segment_bytes.checked_sub(options)
}

/// Everything that is asked for, read and measured.
fn look(args: &DoctorArgs, console: &mut Console) -> Result<Facts, Failure> {
    let stop = stop::on_signals();
    let to = match &args.to {
        Some(host) => Some(address(args, host, &|| stop.is_raised())?),
        None => None,
    };
    let asked = Asked { device: args.device.clone(), to: to.map(|to| to.ip()) };
    let mut facts = match &args.root {
        Some(root) => {
            doctor::gather(&Root::at(root), &asked, &|_| Nic::unread("the tree is a made-up one"))
        }
        None => doctor::gather(&Root::machine(), &asked, &doctor::this_nic),
    };
    if let (Some(name), Fact::Unread { not_readable }) = (&args.device, &facts.device) {
        return Err(Failure::usage(format!("cannot look at device '{name}': {not_readable}")));
    }
    if args.rate.is_none() {
        // Before anything is sent or written.
        link_rate(&facts)?;
    }
    if let (Some(to), Some(host)) = (to, &args.to) {
        let mtu = facts.device.seen().and_then(|device| device.mtu.seen()).copied();
        let mut tell = |what: &str| console.live(&format!("Asking {host}: {what}"));
        let mut course = Course {
            host,
            to,
            mtu: mtu.unwrap_or(USUAL_MTU),
            tell: &mut tell,
            stop: &|| stop.is_raised(),
        };
        facts.path = Some(doctor::path(&mut course).map_err(|error| match error {
            ReachError::Interrupted => Failure::work("interrupted while the path was looked at"),
            error => reach_failure(error),
        })?);
    }
    if let Some(folder) = &args.disk {
        console.live(&format!("Writing to {} and reading it back", folder.display()));
        let measured = doctor::disk(folder, DISK_BYTES, DISK_TIME, &|| stop.is_raised());
        if stop.is_raised() {
            return Err(Failure::work("interrupted while the disk was measured; no file is left"));
        }
        let shown = folder.display();
        let refused = |error| {
            format!(
                "cannot measure the disk at {shown}: {error}; name a folder \
                                       that you may write to"
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
        Failure::usage(format!("the link's rate is not known ({why}): give --rate"))
    })
}

fn address(args: &DoctorArgs, host: &str, stop: &dyn Fn() -> bool) -> Result<SocketAddr, Failure> {
    let family = match (args.ipv4, args.ipv6) {
        (true, _) => reach::Family::V4,
        (_, true) => reach::Family::V6,
        _ => reach::Family::Any,
    };
    reach::resolve(host, args.port, family, None, stop).map_err(reach_failure)
}

fn json(document: &impl Serialize) -> Result<String, Failure> {
    Ok(serde_json::to_string_pretty(document).map_err(Failure::work)? + "\n")
}
