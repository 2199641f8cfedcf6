//! The expert information on a capture, each kind once.

use super::document::packets::Expert;
use super::reading::{self, Capture, Dissected, Tables};
use super::{ExpertRequest, OnRead, packets};
use crate::{Problem, StopFlag};
use packet_fields::Tracker;
use packet_fields::expert::{self, KINDS};
use report::terminal::ExpertRow;
use std::ops::ControlFlow;
use std::path::Path;

/// Expert information on a file.
pub struct ExpertFound {
    /// The file.
    pub capture: Capture,
    /// The filter that packets passed.
    pub filter: Option<String>,
    /// Each kind once, the most severe first.
    pub rows: Vec<ExpertRow>,
}

impl ExpertFound {
    /// As a document.
    #[must_use]
    pub fn document(&self) -> Expert {
        Expert::new(&self.capture, self.filter.clone(), &self.rows)
    }
}

/// Reads a file, and counts what stands out.
///
/// # Errors
/// A wrong filter; the file cannot be opened, or is no capture.
pub fn expert(
    path: &Path,
    request: &ExpertRequest,
    on_read: OnRead<'_>,
    stop: &StopFlag,
) -> Result<ExpertFound, Problem> {
    let filter = packets::compile(&request.filter)?;
    let tables = Tables::of_reading();
    let mut tracker = Tracker::within(request.rules, &tables.budget);
    // Count of each kind, and the first packet.
    let mut counts = [(0_u64, 0_u64); KINDS.len()];
    let mut capture = reading::read_packets(path, &tables, stop, on_read, |found, _| {
        let Dissected { packet, layers, segment, stream, conversations, .. } = *found;
        let view = tracker.add(packet, layers, segment, stream, conversations);
        if filter.as_ref().is_none_or(|filter| filter.matches(&view)) {
            tracker.passed(packet.time_ns);
            expert::each(&view, |item| {
                if let Some((count, first)) = counts.get_mut(item.place) {
                    *first = if *count == 0 { packet.number } else { *first };
                    *count += 1;
                }
            });
        }
        ControlFlow::Continue(())
    })?;
    capture.not_analysed = reading::not_analysed(tracker.streams(), &capture.conversations);
    let rows = KINDS
        .into_iter()
        .zip(counts)
        .filter(|(kind, (count, _))| *count > 0 && kind.severity >= request.severity);
    let mut rows: Vec<ExpertRow> =
        rows.map(|(kind, (count, first))| ExpertRow { kind, count, first }).collect();
    rows.sort_by_key(|row| std::cmp::Reverse((row.kind.severity, row.count)));
    Ok(ExpertFound { capture, filter: filter.map(|filter| filter.to_string()), rows })
}
