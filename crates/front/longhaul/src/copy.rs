//! Files copied to or from another host, verified and resumable.
//!
//! ```no_run
//! use longhaul::{StopFlag, copy::{self, CopyEnd, CopyRequest}};
//!
//! let from = CopyEnd::Local("data.tar".into());
//! let to = CopyEnd::Remote { host: "192.0.2.1".to_owned(), path: "backup/".into() };
//! let document = copy::run(&CopyRequest::new(vec![from], to), &mut |_| {}, &StopFlag::new())?;
//! println!("{} entries, limited by {:?}", document.entries, document.limited_by);
//! # Ok::<(), longhaul::Problem>(())
//! ```

pub use ::copy::{Choice, Figures, Notice, PathMtu, Transport};

use crate::{Fault, Field, Problem, StopFlag};
use ::copy::{CopyError, CopyPlan, End, MAX_TARGET, MIN_TARGET, Progress, Remote, Summary};
use control::Algorithm;
use serde::{Deserialize, Serialize};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;
use units::BitRate;

/// The TCP port of servers for copies.
pub const PORT: u16 = 5203;

/// The version of [`CopyDocument`] in JSON.
pub const COPY_SCHEMA: &str = "longhaul.copy/1";

/// Maximum parallel TCP connections.
const MAX_STREAMS: u32 = 64;

/// The interval between two events of progress.
const POLL_INTERVAL: Duration = Duration::from_millis(20);

/// A copy is said to be limited by what held it up for this share of the time.
const LIMITING: f64 = 0.25;

/// One end of a copy.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum CopyEnd {
    /// A path of this host.
    Local(PathBuf),
    /// A path of another.
    Remote {
        /// `HOST` or `USER@HOST`.
        host: String,
        /// Relative to the home directory, or to the server's root.
        path: PathBuf,
    },
}

/// The files to copy, and the transport.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct CopyRequest {
    /// Files and directories: all local, or all of one host.
    pub sources: Vec<CopyEnd>,
    /// A directory, or the copy's name: local if they are not, and the other way round.
    pub destination: CopyEnd,
    /// The token of a server that runs there; without one the far end is started over ssh.
    pub token: Option<String>,
    /// The server's port.
    pub port: u16,
    /// The ssh command with its options.
    pub ssh: Vec<String>,
    /// The program to start over ssh.
    pub far_program: String,
    /// The transport.
    pub transport: Choice,
    /// Parallel TCP connections.
    pub streams: u32,
    /// Congestion control of UDT: bbr, cubic, reno.
    pub congestion: String,
    /// The maximum rate of file data.
    pub limit: Option<BitRate>,
    /// The rate that UDT keeps despite losses, instead of congestion control.
    pub target: Option<BitRate>,
}

impl Default for CopyRequest {
    /// Over ssh, UDT with BBR. Both ends are missing.
    fn default() -> Self {
        CopyRequest {
            sources: Vec::new(),
            destination: CopyEnd::Local(PathBuf::new()),
            token: None,
            port: PORT,
            ssh: vec!["ssh".to_owned()],
            far_program: "longhaul".to_owned(),
            transport: Choice::Auto,
            streams: 8,
            congestion: "bbr".to_owned(),
            limit: None,
            target: None,
        }
    }
}

impl CopyRequest {
    /// A copy over ssh.
    #[must_use]
    pub fn new(sources: Vec<CopyEnd>, destination: CopyEnd) -> Self {
        CopyRequest { sources, destination, ..CopyRequest::default() }
    }

    /// Checks the fields.
    ///
    /// # Errors
    /// The invalid field, and the values that it accepts.
    pub fn check(&self) -> Result<(), Problem> {
        let wrong = |field, message: String, accepted: String| {
            Err(Problem::field(field, message, accepted))
        };
        if self.sources.is_empty() {
            return wrong(Field::Sources, "nothing to copy".to_owned(), String::new());
        }
        for end in self.sources.iter().chain([&self.destination]) {
            end.check()?;
        }
        if !(1..=MAX_STREAMS).contains(&self.streams) {
            let message = format!("{} streams are out of range", self.streams);
            return wrong(Field::Streams, message, format!("1 to {MAX_STREAMS}"));
        }
        if Algorithm::for_native(&self.congestion).is_none() {
            let message = format!("'{}' is not a congestion control of UDT", self.congestion);
            return wrong(Field::Congestion, message, "bbr, cubic or reno".to_owned());
        }
        if self.target.is_some() && self.limit.is_some() {
            let message = "a fixed rate is itself a limit".to_owned();
            return wrong(Field::Target, message, "or a limit".to_owned());
        }
        match self.target {
            Some(rate) if !(MIN_TARGET..=MAX_TARGET).contains(&rate) => {
                let accepted = format!("a rate from {MIN_TARGET} to {MAX_TARGET}");
                wrong(Field::Target, format!("{rate} cannot be kept"), accepted)
            }
            _ => Ok(()),
        }
    }

    fn plan(&self) -> CopyPlan {
        let congestion = Algorithm::for_native(&self.congestion).unwrap_or(Algorithm::Bbr3);
        CopyPlan {
            sources: self.sources.iter().map(CopyEnd::bytes).collect(),
            destination: self.destination.bytes(),
            token: self.token.clone(),
            port: self.port,
            ssh: self.ssh.clone(),
            far_program: self.far_program.clone(),
            transport: self.transport,
            streams: self.streams,
            algorithm: self.target.map_or(congestion, Algorithm::FixedRate),
            limit: self.limit,
        }
    }
}

impl CopyEnd {
    fn check(&self) -> Result<(), Problem> {
        match self {
            CopyEnd::Local(path) if path.as_os_str().is_empty() => Err(Problem::new(
                Fault::Request,
                "a path is empty; use . for the current directory",
            )),
            CopyEnd::Remote { host, .. } => remote::check_host(host)
                .map_err(|error| Problem::new(Fault::Request, format!("{host}: {error}"))),
            CopyEnd::Local(_) => Ok(()),
        }
    }

    fn bytes(&self) -> End {
        let bytes = |path: &Path| path.as_os_str().as_bytes().to_vec();
        match self {
            CopyEnd::Local(path) => End::Local(bytes(path)),
            CopyEnd::Remote { host, path } => {
                End::Remote(Remote { host: host.clone(), path: bytes(path) })
            }
        }
    }
}

/// Events of a run.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum CopyEvent {
    /// The transport of the copy, and the reason.
    Notice(Notice),
    /// The progress so far, 50 times a second.
    Progress(Figures),
    /// An entry that was not copied, with the reason, at the end: the first 100.
    NotCopied(String),
}

/// The result of a copy.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct CopyDocument {
    /// [`COPY_SCHEMA`].
    pub schema: &'static str,
    /// Its transport at the end.
    pub transport: Transport,
    /// Seconds from the request to the end.
    pub elapsed_s: f64,
    /// Mean rate of the file data that the network carried.
    pub rate_bps: u64,
    /// The limit of the copy for most of the time, if that is known: `network`, `source-disk`,
    /// `destination-disk`.
    pub limited_by: Option<&'static str>,
    /// Share of the time in which the sender waited for the network, 0 to 1; only where this end
    /// sends.
    pub network_limited: Option<f64>,
    /// Share in which the network waited for the sender's disk.
    pub source_disk_limited: f64,
    /// Share in which the network waited for the receiver's disk.
    pub destination_disk_limited: f64,
    /// Times that a lost connection was replaced.
    pub resumed: u32,
    /// Files, directories and links that were stored.
    pub entries: u64,
    /// Entries that failed.
    pub failed: u64,
    /// Bytes of file data that the network carried.
    pub bytes: u64,
    /// Bytes that were there already and verified, and holes.
    pub kept_bytes: u64,
    /// Entries that failed, with the reason: the first 100.
    pub problems: Vec<String>,
}

impl From<Summary> for CopyDocument {
    fn from(summary: Summary) -> Self {
        let figures = &summary.figures;
        let bits = figures.bytes as f64 * 8.0;
        CopyDocument {
            schema: COPY_SCHEMA,
            transport: summary.transport,
            elapsed_s: summary.seconds,
            rate_bps: (bits / summary.seconds.max(1e-9)) as u64,
            limited_by: limited_by(&summary),
            network_limited: summary.network_limited,
            source_disk_limited: summary.source_limited,
            destination_disk_limited: summary.destination_limited,
            resumed: summary.resumed,
            entries: figures.entries,
            failed: figures.problems,
            bytes: figures.bytes,
            kept_bytes: figures.kept_bytes,
            problems: summary.problems,
        }
    }
}

/// The limit of the copy for most of the time, if that is known.
fn limited_by(summary: &Summary) -> Option<&'static str> {
    let shares = [
        (summary.destination_limited, "destination-disk"),
        (summary.source_limited, "source-disk"),
        (summary.network_limited.unwrap_or(0.0), "network"),
    ];
    let most = shares.into_iter().filter(|(share, _)| *share >= LIMITING);
    most.max_by(|a, b| a.0.total_cmp(&b.0)).map(|(_, name)| name)
}

/// Copies, and continues where a connection fails.
///
/// # Errors
/// An invalid field, a far end that cannot be reached or refuses, an interruption: the same
/// request continues where it stopped.
pub fn run(
    request: &CopyRequest,
    on_event: &mut dyn FnMut(CopyEvent),
    stop: &StopFlag,
) -> Result<CopyDocument, Problem> {
    request.check()?;
    let (plan, progress) = (&request.plan(), &Progress::default());
    let result = thread::scope(|scope| {
        let (report, notices) = mpsc::channel();
        let copied = scope.spawn(move || {
            ::copy::copy(plan, progress, stop, &|notice| {
                let _ = report.send(notice);
            })
        });
        while !copied.is_finished() {
            thread::sleep(POLL_INTERVAL);
            notices.try_iter().for_each(|notice| on_event(CopyEvent::Notice(notice)));
            on_event(CopyEvent::Progress(progress.figures()));
        }
        copied.join().unwrap_or_else(|_| Err(CopyError::Local("the copy's thread failed".into())))
    });
    for problem in progress.problems() {
        on_event(CopyEvent::NotCopied(problem));
    }
    result.map(CopyDocument::from).map_err(|error| {
        let fault = match error {
            CopyError::Local(_) => Fault::Request,
            CopyError::Interrupted => Fault::Interrupted,
            _ => Fault::Peer,
        };
        Problem::new(fault, error)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request() -> CopyRequest {
        let to = CopyEnd::Remote { host: "user@host".to_owned(), path: PathBuf::new() };
        CopyRequest::new(vec![CopyEnd::Local("a".into())], to)
    }

    #[test]
    fn wrong_fields_are_named() {
        assert_eq!(request().check(), Ok(()));
        let rate = |text: &str| Some(text.parse().unwrap());
        for (request, field) in [
            (CopyRequest { sources: Vec::new(), ..request() }, Field::Sources),
            (CopyRequest { streams: 0, ..request() }, Field::Streams),
            (CopyRequest { streams: 65, ..request() }, Field::Streams),
            (CopyRequest { congestion: "vegas".to_owned(), ..request() }, Field::Congestion),
            (CopyRequest { target: rate("1bit"), ..request() }, Field::Target),
            (
                CopyRequest { target: rate("1gbit"), limit: rate("1gbit"), ..request() },
                Field::Target,
            ),
        ] {
            let problem = request.check().unwrap_err();
            assert_eq!(problem.remedy.unwrap().field, field, "{request:?}");
        }
        for end in [
            CopyEnd::Local(PathBuf::new()),
            CopyEnd::Remote { host: "-oProxyCommand=x".to_owned(), path: PathBuf::new() },
        ] {
            let request = CopyRequest { destination: end, ..request() };
            assert_eq!(request.check().unwrap_err().fault, Fault::Request);
        }
    }

    #[test]
    fn both_ends_here_are_refused_before_anything_is_started() {
        let local = || CopyEnd::Local("a".into());
        let request = CopyRequest::new(vec![local()], local());
        let mut events = Vec::new();
        let problem = run(&request, &mut |event| events.push(event), &StopFlag::new()).unwrap_err();
        assert_eq!(problem.fault, Fault::Request, "{problem}");
        assert!(events.iter().all(|event| matches!(event, CopyEvent::Progress(_))), "{events:?}");
    }

    #[test]
    fn what_held_a_copy_up_most_is_its_limit() {
        let summary = |network, source, destination| Summary {
            transport: Transport::Tcp,
            seconds: 2.0,
            network_limited: network,
            source_limited: source,
            destination_limited: destination,
            resumed: 0,
            figures: Figures { bytes: 1_000_000, ..Figures::default() },
            problems: Vec::new(),
        };
        for (summary, limit) in [
            (summary(Some(0.9), 0.1, 0.0), Some("network")),
            (summary(Some(0.3), 0.6, 0.1), Some("source-disk")),
            (summary(None, 0.0, 0.25), Some("destination-disk")),
            (summary(Some(0.2), 0.2, 0.2), None),
        ] {
            let document = CopyDocument::from(summary);
            assert_eq!((document.limited_by, document.rate_bps), (limit, 4_000_000));
        }
    }

    #[test]
    fn a_request_survives_json() {
        let text = serde_json::to_string(&request()).unwrap();
        assert_eq!(serde_json::from_str::<CopyRequest>(&text).unwrap(), request());
    }
}
