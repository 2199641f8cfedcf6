//! Programs in a network namespace, and the end of them.

use crate::netns::NetNs;
use crate::{signals, sys, world};
use std::collections::HashMap;
use std::ffi::OsString;
use std::io;
use std::os::fd::{AsFd, AsRawFd, RawFd};
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

/// How a program ended: its exit code, or 128 plus the signal that killed it,
/// as a shell tells it.
pub type ExitCode = i32;

/// Collects the ends of all processes below this one. Process 1 of a world has
/// to: orphans become its children.
#[derive(Debug, Clone)]
pub struct Reaper {
    shared: Arc<Shared>,
    path: Option<OsString>,
}

#[derive(Debug, Default)]
struct Shared {
    known: Mutex<Known>,
    changed: Condvar,
    /// Held while a program is started: if that fails, the standard library
    /// itself waits for the child, and must find it.
    starting: Mutex<()>,
}

#[derive(Debug, Default)]
struct Known {
    started: u64,
    ends: HashMap<u32, ExitCode>,
}

/// What a program reads and writes.
#[derive(Debug)]
pub enum Streams {
    /// Our own standard input, output and error.
    Ours,
    /// It reads nothing, and all it writes goes to standard error.
    Errors,
    /// It reads nothing, and all it writes goes into a pipe.
    Pipe(io::PipeWriter),
}

/// A program that was started.
#[derive(Debug, Clone)]
pub struct Program {
    id: u32,
    reaper: Reaper,
}

impl Reaper {
    /// Starts collecting, on a thread of its own, for as long as the process
    /// lives. Programs are looked for in `path`, where it is given, and find
    /// others there.
    #[must_use]
    pub fn start(path: Option<OsString>) -> Self {
        let reaper = Reaper { shared: Arc::default(), path };
        let shared = Arc::clone(&reaper.shared);
        std::thread::spawn(move || collect(&shared));
        reaper
    }

    /// Starts `arguments` (the program first) in a namespace.
    ///
    /// # Errors
    /// The system's own: the program cannot be started.
    pub fn start_program(
        &self,
        namespace: &NetNs,
        arguments: &[OsString],
        streams: Streams,
    ) -> io::Result<Program> {
        let [program, arguments @ ..] = arguments else {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "no program is named"));
        };
        let mut command = Command::new(program);
        command.args(arguments);
        if let Some(path) = &self.path {
            command.env("PATH", path);
        }
        match streams {
            Streams::Ours => {}
            Streams::Errors => {
                command.stdin(Stdio::null()).stdout(io::stderr().as_fd().try_clone_to_owned()?);
            }
            Streams::Pipe(writer) => {
                command.stdin(Stdio::null()).stdout(writer.try_clone()?).stderr(writer);
            }
        }
        let handle = namespace.as_fd().as_raw_fd();
        // SAFETY: between fork and exec only system calls are made, on plain
        // numbers and static strings. The descriptor is open in the child too.
        unsafe {
            command.pre_exec(move || {
                signals::unblock();
                enter_host(handle)
            });
        }
        let starting = hold(&self.shared.starting);
        let child = command.spawn()?;
        drop(starting);
        hold(&self.shared.known).started += 1;
        self.shared.changed.notify_all();
        Ok(Program { id: child.id(), reaper: self.clone() })
    }
}

impl Program {
    /// Waits until it has ended.
    #[must_use]
    pub fn wait(&self) -> ExitCode {
        let Shared { known, changed, .. } = &*self.reaper.shared;
        let mut known = hold(known);
        loop {
            if let Some(code) = known.ends.get(&self.id) {
                return *code;
            }
            known = changed.wait(known).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Waits until it has ended, but not longer than `limit`.
    #[must_use]
    pub fn wait_at_most(&self, limit: std::time::Duration) -> Option<ExitCode> {
        let Shared { known, changed, .. } = &*self.reaper.shared;
        let (known, _) = changed
            .wait_timeout_while(hold(known), limit, |known| !known.ends.contains_key(&self.id))
            .unwrap_or_else(PoisonError::into_inner);
        known.ends.get(&self.id).copied()
    }

    /// Whether it has ended, and how.
    #[must_use]
    pub fn ended(&self) -> Option<ExitCode> {
        hold(&self.reaper.shared.known).ends.get(&self.id).copied()
    }

    /// Sends it a signal.
    pub fn signal(&self, signal: i32) {
        if self.ended().is_none()
            && let Ok(id) = libc::pid_t::try_from(self.id)
        {
            // SAFETY: plain numbers. A process that ended just now stays known
            // to the kernel until it is collected, so the number is not another's.
            unsafe { libc::kill(id, signal) };
        }
    }
}

/// Moves a process that is about to become a program into a host: its network
/// namespace, and a /sys that shows the devices there.
///
/// Makes system calls only, so it may stand between fork and exec.
pub(crate) fn enter_host(network: RawFd) -> io::Result<()> {
    // SAFETY: plain numbers; a number that is no namespace is refused.
    sys::check(unsafe { libc::setns(network, libc::CLONE_NEWNET) })?;
    // /sys shows the devices of the namespace it was mounted in. Where it
    // cannot be mounted anew the programs still work.
    // SAFETY: plain flags.
    if unsafe { libc::unshare(libc::CLONE_NEWNS) } == 0 {
        let _ = world::mount(Some(c"sysfs"), c"/sys", Some(c"sysfs"), 0);
    }
    Ok(())
}

/// How often is looked for orphans from outside.
const GLANCE: std::time::Duration = std::time::Duration::from_secs(1);

fn collect(shared: &Shared) {
    loop {
        let started = hold(&shared.known).started;
        // SAFETY: the structure lives across the call.
        let waited = unsafe {
            let mut info: libc::siginfo_t = std::mem::zeroed();
            sys::check(libc::waitid(libc::P_ALL, 0, &raw mut info, libc::WEXITED | libc::WNOWAIT))
                .map(|_| info.si_pid())
        };
        let Ok(id) = waited else {
            // No child at all. The next one comes of a start, or is an orphan of
            // a program that came in from outside.
            let known = hold(&shared.known);
            let unchanged = |known: &mut Known| known.started == started;
            drop(shared.changed.wait_timeout_while(known, GLANCE, unchanged));
            continue;
        };
        let starting = hold(&shared.starting);
        let mut status = 0;
        // SAFETY: `status` lives across the call.
        let collected = unsafe { libc::waitpid(id, &raw mut status, libc::WNOHANG) } == id;
        drop(starting);
        if collected {
            let code = if libc::WIFEXITED(status) {
                libc::WEXITSTATUS(status)
            } else {
                128 + libc::WTERMSIG(status)
            };
            hold(&shared.known).ends.insert(id.unsigned_abs(), code);
            shared.changed.notify_all();
        }
    }
}

fn hold<T>(lock: &Mutex<T>) -> MutexGuard<'_, T> {
    lock.lock().unwrap_or_else(PoisonError::into_inner)
}
