//! Saved measurements, recordings, captures and results of other tools, explained.
//!
//! ```
//! use longhaul::StopFlag;
//! use longhaul::explain::{self, ExplainDocument, ExplainRequest};
//!
//! # let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../cli/tests/corpus/");
//! # let path = folder.to_owned() + "loss-middle.pcap.gz";
//! let document = explain::run(&ExplainRequest::new(path), &mut |_| (), &StopFlag::new())?;
//! let ExplainDocument::Transfers(transfers) = document else { panic!("it is a capture") };
//! println!("{}: {}", transfers[0].name, transfers[0].finding.sentence);
//! # assert!(transfers[0].finding.limit.is_some());
//! # Ok::<(), longhaul::Problem>(())
//! ```

pub(crate) mod capture;
pub(crate) mod recording;
mod tool_result;

pub use capture::is_capture;
pub use recording::{ExplainedConnection, ExplainedRecording};

use crate::pcap::{OnRead, ReadEvent, ReadProgress};
use crate::{Fault, Field, Problem, StopFlag};
use record::{Finding, Measurement};
use report::html::PageRun;
use serde::{Deserialize, Serialize};
use std::ops::ControlFlow;
use std::path::PathBuf;

/// Transfers of a file that are explained.
pub const MAX_TRANSFERS: usize = 5;

/// A file to explain.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ExplainRequest {
    /// A saved measurement, a recording, a capture, or the result of another tool. It may be read
    /// twice.
    pub file: PathBuf,
    /// One connection of a file with several: its number in the document, from 1, its id, or an
    /// end as `HOST:PORT`; of a capture, the number of the TCP stream.
    pub connection: Option<String>,
}

impl ExplainRequest {
    /// The whole of a file.
    pub fn new(file: impl Into<PathBuf>) -> Self {
        ExplainRequest { file: file.into(), connection: None }
    }

    /// Checks the request before the file is opened.
    ///
    /// # Errors
    /// The invalid field, and the values that it accepts.
    pub fn check(&self) -> Result<(), Problem> {
        if self.file.as_os_str().is_empty() {
            return Err(Problem::field(Field::Files, "no file to explain", ""));
        }
        Ok(())
    }
}

/// Events of a run.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum ExplainEvent {
    /// A capture is read: after two seconds, at most five times a second.
    Progress(ReadProgress),
}

/// The contents of a file.
#[derive(Debug, Clone)]
pub enum Explained {
    /// A saved measurement, or the connection of a recording that was selected.
    Measurement(Box<Measurement>),
    /// The connections of a recording.
    Recording(ExplainedRecording),
    /// Transfers of a capture or of another tool's result.
    Transfers(Transfers),
}

/// Transfers of a file.
#[derive(Debug, Clone)]
pub struct Transfers {
    /// True for those of a capture.
    pub is_capture: bool,
    /// At most [`MAX_TRANSFERS`], the largest or first ones; or the selected one.
    pub transfers: Vec<Transfer>,
    /// The number that the file has; of a capture, those that are explained.
    pub count: usize,
    /// Remarks on the file, as sentences.
    pub notes: Vec<String>,
    /// The test that the first one belongs to, in sentences.
    pub test: Vec<String>,
}

/// A transfer of a file.
#[derive(Debug, Clone)]
pub struct Transfer {
    /// Its name in the file: `stream 3`, `download`; not to be trusted.
    pub name: String,
    /// The measurement.
    pub measurement: Measurement,
}

/// The result.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Debug, Clone, Serialize)]
#[serde(untagged)]
pub enum ExplainDocument {
    /// Of a recording.
    Recording(ExplainedRecording),
    /// Of any other file.
    Transfers(Vec<ExplainedTransfer>),
}

/// A transfer, and its limit.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Debug, Clone, Serialize)]
pub struct ExplainedTransfer {
    /// Its name in the file; empty where there is one transfer.
    pub name: String,
    /// Its limit.
    pub finding: Finding,
    /// The measurement, with remarks in its notes.
    pub measurement: Measurement,
}

impl ExplainedTransfer {
    pub(crate) fn new(Transfer { name, measurement }: Transfer) -> Self {
        ExplainedTransfer { name, finding: diagnose::explain(&measurement), measurement }
    }
}

/// A text to explain.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PastedResultRequest {
    /// A saved measurement, or the result of another tool.
    pub text: String,
}

/// Explains a text.
///
/// # Errors
/// A text in none of these formats.
pub fn pasted(request: &PastedResultRequest) -> Result<Vec<ExplainedTransfer>, Problem> {
    let text = request.text.as_bytes();
    let transfers = if tool_result::has_schema(&request.text) {
        let name = std::path::Path::new("the text");
        let measurement = store::parse(name, text).map_err(unreadable)?;
        vec![Transfer { name: String::new(), measurement }]
    } else {
        tool_result::explain_bytes(text, "the text", None)?.transfers
    };
    Ok(transfers.into_iter().map(ExplainedTransfer::new).collect())
}

/// Explains a file.
///
/// # Errors
/// A file that cannot be read or has none of these formats; a connection that it does not have.
pub fn run(
    request: &ExplainRequest,
    on_event: &mut dyn FnMut(ExplainEvent),
    stop: &StopFlag,
) -> Result<ExplainDocument, Problem> {
    let mut on_read = |event: ReadEvent<'_>| {
        if let ReadEvent::Progress(progress) = event {
            on_event(ExplainEvent::Progress(progress.clone()));
        }
        ControlFlow::Continue(())
    };
    Ok(match explain(request, &mut on_read, stop)? {
        Explained::Recording(recording) => ExplainDocument::Recording(recording),
        Explained::Measurement(measurement) => {
            let transfer = Transfer { name: String::new(), measurement: *measurement };
            ExplainDocument::Transfers(vec![ExplainedTransfer::new(transfer)])
        }
        Explained::Transfers(mut found) => {
            for transfer in &mut found.transfers {
                transfer.measurement.notes.extend(found.notes.iter().cloned());
            }
            let transfers = found.transfers.into_iter().map(ExplainedTransfer::new);
            ExplainDocument::Transfers(transfers.collect())
        }
    })
}

/// Reads a file, whatever it is of these. Shows progress of captures.
///
/// # Errors
/// As [`run`].
pub fn explain(
    request: &ExplainRequest,
    on_read: OnRead<'_>,
    stop: &StopFlag,
) -> Result<Explained, Problem> {
    request.check()?;
    let path = &request.file;
    let which = request.connection.as_deref();
    if store::is_recording(path) {
        return recording::explain(path, which);
    }
    if is_capture(path) {
        return capture::explain(path, which, on_read, stop).map(Explained::Transfers);
    }
    if tool_result::is_candidate(path) {
        return tool_result::explain(path, which).map(Explained::Transfers);
    }
    let measurement = store::load(path).map_err(unreadable)?;
    if which.is_some() {
        return Err(Problem::field(
            Field::Connection,
            "the file is a measurement, which has only one transfer",
            "only for a recording, a capture or the result of another tool",
        ));
    }
    Ok(Explained::Measurement(Box::new(measurement)))
}

fn unreadable(error: impl std::fmt::Display) -> Problem {
    Problem::new(Fault::Input, error)
}
/// A transfer on a page, with the window that limits it.
#[must_use]
pub fn page_run<'a>(
    label: &'a str,
    measurement: &'a Measurement,
    finding: &'a Finding,
) -> PageRun<'a> {
    let window = diagnose::window_in_flight(measurement, finding);
    PageRun { label, measurement, finding, window }
}
