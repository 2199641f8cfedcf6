//! A host checked against a rate at an RTT; the same checks as commands for other hosts; the
//! counters that other tools print there.
//!
//! ```no_run
//! use longhaul::{StopFlag, doctor::{self, DoctorRequest}};
//!
//! let request = DoctorRequest::new("192.0.2.1");
//! let document = doctor::run(&request, &mut |event| eprintln!("{event:?}"), &StopFlag::new())?;
//! println!("{:?}, {} checks failed", document.report.verdict, document.report.fail);
//! # Ok::<(), longhaul::Problem>(())
//! ```

mod disk;
mod gather;
mod path;

pub use ::doctor::{DoctorCommands, DoctorDocument, DoctorReport, PastedReport, System, is_sysctl};
pub(crate) use gather::default_devices;
pub use gather::{Asked, Root, gather, this_nic};
pub use path::{PathProbe, path};

use crate::{Fault, Field, Problem, StopFlag};
use ::doctor::{Fact, Facts, Nic, Target, link_rate};
use host::{address, clock, identity};
use probe::{Family, ProbeError};
use serde::{Deserialize, Serialize};
use std::io::ErrorKind;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;
use units::{BitRate, ByteCount, Rtt};

/// Limits of the disk measurement.
const DISK_BYTES: ByteCount = ByteCount::from_bytes(256 << 20);
const DISK_TIME: Duration = Duration::from_secs(3);

/// Start of the path MTU search where the device's MTU is unknown.
const USUAL_MTU: u32 = 1_500;

/// Maximum number of connections that share the rate.
const MAX_STREAMS: u32 = 65_535;

/// A target, and the parts of the host and path to examine.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct DoctorRequest {
    /// The rate of all streams; `None` for the link's.
    pub rate: Option<BitRate>,
    /// The RTT; `None` to measure that to the far end.
    pub rtt: Option<Rtt>,
    /// The far end: its RTT, path MTU and TCP options are measured, with a few dozen packets.
    pub to: Option<String>,
    /// An open TCP port there.
    pub port: u16,
    /// The IP version.
    pub family: Family,
    /// Parallel connections that share the rate.
    pub streams: u32,
    /// A directory whose disk is measured, with up to 256 MiB.
    pub disk: Option<PathBuf>,
    /// The network device; `None` for the one on the route.
    pub device: Option<String>,
    /// The directory used as `/`, where it is another host's.
    pub root: Option<PathBuf>,
}

impl Default for DoctorRequest {
    /// The link's rate over one stream. RTT and far end are missing.
    fn default() -> Self {
        DoctorRequest {
            rate: None,
            rtt: None,
            to: None,
            port: 5201,
            family: Family::Any,
            streams: 1,
            disk: None,
            device: None,
            root: None,
        }
    }
}

impl DoctorRequest {
    /// The link's rate at the RTT to a host, which is measured.
    #[must_use]
    pub fn new(to: &str) -> Self {
        DoctorRequest { to: Some(to.to_owned()), ..DoctorRequest::default() }
    }

    /// Checks the fields.
    ///
    /// # Errors
    /// The invalid field, and the values that it accepts.
    pub fn check(&self) -> Result<(), Problem> {
        if self.rtt.is_none() && self.to.is_none() {
            let accepted = "such as 100ms, or a far end, to which it is measured";
            return Err(Problem::field(Field::Rtt, "the RTT is missing", accepted));
        }
        check_target(self.rate, self.rtt, self.streams)?;
        if self.to.as_ref().is_some_and(String::is_empty) {
            return Err(Problem::field(Field::To, "no far end", "a name or an address"));
        }
        if self.port == 0 {
            return Err(Problem::field(Field::Port, "port 0 is not valid", "1 to 65535"));
        }
        Ok(())
    }
}

fn check_target(rate: Option<BitRate>, rtt: Option<Rtt>, streams: u32) -> Result<(), Problem> {
    if rate == Some(BitRate::ZERO) {
        let message = "a rate of zero makes no demands on a host";
        return Err(Problem::field(Field::Rate, message, "a rate such as 1gbit"));
    }
    if rtt == Some(Rtt::ZERO) {
        let message = "an RTT of zero needs no window";
        return Err(Problem::field(Field::Rtt, message, "the RTT that ping measures"));
    }
    if !(1..=MAX_STREAMS).contains(&streams) {
        let message = format!("{streams} streams are out of range");
        return Err(Problem::field(Field::Streams, message, format!("1 to {MAX_STREAMS}")));
    }
    Ok(())
}

/// The examination in progress.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum DoctorEvent {
    /// The path to the far end.
    Probing {
        /// The far end as requested.
        host: String,
        /// The probes: RTT, TCP handshake, path MTU.
        what: String,
    },
    /// The disk of this directory, which is written and read.
    MeasuringDisk(PathBuf),
}

/// Examines this host. Changes nothing and needs no privileges; a check that cannot be made
/// is reported as unknown.
///
/// # Errors
/// An invalid field, a device that does not exist, an unknown link rate, a far end without
/// address or route, a disk that cannot be written.
pub fn run(
    request: &DoctorRequest,
    on_event: &mut dyn FnMut(DoctorEvent),
    stop: &StopFlag,
) -> Result<DoctorDocument, Problem> {
    request.check()?;
    let facts = examine(request, on_event, stop)?;
    let mut target = target(request.rate.unwrap_or(BitRate::ZERO), request.rtt, request.streams);
    if request.rate.is_none() {
        target.rate = rate_of_link(&facts)?;
        target.rate_from = "the link's".to_owned();
    }
    if target.rtt.is_none() {
        target.rtt = facts.path.as_ref().and_then(|path| path.rtt_ns.seen()).copied();
        target.rtt_from = "measured".to_owned();
    }
    target.mss = segment(&facts);
    let report = ::doctor::report(&facts, &target, identity::hostname(), clock::unix_seconds());
    Ok(DoctorDocument { report, facts })
}

fn target(rate: BitRate, rtt: Option<Rtt>, streams: u32) -> Target {
    let asked = || "asked".to_owned();
    Target { rate, rate_from: asked(), rtt, rtt_from: asked(), streams, mss: None }
}

/// Payload of a segment, where the MSS was negotiated.
fn segment(facts: &Facts) -> Option<u32> {
    let shook = facts.path.as_ref()?.handshake.seen()?;
    let options = if shook.timestamps { 12 } else { 0 };
    shook.segment_bytes.checked_sub(options)
}

/// Reads and measures everything that was requested.
fn examine(
    request: &DoctorRequest,
    on_event: &mut dyn FnMut(DoctorEvent),
    stop: &StopFlag,
) -> Result<Facts, Problem> {
    let resolve = |host: &String| {
        probe::resolve(host, request.port, request.family, None, &|| stop.is_raised())
    };
    let to = request.to.as_ref().map(resolve).transpose()?;
    let asked = Asked {
        device: request.device.clone(),
        zone: to.and_then(address::zone_name),
        to: to.map(|to| to.ip()),
    };
    let mut facts = match &request.root {
        Some(root) => gather(&Root::at(root), &asked, &|_| {
            Nic::unread("not read below another root directory")
        }),
        None => gather(&Root::machine(), &asked, &this_nic),
    };
    if let (Some(name), Fact::Unread { not_readable }) = (&request.device, &facts.device) {
        let message = format!("cannot read device '{name}': {not_readable}");
        return Err(Problem::new(Fault::Request, message));
    }
    if request.rate.is_none() {
        // Before anything is sent or written.
        rate_of_link(&facts)?;
    }
    if let (Some(to), Some(host)) = (to, &request.to) {
        facts.path = Some(probe_path(host, to, &facts, on_event, stop)?);
    }
    if let Some(folder) = &request.disk {
        on_event(DoctorEvent::MeasuringDisk(folder.clone()));
        facts.disk = Some(Fact::Seen(measure_disk(folder, stop)?));
    }
    Ok(facts)
}

fn probe_path(
    host: &str,
    to: SocketAddr,
    facts: &Facts,
    on_event: &mut dyn FnMut(DoctorEvent),
    stop: &StopFlag,
) -> Result<::doctor::PathFacts, Problem> {
    let mtu = facts.device.seen().and_then(|device| device.mtu.seen()).copied();
    let mut tell = |what: &str| {
        on_event(DoctorEvent::Probing { host: host.to_owned(), what: what.to_owned() });
    };
    let mut probe = PathProbe {
        host,
        to,
        mtu: mtu.unwrap_or(USUAL_MTU),
        tell: &mut tell,
        stop: &|| stop.is_raised(),
    };
    path(&mut probe).map_err(|error| match error {
        ProbeError::Interrupted => {
            Problem::new(Fault::Interrupted, "interrupted while probing the path")
        }
        error => error.into(),
    })
}

fn measure_disk(folder: &Path, stop: &StopFlag) -> Result<::doctor::DiskFacts, Problem> {
    let measured = disk::disk(folder, DISK_BYTES, DISK_TIME, &|| stop.is_raised());
    if stop.is_raised() {
        let message = "interrupted while measuring the disk; no file is left";
        return Err(Problem::new(Fault::Interrupted, message));
    }
    measured.map_err(|error| {
        let fault = match error.kind() {
            ErrorKind::NotFound | ErrorKind::NotADirectory | ErrorKind::PermissionDenied => {
                Fault::Request
            }
            _ => Fault::Internal,
        };
        let shown = folder.display();
        let remedy = "give a directory that you may write to";
        Problem::new(fault, format!("cannot measure the disk at {shown}: {error}; {remedy}"))
    })
}

fn rate_of_link(facts: &Facts) -> Result<BitRate, Problem> {
    link_rate(facts).ok_or_else(|| {
        let why = facts.device.seen().map_or_else(
            || facts.device.why_not().to_owned(),
            |device| format!("{}: {}", device.name, device.speed_mbps.why_not()),
        );
        Problem::field(Field::Rate, format!("the link rate is unknown ({why})"), "")
    })
}

/// The checks of another host, as commands with the values that a target needs.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CommandsRequest {
    /// Its operating system.
    pub system: System,
    /// The rate of all streams.
    pub rate: BitRate,
    /// The RTT.
    pub rtt: Rtt,
    /// Parallel connections that share the rate.
    pub streams: u32,
}

impl CommandsRequest {
    /// A rate at an RTT over one stream.
    #[must_use]
    pub fn new(system: System, rate: BitRate, rtt: Rtt) -> Self {
        CommandsRequest { system, rate, rtt, streams: 1 }
    }

    /// Checks the fields.
    ///
    /// # Errors
    /// The invalid field, and the values that it accepts.
    pub fn check(&self) -> Result<(), Problem> {
        check_target(Some(self.rate), Some(self.rtt), self.streams)
    }
}

/// The commands. Nothing is run.
///
/// ```
/// use longhaul::doctor::{self, CommandsRequest, System};
///
/// let (rate, rtt) = ("1gbit".parse()?, "100ms".parse()?);
/// let commands = doctor::commands(&CommandsRequest::new(System::MacOs, rate, rtt))?;
/// assert!(commands.recipes.iter().any(|recipe| !recipe.apply.is_empty()));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
/// An invalid field.
pub fn commands(request: &CommandsRequest) -> Result<DoctorCommands, Problem> {
    request.check()?;
    let target = target(request.rate, Some(request.rtt), request.streams);
    Ok(::doctor::commands(request.system, &target))
}

/// The settings that `sysctl -a` printed on a host, and the target to check them against.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PastedSettingsRequest {
    /// The text; at most 100,000 lines of it are read.
    pub text: String,
    /// The rate of all streams.
    pub rate: BitRate,
    /// The RTT.
    pub rtt: Rtt,
    /// Parallel connections that share the rate.
    pub streams: u32,
}

/// Checks the settings of a text of sysctl(8).
///
/// ```
/// use longhaul::doctor::{self, PastedSettingsRequest};
///
/// let text = "net.ipv4.tcp_rmem = 4096 131072 6291456".to_owned();
/// let (rate, rtt) = ("1gbit".parse()?, "100ms".parse()?);
/// let report = doctor::pasted_settings(&PastedSettingsRequest { text, rate, rtt, streams: 1 })?;
/// assert!(report.fail > 0);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
/// An invalid field, a text without settings.
pub fn pasted_settings(request: &PastedSettingsRequest) -> Result<DoctorReport, Problem> {
    check_target(Some(request.rate), Some(request.rtt), request.streams)?;
    if !is_sysctl(&request.text) {
        let message = "the text has no settings of sysctl such as net.ipv4.tcp_rmem = …";
        return Err(Problem::new(Fault::Request, message));
    }
    let target = target(request.rate, Some(request.rtt), request.streams);
    Ok(::doctor::pasted_settings(&request.text, &target, clock::unix_seconds()))
}

/// The text that `netstat -s`, `netstat -st`, `nstat` or `ss -tin` printed.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PastedRequest {
    /// The text; at most 100,000 lines of it are read.
    pub text: String,
}

/// Explains the counters of a text.
///
/// ```
/// use longhaul::doctor::{self, PastedRequest};
///
/// let text = "Tcp:\n    1000 segments sent out\n    10 segments retransmitted\n".to_owned();
/// assert_eq!(doctor::pasted(&PastedRequest { text })?.format, "netstat of Linux");
/// # Ok::<(), longhaul::Problem>(())
/// ```
///
/// # Errors
/// A text of an unknown tool or system.
pub fn pasted(request: &PastedRequest) -> Result<PastedReport, Problem> {
    ::doctor::pasted(&request.text).map_err(|error| Problem::new(Fault::Request, error))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wrong(request: &DoctorRequest) -> Field {
        request.check().unwrap_err().remedy.unwrap().field
    }

    #[test]
    fn wrong_fields_are_named() {
        let good = DoctorRequest::new("192.0.2.1");
        assert_eq!(good.check(), Ok(()));
        assert_eq!(wrong(&DoctorRequest::default()), Field::Rtt);
        assert_eq!(wrong(&DoctorRequest { rtt: Some(Rtt::ZERO), ..good.clone() }), Field::Rtt);
        let rate = Some(BitRate::ZERO);
        assert_eq!(wrong(&DoctorRequest { rate, ..good.clone() }), Field::Rate);
        assert_eq!(wrong(&DoctorRequest { streams: 0, ..good.clone() }), Field::Streams);
        assert_eq!(wrong(&DoctorRequest { streams: 65_536, ..good.clone() }), Field::Streams);
        assert_eq!(wrong(&DoctorRequest { port: 0, ..good }), Field::Port);
        assert_eq!(wrong(&DoctorRequest::new("")), Field::To);
        let rate = BitRate::from_bps(1);
        let request = CommandsRequest::new(System::Linux, rate, Rtt::ZERO);
        assert_eq!(commands(&request).unwrap_err().remedy.unwrap().field, Field::Rtt);
    }

    #[test]
    fn nothing_is_examined_without_a_rate() {
        let root = tempfile::tempdir().unwrap();
        let request = DoctorRequest {
            rtt: Some(Rtt::from_micros(100_000)),
            disk: Some(root.path().to_owned()),
            root: Some(root.path().to_owned()),
            ..DoctorRequest::default()
        };
        let mut events = Vec::new();
        let problem = run(&request, &mut |event| events.push(event), &StopFlag::new()).unwrap_err();
        assert_eq!((problem.fault, problem.remedy.unwrap().field), (Fault::Request, Field::Rate));
        assert_eq!(events, []);
    }
}
