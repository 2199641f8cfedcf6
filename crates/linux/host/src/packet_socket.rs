//! Captures the packets of an interface, or of all: an AF_PACKET socket (packet(7)) and a ring
//! of blocks that the kernel fills (TPACKET_V3, Documentation/networking/packet_mmap.rst).
//!
//! The filter is attached before the socket is bound, so no packet precedes it. What the ring
//! has no room for is dropped and counted by the kernel.

mod ring;

pub use ring::{Block, RingPacket};

use crate::{link_layer, sys, wait};
use bpf::Instruction;
use ring::Ring;
use rustix::net::{AddressFamily, SocketFlags, SocketType, socket_with};
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::time::Duration;
use units::ByteCount;

/// linux/if_packet.h
const PACKET_ADD_MEMBERSHIP: libc::c_int = 1;
const PACKET_RX_RING: libc::c_int = 5;
const PACKET_STATISTICS: libc::c_int = 6;
const PACKET_VERSION: libc::c_int = 10;
const PACKET_TIMESTAMP: libc::c_int = 17;
const PACKET_IGNORE_OUTGOING: libc::c_int = 23;
const TPACKET_V3: libc::c_int = 2;
const PACKET_MR_PROMISC: u16 = 1;

/// linux/net_tstamp.h: timestamps of the adapter, in its own clock.
const SOF_TIMESTAMPING_RAW_HARDWARE: libc::c_int = 1 << 6;

/// A block of the ring, in bytes: the kernel hands packets over in blocks. Holds the longest
/// packet.
const BLOCK: u32 = 1 << 20;

/// After this long the kernel hands over a block that is not full, ms. Shorter ones cost wakeups,
/// longer ones delay packets that are written to a pipe.
const RETIRE_MS: u32 = 50;

/// What to capture, and how.
#[derive(Debug, Clone, Copy)]
pub struct PacketSocketOptions<'a> {
    /// The interface's number; 0 for all.
    pub interface: u32,
    /// Whether packets begin with their link-layer header, and not with that of the network layer.
    pub link_layer: bool,
    /// Returns how many bytes of a packet to capture; 0 for none.
    pub filter: &'a [Instruction],
    /// Memory for packets that wait to be read. The kernel may have less.
    pub ring: ByteCount,
    /// Use the adapter's timestamps for packets that have one.
    pub hardware_timestamps: bool,
    /// Leave out packets that this host sends: on the loopback, each is received as well.
    pub only_received: bool,
    /// Receive packets to other Ethernet addresses, too, until the socket is closed.
    pub promiscuous: bool,
}

/// Counts what a socket accepts and drops.
#[derive(Debug)]
pub struct PacketCounter {
    socket: OwnedFd,
    counts: PacketCounts,
}

/// Counters since a socket was opened.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct PacketCounts {
    /// Packets that the filter accepted.
    pub accepted: u64,
    /// Those of them that were dropped: the ring was full.
    pub dropped: u64,
}

/// A socket that captures. Needs CAP_NET_RAW in the network namespace's user namespace.
#[derive(Debug)]
pub struct PacketSocket {
    socket: OwnedFd,
    ring: Ring,
}

impl PacketSocket {
    /// Opens it, with its only counter; from here on packets are captured.
    ///
    /// # Errors
    /// The system error: `PermissionDenied` without CAP_NET_RAW, ENODEV without that interface.
    pub fn open(options: &PacketSocketOptions<'_>) -> io::Result<(Self, PacketCounter)> {
        let kind = if options.link_layer { SocketType::RAW } else { SocketType::DGRAM };
        // Of no protocol: without one, no packet is received until the socket is bound.
        let socket = socket_with(AddressFamily::PACKET, kind, SocketFlags::CLOEXEC, None)?;
        let set =
            |option, value: libc::c_int| sys::set_option(&socket, libc::SOL_PACKET, option, &value);
        set(PACKET_VERSION, TPACKET_V3)?;
        if options.hardware_timestamps {
            set(PACKET_TIMESTAMP, SOF_TIMESTAMPING_RAW_HARDWARE)?;
        }
        if options.only_received {
            // Since Linux 4.20; before, the caller sees which packets were sent.
            let _ = set(PACKET_IGNORE_OUTGOING, 1);
        }
        attach(&socket, options.filter)?;
        let ring = request_ring(&socket, options.ring)?;
        link_layer::bind(&socket, options.interface, libc::ETH_P_ALL)?;
        if options.promiscuous && options.interface != 0 {
            promiscuous(&socket, options.interface)?;
        }
        let counter =
            PacketCounter { socket: socket.try_clone()?, counts: PacketCounts::default() };
        Ok((PacketSocket { socket, ring }, counter))
    }

    /// The next block of packets; `None` if there is none within `timeout`.
    ///
    /// # Errors
    /// The system error: ENETDOWN once after the interface went down or was removed.
    pub fn next_block(&mut self, timeout: Duration) -> io::Result<Option<Block<'_>>> {
        if !self.ring.is_ready() {
            let [ready] = wait::readable([self.socket.as_fd()], Some(timeout))?;
            if !self.ring.is_ready() {
                if ready {
                    self.pending_error()?;
                }
                return Ok(None);
            }
        }
        Ok(Some(self.ring.take()))
    }

    /// Memory that the kernel gave for the ring.
    #[must_use]
    pub fn ring_size(&self) -> ByteCount {
        ByteCount::from_bytes(self.ring.size() as u64)
    }

    /// How long a packet may stay in a block that is not full.
    #[must_use]
    pub const fn longest_delay() -> Duration {
        Duration::from_millis(RETIRE_MS as u64)
    }

    /// Accepts no further packet. Those before remain to be read.
    ///
    /// # Errors
    /// The system error.
    pub fn stop(&self) -> io::Result<()> {
        attach(&self.socket, &bpf::reject_all())
    }

    /// The error that the socket has, once.
    fn pending_error(&self) -> io::Result<()> {
        let error = sys::int_option(&self.socket, libc::SOL_SOCKET, libc::SO_ERROR)?;
        if error == 0 { Ok(()) } else { Err(io::Error::from_raw_os_error(error)) }
    }
}

impl PacketCounter {
    /// What was accepted and dropped so far.
    ///
    /// # Errors
    /// The system error.
    pub fn counts(&mut self) -> io::Result<PacketCounts> {
        // struct tpacket_stats_v3: packets, those dropped included; dropped; full rings. Each
        // call resets them.
        let mut stats = [0_u32; 3];
        sys::get_option(&self.socket, libc::SOL_PACKET, PACKET_STATISTICS, &mut stats)?;
        self.counts.accepted += u64::from(stats[0]);
        self.counts.dropped += u64::from(stats[1]);
        Ok(self.counts)
    }
}

/// Whether an error means that the interface is down.
#[must_use]
pub fn is_down(error: &io::Error) -> bool {
    error.raw_os_error() == Some(libc::ENETDOWN)
}

fn attach(socket: &OwnedFd, program: &[Instruction]) -> io::Result<()> {
    let mut filter: Vec<libc::sock_filter> = program
        .iter()
        .map(|it| libc::sock_filter { code: it.code, jt: it.if_true, jf: it.if_false, k: it.value })
        .collect();
    let len = u16::try_from(filter.len()).map_err(|_| io::ErrorKind::InvalidInput)?;
    let program = libc::sock_fprog { len, filter: filter.as_mut_ptr() };
    // The kernel reads the instructions, which live across the call.
    sys::set_option(socket, libc::SOL_SOCKET, libc::SO_ATTACH_FILTER, &program)
}

/// A ring of about `size`; a smaller one where the kernel has too little memory.
fn request_ring(socket: &OwnedFd, size: ByteCount) -> io::Result<Ring> {
    /// Not used with blocks of any number of packets, but checked (`packet_set_ring`).
    const FRAME: u32 = 2048;
    let mut blocks = u32::try_from(size.bytes() / u64::from(BLOCK)).unwrap_or(u32::MAX).max(2);
    loop {
        // struct tpacket_req3: block size and number, frame size and number, timeout, private
        // bytes, features.
        let frames = (BLOCK / FRAME).saturating_mul(blocks);
        let request = [BLOCK, blocks, FRAME, frames, RETIRE_MS, 0, 0];
        match sys::set_option(socket, libc::SOL_PACKET, PACKET_RX_RING, &request) {
            Err(error) if error.raw_os_error() == Some(libc::ENOMEM) && blocks > 2 => blocks /= 2,
            other => {
                other?;
                return Ring::map(socket, BLOCK as usize, blocks as usize);
            }
        }
    }
}

fn promiscuous(socket: &OwnedFd, interface: u32) -> io::Result<()> {
    /// `struct packet_mreq`.
    #[derive(Clone, Copy)]
    #[repr(C)]
    struct Membership {
        interface: libc::c_int,
        kind: u16,
        address_length: u16,
        address: [u8; 8],
    }
    let membership = Membership {
        interface: interface.cast_signed(),
        kind: PACKET_MR_PROMISC,
        address_length: 0,
        address: [0; 8],
    };
    sys::set_option(socket, libc::SOL_PACKET, PACKET_ADD_MEMBERSHIP, &membership)
}
