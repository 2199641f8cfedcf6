//! Runs a program on a host of a running lab, as nsenter(1) would.
//!
//! ```text
//!   longhaul (outside: waits, passes signals and the exit code on)
//!   longhaul (outside: waits, forwards signals and the exit code)
//!      └── program (in the lab's PID, mount and user namespaces and in one
//! ```

use crate::control::Connection;
use crate::program::{self, ExitCode};
use crate::sandbox::{self, Ended};
use crate::{netns, signals, sys};
use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};
use std::ffi::{OsStr, OsString};
use std::fs::{File, OpenOptions};
use std::io;
use std::os::fd::{AsFd, AsRawFd, RawFd};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};

/// Why a program cannot be run on a lab host.
#[derive(Debug, thiserror::Error)]
pub enum JoinError {
    /// The lab has ended meanwhile.
    #[error("the lab has ended")]
    Ended,
    /// The program is missing or cannot be started.
    #[error("cannot start {program}: {source}")]
    Start {
        /// The program's name.
        program: String,
        /// The system error.
        source: io::Error,
    },
    /// Anything else.
    #[error("cannot enter the lab ({step}): {source}")]
    Other {
        /// The step that failed.
        step: &'static str,
        /// The system error.
        source: io::Error,
    },
}

/// The namespaces of one host of a running lab, as open files.
#[derive(Debug)]
pub struct HostNamespaces {
    /// The lab's user namespace, if it is not ours.
    user: Option<File>,
    processes: File,
    mounts: File,
    /// The lab's root directory, that of a chroot if it was started in one.
    root: File,
    network: File,
}

impl HostNamespaces {
    /// Opens the namespaces of the lab connected by `lab`, and the network
    /// namespace of one host, which is file descriptor `network` of that process.
    ///
    /// # Errors
    /// [`JoinError`].
    pub fn open(lab: &Connection, network: RawFd) -> Result<Self, JoinError> {
        let process = lab.peer_pid().ok_or(JoinError::Ended)?;
        let opened = Self::open_of(process, network);
        // A process ID can be reused once its process has ended; while the lab is
        // connected it has not.
        if lab.is_open() { opened } else { Err(JoinError::Ended) }
    }

    fn open_of(process: u32, network: RawFd) -> Result<Self, JoinError> {
        let open = |step, name: String| {
            OpenOptions::new()
                .read(true)
                // A descriptor that is a FIFO instead of a namespace must not block.
                .custom_flags(libc::O_NONBLOCK | libc::O_CLOEXEC)
                .open(format!("/proc/{process}/{name}"))
                .map_err(other(step))
        };
        let user = open("opening its user namespace", "ns/user".to_owned())?;
        let network = open("opening the host's network namespace", format!("fd/{network}"))?;
        netns::check(network.as_fd()).map_err(other("finding the host's network namespace"))?;
        Ok(HostNamespaces {
            user: if is_ours(&user).map_err(other("comparing user namespaces"))? {
                None
            } else {
                Some(user)
            },
            processes: open("opening its PID namespace", "ns/pid".to_owned())?,
            mounts: open("opening its mount namespace", "ns/mnt".to_owned())?,
            root: sandbox::open_root(&format!("/proc/{process}/root"))
                .map_err(other("opening its root directory"))?,
            network,
        })
    }

    /// Runs `arguments` (the program first) on the host with our standard streams but for
    /// `output`, its standard output, and, if it exists there, in our working directory, and
    /// waits for its end.
    /// Programs are searched for in `path`, if given.
    ///
    /// Signals sent to this process alone are forwarded; those from a terminal reach
    /// the program directly, as it stays in our process group.
    ///
    /// Must be called while the process has one thread. The process stays in the
    /// lab's namespaces, also after an error.
    ///
    /// # Errors
    /// [`JoinError`]. If the lab ends, the program is killed: exit code 137.
    pub fn run(
        self,
        arguments: &[OsString],
        path: Option<&OsStr>,
        output: Stdio,
    ) -> Result<ExitCode, JoinError> {
        sandbox::single_thread().map_err(other("entering namespaces"))?;
        let [name, arguments @ ..] = arguments else {
            let source = io::Error::new(io::ErrorKind::InvalidInput, "no program given");
            return Err(JoinError::Start { program: String::new(), source });
        };
        let mut command = Command::new(name);
        command.args(arguments).stdout(output);
        if let Some(path) = path {
            command.env("PATH", path);
        }
        self.enter()?;
        signals::restore_sigchld();
        signals::block();
        let (alive, guard) = sandbox::pipe().map_err(other("making a pipe"))?;
        let numbers = (alive.as_raw_fd(), guard.as_raw_fd(), self.network.as_raw_fd());
        // SAFETY: between fork and exec only system calls are made, on plain numbers
        // and static strings. The three descriptors are open in the child too; the
        // guard is closed there and not used again.
        unsafe {
            command.pre_exec(move || {
                let (alive, guard, network) = numbers;
                libc::close(guard);
                if !sandbox::die_with_parent(alive)? {
                    libc::_exit(1);
                }
                signals::unblock();
                program::enter_host(network)
            });
        }
        let child = command.spawn().map_err(|source| {
            // Process 1 has ended: no process can be added to its PID namespace.
            if source.raw_os_error() == Some(libc::ENOMEM) {
                return JoinError::Ended;
            }
            JoinError::Start { program: name.to_string_lossy().into_owned(), source }
        })?;
        drop(alive);
        let ended = signals::forward_until_exit(child.id().cast_signed());
        drop(guard);
        match ended.map_err(other("waiting for the program"))? {
            Ended::Code(code) => Ok(code),
            Ended::Signal(signal) => Ok(128 + signal),
        }
    }

    /// Moves this process into the lab's user and mount namespaces, and its children
    /// into the PID namespace. The network namespace is left to the program: this
    /// process can wait in its own.
    fn enter(&self) -> Result<(), JoinError> {
        let folder = std::env::current_dir();
        if let Some(user) = &self.user {
            become_its_root(user).map_err(other("entering its user namespace"))?;
        }
        set(&self.processes, LinkNameSpaceType::ProcessID)
            .map_err(other("entering its PID namespace"))?;
        // Changes the working directory to the root directory.
        set(&self.mounts, LinkNameSpaceType::Mount)
            .map_err(other("entering its mount namespace"))?;
        // Which is that of the namespace: a chroot is below it.
        sandbox::change_root(&self.root).map_err(other("entering its root directory"))?;
        if let Ok(folder) = folder {
            // If it fails, the working directory is the root directory.
            let _ = std::env::set_current_dir(folder);
        }
        Ok(())
    }
}

/// Enters a user namespace and becomes root in it.
fn become_its_root(user: &File) -> io::Result<()> {
    // When the host's root enters a user's lab, drops its groups. An ordinary user
    // may not change groups: the lab has the same ones.
    // SAFETY: an empty list is never read.
    unsafe { libc::setgroups(0, std::ptr::null()) };
    set(user, LinkNameSpaceType::User)?;
    // SAFETY: plain numbers; there is one thread to change.
    sys::check(unsafe { libc::setresgid(0, 0, 0) })?;
    // SAFETY: as above.
    sys::check(unsafe { libc::setresuid(0, 0, 0) }).map(drop)
}

fn set(namespace: &File, kind: LinkNameSpaceType) -> io::Result<()> {
    Ok(move_into_link_name_space(namespace.as_fd(), Some(kind))?)
}

fn is_ours(user: &File) -> io::Result<bool> {
    let (theirs, ours) = (user.metadata()?, std::fs::metadata("/proc/self/ns/user")?);
    Ok((theirs.dev(), theirs.ino()) == (ours.dev(), ours.ino()))
}

fn other(step: &'static str) -> impl Fn(io::Error) -> JoinError {
    move |source| JoinError::Other { step, source }
}
