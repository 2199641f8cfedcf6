//! When the kernel passed packets to a device: timestamps of a packet socket.
//!
//! The file of a TUN device does not say when a packet was put into it. A packet socket
//! (packet(7)) sees each packet of the device just before, and records the time.

use crate::frame_ring::{FrameRing, PACKET_TYPE, RingOptions, step};
use std::io;
use std::time::Duration;

/// Packets that the ring holds; further ones are not recorded. A device drops packets before
/// that unless its own queue is longer.
const FRAMES: usize = 1 << 14;

/// Bytes of a frame: of the packet, one byte is recorded.
const FRAME: usize = 128;

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
    ring: FrameRing,
}

impl TransmitTimes {
    /// Records the packets that device number `index` of the calling thread's namespace
    /// transmits from here on.
    ///
    /// # Errors
    /// The system error; without `CAP_NET_RAW` it is `PermissionDenied`.
    pub fn open(index: u32) -> io::Result<Self> {
        let mut only_transmitted = [
            step(libc::BPF_LD | libc::BPF_B | libc::BPF_ABS, 0, 0, PACKET_TYPE),
            step(libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K, 0, 1, libc::PACKET_OUTGOING.into()),
            step(libc::BPF_RET | libc::BPF_K, 0, 0, 1),
            step(libc::BPF_RET | libc::BPF_K, 0, 0, 0),
        ];
        let (frames, frame, vnet_headers) = (FRAMES, FRAME, false);
        let options = RingOptions { frames, frame, vnet_headers, filter: &mut only_transmitted };
        Ok(TransmitTimes { ring: FrameRing::open(index, options)? })
    }
}

impl Iterator for TransmitTimes {
    type Item = Transmitted;

    /// The next packet; `None` if no other has been transmitted, or the ring had no room for it.
    fn next(&mut self) -> Option<Transmitted> {
        self.ring.read(|frame| Transmitted { time: frame.time, length: frame.length })
    }
}
