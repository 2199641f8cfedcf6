//! Explains the largest TCP streams of a capture file.

use super::{MAX_TRANSFERS, Transfer, Transfers, unreadable};
use crate::pcap::{OnRead, Rules, analyse};
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

/// Explains the largest streams, or the one that was selected.
pub(super) fn explain(
    path: &Path,
    which: Option<&str>,
    on_read: OnRead<'_>,
    stop: &StopFlag,
) -> Result<Transfers, Problem> {
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
    let notes = analysis.capture.notes();
    if explained.is_empty() {
        let notes: String = notes.iter().map(|note| format!("; {note}")).collect();
        return Err(unreadable(format!(
            "{} has no TCP stream with data to explain{}",
            path.display(),
            notes.trim_end_matches('.')
        )));
    }
    let first = wanted.first().and_then(|transfer| transfer.first());
    let test = first.map(|stream| analysis.test_sentences(*stream)).unwrap_or_default();
    let count = explained.len();
    let transfers = explained
        .into_iter()
        .take(MAX_TRANSFERS)
        .map(|one| Transfer { name: named(&one.streams), measurement: one.measurement });
    Ok(Transfers { is_capture: true, transfers: transfers.collect(), count, notes, test })
}

/// `stream 3`, or `streams 3, 4, 5`.
fn named(streams: &[u32]) -> String {
    let numbers: Vec<String> = streams.iter().map(u32::to_string).collect();
    format!("stream{} {}", if numbers.len() > 1 { "s" } else { "" }, numbers.join(", "))
}
