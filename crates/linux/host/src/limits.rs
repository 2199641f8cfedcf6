//! Resource limits of this process.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use std::io;

/// Raises the limit of open files to its maximum: a lab with many links needs
/// two devices for each. Child processes inherit the limit.
///
/// # Errors
/// The system error; the limit is then unchanged.
pub fn raise_open_files() -> io::Result<()> {
    let limit = getrlimit(Resource::Nofile);
    Ok(setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, ..limit })?)
}
