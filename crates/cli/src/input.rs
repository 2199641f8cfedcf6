//! Maximum sizes of the files that the command line names.

use host::file::{self, ReadError};
use std::io;
use std::path::Path;
use units::ByteCount;

/// A lab plan or a file of paths: some thousand hosts and links.
pub(crate) const PLAN: ByteCount = ByteCount::from_bytes(1 << 20);

/// A rate trace or a packet log that a path refers to.
pub(crate) const TRACE: ByteCount = lab::control::MAX_FILES;

/// A PEM key.
pub(crate) const KEY: ByteCount = ByteCount::from_bytes(64 << 10);

/// A list of tokens or of users: ten thousand entries.
pub(crate) const LIST: ByteCount = ByteCount::from_bytes(1 << 20);

/// Reads a text file.
pub(crate) fn text(path: &Path, limit: ByteCount) -> Result<String, ReadError> {
    file::read_text_bounded(path, limit)
}

/// Reads a file that a path or a plan refers to.
pub(crate) fn of_a_path(name: &str) -> io::Result<String> {
    let limit = if name.ends_with(".toml") { PLAN } else { TRACE };
    text(Path::new(name), limit).map_err(io::Error::from)
}
