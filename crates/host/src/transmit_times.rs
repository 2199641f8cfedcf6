//! When the kernel passed packets to a device: timestamps of a packet socket.
//!
//! The file of a TUN device does not say when a packet was put into it. A packet socket
//! (packet(7)) sees each packet of the device just before, and writes the time into a ring in
//! shared memory (`PACKET_RX_RING`, version 2, Documentation/networking/packet_mmap.rst).
//! Reading the ring needs no system call, and it keeps the times while the reader is not
//! scheduled.

use crate::sys;
use std::io;
use std::mem::size_of;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

/// Packets that the ring holds; further ones are not recorded. A device drops packets before
/// that unless its own queue is longer.
const FRAMES: usize = 1 << 14;

/// Bytes of a frame: a power of two that holds a header and its `sockaddr_ll`.
const FRAME: usize = 128;

/// The kernel allocates the ring in blocks of whole pages.
const BLOCK: usize = 64 << 10;

const RING: usize = FRAMES * FRAME;

/// A packet that was passed to a device.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Transmitted {
    /// When, as wall-clock time since 1970.
    pub time: Duration,
    /// Its length in bytes, headers included; of a train, all of it.
    pub length: usize,
}

/// The packets passed to one device, in order.
#[derive(Debug)]
pub struct TransmitTimes {
    /// The ring lasts as long as the socket and the mapping.
    socket: OwnedFd,
    ring: NonNull<u8>,
    /// The frame that the kernel fills next, or filled longest ago.
    frame: usize,
}

// SAFETY: the mapping belongs to this value alone on this side, like a Box's memory.
unsafe impl Send for TransmitTimes {}

impl TransmitTimes {
    /// Records the packets that device number `index` of the calling thread's namespace
    /// transmits from here on.
    ///
    /// # Errors
    /// The system error; without `CAP_NET_RAW` it is `PermissionDenied`.
    pub fn open(index: u32) -> io::Result<Self> {
        // Of protocol 0 it receives nothing until it is bound, by then to the one device.
        let flags = libc::SOCK_RAW | libc::SOCK_CLOEXEC;
        // SAFETY: plain flags.
        let raw = sys::check(unsafe { libc::socket(libc::AF_PACKET, flags, 0) })?;
        // SAFETY: the descriptor is new and ours.
        let socket = unsafe { OwnedFd::from_raw_fd(raw) };
        only_transmitted(&socket)?;
        let version = libc::tpacket_versions::TPACKET_V2 as libc::c_int;
        sys::set_option(&socket, libc::SOL_PACKET, libc::PACKET_VERSION, &version)?;
        let narrow = |count: usize| libc::c_uint::try_from(count).unwrap_or_default();
        let request = libc::tpacket_req {
            tp_block_size: narrow(BLOCK),
            tp_block_nr: narrow(RING / BLOCK),
            tp_frame_size: narrow(FRAME),
            tp_frame_nr: narrow(FRAMES),
        };
        sys::set_option(&socket, libc::SOL_PACKET, libc::PACKET_RX_RING, &request)?;
        let access = libc::PROT_READ | libc::PROT_WRITE;
        let (any, flags) = (std::ptr::null_mut(), libc::MAP_SHARED);
        // SAFETY: a fresh mapping of the socket's ring touches nothing that exists.
        let base = unsafe { libc::mmap(any, RING, access, flags, socket.as_raw_fd(), 0) };
        if base == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        let ring = NonNull::new(base.cast());
        let ring = ring.ok_or_else(|| io::Error::other("memory at address 0"))?;
        let times = TransmitTimes { socket, ring, frame: 0 };
        times.bind(index)?;
        Ok(times)
    }

    fn bind(&self, index: u32) -> io::Result<()> {
        // SAFETY: a `sockaddr_ll` of zeros is a valid one.
        let mut address: libc::sockaddr_ll = unsafe { std::mem::zeroed() };
        address.sll_family = libc::AF_PACKET as libc::sa_family_t;
        // Transmitted packets are seen only by sockets for every protocol.
        address.sll_protocol = (libc::ETH_P_ALL as u16).to_be();
        address.sll_ifindex = libc::c_int::try_from(index).map_err(io::Error::other)?;
        let length = size_of::<libc::sockaddr_ll>() as libc::socklen_t;
        let address = (&raw const address).cast();
        // SAFETY: the address is valid for its length across the call.
        sys::check(unsafe { libc::bind(self.socket.as_raw_fd(), address, length) }).map(drop)
    }
}

impl Iterator for TransmitTimes {
    type Item = Transmitted;

    /// The next packet; `None` if no other has been transmitted, or the ring had no room for it.
    fn next(&mut self) -> Option<Transmitted> {
        // SAFETY: the frame lies within the mapping, and begins with a header that is aligned.
        let header = unsafe { self.ring.byte_add(self.frame * FRAME) }.cast::<libc::tpacket2_hdr>();
        // SAFETY: the status is a 32-bit word that this side and the kernel write in turn.
        let status = unsafe { AtomicU32::from_ptr(&raw mut (*header.as_ptr()).tp_status) };
        // Acquire: what the kernel wrote into the frame before it passed it on.
        if status.load(Ordering::Acquire) & libc::TP_STATUS_USER == 0 {
            return None;
        }
        // SAFETY: the frame is this side's until its status changes.
        let (seconds, nanos, length) = unsafe {
            let header = header.as_ptr();
            ((*header).tp_sec, (*header).tp_nsec, (*header).tp_len)
        };
        status.store(libc::TP_STATUS_KERNEL, Ordering::Release);
        self.frame = (self.frame + 1) % FRAMES;
        let time = Duration::new(seconds.into(), nanos);
        Some(Transmitted { time, length: length as usize })
    }
}

impl Drop for TransmitTimes {
    fn drop(&mut self) {
        // SAFETY: exactly the mapping; nobody borrows from it.
        unsafe { libc::munmap(self.ring.as_ptr().cast(), RING) };
    }
}

/// Restricts a packet socket to transmitted packets, and to one byte of each (classic BPF).
fn only_transmitted(socket: &OwnedFd) -> io::Result<()> {
    const PACKET_TYPE: u32 = (libc::SKF_AD_OFF + libc::SKF_AD_PKTTYPE).cast_unsigned();
    let step = |code: u32, jt, jf, k| libc::sock_filter { code: code as u16, jt, jf, k };
    let mut program = [
        step(libc::BPF_LD | libc::BPF_B | libc::BPF_ABS, 0, 0, PACKET_TYPE),
        step(libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K, 0, 1, u32::from(libc::PACKET_OUTGOING)),
        step(libc::BPF_RET | libc::BPF_K, 0, 0, 1),
        step(libc::BPF_RET | libc::BPF_K, 0, 0, 0),
    ];
    let filter = libc::sock_fprog { len: 4, filter: program.as_mut_ptr() };
    sys::set_option(socket, libc::SOL_SOCKET, libc::SO_ATTACH_FILTER, &filter)
}
