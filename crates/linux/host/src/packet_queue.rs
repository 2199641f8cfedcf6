//! Packets that the kernel holds until user space decides about them (NFQUEUE,
//! linux/netfilter/nfnetlink_queue.h).
//!
//! The kernel passes on the first bytes of each packet, or train of packets, with a number that
//! counts up; the packet itself stays where it is. One decision covers all packets up to a
//! number, so packets that leave in the order in which they came cost a fraction of a call each.

use crate::netlink_message::attribute;
use crate::nfnetlink::{self, Nfnetlink, message};
use crate::sys;
use std::fs;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::time::Duration;

/// Message types of the subsystem.
const SUBSYSTEM: u16 = (libc::NFNL_SUBSYS_QUEUE as u16) << 8;
const PACKET: u16 = SUBSYSTEM;
const CONFIG: u16 = SUBSYSTEM | 2;
const VERDICT_BATCH: u16 = SUBSYSTEM | 3;

/// Packets that a queue holds at most: the path drops by its own rules.
const LONGEST: u32 = u32::MAX;

/// Messages that are read with one call.
const BATCH: usize = 64;

/// Room for a message: its attributes, at most 200 bytes, and the bytes of the packet.
const ATTRIBUTES: usize = 256;

/// The most that a queue can be asked to pass on of a packet: an attribute's length has 16 bits.
pub const WHOLE: u32 = 65_531;

/// Memory for messages that wait to be read, as requested; the kernel counts twice as much.
const BUFFER: libc::c_int = 64 << 20;

/// A queue, by which the calling thread's network namespace passes packets to its owner.
#[derive(Debug)]
pub struct PacketQueue {
    socket: Nfnetlink,
    number: u16,
    /// The messages of the latest read, each in its own slot.
    bytes: Vec<u8>,
    slot: usize,
    /// Size of a slot from the next read on.
    wanted: usize,
    lengths: [usize; BATCH],
    next: usize,
    read: usize,
    verdicts: Vec<u8>,
}

/// A packet in a queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct QueuedPacket<'a> {
    /// Its number in the queue.
    pub id: u32,
    /// When it arrived, as wall-clock time since 1970, in whole microseconds; `None` unless a
    /// socket of the system asks for timestamps.
    pub time: Option<Duration>,
    /// Its length in bytes from the IP header on; of a train, all of it.
    pub length: usize,
    /// Whether it is a train: segmentation offload has yet to cut it.
    pub is_train: bool,
    /// Whether its transport checksum is yet to be computed.
    pub needs_checksum: bool,
    /// Its first bytes, from the IP header on.
    pub bytes: &'a [u8],
}

/// What is to become of packets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// They go on.
    Accept,
    /// They go on with this value in the length field of the IP header. The host that receives
    /// them discards the bytes beyond it, as those that a link has padded a packet with.
    Shorten(u16),
    /// They are dropped.
    Drop,
    /// They go into another queue, last.
    Queue(u16),
}

impl Verdict {
    fn code(self) -> u32 {
        match self {
            Verdict::Drop => libc::NF_DROP.cast_unsigned(),
            Verdict::Accept | Verdict::Shorten(_) => libc::NF_ACCEPT.cast_unsigned(),
            Verdict::Queue(number) => libc::NF_QUEUE.cast_unsigned() | (u32::from(number) << 16),
        }
    }

    /// The mark by which the rules of [`queue_rules`](crate::queue_rules) know the length.
    fn mark(self) -> Option<u32> {
        let Verdict::Shorten(length) = self else { return None };
        let [high, low] = length.to_be_bytes();
        // They write its first two bytes, as they are in memory, into the header.
        Some(u32::from_ne_bytes([high, low, 0, 0]))
    }
}

impl PacketQueue {
    /// Opens queue `number`, which passes on the first `bytes` of each packet.
    ///
    /// # Errors
    /// The system error: without `CAP_NET_ADMIN` it is `PermissionDenied`; the kernel may lack
    /// the subsystem; the number may be taken.
    pub fn open(number: u16, bytes: u32) -> io::Result<Self> {
        let socket = Nfnetlink::open()?;
        let configure = |kind: u16, value: &[u8]| {
            let flags = libc::NLM_F_REQUEST | libc::NLM_F_ACK;
            let family = libc::AF_UNSPEC;
            socket.request(&message(CONFIG, flags, 0, family, number, &attribute(kind, value)))
        };
        // NFQNL_CFG_CMD_BIND
        configure(1, &[1, 0, 0, 0])?;
        configure(3, &LONGEST.to_be_bytes())?;
        // Trains stay whole (NFQA_CFG_F_GSO): the flags, and which of them are set.
        let whole = 4_u32.to_be_bytes();
        let body = [attribute(4, &whole), attribute(5, &whole)].concat();
        let flags = libc::NLM_F_REQUEST | libc::NLM_F_ACK;
        socket.request(&message(CONFIG, flags, 0, libc::AF_UNSPEC, number, &body))?;
        // A message that finds no room is lost with its packet, and counted; without the option
        // each loss would also be an error of the next read.
        sys::set_option(&socket, libc::SOL_NETLINK, libc::NETLINK_NO_ENOBUFS, &1i32)?;
        if sys::set_option(&socket, libc::SOL_SOCKET, libc::SO_RCVBUFFORCE, &BUFFER).is_err() {
            sys::set_option(&socket, libc::SOL_SOCKET, libc::SO_RCVBUF, &BUFFER)?;
        }
        configure(2, &parameters(bytes))?;
        Ok(PacketQueue {
            socket,
            number,
            bytes: Vec::new(),
            slot: 0,
            wanted: slot_size(bytes),
            lengths: [0; BATCH],
            next: 0,
            read: 0,
            verdicts: Vec::new(),
        })
    }

    /// Passes on the first `bytes` of each packet that arrives from here on.
    ///
    /// # Errors
    /// The system error.
    pub fn pass_on(&mut self, bytes: u32) -> io::Result<()> {
        let body = attribute(2, &parameters(bytes));
        // An acknowledgement would come among packets; the kernel has accepted the like before.
        let flags = libc::NLM_F_REQUEST;
        self.socket.send(&message(CONFIG, flags, 0, libc::AF_UNSPEC, self.number, &body))?;
        // Messages that were read remain to be parsed in their slots.
        self.wanted = self.wanted.max(slot_size(bytes));
        Ok(())
    }

    /// Memory for messages that wait to be read, by the kernel's count.
    ///
    /// # Errors
    /// The system error.
    pub fn buffer(&self) -> io::Result<usize> {
        let size = sys::int_option(&self.socket, libc::SOL_SOCKET, libc::SO_RCVBUF)?;
        Ok(usize::try_from(size).unwrap_or_default())
    }

    /// The next packet; `None` if there is none.
    ///
    /// # Errors
    /// The system error.
    pub fn next_packet(&mut self) -> io::Result<Option<QueuedPacket<'_>>> {
        let at = loop {
            if self.next == self.read && !self.read_messages()? {
                return Ok(None);
            }
            let at = self.next;
            self.next += 1;
            let bytes = &self.bytes[at * self.slot..][..self.lengths[at]];
            if bytes.get(4..6) == Some(&PACKET.to_ne_bytes()) {
                break at;
            }
        };
        let packet = parse(&self.bytes[at * self.slot..][..self.lengths[at]]);
        packet.map(Some).ok_or_else(|| io::Error::other("a malformed message of a packet queue"))
    }

    /// Reads the messages that wait; false if there are none.
    fn read_messages(&mut self) -> io::Result<bool> {
        if self.wanted > self.slot {
            self.slot = self.wanted;
            self.bytes.resize(self.slot * BATCH, 0);
        }
        let mut pieces = self
            .bytes
            .chunks_exact_mut(self.slot)
            .map(|slot| libc::iovec { iov_base: slot.as_mut_ptr().cast(), iov_len: slot.len() });
        let mut pieces: [libc::iovec; BATCH] = std::array::from_fn(|_| {
            pieces.next().unwrap_or(libc::iovec { iov_base: std::ptr::null_mut(), iov_len: 0 })
        });
        // No name, no control data.
        let mut headers: [libc::mmsghdr; BATCH] = sys::zeroed();
        for (header, piece) in headers.iter_mut().zip(&mut pieces) {
            header.msg_hdr.msg_iov = std::ptr::from_mut(piece);
            header.msg_hdr.msg_iovlen = 1;
        }
        let socket = self.socket.as_fd().as_raw_fd();
        let none = std::ptr::null_mut();
        // SAFETY: each header points to one piece, which is a slot of our buffer.
        let read = sys::retry(|| unsafe {
            let count = BATCH as libc::c_uint;
            libc::recvmmsg(socket, headers.as_mut_ptr(), count, libc::MSG_DONTWAIT, none) as isize
        });
        self.next = 0;
        self.read = match read {
            Ok(read) => read,
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => 0,
            Err(error) => return Err(error),
        };
        for (length, header) in self.lengths.iter_mut().zip(&headers[..self.read]) {
            *length = header.msg_len as usize;
        }
        Ok(self.read > 0)
    }

    /// Decides about all packets up to each number; the numbers count up.
    ///
    /// # Errors
    /// The system error.
    pub fn decide(&mut self, verdicts: &[(Verdict, u32)]) -> io::Result<()> {
        if verdicts.is_empty() {
            return Ok(());
        }
        self.verdicts.clear();
        for (verdict, up_to) in verdicts {
            let value = [verdict.code().to_be_bytes(), up_to.to_be_bytes()].concat();
            let (flags, family) = (libc::NLM_F_REQUEST, libc::AF_UNSPEC);
            let mut body = attribute(2, &value);
            body.extend(verdict.mark().into_iter().flat_map(|mark| nfnetlink::number(3, mark)));
            self.verdicts.extend(message(VERDICT_BATCH, flags, 0, family, self.number, &body));
        }
        self.socket.send(&self.verdicts)
    }
}

impl AsFd for PacketQueue {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

/// `struct nfqnl_msg_config_params`: range and `NFQNL_COPY_PACKET`.
fn parameters(bytes: u32) -> [u8; 5] {
    let [a, b, c, d] = bytes.min(WHOLE).to_be_bytes();
    [a, b, c, d, 2]
}

fn slot_size(bytes: u32) -> usize {
    (ATTRIBUTES + bytes.min(WHOLE) as usize).next_multiple_of(64)
}

/// Packets, or trains of packets, that these queues of the calling thread's network namespace have
/// lost: the queue was full, or the socket had no room for the message.
///
/// # Errors
/// The system error if the kernel does not list its queues.
pub fn lost(queues: &[u16]) -> io::Result<u64> {
    let text = fs::read_to_string("/proc/thread-self/net/netfilter/nfnetlink_queue")?;
    Ok(lost_of(&text, queues))
}

/// `seq_show` of nfnetlink_queue.c: number, port, length, mode, range, dropped because the queue was
/// full, dropped because the message was not sent, latest packet number, 1.
fn lost_of(text: &str, queues: &[u16]) -> u64 {
    let of_line = |line: &str| {
        let mut fields = line.split_ascii_whitespace();
        let number: u16 = fields.next()?.parse().ok()?;
        let dropped = fields.skip(4).take(2).map_while(|field| field.parse::<u64>().ok()).sum();
        queues.contains(&number).then_some(dropped)
    };
    text.lines().filter_map(of_line).fold(0, u64::saturating_add)
}

/// A message about a packet; `None` if it is malformed.
pub(crate) fn parse(message: &[u8]) -> Option<QueuedPacket<'_>> {
    let mut rest = message.get(20..)?;
    let mut packet = QueuedPacket {
        id: 0,
        time: None,
        length: 0,
        is_train: false,
        needs_checksum: false,
        bytes: &[],
    };
    let (mut numbered, mut whole) = (false, None);
    while let [l0, l1, k0, k1, ..] = *rest {
        let length = usize::from(u16::from_ne_bytes([l0, l1]));
        let value = rest.get(4..length)?;
        let word = |at: usize| Some(u32::from_be_bytes(*value.get(at..)?.first_chunk()?));
        let long = |at: usize| Some(u64::from_be_bytes(*value.get(at..)?.first_chunk()?));
        match u16::from_ne_bytes([k0, k1]) & !(3 << 14) {
            1 => (packet.id, numbered) = (word(0)?, true),
            4 => {
                let micros = long(0)?.checked_mul(1_000_000)?.checked_add(long(8)?)?;
                packet.time = Some(Duration::from_micros(micros));
            }
            10 => packet.bytes = value,
            13 => whole = Some(word(0)? as usize),
            14 => {
                let info = word(0)?;
                (packet.needs_checksum, packet.is_train) = (info & 1 != 0, info & 2 != 0);
            }
            _ => {}
        }
        rest = rest.get(length.next_multiple_of(4)..).unwrap_or_default();
    }
    packet.length = whole.unwrap_or(packet.bytes.len());
    numbered.then_some(packet)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn about_a_packet(attributes: &[(u16, &[u8])]) -> Vec<u8> {
        let body: Vec<u8> = attributes.iter().flat_map(|(kind, it)| attribute(*kind, it)).collect();
        message(PACKET, 0, 0, libc::AF_INET, 7, &body)
    }

    #[test]
    fn a_message_says_what_the_kernel_holds() {
        let number = [0, 0, 1, 2, 8, 0, 2];
        let time = [5_u64.to_be_bytes(), 250_000_u64.to_be_bytes()].concat();
        let start = [(1, &number[..]), (4, &time), (14, &[0, 0, 0, 3])];
        let held = about_a_packet(&[&start[..], &[(13, &[0, 0, 250, 0]), (10, b"head")]].concat());
        let packet = QueuedPacket {
            id: 258,
            time: Some(Duration::from_millis(5250)),
            length: 64_000,
            is_train: true,
            needs_checksum: true,
            bytes: b"head",
        };
        assert_eq!(parse(&held), Some(packet));
        // A packet that is passed on whole has no other length.
        let whole = about_a_packet(&[(1, &number), (10, b"whole")]);
        assert_eq!(parse(&whole).map(|packet| (packet.length, packet.is_train)), Some((5, false)));
        assert_eq!(parse(&about_a_packet(&[(10, b"no number")])), None);
    }

    #[test]
    fn the_kernel_counts_what_its_queues_lose() {
        let text = "    0  23456     7 2    120     3     4      900  1\n\
                    \u{20}   1  23457     0 2  65531     5     0        2  1\n\
                    garbage\n";
        assert_eq!(lost_of(text, &[0]), 7);
        assert_eq!(lost_of(text, &[1, 0]), 12);
        assert_eq!(lost_of(text, &[2]), 0);
    }

    proptest! {
        #[test]
        fn any_message_is_accepted_without_a_panic(bytes in proptest::collection::vec(0u8.., 0..80)) {
            let _ = parse(&bytes);
        }
    }
}
