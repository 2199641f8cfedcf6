//! Sandbox of a lab: a PID, a mount and, for an ordinary user, a user namespace,
//! whose privileges are valid inside only.
//!
//! ```text
//!   longhaul (outside: waits, forwards signals and the exit code)
//!      └── process 1 of a PID namespace (inside: does all the work)
//!             └── programs
//! ```
//!
//! The kernel ends every process of a PID namespace when its process 1 ends, and
//! process 1 has a parent death signal. So whichever of them is killed, nothing
//! is left: no process, and therefore no namespace, device or mount.

use crate::directory::effective_uid;
use crate::{signals, sys};
use rustix::mount::UnmountFlags;
use rustix::pipe::PipeFlags;
use rustix::process::Signal;
use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};
use std::ffi::CStr;
use std::fs::{File, OpenOptions};
use std::io;
use std::os::fd::{AsFd, AsRawFd, OwnedFd, RawFd};
use std::os::unix::fs::OpenOptionsExt;
use std::sync::OnceLock;

/// Why the sandbox cannot be created, and the remedy.
#[derive(Debug, thiserror::Error)]
pub enum SandboxError {
    /// Neither root nor user namespaces.
    #[error("a lab needs root or user namespaces, and neither is available: {remedy}")]
    NotPermitted {
        /// What to change.
        remedy: String,
    },
    /// Anything else.
    #[error("cannot create the sandbox of the lab ({step}): {source}")]
    Other {
        /// The step that failed.
        step: &'static str,
        /// The system error.
        source: io::Error,
    },
}

/// How the sandbox ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ended {
    /// With an exit code.
    Code(i32),
    /// Killed by a signal.
    Signal(i32),
}

static USER_OUTSIDE: OnceLock<u32> = OnceLock::new();
static GROUP_OUTSIDE: OnceLock<u32> = OnceLock::new();

/// The uid outside of the sandbox: inside, an ordinary user has uid 0.
#[must_use]
pub fn user() -> u32 {
    *USER_OUTSIDE.get_or_init(effective_uid)
}

/// The group ID outside of the sandbox.
pub(crate) fn group() -> u32 {
    *GROUP_OUTSIDE.get_or_init(|| rustix::process::getegid().as_raw())
}

/// Runs `inside` as process 1 of a new sandbox and waits for it.
///
/// Must be called while the process has one thread, as fork(2) copies the calling
/// thread alone. An ordinary user becomes root of a user namespace, with no
/// privileges outside of it.
///
/// # Errors
/// [`SandboxError`]; `inside` has not run then.
pub fn run(inside: impl FnOnce() -> i32) -> Result<Ended, SandboxError> {
    run_or(inside, |_| 2)
}

/// The same; where the first process of the sandbox cannot begin, `refused` reports it from there
/// and says how it exits.
///
/// # Errors
/// As [`run`].
pub fn run_or(
    inside: impl FnOnce() -> i32,
    refused: impl FnOnce(&SandboxError) -> i32,
) -> Result<Ended, SandboxError> {
    single_thread().map_err(|source| SandboxError::Other { step: "forking", source })?;
    let _ = (user(), group());
    if !may_make_namespaces() {
        become_root_of_a_user_namespace()?;
    }
    // SAFETY: plain flags. From here on children are in the new PID namespace.
    sys::check(unsafe { libc::unshare(libc::CLONE_NEWPID) })
        .map_err(permission_error("PID namespace"))?;
    signals::restore_sigchld();
    signals::block();
    let (alive, guard) =
        pipe().map_err(|source| SandboxError::Other { step: "making a pipe", source })?;
    // SAFETY: the process has one thread, so the child is a whole copy of it.
    match sys::check(unsafe { libc::fork() }) {
        Err(source) => Err(SandboxError::Other { step: "forking", source }),
        Ok(0) => {
            drop(guard);
            let code = match init_process(&alive) {
                Ok(()) => inside(),
                Err(error) => refused(&error),
            };
            std::process::exit(code)
        }
        Ok(child) => {
            drop(alive);
            let ended = signals::forward_until_exit(child);
            drop(guard);
            ended.map_err(|source| SandboxError::Other { step: "waiting for it", source })
        }
    }
}

/// Fails if the process has several threads: fork(2) would copy one of them, and
/// entering user and mount namespaces requires a single one.
pub(crate) fn single_thread() -> io::Result<()> {
    match std::fs::read_dir("/proc/self/task").map_or(1, Iterator::count) {
        1 => Ok(()),
        _ => Err(io::Error::other("the process already has several threads")),
    }
}

/// Whether `CAP_SYS_ADMIN` and `CAP_NET_ADMIN` are effective.
fn may_make_namespaces() -> bool {
    const NET_ADMIN: u64 = 1 << 12;
    const SYS_ADMIN: u64 = 1 << 21;
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let effective = status
        .lines()
        .find_map(|line| line.strip_prefix("CapEff:"))
        .and_then(|hex| u64::from_str_radix(hex.trim(), 16).ok())
        .unwrap_or_default();
    effective & (NET_ADMIN | SYS_ADMIN) == NET_ADMIN | SYS_ADMIN
}

fn become_root_of_a_user_namespace() -> Result<(), SandboxError> {
    let (user, group) = (effective_uid(), rustix::process::getegid().as_raw());
    // SAFETY: plain flags.
    sys::check(unsafe { libc::unshare(libc::CLONE_NEWUSER) })
        .map_err(permission_error("user namespace"))?;
    let map = |file: &str, text: String| {
        std::fs::write(file, text).map_err(permission_error("user namespace"))
    };
    map("/proc/self/setgroups", "deny".to_owned())?;
    map("/proc/self/uid_map", format!("0 {user} 1"))?;
    map("/proc/self/gid_map", format!("0 {group} 1"))
}

/// Adds the remedy for this system to a permission error.
fn permission_error(step: &'static str) -> impl Fn(io::Error) -> SandboxError {
    move |source| {
        let setting = |path: &str| {
            std::fs::read_to_string(path).map(|text| text.trim().to_owned()).unwrap_or_default()
        };
        let remedy = if setting("/proc/sys/kernel/apparmor_restrict_unprivileged_userns") == "1" {
            "run as root, or allow user namespaces: sysctl -w kernel.apparmor_restrict_unprivileged_userns=0"
        } else if setting("/proc/sys/kernel/unprivileged_userns_clone") == "0" {
            "run as root, or allow user namespaces: sysctl -w kernel.unprivileged_userns_clone=1"
        } else if setting("/proc/sys/user/max_user_namespaces") == "0" {
            "run as root, or allow user namespaces: sysctl -w user.max_user_namespaces=10000"
        } else if matches!(source.raw_os_error(), Some(libc::EPERM | libc::EACCES | libc::ENOSPC)) {
            "run as root; in a container, give it CAP_SYS_ADMIN and CAP_NET_ADMIN (docker run --privileged)"
        } else {
            return SandboxError::Other { step, source };
        };
        SandboxError::NotPermitted { remedy: remedy.to_owned() }
    }
}

fn init_process(alive: &OwnedFd) -> Result<(), SandboxError> {
    let other = |step| move |source| SandboxError::Other { step, source };
    if !die_with_parent(alive.as_raw_fd()).map_err(other("setting the parent death signal"))? {
        std::process::exit(1);
    }
    // SAFETY: plain flags.
    sys::check(unsafe { libc::unshare(libc::CLONE_NEWNS) })
        .map_err(permission_error("mount namespace"))?;
    make_mounts_private().map_err(other("making mounts private"))?;
    // Programs look themselves up in /proc by their PID inside. Containers that mask
    // parts of /proc refuse a new mount; then /proc shows the PIDs outside.
    let _ = mount(
        Some(c"proc"),
        c"/proc",
        Some(c"proc"),
        libc::MS_NOSUID | libc::MS_NODEV | libc::MS_NOEXEC,
    );
    Ok(())
}

/// Makes what is mounted from here on visible here only. The root directory of a chroot is not
/// the root of a mount, so that is done from the namespace's own root directory.
fn make_mounts_private() -> io::Result<()> {
    let private = || mount(None, c"/", None, libc::MS_REC | libc::MS_PRIVATE);
    match private() {
        Err(error) if error.raw_os_error() == Some(libc::EINVAL) => {}
        result => return result,
    }
    let root = open_root("/")?;
    let namespace = File::open("/proc/self/ns/mnt")
        .map_err(|_| io::Error::other("a chroot needs /proc: mount -t proc proc /proc"))?;
    // Changes the root directory to the namespace's own.
    move_into_link_name_space(namespace.as_fd(), Some(LinkNameSpaceType::Mount))?;
    let made = private();
    change_root(&root)?;
    made
}

/// Opens a directory to be the root directory.
pub(crate) fn open_root(path: &str) -> io::Result<File> {
    OpenOptions::new().read(true).custom_flags(libc::O_PATH | libc::O_DIRECTORY).open(path)
}

/// Makes a directory the root and working directory of this process.
pub(crate) fn change_root(root: &File) -> io::Result<()> {
    rustix::process::fchdir(root)?;
    Ok(rustix::process::chroot(c".")?)
}

/// Sets the parent death signal to SIGKILL, and returns whether the parent was
/// still alive then: `alive` is the read end of a pipe whose other end only the
/// parent holds.
///
/// Makes system calls only, so it may be called between fork and exec.
pub(crate) fn die_with_parent(alive: RawFd) -> io::Result<bool> {
    rustix::process::set_parent_process_death_signal(Some(Signal::KILL))?;
    // If the parent died before that call, the signal never comes; the pipe's write
    // end is closed then.
    let mut entry = libc::pollfd { fd: alive, events: 0, revents: 0 };
    // SAFETY: one live entry.
    Ok(unsafe { libc::poll(&raw mut entry, 1, 0) } <= 0)
}

/// Mounts a file with content `text` over the file at `path`, in this sandbox only.
///
/// # Errors
/// The system error; `NotFound` if there is no file at `path`.
pub fn bind_file(path: &CStr, text: &str) -> io::Result<()> {
    // The file is in a tmpfs that is unmounted at once: afterwards only the bind
    // mount keeps it.
    mount(Some(c"tmpfs"), c"/tmp", Some(c"tmpfs"), libc::MS_NOSUID | libc::MS_NODEV)?;
    let covered = std::fs::write("/tmp/cover", text)
        .and_then(|()| mount(Some(c"/tmp/cover"), path, None, libc::MS_BIND));
    rustix::mount::unmount(c"/tmp", UnmountFlags::DETACH)?;
    covered
}

pub(crate) fn mount(
    source: Option<&CStr>,
    target: &CStr,
    kind: Option<&CStr>,
    flags: libc::c_ulong,
) -> io::Result<()> {
    mount_with(source, target, kind, flags, None)
}

/// With the file system's own options.
pub(crate) fn mount_with(
    source: Option<&CStr>,
    target: &CStr,
    kind: Option<&CStr>,
    flags: libc::c_ulong,
    options: Option<&CStr>,
) -> io::Result<()> {
    let pointer = |text: Option<&CStr>| text.map_or(std::ptr::null(), CStr::as_ptr);
    let options = pointer(options).cast();
    // SAFETY: the strings live across the call; the arguments that are null may be.
    sys::check(unsafe {
        libc::mount(pointer(source), target.as_ptr(), pointer(kind), flags, options)
    })
    .map(drop)
}

pub(crate) fn pipe() -> io::Result<(OwnedFd, OwnedFd)> {
    Ok(rustix::pipe::pipe_with(PipeFlags::CLOEXEC)?)
}
