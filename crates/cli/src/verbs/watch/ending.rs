//! Signals to end, waited for beside keys; the terminal is set back whatever comes.

use super::screen;
use host::signals;
use host::wait::{self, Bell};
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;
use std::time::Duration;

/// Rings at the first signal; a second one ends the process.
#[derive(Debug)]
pub(super) struct Ending {
    bell: Arc<Bell>,
}

impl Ending {
    /// To be called before any thread is started.
    pub(super) fn on_signals() -> io::Result<Self> {
        signals::block();
        let bell = Arc::new(Bell::new()?);
        let rung = Arc::clone(&bell);
        std::thread::spawn(move || {
            signals::wait_for_ending();
            rung.ring();
            let signal = signals::wait_for_second();
            screen::leave();
            std::process::exit(128 + signal);
        });
        Ok(Ending { bell })
    }

    /// Waits; whether it is to end.
    pub(super) fn wait(&self, time: Duration) -> bool {
        // What cannot be waited for is not waited for: the signal is seen next time.
        let _ = wait::readable([self.bell.as_fd()], Some(time));
        self.bell.has_rung()
    }

    /// Waits for a key as well: whether to end, and whether there is one.
    pub(super) fn wait_or_key(
        &self,
        keys: BorrowedFd<'_>,
        time: Duration,
    ) -> io::Result<(bool, bool)> {
        let [_, key] = wait::readable([self.bell.as_fd(), keys], Some(time))?;
        Ok((self.bell.has_rung(), key))
    }
}
