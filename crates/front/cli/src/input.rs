//! Maximum sizes of the files that the command line names.

use host::file::{self, ReadError};
use std::io::{self, Read};
use std::path::Path;
use units::ByteCount;

/// A PEM key.
pub(crate) const KEY: ByteCount = ByteCount::from_bytes(64 << 10);

/// A list of tokens or of users: ten thousand entries.
pub(crate) const LIST: ByteCount = ByteCount::from_bytes(1 << 20);

/// Output of `netstat -s` or `ss -tin`: some ten thousand connections.
pub(crate) const COUNTERS: ByteCount = ByteCount::from_bytes(8 << 20);

/// Reads a text file, or standard input for `-`.
pub(crate) fn text_or_stdin(path: &Path, limit: ByteCount) -> Result<String, ReadError> {
    if path.as_os_str() != "-" {
        return text(path, limit);
    }
    let mut bytes = Vec::new();
    io::stdin().lock().take(limit.bytes().saturating_add(1)).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > limit.bytes() {
        return Err(ReadError::TooLarge { limit });
    }
    String::from_utf8(bytes).map_err(|_| ReadError::NotText)
}

/// Reads a text file.
pub(crate) fn text(path: &Path, limit: ByteCount) -> Result<String, ReadError> {
    file::read_text_bounded(path, limit)
}
