//! Maximum sizes of the text files that requests name.

use host::file::{self, ReadError};
use std::io;
use std::path::{Path, PathBuf};
use units::ByteCount;

/// A lab plan, a study's plan or a file of paths: some thousand hosts and links.
pub const MAX_PLAN: ByteCount = ByteCount::from_bytes(1 << 20);

/// A rate trace or a packet log that a path refers to.
const MAX_TRACE: ByteCount = lab::control::MAX_FILES;

/// Reads a plan.
///
/// # Errors
/// The system's error, or a file that is larger than [`MAX_PLAN`] or not text.
pub fn plan(path: &Path) -> Result<String, ReadError> {
    file::read_text_bounded(path, MAX_PLAN)
}

/// Reads a file that a path or a plan refers to.
pub(crate) fn of_a_path(name: &str) -> io::Result<String> {
    let limit = if name.ends_with(".toml") { MAX_PLAN } else { MAX_TRACE };
    file::read_text_bounded(Path::new(name), limit).map_err(io::Error::from)
}

/// The value of an environment variable that names a file or a directory, unless it is empty.
pub(crate) fn path_variable(name: &str) -> Option<PathBuf> {
    std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from)
}
