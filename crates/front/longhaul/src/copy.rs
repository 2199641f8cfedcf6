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

mod lines;

pub use ::copy::{Choice, CopyEnd, CopyRequest, Figures, Notice, PORT, PathMtu, Transport};
pub use lines::{ProgressLine, text};

use crate::{Fault, Problem, StopFlag};
use ::copy::{CopyError, Progress, Summary};
use serde::Serialize;
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

/// The version of [`CopyDocument`] in JSON.
pub const COPY_SCHEMA: &str = "longhaul.copy/1";

/// The interval between two events of progress.
const POLL_INTERVAL: Duration = Duration::from_millis(20);

/// A copy is said to be limited by what held it up for this share of the time.
const LIMITING: f64 = 0.25;

/// What happens meanwhile.
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
    let progress = &Progress::default();
    let result = thread::scope(|scope| {
        let (report, notices) = mpsc::channel();
        let copied = scope.spawn(move || {
            ::copy::copy(request, progress, stop, &|notice| {
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
}
