//! Two captures of one transfer, aligned.

use super::document::merge::MergeDocument;
use super::reading::{self, Capture, Tables};
use super::{MergeRequest, OnRead, ReadEvent, analysis, request};
use crate::{Fault, Problem, StopFlag};
use capture::{MemoryBudget, TABLE_BYTES};
use capture_merge::{CapturedPackets, Merge};
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use tcp_analysis::{Rules, Streams};

/// Two captures, A and B, and what happened between them.
pub struct Merged {
    /// The files.
    pub captures: [Capture; 2],
    /// Their packets, aligned.
    pub merge: Merge,
    /// Where each was captured, in words.
    pub points: [Option<String>; 2],
    /// Remarks, as sentences.
    pub notes: Vec<String>,
}

impl Merged {
    /// As a document.
    #[must_use]
    pub fn document(&self) -> MergeDocument {
        MergeDocument::new(self)
    }
}

/// A capture with the data needed to align it.
struct Read {
    capture: Capture,
    packets: CapturedPackets,
    streams: Streams,
}

fn read(path: &Path, on_read: OnRead<'_>, stop: &StopFlag) -> Result<Read, Problem> {
    // Both captures have tables at the same time, and each has two of them.
    let tables = Tables::of_bytes(reading::READING_BYTES / 3);
    let analysis = MemoryBudget::new(reading::READING_BYTES / 6);
    let mut packets = CapturedPackets::within(&tables.budget);
    let mut streams = Streams::within(Rules::default(), &analysis);
    let mut capture = reading::read_packets(path, &tables, stop, on_read, |found, _| {
        let packet = found.packet;
        let tcp = found.stream.zip(found.segment);
        packets.add(packet, found.layers, tcp);
        if let Some((stream, segment)) = tcp {
            streams.add(stream, packet.number, packet.time_ns, segment);
        }
        ControlFlow::Continue(())
    })?;
    capture.not_analysed = (packets.beyond_flows > 0).then(|| {
        format!(
            "{} packets of further flows are not compared: tables are limited to {} MiB.",
            packets.beyond_flows,
            TABLE_BYTES >> 20
        )
    });
    Ok(Read { capture, packets, streams })
}

/// Reads two files, and aligns them.
///
/// # Errors
/// Not two files, one that cannot be read, or no packet in common; the stop flag.
pub fn merge(
    files: &[PathBuf],
    request: &MergeRequest,
    on_read: OnRead<'_>,
    stop: &StopFlag,
) -> Result<Merged, Problem> {
    request::check_pair(files)?;
    let interrupted = || Problem::new(Fault::Interrupted, "interrupted");
    let mut both = Vec::new();
    for path in files {
        let read = read(path, on_read, stop)?;
        if read.capture.is_interrupted {
            return Err(interrupted());
        }
        both.push(read);
    }
    let [a, b] = <[Read; 2]>::try_from(both).map_err(|_| interrupted())?;
    if a.packets.packets_read + b.packets.packets_read > 1_000_000 {
        // Only the stop flag ends the comparison.
        let _ = on_read(ReadEvent::Comparing);
    }
    let captures = [a.capture, b.capture];
    let all_streams = [a.streams, b.streams];
    let same_clock = request.same_clock;
    let merge = capture_merge::merge(a.packets, b.packets, same_clock, &|| stop.is_raised());
    let merge = merge.ok_or_else(interrupted)?;
    if merge.counts[0].matched + merge.counts[0].partly_lost == 0 {
        let names = captures.each_ref().map(|capture| capture.name.as_str());
        return Err(Problem::new(
            Fault::Input,
            format!(
                "{} and {} have no packet in common: are they of the same transfer and time?",
                names[0], names[1]
            ),
        ));
    }
    let points = points(&merge, &all_streams);
    let notes = notes(&merge, &captures);
    Ok(Merged { captures, merge, points, notes })
}

/// Where each capture was made, by the stream with most payload.
fn points(merge: &Merge, streams: &[Streams; 2]) -> [Option<String>; 2] {
    let payload = |number: u32| {
        let (_, connection) = streams[0].get(number)?;
        Some(connection.traffic(connection.data_direction()).2)
    };
    let largest = merge.streams.iter().max_by_key(|pair| payload(pair.a));
    let point = |side: usize, number: u32| {
        let (_, connection) = streams[side].get(number)?;
        Some(analysis::place(&connection.vantage(connection.data_direction())))
    };
    match largest {
        Some(pair) => [point(0, pair.a), point(1, pair.b)],
        None => [None, None],
    }
}

/// Remarks, as sentences.
fn notes(merge: &Merge, captures: &[Capture; 2]) -> Vec<String> {
    let mut notes: Vec<String> = captures
        .iter()
        .flat_map(|capture| {
            capture.notes().into_iter().map(|note| format!("{}: {note}", capture.name))
        })
        .collect();
    if let Some(why) = merge.clock.unsuitable {
        notes.push(format!("One-way delays are not reliable: {why}."));
    }
    if merge.is_direction_assumed {
        notes.push(
            "There are packets in one direction only: the capture that they pass first is taken \
             from the timestamps, as if the clocks were equal."
                .to_owned(),
        );
    }
    for (counts, name) in merge.counts.iter().zip(["A", "B"]) {
        if counts.only_here > 0 {
            let other = if name == "A" { "B" } else { "A" };
            notes.push(format!(
                "{} packets of {name} should have passed {other} first but are missing there: the \
                 capture dropped them, they took another route, or a middlebox sent them.",
                counts.only_here
            ));
        }
    }
    notes
}
