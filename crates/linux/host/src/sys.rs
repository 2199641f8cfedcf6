//! The convention of system calls: -1 means that errno is set.

use std::io;
use std::os::fd::{AsFd, AsRawFd};

pub(crate) fn check(result: libc::c_int) -> io::Result<libc::c_int> {
    if result == -1 { Err(io::Error::last_os_error()) } else { Ok(result) }
}

/// Repeats a call while it fails with EINTR.
pub(crate) fn retry(mut call: impl FnMut() -> isize) -> io::Result<usize> {
    loop {
        match usize::try_from(call()) {
            Ok(done) => return Ok(done),
            Err(_) => {
                let error = io::Error::last_os_error();
                if error.kind() != io::ErrorKind::Interrupted {
                    return Err(error);
                }
            }
        }
    }
}

/// Reads a socket option that is an integer (getsockopt(2)).
pub(crate) fn int_option(
    socket: &impl AsFd,
    level: libc::c_int,
    option: libc::c_int,
) -> io::Result<libc::c_int> {
    number_option(socket, level, option)
}

/// A C type whose every bit pattern is a value: a number, a pointer, or a structure of those.
///
/// # Safety
/// Zeros and whatever the kernel writes are a value of it.
pub(crate) unsafe trait Plain {}

// SAFETY: numbers.
unsafe impl Plain for u8 {}
// SAFETY: as above.
unsafe impl Plain for u32 {}
// SAFETY: as above.
unsafe impl Plain for u64 {}
// SAFETY: as above.
unsafe impl Plain for libc::c_int {}
// SAFETY: structures of numbers and pointers.
unsafe impl Plain for libc::iovec {}
// SAFETY: as above.
unsafe impl Plain for libc::msghdr {}
// SAFETY: as above.
unsafe impl Plain for libc::mmsghdr {}
// SAFETY: as above.
unsafe impl Plain for libc::ifreq {}
// SAFETY: as above.
unsafe impl Plain for libc::sockaddr_ll {}
// SAFETY: as above.
unsafe impl Plain for libc::addrinfo {}
// SAFETY: so many of them.
unsafe impl<T: Plain, const N: usize> Plain for [T; N] {}

/// A value of zeros.
pub(crate) fn zeroed<T: Plain>() -> T {
    // SAFETY: zeros are a value of it.
    unsafe { std::mem::zeroed() }
}

/// Fills `value` with a socket option (getsockopt(2)); how many bytes the kernel wrote.
pub(crate) fn get_option<T: Plain>(
    socket: &impl AsFd,
    level: libc::c_int,
    option: libc::c_int,
    value: &mut T,
) -> io::Result<usize> {
    let mut length = libc::socklen_t::try_from(size_of::<T>()).unwrap_or_default();
    // SAFETY: the value's address and size are its own, and both live across the call.
    check(unsafe {
        libc::getsockopt(
            socket.as_fd().as_raw_fd(),
            level,
            option,
            std::ptr::from_mut(value).cast(),
            &raw mut length,
        )
    })?;
    Ok(usize::try_from(length).unwrap_or_default().min(size_of::<T>()))
}

/// Reads a socket option of one number (getsockopt(2)).
pub(crate) fn number_option<T: Plain + Default>(
    socket: &impl AsFd,
    level: libc::c_int,
    option: libc::c_int,
) -> io::Result<T> {
    let mut value = T::default();
    get_option(socket, level, option, &mut value).map(|_| value)
}

/// Sets a socket option to a plain value of the option's type, whose size the
/// kernel checks (setsockopt(2)).
pub(crate) fn set_option<T: Copy>(
    socket: &impl AsFd,
    level: libc::c_int,
    option: libc::c_int,
    value: &T,
) -> io::Result<()> {
    // SAFETY: the value's address and size are its own, and it lives across the call.
    check(unsafe {
        libc::setsockopt(
            socket.as_fd().as_raw_fd(),
            level,
            option,
            std::ptr::from_ref(value).cast(),
            libc::socklen_t::try_from(size_of::<T>()).unwrap_or_default(),
        )
    })
    .map(drop)
}
