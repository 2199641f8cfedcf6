//! Explains the largest TCP streams of a capture file.

use super::{MAX_TRANSFERS, Transfer, Transfers, unreadable};
use crate::pcap::{Capture, OnRead, Rules, analyse};
use crate::{Field, Problem, StopFlag};
use capture::file::{Decompressed, HEAD, is_capture as is_capture_head};
use host::file;
use std::io::Read;
use std::path::Path;

/// True if the file begins as a capture, also as one that is compressed.
#[must_use]
pub fn is_capture(path: &Path) -> bool {
    let Ok(file) = file::open_regular(path) else { return false };
    let mut head = Vec::new();
    let plain = Decompressed::new(file).map(|plain| plain.take(HEAD as u64));
    let read = plain.and_then(|mut plain| plain.read_to_end(&mut head));
    // The error of a damaged one is that of captures, which are what is compressed most.
    is_capture_head(&head) || (read.is_err() && head.is_empty())
}

/// Transfers of a capture, and everything that it counts.
pub(crate) struct ReadCapture {
    /// The largest transfers, or the one that was selected; maybe none.
    pub(crate) transfers: Transfers,
    /// The lower port of each transfer, which is the service's.
    pub(crate) service_ports: Vec<Option<u16>>,
    /// The capture as a whole.
    pub(crate) capture: Capture,
}

/// Reads the largest streams, or the one that was selected.
pub(crate) fn read(
    path: &Path,
    which: Option<&str>,
    on_read: OnRead<'_>,
    stop: &StopFlag,
) -> Result<ReadCapture, Problem> {
    let stream = |which: &str| {
        let wrong = || {
            let message = "a connection of a capture is a TCP stream";
            Problem::field(Field::Connection, message, "the stream's number")
        };
        which.parse().map_err(|_| wrong())
    };
    let selected: Option<u32> = which.map(stream).transpose()?;
    let analysis = analyse(path, Rules::default(), on_read, stop)?;
    let wanted = match selected {
        None => analysis.largest(MAX_TRANSFERS),
        Some(stream) => vec![vec![stream]],
    };
    let explained = analysis.explain(path, &wanted, on_read, stop)?;
    let first = wanted.first().and_then(|transfer| transfer.first());
    let test = first.map(|stream| analysis.test_sentences(*stream)).unwrap_or_default();
    let count = explained.len();
    let service_port = |streams: &[u32]| {
        let (key, _) = analysis.streams.get(*streams.first()?)?;
        Some(key.a_port.min(key.b_port))
    };
    let (mut transfers, mut service_ports) = (Vec::new(), Vec::new());
    for one in explained.into_iter().take(MAX_TRANSFERS) {
        service_ports.push(service_port(&one.streams));
        transfers.push(Transfer { name: named(&one.streams), measurement: one.measurement });
    }
    let notes = analysis.capture.notes();
    let transfers = Transfers { is_capture: true, transfers, count, notes, test };
    Ok(ReadCapture { transfers, service_ports, capture: analysis.capture })
}

/// Explains the largest streams, or the one that was selected.
pub(super) fn explain(
    path: &Path,
    which: Option<&str>,
    on_read: OnRead<'_>,
    stop: &StopFlag,
) -> Result<Transfers, Problem> {
    let found = read(path, which, on_read, stop)?.transfers;
    if found.count == 0 {
        return Err(without_data(path, &found.notes));
    }
    Ok(found)
}

/// The problem of a capture, or of one of its streams, without data.
pub(crate) fn without_data(path: &Path, notes: &[String]) -> Problem {
    let notes: String = notes.iter().map(|note| format!("; {note}")).collect();
    unreadable(format!(
        "{} has no TCP stream with data to explain{}",
        path.display(),
        notes.trim_end_matches('.')
    ))
}

/// `stream 3`, or `streams 3, 4, 5`.
fn named(streams: &[u32]) -> String {
    let numbers: Vec<String> = streams.iter().map(u32::to_string).collect();
    format!("stream{} {}", if numbers.len() > 1 { "s" } else { "" }, numbers.join(", "))
}
