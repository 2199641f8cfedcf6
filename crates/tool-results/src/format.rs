//! Which format a file has, by its content.

use crate::{flent, iperf2_csv, iperf2_text, iperf3, ndt7, ss};
use flate2::read::MultiGzDecoder;
use record::Measurement;
use std::io::Read;
use units::ByteCount;

/// The largest text that is read, unpacked.
pub const MAX_SIZE: ByteCount = ByteCount::from_bytes(64 << 20);

/// The files that `longhaul explain` reads, as an error names them.
const ACCEPTED: &str = "longhaul's measurements and recordings, captures (pcap, pcapng), iperf3's \
                        -J and --json-stream output, iperf 2's -y C and -e output, ss -tin, \
                        ndt7's JSON, and flent's data files";

/// Bytes at the beginning in which a document's keys are looked for.
const HEAD: usize = 4096;

/// Why a file is no result that can be explained: it is in none of the formats, or incomplete.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NotAResult {
    /// It is in none of the formats; what it is, as far as its beginning tells.
    #[error("{0}; accepted are {ACCEPTED}")]
    Unknown(String),
    /// It is in one of the formats, and incomplete or damaged.
    #[error("it is {what}, but {why}; accepted are complete files")]
    Damaged {
        /// The format.
        what: &'static str,
        /// What is wrong with it.
        why: String,
    },
}

impl NotAResult {
    /// JSON that does not parse.
    pub(crate) fn json(what: &'static str, error: &serde_json::Error) -> Self {
        let why = if error.is_eof() {
            format!("it is truncated: it ends in line {}", error.line())
        } else {
            format!("line {}, column {} is not valid", error.line(), error.column())
        };
        NotAResult::Damaged { what, why }
    }

    /// A line of JSON that does not parse.
    pub(crate) fn json_line(what: &'static str, line: usize, error: &serde_json::Error) -> Self {
        let why = if error.is_eof() {
            format!("line {line} is truncated")
        } else {
            format!("line {line}, column {} is not valid", error.column())
        };
        NotAResult::Damaged { what, why }
    }

    /// A file of that format without a transfer.
    pub(crate) fn empty(what: &'static str, why: &str) -> Self {
        NotAResult::Damaged { what, why: format!("it has {why}") }
    }
}

/// The transfers in a file: one, or several where the format has them, such as a download and
/// an upload.
///
/// # Errors
/// [`NotAResult`]: one line that identifies the file.
pub fn read(bytes: &[u8]) -> Result<Vec<Measurement>, NotAResult> {
    if bytes.starts_with(&[0x1f, 0x8b]) {
        let text = unpacked(bytes)?;
        return read_text(&text);
    }
    if bytes.starts_with(b"BZh") {
        return Err(NotAResult::Unknown(
            "it is compressed with bzip2: unpack it with bunzip2".to_owned(),
        ));
    }
    if bytes.len() as u64 > MAX_SIZE.bytes() {
        return Err(NotAResult::Unknown(format!("it is larger than {MAX_SIZE}")));
    }
    match std::str::from_utf8(bytes) {
        Ok(text) => read_text(text),
        Err(_) => Err(NotAResult::Unknown("it is not text".to_owned())),
    }
}

/// Whether the beginning of a gzip file unpacks to the beginning of JSON.
#[must_use]
pub fn is_packed_json(beginning: &[u8]) -> bool {
    let mut first = [0; 64];
    let read = MultiGzDecoder::new(beginning).read(&mut first).unwrap_or(0);
    let text = first.get(..read).unwrap_or_default().trim_ascii_start();
    text.first() == Some(&b'{')
}

/// A gzip file's text, of at most [`MAX_SIZE`].
fn unpacked(bytes: &[u8]) -> Result<String, NotAResult> {
    const WHAT: &str = "a gzip file";
    let damaged = |why: &str| NotAResult::Damaged { what: WHAT, why: why.to_owned() };
    let mut text = Vec::new();
    let limit = MAX_SIZE.bytes().saturating_add(1);
    let read = MultiGzDecoder::new(bytes).take(limit).read_to_end(&mut text);
    if text.len() as u64 > MAX_SIZE.bytes() {
        return Err(damaged(&format!("it unpacks to more than {MAX_SIZE}")));
    }
    match read {
        Err(error) if error.kind() == std::io::ErrorKind::UnexpectedEof => {
            Err(damaged("it is truncated"))
        }
        Err(_) => Err(damaged("it is damaged")),
        Ok(_) => String::from_utf8(text).map_err(|_| damaged("it contains no text")),
    }
}

fn read_text(text: &str) -> Result<Vec<Measurement>, NotAResult> {
    let text = text.trim_start_matches('\u{feff}').trim_start();
    let head = head(text);
    let has = |key: &str| head.contains(key);
    if text.starts_with('{') {
        let start: String = head.chars().take(80).filter(|c| !c.is_whitespace()).collect();
        return if start.starts_with("{\"event\":") {
            iperf3::stream(text).map(|one| vec![one])
        } else if start.starts_with("{\"Key\":") {
            ndt7::client(text)
        } else if start.starts_with("{\"start\":") && has("\"iperf 3") {
            iperf3::document(text).map(|one| vec![one])
        } else if has("\"ServerIP\"") && has("\"StartTime\"") {
            ndt7::archive(text)
        } else if text.contains("\"x_values\"") && text.contains("\"results\"") {
            flent::document(text).map(|one| vec![one])
        } else {
            Err(NotAResult::Unknown(other_json(head)))
        };
    }
    if iperf2_csv::is_csv(text) {
        iperf2_csv::lines(text)
    } else if iperf2_text::is_text(head) {
        iperf2_text::lines(text)
    } else if text.lines().any(crate::ss_details::is_details) {
        ss::samples(text)
    } else {
        Err(NotAResult::Unknown(other_text(text)))
    }
}

/// The beginning of a text, whole characters.
fn head(text: &str) -> &str {
    let end = (0..=HEAD.min(text.len())).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0);
    text.get(..end).unwrap_or_default()
}

/// What JSON of another kind is, by its first key.
fn other_json(head: &str) -> String {
    let key = head.split('"').nth(1).filter(|key| !key.is_empty());
    match key {
        Some(key) => {
            let key: String = key.chars().take(40).collect();
            format!("it is JSON of an unknown tool: its first key is '{key}'")
        }
        None => "it is JSON of an unknown tool".to_owned(),
    }
}

/// What other text is, by its first line.
fn other_text(text: &str) -> String {
    let first = text.lines().map(str::trim).find(|line| !line.is_empty());
    match first {
        None => "it is empty".to_owned(),
        Some(_) if text.contains("- - - - -") && text.contains("[ ID] Interval") => {
            "it is iperf3's text: run iperf3 with -J".to_owned()
        }
        Some(line) => {
            let start: String = line.chars().take(40).collect();
            format!("it is of an unknown tool: it begins with '{start}'")
        }
    }
}
