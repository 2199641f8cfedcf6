//! Gives up privileges for good, once everything that needs them is open.

use crate::directory::effective_uid;
use crate::identity;
use crate::sys;
use std::io;
use std::thread;

/// The user and the group without privileges: nobody and nogroup (Linux's overflow IDs).
pub(crate) const NOBODY: u32 = 65_534;

/// A user and a group.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct User {
    /// User ID.
    pub uid: u32,
    /// Group ID.
    pub gid: u32,
}

impl User {
    /// Who to become instead of root: the one who called sudo(8), or nobody. `None` for an
    /// ordinary user, also where that one is root of its own user namespace.
    #[must_use]
    pub fn instead_of_root() -> Option<User> {
        let number = |name| std::env::var(name).ok()?.parse().ok().filter(|number| *number > 0);
        identity::is_root().then(|| {
            let caller = number("SUDO_UID").zip(number("SUDO_GID"));
            let (uid, gid) = caller.unwrap_or((NOBODY, NOBODY));
            User { uid, gid }
        })
    }

    /// Whether it is the one who called sudo(8), and not nobody.
    #[must_use]
    pub fn is_caller(self) -> bool {
        self.uid != NOBODY
    }
}

/// Gives up every capability of the calling thread, and what exec could give. Root becomes
/// `user` if there is one. To be called before other threads are started.
///
/// # Errors
/// The system error; privileges may then remain, and the caller must not go on.
pub fn drop(user: Option<User>) -> io::Result<()> {
    // Of this namespace: a bounding set can only be reduced with CAP_SETPCAP.
    for capability in 0..=63 {
        // SAFETY: plain numbers; beyond the last capability, or without the right to, it fails.
        if unsafe { libc::prctl(libc::PR_CAPBSET_DROP, capability, 0, 0, 0) } == -1 {
            break;
        }
    }
    if let Some(User { uid, gid }) = user {
        // SAFETY: plain numbers; an empty list is never read.
        unsafe {
            sys::check(libc::setgroups(0, std::ptr::null()))?;
            sys::check(libc::setresgid(gid, gid, gid))?;
            sys::check(libc::setresuid(uid, uid, uid))?;
        }
    }
    // SAFETY: plain numbers.
    unsafe {
        sys::check(libc::prctl(libc::PR_CAP_AMBIENT, libc::PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0))?;
        sys::check(libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))?;
    }
    clear_capabilities()?;
    if user.is_some() && effective_uid() == 0 {
        return Err(io::Error::other("still root"));
    }
    Ok(())
}

/// Calls `work` with the rights to files that a user has, and no others: by its user and group,
/// without other groups and without root's. On a thread of its own, as only that thread's
/// credentials change, which end with it.
///
/// # Errors
/// The system error, also if there can be no thread, and those of `work`.
pub fn with_rights_of<T: Send>(
    user: User,
    work: impl FnOnce() -> io::Result<T> + Send,
) -> io::Result<T> {
    thread::scope(|scope| {
        let run = || take_file_rights(user).and_then(|()| work());
        let thread = thread::Builder::new().name("files of a user".to_owned());
        let thread = thread.spawn_scoped(scope, run)?;
        thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    })
}

/// Sets the IDs that the kernel checks for files, of this thread alone (credentials(7)). Root
/// loses its capabilities for files with its user ID (capabilities(7)).
fn take_file_rights(User { uid, gid }: User) -> io::Result<()> {
    // SAFETY: plain numbers; an empty list is never read. The C library's setgroups would change
    // every thread.
    if unsafe { libc::syscall(libc::SYS_setgroups, 0, std::ptr::null::<libc::gid_t>()) } == -1 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: plain numbers. Both return the previous ID, and say nothing of errors: an invalid ID
    // changes nothing and returns the current one.
    let set = unsafe {
        libc::setfsgid(gid);
        libc::setfsuid(uid);
        [libc::setfsgid(u32::MAX), libc::setfsuid(u32::MAX)].map(libc::c_int::cast_unsigned)
    };
    if set == [gid, uid] { Ok(()) } else { Err(io::ErrorKind::PermissionDenied.into()) }
}

/// capset(2) with empty sets.
fn clear_capabilities() -> io::Result<()> {
    /// `_LINUX_CAPABILITY_VERSION_3` of linux/capability.h: two structures of 32 bits each.
    const VERSION: u32 = 0x2008_0522;
    let header: [u32; 2] = [VERSION, 0];
    let none = [0_u32; 6];
    // SAFETY: both arrays have the layout that this version of the call reads.
    let result = unsafe { libc::syscall(libc::SYS_capset, header.as_ptr(), none.as_ptr()) };
    if result == -1 { Err(io::Error::last_os_error()) } else { Ok(()) }
}
