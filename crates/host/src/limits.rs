//! What the system allows a process.

use crate::sys;
use std::io;

/// Lets this process have as many files open as it may ask for: a lab of many
/// links holds two devices for each. What it starts inherits that.
///
/// # Errors
/// The system's own; the limit is as it was then.
pub fn raise_open_files() -> io::Result<()> {
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: the structure lives across both calls.
    unsafe {
        sys::check(libc::getrlimit(libc::RLIMIT_NOFILE, &raw mut limit))?;
        limit.rlim_cur = limit.rlim_max;
        sys::check(libc::setrlimit(libc::RLIMIT_NOFILE, &raw const limit)).map(drop)
    }
}
