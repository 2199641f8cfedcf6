//! Packets and bytes per interval, of all packets and of those that pass filters.

use super::document::VERSION;
use super::document::packets::{Io, IoCurve};
use super::io_bins::Bins;
use super::reading::{self, Capture, Dissected, Tables};
use super::{IoRequest, OnRead, packets};
use crate::{Problem, StopFlag};
use packet_fields::{Filter, Tracker};
use report::terminal::IoBin;
use std::ops::ControlFlow;
use std::path::Path;

/// Counts of a file.
pub struct CountedPackets {
    /// The file.
    pub capture: Capture,
    /// Each filter, `None` for all packets, with packets and bytes of each interval.
    pub curves: Vec<(Option<String>, Vec<IoBin>)>,
    /// The interval, in seconds.
    pub interval_s: f64,
    /// Time of the first packet, seconds since 1970.
    pub start_unix_s: f64,
    /// Remarks, as sentences.
    pub notes: Vec<String>,
}

impl CountedPackets {
    /// As a document.
    #[must_use]
    pub fn document(&self) -> Io {
        let curves = self.curves.iter().map(|(filter, bins)| IoCurve {
            bytes: bins.iter().map(|bin| bin.bytes).collect(),
            filter: filter.clone(),
            packets: bins.iter().map(|bin| bin.packets).collect(),
        });
        Io {
            curves: curves.collect(),
            file: report::untrusted::clean(&self.capture.name),
            interval_s: self.interval_s,
            notes: self.notes.clone(),
            schema: "longhaul.pcap-io/1",
            start_unix_s: self.start_unix_s,
            version: VERSION,
        }
    }
}

/// Reads a file, and counts packets and bytes per interval.
///
/// # Errors
/// A wrong filter; the file cannot be opened, or is no capture.
pub fn io(
    path: &Path,
    request: &IoRequest,
    on_read: OnRead<'_>,
    stop: &StopFlag,
) -> Result<CountedPackets, Problem> {
    request.check()?;
    let filters: Vec<Option<Filter>> = if request.filters.is_empty() {
        vec![None]
    } else {
        request.filters.iter().map(|text| packets::compile(text)).collect::<Result<_, _>>()?
    };
    let mut bins = Bins::new(filters.len(), request.interval);
    let tables = Tables::of_reading();
    let mut tracker = Tracker::within(request.rules, &tables.budget);
    let mut capture = reading::read_packets(path, &tables, stop, on_read, |found, _| {
        let Dissected { packet, layers, segment, stream, conversations, .. } = *found;
        let view = tracker.add(packet, layers, segment, stream, conversations);
        let bin = bins.at(packet.time_ns);
        for (curve, filter) in filters.iter().enumerate() {
            if filter.as_ref().is_none_or(|filter| filter.matches(&view)) {
                bins.count(curve, bin, packet.original_len);
            }
        }
        ControlFlow::Continue(())
    })?;
    capture.not_analysed = reading::not_analysed(tracker.streams(), &capture.conversations);
    let mut notes = capture.notes();
    notes.extend(bins.finish());
    let (interval_s, start_unix_s) = (bins.interval_s(), bins.start_ns() as f64 / 1e9);
    let labels = filters.iter().map(|filter| filter.as_ref().map(Filter::to_string));
    let curves = labels.zip(bins.curves().map(<[IoBin]>::to_vec)).collect();
    Ok(CountedPackets { capture, curves, interval_s, start_unix_s, notes })
}
