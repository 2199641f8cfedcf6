//! Resource limits of this process.

use crate::sys;
use std::io;

/// Raises the limit of open files to its maximum: a lab with many links needs
/// two devices for each. Child processes inherit the limit.
///
/// # Errors
/// The system error; the limit is then unchanged.
pub fn raise_open_files() -> io::Result<()> {
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: the structure lives across both calls.
    unsafe {
        sys::check(libc::getrlimit(libc::RLIMIT_NOFILE, &raw mut limit))?;
        limit.rlim_cur = limit.rlim_max;
        sys::check(libc::setrlimit(libc::RLIMIT_NOFILE, &raw const limit)).map(drop)
    }
}
