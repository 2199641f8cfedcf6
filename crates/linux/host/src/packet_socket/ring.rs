//! The ring: blocks in turn, each the kernel's or ours. Within a block that is ours, everything
//! is read from a slice.

use crate::sys;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU32, Ordering};

/// Who has a block (TP_STATUS_KERNEL, TP_STATUS_USER).
const KERNEL: u32 = 0;
const USER: u32 = 1;

/// Bits of a packet's status.
const VLAN_VALID: u32 = 1 << 4;
const VLAN_TPID_VALID: u32 = 1 << 6;
const HARDWARE_TIMESTAMP: u32 = 1 << 31;

/// Offsets in a block's header (`struct tpacket_block_desc`).
const BLOCK_STATUS: usize = 8;
const BLOCK_PACKETS: usize = 12;
const BLOCK_FIRST: usize = 16;

/// Length of `struct tpacket3_hdr`; `struct sockaddr_ll` follows.
const HEADER: usize = 48;
const ADDRESS: usize = 20;

/// PACKET_OUTGOING of linux/if_packet.h.
const OUTGOING: u8 = 4;

/// The EtherType of a tag whose own is not known (IEEE 802.1Q).
const VLAN: u16 = 0x8100;

/// Memory that is shared with the kernel.
#[derive(Debug)]
pub(super) struct Ring {
    start: NonNull<u8>,
    block: usize,
    blocks: usize,
    /// The block that the kernel hands over next.
    next: usize,
}

// SAFETY: the mapping belongs to this value alone, like a Box's.
unsafe impl Send for Ring {}

impl Ring {
    pub(super) fn map(socket: &OwnedFd, block: usize, blocks: usize) -> io::Result<Self> {
        let length = block * blocks;
        // SAFETY: a new mapping, whose size is that of the ring that was requested.
        let start = unsafe {
            libc::mmap(
                std::ptr::null_mut(),
                length,
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_SHARED,
                socket.as_raw_fd(),
                0,
            )
        };
        if start == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        let start = NonNull::new(start.cast()).ok_or(io::ErrorKind::OutOfMemory)?;
        Ok(Ring { start, block, blocks, next: 0 })
    }

    pub(super) fn size(&self) -> usize {
        self.block * self.blocks
    }

    /// Whether the kernel has handed over the next block.
    pub(super) fn is_ready(&self) -> bool {
        self.status().load(Ordering::Acquire) & USER != 0
    }

    /// The next block, which must be ready.
    pub(super) fn take(&mut self) -> Block<'_> {
        Block { ring: self }
    }

    fn at(&self) -> NonNull<u8> {
        // SAFETY: `next` is below the number of blocks, so this is within the mapping.
        unsafe { self.start.add(self.next * self.block) }
    }

    fn status(&self) -> &AtomicU32 {
        // SAFETY: within the mapping, aligned as blocks are aligned to pages, and accessed by
        // atomic operations alone while the kernel has the block.
        unsafe { AtomicU32::from_ptr(self.at().add(BLOCK_STATUS).as_ptr().cast()) }
    }
}

impl Drop for Ring {
    fn drop(&mut self) {
        // SAFETY: the mapping is ours, and nothing points into it any more. It cannot fail.
        let _ = sys::check(unsafe { libc::munmap(self.start.as_ptr().cast(), self.size()) });
    }
}

/// A block of packets, returned to the kernel when dropped.
#[derive(Debug)]
pub struct Block<'r> {
    ring: &'r mut Ring,
}

impl Block<'_> {
    /// Its packets, oldest first.
    pub fn packets(&self) -> impl Iterator<Item = RingPacket<'_>> {
        // SAFETY: the block is within the mapping, and the kernel does not write to it before
        // it is returned.
        let bytes = unsafe { std::slice::from_raw_parts(self.ring.at().as_ptr(), self.ring.block) };
        let count = number(bytes, BLOCK_PACKETS).unwrap_or(0);
        let mut at = number(bytes, BLOCK_FIRST).unwrap_or(0) as usize;
        (0..count).map_while(move |_| {
            let bytes = bytes.get(at..)?;
            let packet = RingPacket::parse(bytes)?;
            // Of the last packet, 0.
            at += number(bytes, 0)? as usize;
            Some(packet)
        })
    }
}

impl Drop for Block<'_> {
    fn drop(&mut self) {
        self.ring.status().store(KERNEL, Ordering::Release);
        self.ring.next = (self.ring.next + 1) % self.ring.blocks;
    }
}

/// A captured packet.
#[derive(Debug, Clone, Copy)]
pub struct RingPacket<'a> {
    /// Nanoseconds since 1970, or by the adapter's clock.
    pub time_ns: u64,
    /// Whether that is the adapter's timestamp.
    pub by_hardware: bool,
    /// Its length; of super-segments, before they are cut.
    pub original_len: u32,
    /// What was captured of it.
    pub data: &'a [u8],
    /// The VLAN tag that was taken off: its EtherType, and priority and identifier.
    pub vlan: Option<[u16; 2]>,
    /// Its EtherType.
    pub ether_type: u16,
    /// Number of the interface.
    pub interface: u32,
    /// Type of the interface (ARPHRD_* of linux/if_arp.h).
    pub interface_type: u16,
    /// To this host, to all, to a group, to others, or sent (PACKET_* of linux/if_packet.h).
    pub kind: u8,
    /// Link-layer address of the sender; unused bytes are 0.
    pub address: [u8; 8],
    /// Length of that address.
    pub address_length: u8,
}

impl<'a> RingPacket<'a> {
    /// Whether this host sent it.
    #[must_use]
    pub fn is_outgoing(&self) -> bool {
        self.kind == OUTGOING
    }

    /// A packet at the start of `bytes`; `None` if it is not within.
    fn parse(bytes: &'a [u8]) -> Option<Self> {
        let header: &[u8; HEADER] = bytes.first_chunk()?;
        let address: &[u8; ADDRESS] = bytes.get(HEADER..)?.first_chunk()?;
        let word = |at| number(header, at);
        let (seconds, nanos, status) = (word(4)?, word(8)?, word(20)?);
        let length = word(12)? as usize;
        let start = usize::from(short(header, 24)?);
        let tpid = short(header, 36)?;
        let tag = short(header, 32)?;
        let vlan = (status & VLAN_VALID != 0)
            .then_some([if status & VLAN_TPID_VALID != 0 { tpid } else { VLAN }, tag]);
        Some(RingPacket {
            time_ns: u64::from(seconds) * 1_000_000_000 + u64::from(nanos),
            by_hardware: status & HARDWARE_TIMESTAMP != 0,
            original_len: word(16)?,
            data: bytes.get(start..)?.get(..length)?,
            vlan,
            ether_type: u16::from_be(short(address, 2)?),
            interface: number(address, 4)?,
            interface_type: short(address, 8)?,
            kind: address[10],
            address_length: address[11],
            address: *address.last_chunk()?,
        })
    }
}

fn number(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_ne_bytes(*bytes.get(at..)?.first_chunk()?))
}

fn short(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_ne_bytes(*bytes.get(at..)?.first_chunk()?))
}
