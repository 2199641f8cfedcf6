//! Why a file is no result.

use units::ByteCount;

/// The largest text that is read, unpacked.
pub const MAX_SIZE: ByteCount = ByteCount::from_bytes(64 << 20);

/// The files that `longhaul explain` reads, as an error names them.
const ACCEPTED: &str = "longhaul's measurements and recordings, captures (pcap, pcapng), output \
                        of iperf3 (-J, --json-stream, text) and iperf 2 (-y C, text), ss -tin, \
                        ndt7's JSON, and flent's data files";

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
