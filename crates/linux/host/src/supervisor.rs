//! A process that does the work, and its parent, which removes what the work leaves in the kernel
//! however it ends.

use crate::sandbox::{self, Ended};
use crate::{signals, sys};
use std::io;
use std::os::fd::AsRawFd;

/// Runs `work` in a child process, waits for its end, then calls `clean_up` here. Signals to this
/// process alone are passed on to the child, which is killed if this process is; then nothing cleans
/// up, and the next start has to.
///
/// Must be called while the process has one thread.
///
/// # Errors
/// The system error: `work` has not run, or its end cannot be waited for.
pub fn run(work: impl FnOnce() -> i32, clean_up: impl FnOnce()) -> io::Result<Ended> {
    sandbox::single_thread()?;
    signals::restore_sigchld();
    signals::block();
    let (alive, guard) = sandbox::pipe()?;
    // SAFETY: the process has one thread, so the child is a whole copy of it.
    match sys::check(unsafe { libc::fork() })? {
        0 => {
            drop(guard);
            let has_parent = sandbox::die_with_parent(alive.as_raw_fd()).unwrap_or(false);
            std::process::exit(if has_parent { work() } else { 1 })
        }
        child => {
            drop(alive);
            let ended = signals::forward_until_exit(child);
            drop(guard);
            clean_up();
            ended
        }
    }
}
