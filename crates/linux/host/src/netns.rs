//! Unnamed network namespaces, which exist only as long as a descriptor or a
//! process holds them.

use crate::sys;
use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};

/// A network namespace. It exists while a [`NetNs`], a thread inside, a device's
/// file or a socket does; it has no name in the file system.
#[derive(Debug)]
pub struct NetNs {
    handle: OwnedFd,
}

impl NetNs {
    /// Creates an empty namespace: a loopback device, down.
    ///
    /// # Errors
    /// The system error if the caller may not create namespaces.
    pub fn create() -> io::Result<Self> {
        // unshare(2) moves the calling thread: a temporary thread leaves the caller
        // where it is.
        std::thread::scope(|scope| {
            let made = scope.spawn(|| -> io::Result<OwnedFd> {
                // SAFETY: unshare takes a flag and touches no memory of ours.
                sys::check(unsafe { libc::unshare(libc::CLONE_NEWNET) })?;
                Ok(File::open("/proc/thread-self/ns/net")?.into())
            });
            made.join().unwrap_or_else(|_| Err(io::Error::other("the namespace thread panicked")))
        })
        .map(|handle| NetNs { handle })
    }

    /// The calling thread's namespace.
    ///
    /// # Errors
    /// The system error.
    pub fn current() -> io::Result<Self> {
        Ok(NetNs { handle: File::open("/proc/thread-self/ns/net")?.into() })
    }

    /// Duplicates the handle.
    ///
    /// # Errors
    /// The system error if descriptors have run out.
    pub fn clone_handle(&self) -> io::Result<Self> {
        Ok(NetNs { handle: self.handle.try_clone()? })
    }

    /// Runs `work` on a thread inside the namespace and waits for it. Sockets
    /// created and threads started there belong to the namespace.
    ///
    /// # Errors
    /// The system error if there is no thread, or the namespace cannot be entered.
    pub fn run<T: Send>(&self, work: impl FnOnce() -> T + Send) -> io::Result<T> {
        std::thread::scope(|scope| {
            let inside = std::thread::Builder::new().spawn_scoped(scope, || -> io::Result<T> {
                enter(self.handle.as_fd())?;
                Ok(work())
            })?;
            match inside.join() {
                Ok(result) => result,
                Err(panic) => std::panic::resume_unwind(panic),
            }
        })
    }
}

impl AsFd for NetNs {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.handle.as_fd()
    }
}

/// `NS_GET_NSTYPE` (linux/nsfs.h): the type of a namespace file.
const NS_GET_NSTYPE: libc::Ioctl = 0xb703;

/// Checks that the file is a network namespace.
///
/// # Errors
/// `InvalidInput` if it is not.
pub(crate) fn check(file: BorrowedFd<'_>) -> io::Result<()> {
    // SAFETY: the request takes no argument; a file of another kind refuses it.
    if unsafe { libc::ioctl(file.as_raw_fd(), NS_GET_NSTYPE) } == libc::CLONE_NEWNET {
        return Ok(());
    }
    Err(io::Error::new(io::ErrorKind::InvalidInput, "the file is not a network namespace"))
}

/// Moves the calling thread into a network namespace permanently.
///
/// # Errors
/// The system error.
pub fn enter(handle: BorrowedFd<'_>) -> io::Result<()> {
    Ok(move_into_link_name_space(handle, Some(LinkNameSpaceType::Network))?)
}
