//! Waits for termination signals and keys, and restores the terminal.

use super::screen;
use host::signals;
use host::wait::{self, EventFd};
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;
use std::time::Duration;

/// Set at the first signal; a second one ends the process.
#[derive(Debug)]
pub(super) struct Ending {
    bell: Arc<EventFd>,
}

impl Ending {
    /// Must be called before any thread is started.
    pub(super) fn on_signals() -> io::Result<Self> {
        signals::block();
        let bell = Arc::new(EventFd::new()?);
        let rung = Arc::clone(&bell);
        std::thread::spawn(move || {
            signals::wait_for_termination();
            rung.set();
            let signal = signals::wait_for_second();
            screen::leave();
            std::process::exit(128 + signal);
        });
        Ok(Ending { bell })
    }

    /// Waits for a signal or a key; returns which of them came.
    pub(super) fn wait_or_key(
        &self,
        keys: BorrowedFd<'_>,
        time: Duration,
    ) -> io::Result<(bool, bool)> {
        let [_, key] = wait::readable([self.bell.as_fd(), keys], Some(time))?;
        Ok((self.bell.is_set(), key))
    }
}
