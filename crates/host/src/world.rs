//! A world of our own for a lab: processes, mounts and, for an ordinary user,
//! privileges that end at its border.
//!
//! ```text
//!   longhaul (outside: waits, passes signals and the exit code on)
//!      └── process 1 of a PID namespace (inside: does all the work)
//!             └── programs
//! ```
//!
//! The kernel ends every process of a PID namespace when its process 1 ends,
//! and process 1 asks to be killed when the outside process dies. So whichever
//! of them is killed, at any moment, nothing is left: no process, and with the
//! last process no namespace, device or mount.

use crate::{signals, sys};
use std::ffi::CStr;
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::sync::OnceLock;

/// Why there can be no world of our own, and what to change.
#[derive(Debug, thiserror::Error)]
pub enum WorldError {
    /// Neither root nor user namespaces.
    #[error("a lab needs root or user namespaces, and this system refuses both: {remedy}")]
    NotPermitted {
        /// What to change.
        remedy: String,
    },
    /// Anything else.
    #[error("cannot set up the lab's processes ({step}): {source}")]
    Other {
        /// The step that failed.
        step: &'static str,
        /// What the system said.
        source: io::Error,
    },
}

/// How a world ended, seen from outside.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ended {
    /// With an exit code.
    Code(i32),
    /// Killed by a signal.
    Signal(i32),
}

static USER_OUTSIDE: OnceLock<u32> = OnceLock::new();

/// The number of the user, as it is outside of any world of ours: inside, an
/// ordinary user is number 0.
#[must_use]
pub fn user() -> u32 {
    // SAFETY: no arguments, cannot fail.
    *USER_OUTSIDE.get_or_init(|| unsafe { libc::geteuid() })
}

/// Runs `inside` as process 1 of a new world and waits for it.
///
/// Must be called while the process has one thread, as the child is a copy
/// of the calling thread alone. An ordinary user becomes root of a user
/// namespace, which counts for nothing outside it.
///
/// # Errors
/// [`WorldError`]; `inside` has not run then.
pub fn run(inside: impl FnOnce() -> i32) -> Result<Ended, WorldError> {
    single_thread().map_err(|source| WorldError::Other { step: "forking", source })?;
    let _ = user();
    if !may_make_namespaces() {
        become_root_of_a_user_namespace()?;
    }
    // SAFETY: plain flags. From here on children are born into the new PID namespace.
    sys::check(unsafe { libc::unshare(libc::CLONE_NEWPID) }).map_err(refused("PID namespace"))?;
    signals::hear_of_children();
    signals::block();
    let (alive, guard) =
        pipe().map_err(|source| WorldError::Other { step: "making a pipe", source })?;
    // SAFETY: the process has one thread, so the child is a whole copy of it.
    match sys::check(unsafe { libc::fork() }) {
        Err(source) => Err(WorldError::Other { step: "forking", source }),
        Ok(0) => {
            drop(guard);
            let code = match become_process_one(&alive) {
                Ok(()) => inside(),
                Err(error) => {
                    eprintln!("longhaul: {error}");
                    2
                }
            };
            std::process::exit(code)
        }
        Ok(child) => {
            drop(alive);
            let ended = signals::pass_on_until_end(child);
            drop(guard);
            ended.map_err(|source| WorldError::Other { step: "waiting for it", source })
        }
    }
}

/// Refuses a process with several threads: a fork would copy one of them, and
/// only a single one may enter other user and mount namespaces.
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

fn become_root_of_a_user_namespace() -> Result<(), WorldError> {
    // SAFETY: no arguments, cannot fail.
    let (user, group) = unsafe { (libc::geteuid(), libc::getegid()) };
    // SAFETY: plain flags.
    sys::check(unsafe { libc::unshare(libc::CLONE_NEWUSER) }).map_err(refused("user namespace"))?;
    let map =
        |file: &str, text: String| std::fs::write(file, text).map_err(refused("user namespace"));
    map("/proc/self/setgroups", "deny".to_owned())?;
    map("/proc/self/uid_map", format!("0 {user} 1"))?;
    map("/proc/self/gid_map", format!("0 {group} 1"))
}

/// Turns a refusal into what to change on the system at hand.
fn refused(step: &'static str) -> impl Fn(io::Error) -> WorldError {
    move |source| {
        let setting = |path: &str| {
            std::fs::read_to_string(path).map(|text| text.trim().to_owned()).unwrap_or_default()
        };
        let remedy = if setting("/proc/sys/kernel/apparmor_restrict_unprivileged_userns") == "1" {
            "run as root, or allow them: sysctl kernel.apparmor_restrict_unprivileged_userns=0"
        } else if setting("/proc/sys/kernel/unprivileged_userns_clone") == "0" {
            "run as root, or allow them: sysctl kernel.unprivileged_userns_clone=1"
        } else if setting("/proc/sys/user/max_user_namespaces") == "0" {
            "run as root, or allow them: sysctl user.max_user_namespaces=10000"
        } else if matches!(source.raw_os_error(), Some(libc::EPERM | libc::EACCES | libc::ENOSPC)) {
            "run as root; in a container, give it CAP_SYS_ADMIN and CAP_NET_ADMIN (docker run --privileged)"
        } else {
            return WorldError::Other { step, source };
        };
        WorldError::NotPermitted { remedy: remedy.to_owned() }
    }
}

fn become_process_one(alive: &OwnedFd) -> Result<(), WorldError> {
    let other = |step| move |source| WorldError::Other { step, source };
    if !die_with_parent(alive.as_raw_fd()).map_err(other("tying its life to ours"))? {
        std::process::exit(1);
    }
    // SAFETY: plain flags.
    sys::check(unsafe { libc::unshare(libc::CLONE_NEWNS) }).map_err(refused("mount namespace"))?;
    mount(None, c"/", None, libc::MS_REC | libc::MS_PRIVATE)
        .map_err(other("keeping its mounts private"))?;
    // Programs look themselves up in /proc by their number, which is another
    // inside. Containers that mask parts of /proc refuse a new one; the old one
    // then serves, with outside numbers.
    let _ = mount(
        Some(c"proc"),
        c"/proc",
        Some(c"proc"),
        libc::MS_NOSUID | libc::MS_NODEV | libc::MS_NOEXEC,
    );
    Ok(())
}

/// Asks the kernel to kill this process when the one that forked it dies, and
/// tells whether that one still lived: `alive` is the reading end of a pipe
/// whose other end only the parent holds.
///
/// Makes system calls only, so it may stand between fork and exec.
pub(crate) fn die_with_parent(alive: RawFd) -> io::Result<bool> {
    // SAFETY: plain numbers.
    sys::check(unsafe { libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL) })?;
    // The parent may have died before that call; then the far end of the pipe
    // is closed and nobody would ever kill us.
    let mut entry = libc::pollfd { fd: alive, events: 0, revents: 0 };
    // SAFETY: one live entry.
    Ok(unsafe { libc::poll(&raw mut entry, 1, 0) } <= 0)
}

/// Puts `text` in the place of the file at `path`, for this world alone.
///
/// # Errors
/// The system's own; `NotFound` where there is no such file to cover.
pub fn cover_file(path: &CStr, text: &str) -> io::Result<()> {
    // The text lives in a file system in memory that is seen only while it is
    // being covered: afterwards the cover alone keeps it.
    mount(Some(c"tmpfs"), c"/tmp", Some(c"tmpfs"), libc::MS_NOSUID | libc::MS_NODEV)?;
    let covered = std::fs::write("/tmp/cover", text)
        .and_then(|()| mount(Some(c"/tmp/cover"), path, None, libc::MS_BIND));
    // SAFETY: a valid path.
    sys::check(unsafe { libc::umount2(c"/tmp".as_ptr(), libc::MNT_DETACH) })?;
    covered
}

pub(crate) fn mount(
    source: Option<&CStr>,
    target: &CStr,
    kind: Option<&CStr>,
    flags: libc::c_ulong,
) -> io::Result<()> {
    let pointer = |text: Option<&CStr>| text.map_or(std::ptr::null(), CStr::as_ptr);
    // SAFETY: the strings live across the call; null is allowed where it stands.
    sys::check(unsafe {
        libc::mount(pointer(source), target.as_ptr(), pointer(kind), flags, std::ptr::null())
    })
    .map(drop)
}

pub(crate) fn pipe() -> io::Result<(OwnedFd, OwnedFd)> {
    let mut ends = [0; 2];
    // SAFETY: room for two descriptors, which are then ours.
    unsafe {
        sys::check(libc::pipe2(ends.as_mut_ptr(), libc::O_CLOEXEC))?;
        Ok((OwnedFd::from_raw_fd(ends[0]), OwnedFd::from_raw_fd(ends[1])))
    }
}
