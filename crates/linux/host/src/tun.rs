//! TUN devices with segmentation offload.
//!
//! A TUN device is a network interface whose far end is a file: packets that the
//! kernel sends are read from it, packets written to it are received. With a
//! `virtio_net` header before each packet the kernel passes trains of up to
//! 64 KiB that stand for many packets, and accepts such trains (linux/if_tun.h,
//! `Documentation/networking/tuntap.rst`).

use crate::sys;
use rustix::io::retry_on_intr;
use std::fs::{File, OpenOptions};
use std::io::{self, IoSlice};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::os::unix::fs::OpenOptionsExt;

/// Length in bytes of the `virtio_net` header before every packet.
pub const VNET_HEADER: usize = 10;

/// The longest read: one header and one IP packet.
pub const MAX_READ: usize = VNET_HEADER + 65_535;

/// A TUN device, created in the calling thread's network namespace. It exists
/// until the last copy of its file is closed.
#[derive(Debug)]
pub struct Tun {
    file: File,
}

/// Why a TUN device cannot be created.
#[derive(Debug, thiserror::Error)]
pub enum TunError {
    /// The device node is missing.
    #[error(
        "/dev/net/tun does not exist: load the tun module (modprobe tun), or pass the device to the container"
    )]
    NoDevice,
    /// No permission to open the device node.
    #[error(
        "no permission to open /dev/net/tun: run as root, or allow users to open it (chmod 0666 /dev/net/tun)"
    )]
    NotPermitted,
    /// Anything else.
    #[error("cannot create a TUN device ({step}): {source}")]
    Other {
        /// The step that failed.
        step: &'static str,
        /// The system error.
        source: io::Error,
    },
}

impl Tun {
    /// Creates the device `name` (at most 15 bytes). `%d` is replaced by the lowest
    /// unused number; see [`Tun::name`].
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
                io::ErrorKind::NotFound => TunError::NoDevice,
                io::ErrorKind::PermissionDenied => TunError::NotPermitted,
                _ => TunError::Other { step: "opening /dev/net/tun", source },
            })?;
        let other = |step| move |source| TunError::Other { step, source };

        let mut request: libc::ifreq = sys::zeroed();
        for (to, from) in request.ifr_name.iter_mut().take(15).zip(name.bytes()) {
            *to = libc::c_char::from_ne_bytes([from]);
        }
        let flags = libc::IFF_TUN | libc::IFF_NO_PI | libc::IFF_VNET_HDR;
        request.ifr_ifru.ifru_flags = libc::c_short::try_from(flags).unwrap_or_default();
        // SAFETY: TUNSETIFF reads and writes one `struct ifreq`, which lives across the call.
        sys::check(unsafe { libc::ioctl(file.as_raw_fd(), libc::TUNSETIFF, &raw mut request) })
            .map_err(other("TUNSETIFF"))?;

        let tcp = libc::TUN_F_CSUM | libc::TUN_F_TSO4 | libc::TUN_F_TSO6 | libc::TUN_F_TSO_ECN;
        let udp = libc::TUN_F_USO4 | libc::TUN_F_USO6;
        let offload = |features: libc::c_uint| {
            // SAFETY: TUNSETOFFLOAD takes its argument by value.
            sys::check(unsafe {
                libc::ioctl(file.as_raw_fd(), libc::TUNSETOFFLOAD, libc::c_ulong::from(features))
            })
        };
        // UDP segmentation offload requires Linux 6.2; before, each datagram is read
        // singly.
        offload(tcp | udp).or_else(|_| offload(tcp)).map_err(other("segmentation offload"))?;
        Ok(Tun { file })
    }

    /// The device's name.
    ///
    /// # Errors
    /// The system error.
    pub fn name(&self) -> io::Result<String> {
        let mut request: libc::ifreq = sys::zeroed();
        // SAFETY: TUNGETIFF writes one `struct ifreq`, which lives across the call.
        sys::check(unsafe {
            libc::ioctl(self.file.as_raw_fd(), libc::TUNGETIFF, &raw mut request)
        })?;
        let name = request.ifr_name.iter().take_while(|byte| **byte != 0);
        let name = name.map(|byte| byte.cast_unsigned()).collect();
        String::from_utf8(name).map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))
    }

    /// Reads the next packet that the kernel sends, with its header.
    ///
    /// # Errors
    /// `WouldBlock` if there is none; otherwise the system error.
    pub fn receive(&self, buffer: &mut [u8]) -> io::Result<usize> {
        Ok(retry_on_intr(|| rustix::io::read(&self.file, &mut *buffer))?)
    }

    /// Passes a packet with its header to the kernel, in pieces.
    ///
    /// # Errors
    /// The system error; the packet was dropped.
    pub fn send(&self, pieces: &[IoSlice<'_>]) -> io::Result<usize> {
        Ok(retry_on_intr(|| rustix::io::writev(&self.file, pieces))?)
    }
}

impl AsFd for Tun {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }
}
