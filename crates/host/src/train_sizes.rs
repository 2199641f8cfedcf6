//! The packets that trains stand for, of one device.
//!
//! A queue of packets ([`PacketQueue`](crate::packet_queue::PacketQueue)) does not say into how
//! many packets segmentation offload will cut a train. A packet socket (packet(7)) sees each train
//! of the device before, with a `virtio_net` header that does.

use crate::frame_ring::{FrameRing, PACKET_TYPE, RingOptions, step};
use crate::link_layer::ETHERNET_HEADER;
use crate::tun::VNET_HEADER;
use std::collections::VecDeque;
use std::io;

/// Trains that the ring holds; further ones are not recorded. At 20 Gbit/s, 4096 trains of
/// 64 KiB are 0.1 s.
const FRAMES: usize = 1 << 12;

/// Bytes of a frame, and of them those of the packet: Ethernet, IP header (at most 60), first
/// bytes of the transport header.
const FRAME: usize = 256;
const RECORDED: u32 = 14 + 60 + 8;

/// Trains that were recorded and not asked about: they were dropped on their way to the queue.
const MOST_KEPT: usize = 2 * FRAMES;

/// First bytes of a transport header: ports, and TCP's sequence number.
type Start = [u8; 8];

#[derive(Debug)]
struct Recorded {
    /// From the IP header on.
    length: usize,
    start: Start,
    segment: u16,
}

/// The trains that arrived at one device.
#[derive(Debug)]
pub struct TrainSizes {
    ring: FrameRing,
    recorded: VecDeque<Recorded>,
}

impl TrainSizes {
    /// Records the trains that device number `index` of the calling thread's namespace, whose
    /// packets have at most `mtu` bytes, receives from here on.
    ///
    /// # Errors
    /// The system error; without `CAP_NET_RAW` it is `PermissionDenied`.
    pub fn open(index: u32, mtu: u32) -> io::Result<Self> {
        let longest = mtu.saturating_add(ETHERNET_HEADER as u32);
        let mut received_trains = [
            step(libc::BPF_LD | libc::BPF_W | libc::BPF_LEN, 0, 0, 0),
            step(libc::BPF_JMP | libc::BPF_JGT | libc::BPF_K, 0, 3, longest),
            step(libc::BPF_LD | libc::BPF_B | libc::BPF_ABS, 0, 0, PACKET_TYPE),
            step(libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K, 1, 0, libc::PACKET_OUTGOING.into()),
            step(libc::BPF_RET | libc::BPF_K, 0, 0, RECORDED),
            step(libc::BPF_RET | libc::BPF_K, 0, 0, 0),
        ];
        let (frames, frame, vnet_headers) = (FRAMES, FRAME, true);
        let options = RingOptions { frames, frame, vnet_headers, filter: &mut received_trains };
        Ok(TrainSizes { ring: FrameRing::open(index, options)?, recorded: VecDeque::new() })
    }

    /// The payload of each packet but the last, in bytes, of a train of `length` bytes from the
    /// IP header on, whose transport header begins with `start`. Calls come in about the order in which
    /// the trains arrived. `None` if it was not recorded.
    pub fn segment(&mut self, length: usize, start: Start) -> Option<u16> {
        while let Some(recorded) = self.ring.read(|frame| {
            let vnet: &[u8; VNET_HEADER] = frame.bytes(-(VNET_HEADER as isize))?;
            let field = |at: usize| u16::from_ne_bytes([vnet[at], vnet[at + 1]]);
            Some(Recorded {
                length: frame.length.checked_sub(ETHERNET_HEADER)?,
                start: *frame.bytes(isize::try_from(field(6)).ok()?)?,
                segment: field(4),
            })
        }) {
            self.recorded.extend(recorded);
        }
        let same = |train: &Recorded| train.length == length && train.start == start;
        let at = self.recorded.iter().position(same);
        let segment = at.and_then(|at| self.recorded.remove(at)).map(|train| train.segment);
        let surplus = self.recorded.len().saturating_sub(MOST_KEPT);
        self.recorded.drain(..surplus);
        segment.filter(|segment| *segment > 0)
    }
}
