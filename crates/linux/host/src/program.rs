//! Runs programs in network namespaces and collects their exit codes.

use crate::lock::{lock, wait};
use crate::netns::NetNs;
use crate::{sandbox, signals, sys};
use rustix::fs::{Mode, OFlags};
use std::collections::HashMap;
use std::ffi::{CStr, OsString};
use std::io;
use std::os::fd::{AsFd, AsRawFd, RawFd};
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};
use std::sync::{Arc, Condvar, Mutex, OnceLock, PoisonError};

/// How a program ended: its exit code, or 128 plus the number of the signal that
/// killed it, as in a shell.
pub type ExitCode = i32;

/// Reaps all descendants. Process 1 of a sandbox has to: it inherits orphans.
#[derive(Debug, Clone)]
pub struct Reaper {
    shared: Arc<Shared>,
    path: Option<OsString>,
    /// Environment variables of its programs.
    variables: Vec<(OsString, OsString)>,
    /// Who its programs run as.
    identity: Identity,
}

/// Who a program in a sandbox is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Identity {
    /// Root of the sandbox, with its privileges.
    #[default]
    Root,
    /// Whoever started the sandbox, without privileges: names, home directories and files are as
    /// outside. Root stays root.
    Caller,
}

#[derive(Debug, Default)]
struct Shared {
    known: Mutex<Children>,
    changed: Condvar,
    /// Held while a program is started and registered: if starting fails, the
    /// standard library itself waits for the child and must find it.
    starting: Mutex<()>,
}

/// A process ID is reused only after its process has been waited for
/// (pid_namespaces(7)). Waiting and removing the ID happen under one lock.
#[derive(Debug, Default)]
struct Children {
    started: u64,
    /// Programs that have not ended, by process ID. Without orphans, whose exit codes
    /// nobody needs.
    running: HashMap<u32, Arc<OnceLock<ExitCode>>>,
}

/// Standard streams of a program.
#[derive(Debug)]
pub enum Streams {
    /// Inherited.
    Ours,
    /// No input; all output goes to standard error.
    Errors,
    /// No input; all output goes into a pipe.
    Pipe(io::PipeWriter),
}

/// A program that was started.
#[derive(Debug, Clone)]
pub struct Program {
    id: u32,
    /// Exit code, once it has ended.
    end: Arc<OnceLock<ExitCode>>,
    reaper: Reaper,
}

impl Reaper {
    /// Starts reaping, on a thread that lives as long as the process. Programs are
    /// searched for in `path`, if given, which also becomes their own `PATH`.
    #[must_use]
    pub fn start(path: Option<OsString>) -> Self {
        let (variables, identity) = (Vec::new(), Identity::default());
        let reaper = Reaper { shared: Arc::default(), path, variables, identity };
        let shared = Arc::clone(&reaper.shared);
        std::thread::spawn(move || collect(&shared));
        reaper
    }

    /// Sets an environment variable of the programs that are started from here on.
    pub fn set_variable(&mut self, name: impl Into<OsString>, value: impl Into<OsString>) {
        self.variables.push((name.into(), value.into()));
    }

    /// Sets who the programs run as that are started from here on.
    pub const fn set_identity(&mut self, identity: Identity) {
        self.identity = identity;
    }

    /// Starts `arguments` (the program first) in a network namespace.
    ///
    /// # Errors
    /// The system error if the program cannot be started.
    pub fn start_program(
        &self,
        namespace: &NetNs,
        arguments: &[OsString],
        streams: Streams,
    ) -> io::Result<Program> {
        let mut command = command(arguments)?;
        if let Some(path) = &self.path {
            command.env("PATH", path);
        }
        command.envs(self.variables.iter().map(|(name, value)| (name, value)));
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
        let caller = match self.identity {
            Identity::Root => None,
            Identity::Caller => CallerMaps::new(),
        };
        // SAFETY: between fork and exec only system calls are made, on plain
        // numbers and strings that live already. The descriptor is open in the child too.
        unsafe {
            command.pre_exec(move || {
                signals::unblock();
                enter_host(handle)?;
                caller.as_ref().map_or(Ok(()), CallerMaps::enter)
            });
        }
        self.spawn(command)
    }

    /// Starts a program and registers it.
    pub(crate) fn spawn(&self, mut command: Command) -> io::Result<Program> {
        let starting = lock(&self.shared.starting);
        let child = command.spawn()?;
        let end = Arc::new(OnceLock::new());
        let mut known = lock(&self.shared.known);
        known.started += 1;
        known.running.insert(child.id(), Arc::clone(&end));
        drop(known);
        drop(starting);
        self.shared.changed.notify_all();
        Ok(Program { id: child.id(), end, reaper: self.clone() })
    }
}

impl Program {
    /// Process ID; may be reused once the program has ended.
    #[must_use]
    pub const fn id(&self) -> u32 {
        self.id
    }

    /// Waits for its end.
    #[must_use]
    pub fn wait(&self) -> ExitCode {
        let Shared { known, changed, .. } = &*self.reaper.shared;
        let mut known = lock(known);
        loop {
            if let Some(code) = self.end.get() {
                return *code;
            }
            known = wait(changed, known);
        }
    }

    /// Waits for its end, at most `limit`.
    #[must_use]
    pub fn wait_at_most(&self, limit: std::time::Duration) -> Option<ExitCode> {
        let Shared { known, changed, .. } = &*self.reaper.shared;
        let waited = changed.wait_timeout_while(lock(known), limit, |_| self.end.get().is_none());
        drop(waited.unwrap_or_else(PoisonError::into_inner));
        self.ended()
    }

    /// Exit code, if it has ended.
    #[must_use]
    pub fn ended(&self) -> Option<ExitCode> {
        self.end.get().copied()
    }

    /// Sends a signal.
    pub fn signal(&self, signal: i32) {
        self.send(signal, |id| id);
    }

    /// Sends a signal to all of its process group, which it must be the leader of.
    pub(crate) fn signal_group(&self, signal: i32) {
        self.send(signal, |id| -id);
    }

    fn send(&self, signal: i32, to: impl Fn(libc::pid_t) -> libc::pid_t) {
        // While this is locked, nothing is reaped.
        let known = lock(&self.reaper.shared.known);
        if self.ended().is_none()
            && let Ok(id) = libc::pid_t::try_from(self.id)
        {
            // SAFETY: plain numbers. The process was not waited for, so the
            // number is its own even where it has just ended.
            unsafe { libc::kill(to(id), signal) };
        }
        drop(known);
    }
}

/// True while this process has children. Process 1 of a sandbox gets the orphans of its programs as
/// children: without any, no descendant is left.
#[must_use]
pub fn has_children() -> bool {
    // SAFETY: the structure lives across the call, which takes nothing.
    let waited = unsafe {
        let mut info: libc::siginfo_t = std::mem::zeroed();
        let flags = libc::WEXITED | libc::WNOWAIT | libc::WNOHANG;
        sys::check(libc::waitid(libc::P_ALL, 0, &raw mut info, flags))
    };
    waited.is_ok()
}

/// A command of `arguments`, the program first.
pub(crate) fn command(arguments: &[OsString]) -> io::Result<Command> {
    let [program, arguments @ ..] = arguments else {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "no program given"));
    };
    let mut command = Command::new(program);
    command.args(arguments);
    Ok(command)
}

/// Moves a process that is about to exec into a lab host: its network namespace,
/// and a /sys that shows the devices there.
///
/// Makes system calls only, so it may be called between fork and exec.
pub(crate) fn enter_host(network: RawFd) -> io::Result<()> {
    // SAFETY: plain numbers; a descriptor that is not a namespace is refused.
    sys::check(unsafe { libc::setns(network, libc::CLONE_NEWNET) })?;
    // /sys shows the devices of the namespace it was mounted in. Programs also work
    // if it cannot be remounted.
    // SAFETY: plain flags.
    if unsafe { libc::unshare(libc::CLONE_NEWNS) } == 0 {
        let _ = sandbox::mount(Some(c"sysfs"), c"/sys", Some(c"sysfs"), 0);
    }
    Ok(())
}

/// The user namespace in which root of the sandbox is the user outside again.
struct CallerMaps {
    users: String,
    groups: String,
}

impl CallerMaps {
    /// `None` where the sandbox has no user namespace: its root is the system's.
    fn new() -> Option<Self> {
        let (user, group) = (sandbox::user(), sandbox::group());
        let own = crate::directory::effective_uid();
        (own != user).then(|| CallerMaps {
            users: format!("{user} {own} 1"),
            groups: format!("{group} {} 1", rustix::process::getegid().as_raw()),
        })
    }

    /// Makes system calls only, so it may be called between fork and exec.
    fn enter(&self) -> io::Result<()> {
        // SAFETY: plain flags.
        sys::check(unsafe { libc::unshare(libc::CLONE_NEWUSER) })?;
        write_whole(c"/proc/self/setgroups", b"deny")?;
        write_whole(c"/proc/self/uid_map", self.users.as_bytes())?;
        write_whole(c"/proc/self/gid_map", self.groups.as_bytes())
    }
}

/// Writes a file of /proc. Makes system calls only.
fn write_whole(path: &CStr, text: &[u8]) -> io::Result<()> {
    let file = rustix::fs::open(path, OFlags::WRONLY | OFlags::CLOEXEC, Mode::empty())?;
    rustix::io::write(file, text)?;
    Ok(())
}

/// How often to check for orphans of programs started from outside.
const ORPHAN_POLL_INTERVAL: std::time::Duration = std::time::Duration::from_secs(1);

fn collect(shared: &Shared) {
    loop {
        let started = lock(&shared.known).started;
        // SAFETY: the structure lives across the call.
        let waited = unsafe {
            let mut info: libc::siginfo_t = std::mem::zeroed();
            sys::check(libc::waitid(libc::P_ALL, 0, &raw mut info, libc::WEXITED | libc::WNOWAIT))
                .map(|_| info.si_pid())
        };
        let Ok(id) = waited else {
            // No child at all. The next one is a new program, or an orphan of a program
            // started from outside.
            let known = lock(&shared.known);
            let unchanged = |known: &mut Children| known.started == started;
            drop(shared.changed.wait_timeout_while(known, ORPHAN_POLL_INTERVAL, unchanged));
            continue;
        };
        let starting = lock(&shared.starting);
        let mut known = lock(&shared.known);
        let mut status = 0;
        // SAFETY: `status` lives across the call.
        let collected = unsafe { libc::waitpid(id, &raw mut status, libc::WNOHANG) } == id;
        if collected {
            let code = if libc::WIFEXITED(status) {
                libc::WEXITSTATUS(status)
            } else {
                128 + libc::WTERMSIG(status)
            };
            if let Some(end) = known.running.remove(&id.unsigned_abs()) {
                // Set once.
                let _ = end.set(code);
            }
            shared.changed.notify_all();
        }
        drop(known);
        drop(starting);
    }
}
