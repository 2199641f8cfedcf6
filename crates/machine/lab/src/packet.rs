//! Buffers of a TUN device with segmentation offload, and splitting them.
//!
//! A buffer begins with a `virtio_net` header (virtio 1.2, section 5.1.6): how to split
//! the IP packet that follows into packets of MTU size, and which checksum is still
//! missing. If a link delivers only some packets of a train, they get headers of
//! their own: lengths, sequence number, flags and pseudo-header checksum; the kernel
//! computes the rest of the checksum. Pure: bytes in, bytes out.

pub(crate) mod change;

use host::packet_queue::QueuedPacket;
use host::tun::VNET_HEADER;
use link::{Protocol, Train};
use std::ops::Range;

const NEEDS_CHECKSUM: u8 = 1;
const GSO_NONE: u8 = 0;
const GSO_TCP4: u8 = 1;
const GSO_TCP6: u8 = 4;
const GSO_UDP: u8 = 5;
/// Set if the train begins with CWR (congestion window reduced): only its first packet
/// keeps the flag.
const GSO_ECN: u8 = 0x80;

const TCP_FIN: u8 = 0x01;
const TCP_PSH: u8 = 0x08;
const TCP_CWR: u8 = 0x80;

/// Layout of a train.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Layout {
    kind: Kind,
    ipv6: bool,
    /// Offset of the TCP or UDP header from the IP header.
    transport: usize,
    /// Length of all headers.
    headers: usize,
    /// Payload of each packet except the last; 0 for a single packet.
    segment: usize,
    /// Total length, from the IP header on.
    length: usize,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Single,
    Tcp,
    Udp,
}

/// The `virtio_net` header of a packet that the kernel holds. `recorded` knows the size of a
/// train's packets by the first bytes of its transport header. `None` for a train whose packets are
/// not known: of a tunnel, or with headers between those of IP and of TCP or UDP.
pub(crate) fn vnet_header(
    packet: &QueuedPacket<'_>,
    recorded: impl FnOnce([u8; 8]) -> Option<u16>,
) -> Option<[u8; VNET_HEADER]> {
    let mut vnet = [0; VNET_HEADER];
    let ip = packet.bytes;
    let known = Some(vnet).filter(|_| !packet.is_train);
    let Some((transport, protocol)) = change::transport_at(ip) else { return known };
    let Some(start) = ip.get(transport..).and_then(|start| start.first_chunk::<8>()) else {
        return known;
    };
    let (field, headers, kind) = match (protocol, ip[0] >> 4) {
        (Protocol::Udp, _) => (6, transport + 8, GSO_UDP),
        (Protocol::Tcp, version) => {
            let offset = ip.get(transport + 12).map_or(0, |byte| usize::from(byte >> 4) * 4);
            (16, transport + offset, if version == 4 { GSO_TCP4 } else { GSO_TCP6 })
        }
    };
    let number = |number: usize| u16::try_from(number).unwrap_or(u16::MAX).to_ne_bytes();
    if packet.needs_checksum {
        vnet[0] = NEEDS_CHECKSUM;
        vnet[6..8].copy_from_slice(&number(transport));
        vnet[8..10].copy_from_slice(&number(field));
    }
    if packet.is_train {
        let segment = recorded(*start).filter(|_| packet.needs_checksum)?;
        let reduced = protocol == Protocol::Tcp
            && ip.get(transport + 13).is_some_and(|flags| flags & TCP_CWR != 0);
        vnet[1] = if reduced { kind | GSO_ECN } else { kind };
        vnet[2..4].copy_from_slice(&number(headers));
        vnet[4..6].copy_from_slice(&segment.to_ne_bytes());
    }
    Some(vnet)
}

/// Part of a train: headers of its own, and payload of the train.
pub(crate) struct Piece<'a> {
    pub(crate) headers: &'a [u8],
    pub(crate) payload: &'a [u8],
}

impl Layout {
    /// Parses a buffer's headers; `None` if they are inconsistent, which never happens
    /// with the kernel's own buffers.
    pub(crate) fn of(buffer: &[u8]) -> Option<Self> {
        Layout::of_start(buffer, buffer.len().checked_sub(VNET_HEADER)?)
    }

    /// The same of a packet of `length` bytes, of which the buffer has the headers.
    pub(crate) fn of_start(buffer: &[u8], length: usize) -> Option<Self> {
        let (vnet, ip) = buffer.split_at_checked(VNET_HEADER)?;
        let ipv6 = match ip.first()? >> 4 {
            4 => false,
            6 => true,
            _ => return None,
        };
        let single =
            Layout { kind: Kind::Single, ipv6, transport: 0, headers: 0, segment: 0, length };
        let kind = match vnet[1] & !GSO_ECN {
            GSO_NONE => return Some(single),
            GSO_TCP4 | GSO_TCP6 => Kind::Tcp,
            GSO_UDP => Kind::Udp,
            _ => return None,
        };
        let transport = usize::from(u16::from_ne_bytes([vnet[6], vnet[7]]));
        // IPv6 may have extension headers in between; IPv4 states its header length.
        let in_place = if ipv6 {
            transport >= 40
        } else {
            transport >= 20 && transport == usize::from(ip[0] & 15) * 4
        };
        if vnet[0] & NEEDS_CHECKSUM == 0 || !in_place {
            return None;
        }
        let transport_header = match kind {
            Kind::Tcp => usize::from(ip.get(transport + 12)? >> 4) * 4,
            _ => 8,
        };
        let least = if kind == Kind::Tcp { 20 } else { 8 };
        let headers = transport + transport_header;
        let segment = usize::from(u16::from_ne_bytes([vnet[4], vnet[5]]));
        if transport_header < least || headers > ip.len().min(length) || segment == 0 {
            return None;
        }
        Some(Layout { kind, transport, headers, segment, ..single })
    }

    /// The packets that `buffer` stands for. The layout must be that of `buffer`.
    pub(crate) fn train_of(&self, buffer: &[u8]) -> Train {
        let ip = &buffer[VNET_HEADER..];
        self.train()
            .of_flow(change::flow(ip))
            .of_protocol(change::protocol(ip))
            .with_ecn(change::ecn(ip))
    }

    fn train(&self) -> Train {
        // Lengths are within one read: at most 65 535.
        let narrow = |length: usize| u32::try_from(length).unwrap_or(u32::MAX);
        Train::segmented(
            narrow(self.headers),
            narrow(self.length - self.headers),
            narrow(self.segment),
        )
    }

    /// Extracts packets `range` from `buffer`, whose layout this is, and sets congestion
    /// experienced if `marked`. `scratch` receives the new headers. A whole train is
    /// passed on unchanged.
    pub(crate) fn cut<'a>(
        &self,
        buffer: &'a [u8],
        range: Range<u32>,
        marked: bool,
        scratch: &'a mut Vec<u8>,
    ) -> Piece<'a> {
        self.cut_apart(buffer.split_at(VNET_HEADER), range, marked, scratch)
    }

    /// The same of a `virtio_net` header and an IP packet that lie apart.
    pub(crate) fn cut_apart<'a>(
        &self,
        (vnet, ip): (&'a [u8], &'a [u8]),
        range: Range<u32>,
        marked: bool,
        scratch: &'a mut Vec<u8>,
    ) -> Piece<'a> {
        let packets = self.train().packets();
        if range.start == 0 && range.end >= packets {
            if !marked {
                return Piece { headers: vnet, payload: ip };
            }
            // An IPv4 header has at most 60 bytes, IPv6's has 40.
            let (headers, payload) = ip.split_at(ip.len().min(60));
            scratch.clear();
            scratch.extend_from_slice(vnet);
            scratch.extend_from_slice(headers);
            change::mark(&mut scratch[VNET_HEADER..]);
            return Piece { headers: scratch, payload };
        }
        let (first, last) = (range.start as usize, range.end as usize);
        let from = self.headers + first * self.segment;
        let to = (self.headers + last * self.segment).min(self.length);
        // A buffer may have the headers and the first bytes alone.
        let payload = &ip[from.min(ip.len())..to.min(ip.len())];

        scratch.clear();
        scratch.extend_from_slice(vnet);
        scratch.extend_from_slice(&ip[..self.headers]);
        let (vnet, headers) = scratch.split_at_mut(VNET_HEADER);
        if range.len() == 1 {
            vnet[1] = GSO_NONE;
            vnet[2..6].fill(0);
        } else {
            // A sender's is the linear part of its buffer, which a piece may be shorter than; the
            // kernel refuses a header that is longer than its packet.
            let headers = u16::try_from(self.headers).unwrap_or(u16::MAX);
            vnet[2..4].copy_from_slice(&headers.to_ne_bytes());
            if first > 0 {
                vnet[1] &= !GSO_ECN;
            }
        }
        let length = self.headers + (to - from);
        self.lengths(headers, length, first);
        let transport = &mut headers[self.transport..];
        match self.kind {
            Kind::Tcp => {
                let sequence =
                    u32::from_be_bytes([transport[4], transport[5], transport[6], transport[7]]);
                let offset = u32::try_from(first * self.segment).unwrap_or_default();
                transport[4..8].copy_from_slice(&sequence.wrapping_add(offset).to_be_bytes());
                if range.end < packets {
                    transport[13] &= !(TCP_FIN | TCP_PSH);
                }
                if first > 0 {
                    transport[13] &= !TCP_CWR;
                }
            }
            Kind::Udp => transport[4..6].copy_from_slice(&be16(length - self.transport)),
            Kind::Single => {}
        }
        let sum = self.pseudo_header_sum(headers, length - self.transport);
        let field = self.transport + if self.kind == Kind::Tcp { 16 } else { 6 };
        headers[field..field + 2].copy_from_slice(&sum.to_be_bytes());
        if marked {
            change::mark(headers);
        }
        Piece { headers: scratch, payload }
    }

    /// What the IP header of `buffer`, whose layout this is, states as a length if only the first
    /// `packets` are left; `None` if other fields would have to change, too.
    pub(crate) fn shortened(&self, buffer: &[u8], packets: u32) -> Option<u16> {
        let flags = buffer.get(VNET_HEADER + self.transport + 13)?;
        if self.kind != Kind::Tcp || flags & TCP_FIN != 0 {
            return None;
        }
        let length = (self.headers + packets as usize * self.segment).min(self.length);
        u16::try_from(if self.ipv6 { length.checked_sub(40)? } else { length }).ok()
    }

    /// Sets the IP lengths, and for IPv4 the identification and the header checksum.
    fn lengths(&self, ip: &mut [u8], length: usize, first: usize) {
        if self.ipv6 {
            ip[4..6].copy_from_slice(&be16(length - 40));
            return;
        }
        ip[2..4].copy_from_slice(&be16(length));
        let id = u16::from_be_bytes([ip[4], ip[5]]).wrapping_add(u16::from_be_bytes(be16(first)));
        ip[4..6].copy_from_slice(&id.to_be_bytes());
        ip[10..12].fill(0);
        let header = usize::from(ip[0] & 0x0f) * 4;
        let sum = !fold(sum(&ip[..header.clamp(20, self.transport)]));
        ip[10..12].copy_from_slice(&sum.to_be_bytes());
    }

    /// Content of the checksum field before the kernel has added the rest
    /// (RFC 9293, section 3.1; RFC 8200, section 8.1).
    fn pseudo_header_sum(&self, ip: &[u8], transport_length: usize) -> u16 {
        let addresses = if self.ipv6 { &ip[8..40] } else { &ip[12..20] };
        let protocol = if self.kind == Kind::Tcp { 6 } else { 17 };
        let length = u32::try_from(transport_length).unwrap_or_default();
        fold(sum(addresses) + protocol + length)
    }
}

fn be16(number: usize) -> [u8; 2] {
    u16::try_from(number).unwrap_or(u16::MAX).to_be_bytes()
}

/// Sum of 16-bit words (RFC 1071), not folded. At most 65 535 bytes, so no overflow.
fn sum(bytes: &[u8]) -> u32 {
    bytes
        .chunks(2)
        .map(|pair| u32::from(u16::from_be_bytes([pair[0], pair.get(1).copied().unwrap_or(0)])))
        .sum()
}

fn fold(mut sum: u32) -> u16 {
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    u16::try_from(sum).unwrap_or(u16::MAX)
}

#[cfg(test)]
mod tests;
