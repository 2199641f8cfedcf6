//! The running TCP connections of any program, and the limit of each.
//!
//! ```no_run
//! use longhaul::{StopFlag, watch::{self, WatchRequest}};
//!
//! let request = WatchRequest { count: Some(1), ..WatchRequest::default() };
//! let report = watch::run(&request, &mut |_| {}, &StopFlag::new())?;
//! for connection in &report.connections {
//!     println!("{} {:?}", connection.who.remote, connection.limit);
//! }
//! # Ok::<(), longhaul::Problem>(())
//! ```

pub use ::watch::{Sort, Watcher};

use crate::{Fault, Field, Problem, StopFlag};
use ::watch::{Prefix, Recorder, Selection, WatchError, Written};
use host::{clock, output_file};
use record::WatchReport;
use serde::{Deserialize, Serialize};
use std::fs::File;
use std::io::BufWriter;
use std::net::ToSocketAddrs;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::Duration;
use units::ByteCount;

/// The shortest poll interval: the kernel's timers have a resolution of 10 ms.
const MIN_INTERVAL: Duration = Duration::from_millis(100);

/// Maximum delay until an interruption is noticed.
const POLL_INTERVAL: Duration = Duration::from_millis(50);

/// The connections to watch, their order, and the poll interval.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct WatchRequest {
    /// Only connections of this process.
    pub pid: Option<u32>,
    /// Only connections to these hosts: names, addresses, prefixes such as 192.0.2.0/24.
    pub destinations: Vec<String>,
    /// Only these ports, local or remote.
    pub ports: Vec<u16>,
    /// Only connections that carry payload.
    pub busy: bool,
    /// The order.
    pub sort: Sort,
    /// Maximum number of connections in a report; `None` for all.
    pub top: Option<usize>,
    /// The poll interval, at least 100 ms.
    #[serde(with = "units::seconds")]
    pub interval: Duration,
    /// Number of reports; `None` until stopped.
    pub count: Option<u64>,
    /// The file that all samples are recorded in.
    pub record: Option<PathBuf>,
    /// Its maximum size.
    pub record_max: ByteCount,
}

impl Default for WatchRequest {
    /// All connections, every second, the highest rate first.
    fn default() -> Self {
        WatchRequest {
            pid: None,
            destinations: Vec::new(),
            ports: Vec::new(),
            busy: false,
            sort: Sort::Rate,
            top: None,
            interval: Duration::from_secs(1),
            count: None,
            record: None,
            record_max: ByteCount::from_bytes(1_000_000_000),
        }
    }
}

impl WatchRequest {
    /// Checks the fields.
    ///
    /// # Errors
    /// The invalid field, and the values that it accepts.
    pub fn check(&self) -> Result<(), Problem> {
        if self.interval < MIN_INTERVAL {
            let message = format!("an interval of {:?} is too short", self.interval);
            return Err(Problem::field(Field::Interval, message, "at least 100ms"));
        }
        if self.count == Some(0) {
            return Err(Problem::field(Field::Count, "no report was requested", "1 or more"));
        }
        if self.ports.contains(&0) {
            return Err(Problem::field(Field::Ports, "port 0 is not valid", "1 to 65535"));
        }
        // Neither can be a host name.
        let is_prefix = |text: &&String| text.contains('/') || text.is_empty();
        for text in self.destinations.iter().filter(is_prefix) {
            text.parse::<Prefix>().map_err(|error| Problem::new(Fault::Request, error))?;
        }
        Ok(())
    }
}

/// An address or a prefix, or all addresses of a name.
fn destinations(text: &str) -> Result<Vec<Prefix>, Problem> {
    if let Ok(prefix) = text.parse() {
        return Ok(vec![prefix]);
    }
    match (text, 0).to_socket_addrs() {
        Ok(found) => Ok(found.map(|address| Prefix::of(address.ip())).collect()),
        Err(error) => {
            let name: String = text.chars().filter(|c| !c.is_control()).take(60).collect();
            let message = format!("cannot resolve {name}: {error}");
            let accepted = "an address, a prefix or a host name";
            Err(Problem::field(Field::Destinations, message, accepted))
        }
    }
}

/// Events of a run.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum WatchEvent {
    /// A poll.
    Report(WatchReport),
    /// The recording reached its maximum size, and is complete up to this point.
    RecordingFull,
}

/// The result of a poll.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Polled {
    /// Everything was read, and recorded.
    Complete,
    /// Everything was read; the recording has ended, as it reached its maximum size.
    RecordingFull,
    /// The selected process has ended.
    ProcessEnded,
}

/// Connections that are polled one time after another.
pub struct WatchSession {
    /// The connections, whose selection and order may change between polls.
    pub watcher: Watcher,
    recording: Option<(PathBuf, Recorder<BufWriter<File>>)>,
}

impl WatchSession {
    /// Opens the kernel's interface and the recording.
    ///
    /// # Errors
    /// An invalid field, a name without address, a process that cannot be watched, a file
    /// that cannot be written.
    pub fn open(request: &WatchRequest) -> Result<Self, Problem> {
        request.check()?;
        let names = request.destinations.iter();
        let to = names.map(|text| destinations(text)).collect::<Result<Vec<_>, _>>()?.concat();
        let selection = Selection {
            pid: request.pid,
            to,
            ports: request.ports.clone(),
            busy: request.busy,
            text: String::new(),
        };
        let watcher = Watcher::open(selection, request.sort)
            .map_err(|error| Problem::new(Fault::Request, error))?;
        let start = |path: &PathBuf| {
            let recorder = output_file::create(path).and_then(|file| {
                Recorder::start(BufWriter::new(file), request.interval, request.record_max)
            });
            recorder.map(|it| (path.clone(), it)).map_err(|error| unwritable(path, &error))
        };
        let recording = request.record.as_ref().map(start).transpose()?;
        Ok(WatchSession { watcher, recording })
    }

    /// True while polls are recorded.
    #[must_use]
    pub const fn is_recording(&self) -> bool {
        self.recording.is_some()
    }

    /// Polls once, and records it.
    ///
    /// # Errors
    /// The kernel's interface failed, or the recording cannot be written.
    pub fn poll(&mut self) -> Result<Polled, Problem> {
        match self.watcher.poll() {
            Ok(()) => {}
            Err(WatchError::NoProcess(_)) => return Ok(Polled::ProcessEnded),
            Err(error) => return Err(Problem::new(Fault::Internal, error)),
        }
        let Some((path, recorder)) = &mut self.recording else { return Ok(Polled::Complete) };
        match recorder.write(&mut self.watcher).map_err(|error| unwritable(path, &error))? {
            Written::Complete => Ok(Polled::Complete),
            Written::LimitReached => {
                self.recording = None;
                Ok(Polled::RecordingFull)
            }
        }
    }
}

fn unwritable(path: &Path, error: &std::io::Error) -> Problem {
    let remedy = "choose a directory that is writable and has free space";
    Problem::new(Fault::Internal, format!("cannot write {}: {error}; {remedy}", path.display()))
}

/// Polls the connections, and returns the last report: after [`WatchRequest::count`] of them, at a
/// stop, or when the selected process has ended.
///
/// # Errors
/// As [`WatchSession::open`] and [`WatchSession::poll`]; a process that ended before the first
/// report.
pub fn run(
    request: &WatchRequest,
    on_event: &mut dyn FnMut(WatchEvent),
    stop: &StopFlag,
) -> Result<WatchReport, Problem> {
    let mut session = WatchSession::open(request)?;
    let ended = || Problem::new(Fault::Internal, "the process has ended");
    let top = request.top.unwrap_or(usize::MAX);
    let poll = |session: &mut WatchSession, on_event: &mut dyn FnMut(WatchEvent)| {
        let polled = session.poll()?;
        if polled == Polled::RecordingFull {
            on_event(WatchEvent::RecordingFull);
        }
        Ok::<bool, Problem>(polled != Polled::ProcessEnded)
    };
    if !poll(&mut session, on_event)? {
        return Err(ended());
    }
    let started = clock::now();
    let (mut due, mut last) = (request.interval, None);
    for _ in 0..request.count.unwrap_or(u64::MAX) {
        while let Some(left) = due.checked_sub(started.elapsed()).filter(|left| !left.is_zero()) {
            if stop.is_raised() {
                return Ok(last.unwrap_or_else(|| session.watcher.report(top)));
            }
            thread::sleep(left.min(POLL_INTERVAL));
        }
        // A late poll delays the next ones: no bursts.
        due = (due + request.interval).max(started.elapsed());
        if !poll(&mut session, on_event)? {
            return last.ok_or_else(ended);
        }
        let report = session.watcher.report(top);
        on_event(WatchEvent::Report(report.clone()));
        last = Some(report);
    }
    Ok(last.unwrap_or_else(|| session.watcher.report(top)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wrong_fields_are_named() {
        let good = WatchRequest::default();
        assert_eq!(good.check(), Ok(()));
        let short = Duration::from_millis(99);
        for (request, field) in [
            (WatchRequest { interval: short, ..good.clone() }, Field::Interval),
            (WatchRequest { count: Some(0), ..good.clone() }, Field::Count),
            (WatchRequest { ports: vec![443, 0], ..good.clone() }, Field::Ports),
        ] {
            assert_eq!(request.check().unwrap_err().remedy.unwrap().field, field, "{request:?}");
        }
        for text in ["10.0.0.0/33", "", "name/24"] {
            let request = WatchRequest { destinations: vec![text.to_owned()], ..good.clone() };
            assert_eq!(request.check().unwrap_err().fault, Fault::Request, "{text}");
        }
        let name = "no.such.host.invalid".to_owned();
        let request = WatchRequest { destinations: vec![name], ..good };
        let problem = run(&request, &mut |_| {}, &StopFlag::new()).unwrap_err();
        assert_eq!(problem.remedy.unwrap().field, Field::Destinations);
    }

    #[test]
    fn reports_are_counted_and_a_full_recording_is_said_once() {
        let folder = tempfile::tempdir().unwrap();
        let request = WatchRequest {
            interval: MIN_INTERVAL,
            count: Some(2),
            top: Some(0),
            record: Some(folder.path().join("recording")),
            ..WatchRequest::default()
        };
        let (mut reports, stop) = (0, StopFlag::new());
        let mut on_event = |event| reports += u32::from(matches!(event, WatchEvent::Report(_)));
        run(&request, &mut on_event, &stop).unwrap();
        assert_eq!(reports, 2);
        let text = std::fs::read_to_string(folder.path().join("recording")).unwrap();
        assert!(text.contains("longhaul.recording/"), "{text}");
    }
}
