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

/// Frames that the ring holds; further ones are not recorded. At 20 Gbit/s, 4096 trains of
/// 64 KiB are 0.1 s; single packets at 10 Gbit/s, which may be trains until they are read, 5 ms.
const FRAMES: usize = 1 << 12;

/// Bytes of a frame, and of them those of the packet: Ethernet, IP header (at most 60), first
/// bytes of the transport header.
const FRAME: usize = 256;
const RECORDED: u32 = 14 + 60 + 8;

/// Trains that were recorded and not asked about: they were dropped on their way to the queue.
const MAX_KEPT: usize = 2 * FRAMES;

/// Trains of other flows, received by other cores, that may come between a train's record and the
/// question about it. Older ones are not asked about any more.
const OUT_OF_ORDER: usize = 64;

/// The longest frame of an acknowledgement: Ethernet, IPv6 and TCP headers. TCP trains are longer
/// for any MSS from 88 bytes on, the least that `TCP_MAXSEG` accepts; shorter ones are not recorded.
const LONGEST_ACKNOWLEDGEMENT: u32 = 14 + 40 + 60;

/// `virtio_net` header: not a train.
const GSO_NONE: u8 = 0;

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
    /// Records the trains that device number `index` of the calling thread's namespace receives
    /// from here on.
    ///
    /// # Errors
    /// The system error; without `CAP_NET_RAW` it is `PermissionDenied`.
    pub fn open(index: u32) -> io::Result<Self> {
        let (frames, frame, vnet_headers) = (FRAMES, FRAME, true);
        let options = RingOptions { frames, frame, vnet_headers, filter: &mut possible_trains() };
        Ok(TrainSizes { ring: FrameRing::open(index, options)?, recorded: VecDeque::new() })
    }

    /// Makes room in the ring: to be called for each packet of the queue, a train or not.
    pub fn read_records(&mut self) {
        while let Some(recorded) = self.ring.read(|frame| {
            let vnet: &[u8; VNET_HEADER] = frame.bytes(-(VNET_HEADER as isize))?;
            let field = |at: usize| u16::from_ne_bytes([vnet[at], vnet[at + 1]]);
            Some(Recorded {
                length: frame.length.checked_sub(ETHERNET_HEADER)?,
                start: *frame.bytes(isize::try_from(field(6)).ok()?)?,
                segment: Some(field(4)).filter(|_| vnet[1] != GSO_NONE)?,
            })
        }) {
            self.recorded.extend(recorded);
        }
        let surplus = self.recorded.len().saturating_sub(MAX_KEPT);
        self.recorded.drain(..surplus);
    }

    /// The payload of each packet but the last, in bytes, of a train of `length` bytes from the
    /// IP header on, whose transport header begins with `start`. Calls come in about the order in which
    /// the trains arrived. `None` if it was not recorded, as the trains of most tunnels.
    pub fn segment(&mut self, length: usize, start: Start) -> Option<u16> {
        let same = |train: &Recorded| train.length == length && train.start == start;
        let at = self.recorded.iter().position(same)?;
        let segment = self.recorded.remove(at)?.segment;
        self.recorded.drain(..at.saturating_sub(OUT_OF_ORDER));
        Some(segment).filter(|segment| *segment > 0)
    }
}

/// A filter of the frames that a device receives and that may be trains, whatever the size of their
/// packets: all but the acknowledgements of TCP.
fn possible_trains() -> [libc::sock_filter; 13] {
    const ETHER_TYPE: u32 = 12;
    const IPV4_PROTOCOL: u32 = ETHERNET_HEADER as u32 + 9;
    const IPV6_NEXT_HEADER: u32 = ETHERNET_HEADER as u32 + 6;
    let load = |size: u32, at| step(libc::BPF_LD | size | libc::BPF_ABS, 0, 0, at);
    let equal = |k, yes, no| step(libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K, yes, no, k);
    let greater = |k, yes, no| step(libc::BPF_JMP | libc::BPF_JGT | libc::BPF_K, yes, no, k);
    let keep = |bytes| step(libc::BPF_RET | libc::BPF_K, 0, 0, bytes);
    [
        load(libc::BPF_B, PACKET_TYPE),
        equal(libc::PACKET_OUTGOING.into(), 10, 0),
        step(libc::BPF_LD | libc::BPF_W | libc::BPF_LEN, 0, 0, 0),
        greater(LONGEST_ACKNOWLEDGEMENT, 7, 0),
        load(libc::BPF_H, ETHER_TYPE),
        equal(libc::ETH_P_IP.cast_unsigned(), 0, 2),
        load(libc::BPF_B, IPV4_PROTOCOL),
        equal(libc::IPPROTO_UDP.cast_unsigned(), 3, 4),
        equal(libc::ETH_P_IPV6.cast_unsigned(), 0, 3),
        load(libc::BPF_B, IPV6_NEXT_HEADER),
        equal(libc::IPPROTO_UDP.cast_unsigned(), 0, 1),
        keep(RECORDED),
        keep(0),
    ]
}
