//! A child process that does not outlive this one, however this one ends.

use crate::{clock, signals};
use rustix::process::Signal;
use std::io;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, ExitStatus};
use std::time::Duration;

/// Interval at which the end of a child is noticed.
const POLL: Duration = Duration::from_millis(10);

/// A process in a group of its own. The kernel sends it SIGTERM when the thread that started it
/// ends (`PR_SET_PDEATHSIG`); dropping it kills its group.
#[derive(Debug)]
pub struct TiedChild {
    process: Child,
}

impl TiedChild {
    /// Starts a program, which should end at SIGTERM with all of its own processes. To be called by
    /// a thread that lives longer than the child.
    ///
    /// # Errors
    /// The system error if the program cannot be started.
    pub fn start(command: &mut Command) -> io::Result<Self> {
        let parent = std::process::id();
        command.process_group(0);
        // SAFETY: between fork and exec only system calls are made, on plain numbers.
        unsafe {
            command.pre_exec(move || {
                signals::unblock();
                rustix::process::set_parent_process_death_signal(Some(Signal::TERM))?;
                // If the parent died before that call, the signal never comes.
                if std::os::unix::process::parent_id() != parent {
                    libc::_exit(1);
                }
                Ok(())
            });
        }
        Ok(TiedChild { process: command.spawn()? })
    }

    /// The child, for its streams.
    pub const fn process(&mut self) -> &mut Child {
        &mut self.process
    }

    /// Returns how it ended, or `None` if it runs.
    ///
    /// # Errors
    /// The system error.
    pub fn ended(&mut self) -> io::Result<Option<ExitStatus>> {
        self.process.try_wait()
    }

    /// Waits for its end, at most `limit`.
    ///
    /// # Errors
    /// The system error.
    pub fn wait_at_most(&mut self, limit: Duration) -> io::Result<Option<ExitStatus>> {
        let give_up = clock::now() + limit;
        loop {
            let ended = self.ended()?;
            if ended.is_some() || clock::now() >= give_up {
                return Ok(ended);
            }
            std::thread::sleep(POLL);
        }
    }

    /// Sends SIGTERM and waits; after `limit` its group is killed.
    ///
    /// # Errors
    /// The system error.
    pub fn terminate(mut self, limit: Duration) -> io::Result<()> {
        if self.ended()?.is_none() {
            self.signal(1, signals::TERMINATE);
            self.wait_at_most(limit)?;
        }
        Ok(())
    }

    /// To the process (`sign` 1), or to its group (-1).
    fn signal(&self, sign: libc::pid_t, signal: i32) {
        if let Ok(process) = libc::pid_t::try_from(self.process.id()) {
            // SAFETY: plain numbers; the process has not been waited for, so the number is its own.
            unsafe { libc::kill(sign * process, signal) };
        }
    }
}

impl Drop for TiedChild {
    fn drop(&mut self) {
        if matches!(self.process.try_wait(), Ok(None)) {
            self.signal(-1, libc::SIGKILL);
            let _ = self.process.wait();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sleeper() -> TiedChild {
        TiedChild::start(Command::new("sleep").arg("600")).unwrap()
    }

    #[test]
    fn it_ends_when_told_when_dropped_and_with_its_thread() {
        let mut child = sleeper();
        assert_eq!(child.wait_at_most(Duration::ZERO).unwrap(), None);
        child.terminate(Duration::from_secs(10)).unwrap();
        drop(sleeper());
        // The thread that starts it ends; the child is still there to be waited for.
        let mut child = std::thread::spawn(sleeper).join().unwrap();
        let ended = child.wait_at_most(Duration::from_secs(10)).unwrap();
        assert_eq!(std::os::unix::process::ExitStatusExt::signal(&ended.unwrap()), Some(15));
    }
}
