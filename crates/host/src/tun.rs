//! TUN devices with segmentation offload.
//!
//! A TUN device is a network card whose wire is a file: what the kernel sends
//! is read, what is written the kernel receives. With a `virtio_net` header
//! before each packet the kernel hands over trains of up to 64 KiB that stand
//! for many packets, and takes such trains back (linux/if_tun.h,
//! `Documentation/networking/tuntap.rst`).

use crate::sys;
use std::fs::{File, OpenOptions};
use std::io::{self, IoSlice};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::os::unix::fs::OpenOptionsExt;

/// Length in bytes of the `virtio_net` header before every packet.
pub const VNET_HEADER: usize = 10;

/// The longest read: one header and one IP packet.
pub const MAX_READ: usize = VNET_HEADER + 65_535;

/// One TUN device. It is made in the calling thread's network namespace and
/// goes with the last copy of its file.
#[derive(Debug)]
pub struct Tun {
    file: File,
}

/// Why a TUN device cannot be had.
#[derive(Debug, thiserror::Error)]
pub enum TunError {
    /// There is no device node.
    #[error(
        "/dev/net/tun does not exist: load the tun module (modprobe tun), or give the container that device"
    )]
    Missing,
    /// The node is there and may not be opened.
    #[error(
        "/dev/net/tun may not be opened: run as root, or let users open it (chmod 0666 /dev/net/tun)"
    )]
    Closed,
    /// Anything else.
    #[error("cannot make a TUN device ({step}): {source}")]
    Other {
        /// The step that failed.
        step: &'static str,
        /// What the system said.
        source: io::Error,
    },
}

impl Tun {
    /// Makes the device `name` (at most 15 bytes). A `%d` in it becomes the
    /// lowest number that makes it unused; [`Tun::name`] tells which.
    ///
    /// # Errors
    /// [`TunError`], with the remedy where there is one.
    pub fn create(name: &str) -> Result<Self, TunError> {
        let file = OpenOptions::new()
            .read(true)
            .write(true)
            .custom_flags(libc::O_NONBLOCK | libc::O_CLOEXEC)
            .open("/dev/net/tun")
            .map_err(|source| match source.kind() {
                io::ErrorKind::NotFound => TunError::Missing,
                io::ErrorKind::PermissionDenied => TunError::Closed,
                _ => TunError::Other { step: "opening /dev/net/tun", source },
            })?;
        let other = |step| move |source| TunError::Other { step, source };

        // SAFETY: a `struct ifreq` of zeros is a valid one.
        let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
        for (to, from) in request.ifr_name.iter_mut().take(15).zip(name.bytes()) {
            *to = libc::c_char::from_ne_bytes([from]);
        }
        let flags = libc::IFF_TUN | libc::IFF_NO_PI | libc::IFF_VNET_HDR;
        request.ifr_ifru.ifru_flags = libc::c_short::try_from(flags).unwrap_or_default();
        // SAFETY: TUNSETIFF reads and writes one `struct ifreq`, which lives across the call.
        sys::check(unsafe { libc::ioctl(file.as_raw_fd(), libc::TUNSETIFF, &raw mut request) })
            .map_err(other("naming it"))?;

        let tcp = libc::TUN_F_CSUM | libc::TUN_F_TSO4 | libc::TUN_F_TSO6 | libc::TUN_F_TSO_ECN;
        let udp = libc::TUN_F_USO4 | libc::TUN_F_USO6;
        let offload = |features: libc::c_uint| {
            // SAFETY: TUNSETOFFLOAD takes its argument by value.
            sys::check(unsafe {
                libc::ioctl(file.as_raw_fd(), libc::TUNSETOFFLOAD, libc::c_ulong::from(features))
            })
        };
        // UDP segmentation came with kernel 6.2; before it the kernel cuts
        // datagrams itself and each is read singly.
        offload(tcp | udp).or_else(|_| offload(tcp)).map_err(other("segmentation offload"))?;
        Ok(Tun { file })
    }

    /// The device's name.
    ///
    /// # Errors
    /// The system's own.
    pub fn name(&self) -> io::Result<String> {
        // SAFETY: a `struct ifreq` of zeros is a valid one.
        let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
        // SAFETY: TUNGETIFF writes one `struct ifreq`, which lives across the call.
        sys::check(unsafe {
            libc::ioctl(self.file.as_raw_fd(), libc::TUNGETIFF, &raw mut request)
        })?;
        let name = request.ifr_name.iter().take_while(|byte| **byte != 0);
        let name = name.map(|byte| byte.cast_unsigned()).collect();
        String::from_utf8(name).map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))
    }

    /// Reads what the kernel sends next: header and packet.
    ///
    /// # Errors
    /// `WouldBlock` where nothing waits; otherwise the system's own.
    pub fn receive(&self, buffer: &mut [u8]) -> io::Result<usize> {
        // SAFETY: the buffer is valid for its length.
        sys::retry(|| unsafe {
            libc::read(self.file.as_raw_fd(), buffer.as_mut_ptr().cast(), buffer.len())
        })
    }

    /// Hands the kernel a packet: header and packet, in pieces.
    ///
    /// # Errors
    /// The system's own: the packet was not taken.
    pub fn send(&self, pieces: &[IoSlice<'_>]) -> io::Result<usize> {
        let count = libc::c_int::try_from(pieces.len()).unwrap_or(libc::c_int::MAX);
        // SAFETY: IoSlice has the layout of `struct iovec` and its pieces are valid.
        sys::retry(|| unsafe { libc::writev(self.file.as_raw_fd(), pieces.as_ptr().cast(), count) })
    }
}

impl AsFd for Tun {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }
}
