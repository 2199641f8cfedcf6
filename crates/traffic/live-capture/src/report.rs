//! The result of a capture: its document, and what went wrong.

use crate::{CaptureConfig, CaptureError, Ending, Totals};
use problem::{Fault, Problem};
use record::CaptureReport;

/// The document of a capture.
#[must_use]
pub fn report(config: &CaptureConfig, totals: &Totals, ending: &Ending) -> CaptureReport {
    CaptureReport {
        interface: config.interface.clone(),
        filter: config.filter.clone(),
        snaplen_bytes: config.snaplen,
        files: totals.files.iter().map(|path| path.display().to_string()).collect(),
        packets: totals.packets,
        wire_bytes: totals.bytes,
        accepted_packets: totals.accepted,
        dropped_packets: totals.dropped,
        hardware_timestamps: totals.hardware_timestamps,
        seconds: totals.elapsed.as_secs_f64(),
        ending: match ending {
            Ending::Limit => "limit",
            Ending::Stopped => "interrupted",
            Ending::ReaderGone => "reader-closed",
            Ending::Removed => "interface-removed",
            Ending::Write(_) => "write-failed",
            Ending::Read(_) => "read-failed",
        }
        .to_owned(),
    }
}

impl Ending {
    /// The error on `interface`, and what is kept; `None` if there was none.
    #[must_use]
    pub fn problem(&self, totals: &Totals, interface: &str) -> Option<Problem> {
        let kept = match totals.files.as_slice() {
            [] => "what was written before is complete".to_owned(),
            [.., last] => {
                format!("{} is complete, with {} packets", last.display(), totals.packets)
            }
        };
        let what = match self {
            Ending::Limit | Ending::Stopped | Ending::ReaderGone => return None,
            Ending::Removed => format!("{interface} was removed; {kept}"),
            Ending::Write(error) => format!("cannot continue writing: {error}; {kept}"),
            Ending::Read(error) => {
                format!("cannot continue capturing on {interface}: {error}; {kept}")
            }
        };
        Some(Problem::new(Fault::Internal, what))
    }
}

impl From<CaptureError> for Problem {
    fn from(error: CaptureError) -> Self {
        let fault = match &error {
            CaptureError::System { .. } => Fault::Internal,
            CaptureError::NotPermitted { .. } | CaptureError::NoHardwareTimestamps { .. } => {
                Fault::Host
            }
            _ => Fault::Request,
        };
        Problem::new(fault, error)
    }
}
