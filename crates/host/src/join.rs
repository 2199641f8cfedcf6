//! Entering a running lab from outside, as nsenter(1) would.
//!
//! ```text
//!   longhaul (outside: waits, passes signals and the exit code on)
//!      └── program (in the lab's PID, mount and user namespaces and in one
//!          host's network namespace: it dies with the lab, and with us)
//! ```

use crate::control::Connection;
use crate::program::{self, ExitCode};
use crate::world::{self, Ended};
use crate::{netns, signals, sys};
use std::ffi::{OsStr, OsString};
use std::fs::{File, OpenOptions};
use std::io;
use std::os::fd::{AsFd, AsRawFd, RawFd};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::os::unix::process::CommandExt;
use std::process::Command;

/// Why a host of a lab cannot be entered.
#[derive(Debug, thiserror::Error)]
pub enum JoinError {
    /// The lab ended meanwhile.
    #[error("the lab has ended")]
    Ended,
    /// The program is not there or cannot be started.
    #[error("cannot start {program}: {source}")]
    Start {
        /// The program's name.
        program: String,
        /// What the system said.
        source: io::Error,
    },
    /// Anything else.
    #[error("cannot enter the lab ({step}): {source}")]
    Other {
        /// The step that failed.
        step: &'static str,
        /// What the system said.
        source: io::Error,
    },
}

/// The way into one host of a running lab: its namespaces, held open.
#[derive(Debug)]
pub struct Entrance {
    /// The lab's user namespace, where it is another than ours.
    user: Option<File>,
    processes: File,
    mounts: File,
    network: File,
}

impl Entrance {
    /// Opens the namespaces of the lab at the other end of `lab`, and the
    /// network namespace of one host, which that process holds as its file
    /// descriptor number `network`.
    ///
    /// # Errors
    /// [`JoinError`].
    pub fn open(lab: &Connection, network: RawFd) -> Result<Self, JoinError> {
        let process = lab.peer_pid().ok_or(JoinError::Ended)?;
        let opened = Self::open_of(process, network);
        // A number can become another process's once its own has ended; while
        // the lab is on the line it has not.
        if lab.is_open() { opened } else { Err(JoinError::Ended) }
    }

    fn open_of(process: u32, network: RawFd) -> Result<Self, JoinError> {
        let open = |step, name: String| {
            OpenOptions::new()
                .read(true)
                // A number that is no namespace but a pipe must not hold us up.
                .custom_flags(libc::O_NONBLOCK | libc::O_CLOEXEC)
                .open(format!("/proc/{process}/{name}"))
                .map_err(other(step))
        };
        let user = open("opening its user namespace", "ns/user".to_owned())?;
        let network = open("opening the host's network namespace", format!("fd/{network}"))?;
        netns::check(network.as_fd()).map_err(other("finding the host's network namespace"))?;
        Ok(Entrance {
            user: if is_ours(&user).map_err(other("comparing user namespaces"))? {
                None
            } else {
                Some(user)
            },
            processes: open("opening its PID namespace", "ns/pid".to_owned())?,
            mounts: open("opening its mount namespace", "ns/mnt".to_owned())?,
            network,
        })
    }

    /// Runs `arguments` (the program first) on the host, with our standard
    /// input and output and, where it is there, in our working directory, and
    /// waits for its end. Programs are looked for in `path`, where it is given.
    ///
    /// Signals that only we were sent are passed on; those from a terminal
    /// reach the program by themselves, as it stays in our process group.
    ///
    /// Must be called while the process has one thread, and is a way of no
    /// return: the process stays in the lab's namespaces, whatever happens.
    ///
    /// # Errors
    /// [`JoinError`]. A lab that ends kills the program: that is exit code 137.
    pub fn run(self, arguments: &[OsString], path: Option<&OsStr>) -> Result<ExitCode, JoinError> {
        world::single_thread().map_err(other("entering namespaces"))?;
        let [name, arguments @ ..] = arguments else {
            let source = io::Error::new(io::ErrorKind::InvalidInput, "no program is named");
            return Err(JoinError::Start { program: String::new(), source });
        };
        let mut command = Command::new(name);
        command.args(arguments);
        if let Some(path) = path {
            command.env("PATH", path);
        }
        self.enter()?;
        signals::hear_of_children();
        signals::block();
        let (alive, guard) = world::pipe().map_err(other("making a pipe"))?;
        let numbers = (alive.as_raw_fd(), guard.as_raw_fd(), self.network.as_raw_fd());
        // SAFETY: between fork and exec only system calls are made, on plain
        // numbers and static strings. The three descriptors are open in the
        // child too; the guard is closed there and never used again.
        unsafe {
            command.pre_exec(move || {
                let (alive, guard, network) = numbers;
                libc::close(guard);
                if !world::die_with_parent(alive)? {
                    libc::_exit(1);
                }
                signals::unblock();
                program::enter_host(network)
            });
        }
        let child = command.spawn().map_err(|source| {
            // Process 1 has ended, and with it the PID namespace takes no more.
            if source.raw_os_error() == Some(libc::ENOMEM) {
                return JoinError::Ended;
            }
            JoinError::Start { program: name.to_string_lossy().into_owned(), source }
        })?;
        drop(alive);
        let ended = signals::pass_on_until_end(child.id().cast_signed());
        drop(guard);
        match ended.map_err(other("waiting for the program"))? {
            Ended::Code(code) => Ok(code),
            Ended::Signal(signal) => Ok(128 + signal),
        }
    }

    /// Moves this process into the lab's namespaces, its children into the
    /// lab's PID namespace. The host's network namespace is left to them: the
    /// user's own stays the better place to wait in.
    fn enter(&self) -> Result<(), JoinError> {
        let folder = std::env::current_dir();
        if let Some(user) = &self.user {
            become_its_root(user).map_err(other("entering its user namespace"))?;
        }
        set(&self.processes, libc::CLONE_NEWPID).map_err(other("entering its PID namespace"))?;
        // Leaves us in the root directory.
        set(&self.mounts, libc::CLONE_NEWNS).map_err(other("entering its mount namespace"))?;
        if let Ok(folder) = folder {
            // A folder that is not there leaves us in the root directory.
            let _ = std::env::set_current_dir(folder);
        }
        Ok(())
    }
}

/// Enters a user namespace as the root that its processes are.
fn become_its_root(user: &File) -> io::Result<()> {
    // Where the machine's root enters a user's lab, its groups stay outside. An
    // ordinary user may not change them: they are the lab's own.
    // SAFETY: an empty list is never read.
    unsafe { libc::setgroups(0, std::ptr::null()) };
    set(user, libc::CLONE_NEWUSER)?;
    // SAFETY: plain numbers; there is one thread to change.
    sys::check(unsafe { libc::setresgid(0, 0, 0) })?;
    // SAFETY: as above.
    sys::check(unsafe { libc::setresuid(0, 0, 0) }).map(drop)
}

fn set(namespace: &File, kind: libc::c_int) -> io::Result<()> {
    // SAFETY: the descriptor is open for the length of the call.
    sys::check(unsafe { libc::setns(namespace.as_raw_fd(), kind) }).map(drop)
}

fn is_ours(user: &File) -> io::Result<bool> {
    let (theirs, ours) = (user.metadata()?, std::fs::metadata("/proc/self/ns/user")?);
    Ok((theirs.dev(), theirs.ino()) == (ours.dev(), ours.ino()))
}

fn other(step: &'static str) -> impl Fn(io::Error) -> JoinError {
    move |source| JoinError::Other { step, source }
}
