//! This program started again, connected by a socket, for work that a process with several
//! threads cannot do: entering namespaces, and giving up privileges for good.

use crate::control::Peer;
use crate::{sandbox, signals, sys};
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, RawFd};
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, ExitStatus, Stdio};

/// A process of this program, and the socket to it. Dropping it kills the process.
#[derive(Debug)]
pub struct Reexecuted {
    process: Child,
    socket: UnixStream,
}

/// Starts this program again without arguments; [`inherited`] finds the socket there by
/// `variable`. Standard input and output are /dev/null, standard error is this process's.
///
/// The kernel kills the process when the calling thread ends (`PR_SET_PDEATHSIG`).
///
/// # Errors
/// The system error if the process cannot be created.
pub fn start(variable: &str) -> io::Result<Reexecuted> {
    let (ours, theirs) = UnixStream::pair()?;
    let mut command = Command::new("/proc/self/exe");
    if let Some(name) = std::env::args_os().next() {
        command.arg0(name);
    }
    command
        .env(variable, theirs.as_raw_fd().to_string())
        .stdin(Stdio::null())
        .stdout(Stdio::null());
    let numbers = (ours.as_raw_fd(), theirs.as_raw_fd());
    // SAFETY: between fork and exec only system calls are made, on plain numbers. Both descriptors
    // are open in the child too; ours is closed there and not used again.
    unsafe {
        command.pre_exec(move || {
            let (ours, theirs) = numbers;
            libc::close(ours);
            if !sandbox::die_with_parent(theirs)? {
                libc::_exit(1);
            }
            signals::unblock();
            keep_across_exec(theirs, true)
        });
    }
    Ok(Reexecuted { process: command.spawn()?, socket: ours })
}

impl Reexecuted {
    /// The socket to the process. Its end means that the process, and every process that it
    /// forked, has ended.
    #[must_use]
    pub const fn socket(&self) -> &UnixStream {
        &self.socket
    }

    /// Sends SIGTERM.
    pub fn terminate(&self) {
        if let Ok(process) = libc::pid_t::try_from(self.process.id()) {
            // SAFETY: plain numbers; the process has not been waited for, so the number is its own.
            unsafe { libc::kill(process, signals::TERMINATE) };
        }
    }

    /// Waits for its end.
    ///
    /// # Errors
    /// The system error.
    pub fn wait(mut self) -> io::Result<ExitStatus> {
        self.process.wait()
    }
}

impl Drop for Reexecuted {
    fn drop(&mut self) {
        // No error if it has ended.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// The socket to the process that [`start`]ed this one; `None` if it was not started so. A second
/// call finds nothing, and neither do the programs that this process starts.
///
/// A variable that somebody else set is ignored: the other end of the socket must be of the parent
/// process.
///
/// # Errors
/// This process was started so, and has several threads by now.
pub fn inherited(variable: &str) -> io::Result<Option<UnixStream>> {
    let number = std::env::var(variable).ok().and_then(|text| text.parse::<RawFd>().ok());
    let Some(number) = number else { return Ok(None) };
    let parent = i64::from(std::os::unix::process::parent_id());
    if !Peer::of_descriptor(number).is_ok_and(|peer| i64::from(peer.process) == parent) {
        return Ok(None);
    }
    sandbox::single_thread()?;
    // SAFETY: this process has one thread.
    unsafe { std::env::remove_var(variable) };
    keep_across_exec(number, false)?;
    // SAFETY: the descriptor is an open socket, which nothing else of this program knows.
    Ok(Some(unsafe { UnixStream::from_raw_fd(number) }))
}

/// Makes system calls only, so it may be called between fork and exec.
fn keep_across_exec(descriptor: RawFd, keep: bool) -> io::Result<()> {
    let flags = if keep { 0 } else { libc::FD_CLOEXEC };
    // SAFETY: plain numbers.
    sys::check(unsafe { libc::fcntl(descriptor, libc::F_SETFD, flags) }).map(drop)
}
