//! The packets of one device, or the first bytes of each, in a ring in shared memory that the
//! kernel fills (packet(7): `PACKET_RX_RING`, version 2,
//! Documentation/networking/packet_mmap.rst). Reading it needs no system call, and it keeps
//! packets while the reader is not scheduled.

use crate::link_layer::{self, PACKET_VNET_HDR};
use crate::sys;
use rustix::net::{AddressFamily, SocketFlags, SocketType, socket_with};
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

/// The kernel allocates the ring in blocks of whole pages.
const BLOCK: usize = 64 << 10;

/// What to record, and how much of it.
pub(crate) struct RingOptions<'a> {
    /// Packets that the ring holds: a power of two. Further ones are not recorded.
    pub(crate) frames: usize,
    /// Bytes of a frame: a power of two that holds a header, its `sockaddr_ll` and the bytes
    /// that the filter returns.
    pub(crate) frame: usize,
    /// Whether a `virtio_net` header is before each packet.
    pub(crate) vnet_headers: bool,
    /// Classic BPF: how many bytes of a packet to record; 0 for none of it.
    pub(crate) filter: &'a mut [libc::sock_filter],
}

/// A packet.
pub(crate) struct Frame<'a> {
    /// When it was recorded, as wall-clock time since 1970.
    pub(crate) time: Duration,
    /// Its length in bytes, headers included; of a train, all of it.
    pub(crate) length: usize,
    /// The frame, and where in it the packet begins.
    bytes: &'a [u8],
    packet: usize,
}

impl Frame<'_> {
    /// The recorded bytes of the packet from `at` on, which may be negative: the `virtio_net`
    /// header precedes the packet.
    pub(crate) fn bytes<const N: usize>(&self, at: isize) -> Option<&[u8; N]> {
        self.bytes.get(self.packet.checked_add_signed(at)?..)?.first_chunk()
    }
}

/// The packets of one device, in order.
#[derive(Debug)]
pub(crate) struct FrameRing {
    /// The ring lasts as long as the socket and the mapping.
    socket: OwnedFd,
    ring: NonNull<u8>,
    frames: usize,
    frame: usize,
    /// The frame that the kernel fills next, or filled longest ago.
    next: usize,
}

// SAFETY: the mapping belongs to this value alone on this side, like a Box's memory.
unsafe impl Send for FrameRing {}

impl FrameRing {
    /// Records packets of device number `index` of the calling thread's namespace from here on.
    ///
    /// # Errors
    /// The system error; without `CAP_NET_RAW` it is `PermissionDenied`.
    pub(crate) fn open(index: u32, options: RingOptions<'_>) -> io::Result<Self> {
        // Of protocol 0 it receives nothing until it is bound, by then to the one device.
        let socket =
            socket_with(AddressFamily::PACKET, SocketType::RAW, SocketFlags::CLOEXEC, None)?;
        let set =
            |option, value: libc::c_int| sys::set_option(&socket, libc::SOL_PACKET, option, &value);
        let RingOptions { frames, frame, vnet_headers, filter } = options;
        let filter = libc::sock_fprog {
            len: u16::try_from(filter.len()).map_err(io::Error::other)?,
            filter: filter.as_mut_ptr(),
        };
        sys::set_option(&socket, libc::SOL_SOCKET, libc::SO_ATTACH_FILTER, &filter)?;
        set(libc::PACKET_VERSION, libc::tpacket_versions::TPACKET_V2 as libc::c_int)?;
        if vnet_headers {
            set(PACKET_VNET_HDR, 1)?;
        }
        let narrow = |count: usize| libc::c_uint::try_from(count).unwrap_or_default();
        let request = libc::tpacket_req {
            tp_block_size: narrow(BLOCK),
            tp_block_nr: narrow(frames * frame / BLOCK),
            tp_frame_size: narrow(frame),
            tp_frame_nr: narrow(frames),
        };
        sys::set_option(&socket, libc::SOL_PACKET, libc::PACKET_RX_RING, &request)?;
        let access = libc::PROT_READ | libc::PROT_WRITE;
        let (any, flags, fd) = (std::ptr::null_mut(), libc::MAP_SHARED, socket.as_raw_fd());
        // SAFETY: a fresh mapping of the socket's ring touches nothing that exists.
        let base = unsafe { libc::mmap(any, frames * frame, access, flags, fd, 0) };
        if base == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        let ring = NonNull::new(base.cast());
        let ring = ring.ok_or_else(|| io::Error::other("memory at address 0"))?;
        let ring = FrameRing { socket, ring, frames, frame, next: 0 };
        link_layer::bind(&ring.socket, index, libc::ETH_P_ALL)?;
        Ok(ring)
    }

    /// Reads the next packet; `None` if there is no other, or the ring had no room for it.
    pub(crate) fn read<T>(&mut self, read: impl FnOnce(Frame<'_>) -> T) -> Option<T> {
        // SAFETY: the frame lies within the mapping, and begins with a header that is aligned.
        let start = unsafe { self.ring.byte_add(self.next * self.frame) };
        let header = start.cast::<libc::tpacket2_hdr>().as_ptr();
        // SAFETY: the status is a 32-bit word that this side and the kernel write in turn.
        let status = unsafe { AtomicU32::from_ptr(&raw mut (*header).tp_status) };
        // Acquire: what the kernel wrote into the frame before it passed it on.
        if status.load(Ordering::Acquire) & libc::TP_STATUS_USER == 0 {
            return None;
        }
        // SAFETY: the frame is this side's until its status changes, and within the mapping.
        let frame = unsafe {
            Frame {
                time: Duration::new((*header).tp_sec.into(), (*header).tp_nsec.min(999_999_999)),
                length: (*header).tp_len as usize,
                bytes: std::slice::from_raw_parts(start.as_ptr(), self.frame),
                packet: (*header).tp_mac.into(),
            }
        };
        let result = read(frame);
        status.store(libc::TP_STATUS_KERNEL, Ordering::Release);
        self.next = (self.next + 1) % self.frames;
        Some(result)
    }
}

impl Drop for FrameRing {
    fn drop(&mut self) {
        // SAFETY: exactly the mapping; nobody borrows from it.
        unsafe { libc::munmap(self.ring.as_ptr().cast(), self.frames * self.frame) };
    }
}

/// One step of a filter.
pub(crate) fn step(code: u32, if_true: u8, if_false: u8, k: u32) -> libc::sock_filter {
    libc::sock_filter { code: code as u16, jt: if_true, jf: if_false, k }
}

/// Offset of a packet's direction for loads of filters.
pub(crate) const PACKET_TYPE: u32 = (libc::SKF_AD_OFF + libc::SKF_AD_PKTTYPE).cast_unsigned();
