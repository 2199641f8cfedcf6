//! The packets of a capture, all or those that pass a display filter; or one of them.

use super::packet_file::PacketFile;
use super::reading::{self, Capture, Dissected, Tables};
use super::{OnRead, PacketsRequest, ReadEvent};
use crate::{Fault, Problem, StopFlag};
use packet_fields::{Filter, Tracker};
use std::ops::ControlFlow;
use std::path::Path;

/// The file as read for a list of packets.
pub struct PacketList {
    /// The file, as far as it was read.
    pub capture: Capture,
    /// Packets that were shown, or written.
    pub shown: u64,
    /// True if the list ended before the file, with as many packets as requested.
    pub is_full: bool,
}

/// Reads a file, and shows or writes the requested packets.
///
/// # Errors
/// An invalid field; the file cannot be opened, or is no capture; the packets cannot be
/// written.
pub fn run(
    path: &Path,
    request: &PacketsRequest,
    on_read: OnRead<'_>,
    stop: &StopFlag,
) -> Result<PacketList, Problem> {
    let filter = compile(&request.filter)?;
    let tables = Tables::of_reading();
    let mut tracker = Tracker::within(request.rules, &tables.budget);
    let mut copy = request.write.as_ref().map(|path| PacketFile::create(path)).transpose()?;
    let most = request.packet.map_or(request.rows, |_| 1);
    let (mut shown, mut failure) = (0, None);
    let read = reading::read_packets(path, &tables, stop, on_read, |found, on_read| {
        let Dissected { packet, layers, segment, stream, conversations, .. } = *found;
        let view = tracker.add(packet, layers, segment, stream, conversations);
        let is_wanted = match request.packet {
            Some(number) => packet.number == number,
            None => filter.as_ref().is_none_or(|filter| filter.matches(&view)),
        };
        if is_wanted {
            shown += 1;
            match &mut copy {
                Some(copy) => failure = copy.add(packet, found.file).err(),
                None => on_read(ReadEvent::Packet(&view))?,
            }
            if failure.is_some() {
                return ControlFlow::Break(());
            }
            tracker.passed(packet.time_ns);
        }
        if found.is_last_of_batch {
            on_read(ReadEvent::Pause)?;
        }
        let is_full = most > 0 && shown >= most;
        if is_full { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    });
    if let Some(failure) = failure {
        return Err(failure);
    }
    let mut capture = read?;
    capture.not_analysed = reading::not_analysed(tracker.streams(), &capture.conversations);
    if let Some(copy) = copy {
        copy.finish(&capture.file)?;
    }
    Ok(PacketList { capture, shown, is_full: most > 0 && shown >= most })
}

/// Compiles the filter, if there is one.
pub(super) fn compile(text: &str) -> Result<Option<Filter>, Problem> {
    if text.trim().is_empty() {
        return Ok(None);
    }
    let compiled = Filter::new(text).map_err(|error| {
        let column = text.get(..error.at.start).map_or(0, |before| before.chars().count()) + 1;
        Problem::new(Fault::Request, format!("filter, column {column}: {}", error.message))
    });
    compiled.map(Some)
}
