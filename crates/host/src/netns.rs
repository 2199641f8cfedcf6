//! Network namespaces without a name: held by a file descriptor, gone with
//! the process.

use crate::sys;
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};

/// A network namespace of our own. While a [`NetNs`], a thread inside, a
/// device's file or a socket lives, it lives; nothing in the file system
/// points to it.
#[derive(Debug)]
pub struct NetNs {
    handle: OwnedFd,
}

impl NetNs {
    /// Makes an empty namespace: one loopback device, down.
    ///
    /// # Errors
    /// The system's own where the caller may not make namespaces.
    pub fn create() -> io::Result<Self> {
        // A namespace belongs to a thread; one made for the purpose leaves the
        // caller where it was.
        std::thread::scope(|scope| {
            let made = scope.spawn(|| -> io::Result<OwnedFd> {
                // SAFETY: unshare takes a flag and touches no memory of ours.
                sys::check(unsafe { libc::unshare(libc::CLONE_NEWNET) })?;
                Ok(File::open("/proc/thread-self/ns/net")?.into())
            });
            made.join().unwrap_or_else(|_| Err(io::Error::other("the namespace's thread died")))
        })
        .map(|handle| NetNs { handle })
    }

    /// The calling thread's own.
    ///
    /// # Errors
    /// The system's own.
    pub fn current() -> io::Result<Self> {
        Ok(NetNs { handle: File::open("/proc/thread-self/ns/net")?.into() })
    }

    /// Another handle on the same namespace.
    ///
    /// # Errors
    /// The system's own where it is out of descriptors.
    pub fn clone_handle(&self) -> io::Result<Self> {
        Ok(NetNs { handle: self.handle.try_clone()? })
    }

    /// Runs `work` on a thread inside the namespace and waits for it. Sockets
    /// made and threads started there belong to the namespace.
    ///
    /// # Errors
    /// The system's own where the namespace cannot be entered.
    pub fn run<T: Send>(&self, work: impl FnOnce() -> T + Send) -> io::Result<T> {
        std::thread::scope(|scope| {
            let inside = scope.spawn(|| -> io::Result<T> {
                enter(self.handle.as_fd())?;
                Ok(work())
            });
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

/// `NS_GET_NSTYPE` (linux/nsfs.h): which kind of namespace a file stands for.
const NS_GET_NSTYPE: libc::Ioctl = 0xb703;

/// Whether the file stands for a network namespace.
///
/// # Errors
/// `InvalidInput` where it does not.
pub(crate) fn check(file: BorrowedFd<'_>) -> io::Result<()> {
    // SAFETY: the request takes no argument; a file of another kind refuses it.
    if unsafe { libc::ioctl(file.as_raw_fd(), NS_GET_NSTYPE) } == libc::CLONE_NEWNET {
        return Ok(());
    }
    Err(io::Error::new(io::ErrorKind::InvalidInput, "the file is no network namespace"))
}

/// Moves the calling thread into a network namespace for good.
///
/// # Errors
/// The system's own.
pub fn enter(handle: BorrowedFd<'_>) -> io::Result<()> {
    // SAFETY: the descriptor is open for the length of the call.
    sys::check(unsafe { libc::setns(handle.as_raw_fd(), libc::CLONE_NEWNET) }).map(drop)
}
