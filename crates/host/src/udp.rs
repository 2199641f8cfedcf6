//! Datagrams in trains: one call hands the kernel many (udp(7), `UDP_SEGMENT`).

use crate::sys;
use std::io;
use std::os::fd::{AsFd, AsRawFd};

/// Most datagrams the kernel takes in one call (`UDP_MAX_SEGMENTS` before 6.9).
pub const MOST_SEGMENTS: usize = 64;

/// Lets every write to a socket be cut into datagrams of `bytes` each; the
/// last of a write may be shorter.
///
/// # Errors
/// The system's own: kernels before 4.18 have no such thing.
pub fn segment(socket: &impl AsFd, bytes: u16) -> io::Result<()> {
    set(socket, libc::UDP_SEGMENT, bytes.into())
}

/// Whether a datagram was not sent because the socket or the device was full.
#[must_use]
pub fn is_full(error: &io::Error) -> bool {
    matches!(error.raw_os_error(), Some(libc::ENOBUFS | libc::EAGAIN))
}

/// Lets a socket take trains of datagrams whole, as they came, where the
/// network hands over trains.
///
/// # Errors
/// The system's own: kernels before 5.0 have no such thing.
pub fn coalesce(socket: &impl AsFd) -> io::Result<()> {
    set(socket, libc::UDP_GRO, 1)
}

fn set(socket: &impl AsFd, option: libc::c_int, value: libc::c_int) -> io::Result<()> {
    // SAFETY: the option's value is one int, which lives across the call.
    sys::check(unsafe {
        libc::setsockopt(
            socket.as_fd().as_raw_fd(),
            libc::SOL_UDP,
            option,
            (&raw const value).cast(),
            libc::socklen_t::try_from(size_of_val(&value)).unwrap_or_default(),
        )
    })
    .map(drop)
}
