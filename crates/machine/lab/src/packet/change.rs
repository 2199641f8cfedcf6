//! Header fields that a path reads or changes: flow, ECN marks, bit errors, the window
//! scale option. Bytes in, bytes out.

use super::{NEEDS_CHECKSUM, fold, sum};
use host::tun::VNET_HEADER;
use link::{EcnCodepoint, Protocol, WindowScale};
use std::net::{IpAddr, SocketAddr};

const TCP: u8 = 6;
const UDP: u8 = 17;

/// Both bits of the ECN field: congestion experienced (RFC 3168, section 5).
const CE: u8 = 3;

/// Hash of a packet's flow: addresses, protocol and, unless it is a later fragment,
/// ports.
pub(crate) fn flow(ip: &[u8]) -> u32 {
    let Some(header) = transport(ip) else { return 0 };
    let hash = fnv(fnv(OFFSET, &ip[header.addresses.clone()]), header.ports(ip));
    let hash = fnv(hash, &[header.protocol]);
    // The low half of FNV is weak in its lowest bits: fold in the high half.
    #[expect(clippy::cast_possible_truncation, reason = "the halves are wanted")]
    let folded = (hash >> 32) as u32 ^ hash as u32;
    folded
}

/// The transport protocol of a packet, where middleboxes tell it apart.
pub(crate) fn protocol(ip: &[u8]) -> Option<Protocol> {
    Protocol::of_number(transport(ip)?.protocol)
}

/// Where the transport header of a packet begins, and its protocol; `None` for later fragments.
pub(crate) fn transport_at(ip: &[u8]) -> Option<(usize, Protocol)> {
    let header = transport(ip).filter(|header| header.whole)?;
    Some((header.at, Protocol::of_number(header.protocol)?))
}

/// The ends of a flow; without ports, they are 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct FlowKey {
    /// Its IP protocol: 6 is TCP, 17 UDP.
    pub protocol: u8,
    /// Where its packets come from.
    pub source: SocketAddr,
    /// Where they go.
    pub destination: SocketAddr,
}

impl FlowKey {
    /// The flow of a packet.
    pub(crate) fn of(ip: &[u8]) -> Option<Self> {
        let header = transport(ip)?;
        let port = |at: usize| match header.ports(ip).get(at..at + 2) {
            Some(port) => u16::from_be_bytes([port[0], port[1]]),
            None => 0,
        };
        let addresses = ip.get(header.addresses.clone())?;
        let (source, destination) = addresses.split_at(addresses.len() / 2);
        let address = |bytes: &[u8]| -> Option<IpAddr> {
            let v4 = <[u8; 4]>::try_from(bytes).map(IpAddr::from).ok();
            v4.or_else(|| <[u8; 16]>::try_from(bytes).map(IpAddr::from).ok())
        };
        Some(FlowKey {
            protocol: header.protocol,
            source: SocketAddr::new(address(source)?, port(0)),
            destination: SocketAddr::new(address(destination)?, port(2)),
        })
    }
}

const OFFSET: u64 = 0xcbf2_9ce4_8422_2325;

/// FNV-1a (Fowler, Noll and Vo).
fn fnv(hash: u64, bytes: &[u8]) -> u64 {
    bytes.iter().fold(hash, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(0x100_0000_01b3))
}

/// Position and type of the transport header.
struct Transport {
    at: usize,
    protocol: u8,
    addresses: std::ops::Range<usize>,
    /// Whether there is one: later fragments have none.
    whole: bool,
}

impl Transport {
    fn ports<'a>(&self, ip: &'a [u8]) -> &'a [u8] {
        let has_ports = self.whole && matches!(self.protocol, TCP | UDP);
        ip.get(self.at..self.at + 4).filter(|_| has_ports).unwrap_or_default()
    }
}

fn transport(ip: &[u8]) -> Option<Transport> {
    match ip.first()? >> 4 {
        4 if ip.len() >= 20 => Some(Transport {
            at: usize::from(ip[0] & 15) * 4,
            protocol: ip[9],
            addresses: 12..20,
            whole: u16::from_be_bytes([ip[6], ip[7]]) & 0x1fff == 0,
        }),
        // An extension header counts as a protocol without ports.
        6 if ip.len() >= 40 => {
            Some(Transport { at: 40, protocol: ip[6], addresses: 8..40, whole: true })
        }
        _ => None,
    }
}

/// The packet's ECN field.
pub(crate) fn ecn(ip: &[u8]) -> EcnCodepoint {
    match (ip.first().map(|byte| byte >> 4), ip.get(1)) {
        (Some(4), Some(byte)) => EcnCodepoint::of_traffic_class(*byte),
        (Some(6), Some(byte)) => EcnCodepoint::of_traffic_class(byte >> 4),
        _ => EcnCodepoint::NotEct,
    }
}

/// Sets congestion experienced in an IP header.
pub(crate) fn mark(ip: &mut [u8]) {
    match ip.first().map(|byte| byte >> 4) {
        Some(4) if ip.len() >= 20 => {
            ip[1] |= CE;
            let header = (usize::from(ip[0] & 15) * 4).clamp(20, ip.len());
            ip[10..12].fill(0);
            let sum = !fold(sum(&ip[..header]));
            ip[10..12].copy_from_slice(&sum.to_be_bytes());
        }
        Some(6) if ip.len() >= 2 => ip[1] |= CE << 4,
        _ => {}
    }
}

/// Completes the checksum that was left to the kernel: from here on the receiver
/// verifies it.
pub(crate) fn complete_checksum(buffer: &mut [u8]) {
    let Some((vnet, ip)) = buffer.split_at_mut_checked(VNET_HEADER) else { return };
    if vnet[0] & NEEDS_CHECKSUM == 0 {
        return;
    }
    let start = usize::from(u16::from_ne_bytes([vnet[6], vnet[7]]));
    let field = start + usize::from(u16::from_ne_bytes([vnet[8], vnet[9]]));
    if start > ip.len() || field + 2 > ip.len() {
        return;
    }
    // The field already contains the sum of the pseudo-header.
    let mut total = !fold(sum(&ip[start..]));
    if total == 0 && field - start == 6 {
        // Zero means "none" in UDP (RFC 768).
        total = 0xffff;
    }
    ip[field..field + 2].copy_from_slice(&total.to_be_bytes());
    vnet[0] &= !NEEDS_CHECKSUM;
}

/// Flips the bit of a packet selected by `draw`, except in the first byte: a device
/// rejects packets without an IP version.
pub(crate) fn flip(buffer: &mut [u8], draw: u64) {
    complete_checksum(buffer);
    let Some(ip) = buffer.get_mut(VNET_HEADER + 1..).filter(|ip| !ip.is_empty()) else { return };
    let bits = ip.len() as u64 * 8;
    let bit = draw % bits;
    let byte = usize::try_from(bit / 8).unwrap_or_default();
    ip[byte] ^= 1 << (bit % 8);
}

/// Rewrites the window scale option of a SYN as a middlebox does; other packets are
/// left unchanged.
pub(crate) fn window_scale(buffer: &mut [u8], rewrite: WindowScale) {
    let Some((vnet, ip)) = buffer.split_at_mut_checked(VNET_HEADER) else { return };
    let Some(header) = transport(ip).filter(|header| header.protocol == TCP && header.whole) else {
        return;
    };
    let Some(tcp) = ip.get_mut(header.at..) else { return };
    if !link::rewrite_window_scale(tcp, rewrite) || vnet[0] & NEEDS_CHECKSUM != 0 {
        return;
    }
    // The checksum was complete: recompute it.
    tcp[16..18].fill(0);
    let length = u32::try_from(tcp.len()).unwrap_or_default();
    let pseudo = sum(&ip[header.addresses.clone()]) + u32::from(TCP) + length;
    let total = !fold(u32::from(fold(sum(&ip[header.at..]))) + u32::from(fold(pseudo)));
    ip[header.at + 16..header.at + 18].copy_from_slice(&total.to_be_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A UDP datagram over IPv4, checksum complete.
    fn datagram(port: u16) -> Vec<u8> {
        let mut buffer = vec![NEEDS_CHECKSUM, 0, 0, 0, 0, 0, 20, 0, 6, 0];
        buffer[6..8].copy_from_slice(&20u16.to_ne_bytes());
        buffer[8..10].copy_from_slice(&6u16.to_ne_bytes());
        buffer.extend([0x45, 1, 0, 33, 0, 0, 0x40, 0, 64, UDP, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2]);
        let header = !fold(sum(&buffer[VNET_HEADER..]));
        buffer[VNET_HEADER + 10..VNET_HEADER + 12].copy_from_slice(&header.to_be_bytes());
        let pseudo = fold(sum(&buffer[VNET_HEADER + 12..]) + u32::from(UDP) + 13);
        buffer.extend(port.to_be_bytes());
        buffer.extend([0, 53, 0, 13]);
        buffer.extend(pseudo.to_be_bytes());
        buffer.extend(*b"hello");
        buffer
    }

    fn sums_up(buffer: &[u8]) -> bool {
        let ip = &buffer[VNET_HEADER..];
        let pseudo = sum(&ip[12..20]) + u32::from(UDP) + 13;
        fold(u32::from(fold(sum(&ip[20..]))) + pseudo) == 0xffff && fold(sum(&ip[..20])) == 0xffff
    }

    #[test]
    fn flows_differ_by_port_and_repeat() {
        let [a, b] = [datagram(1000), datagram(1001)].map(|d| flow(&d[VNET_HEADER..]));
        assert_ne!(a, b);
        assert_eq!(a, flow(&datagram(1000)[VNET_HEADER..]));
    }

    #[test]
    fn marks_keep_the_header_whole() {
        let mut buffer = datagram(1000);
        assert_eq!(ecn(&buffer[VNET_HEADER..]), EcnCodepoint::Ect1);
        mark(&mut buffer[VNET_HEADER..]);
        assert_eq!(ecn(&buffer[VNET_HEADER..]), EcnCodepoint::Ce);
        complete_checksum(&mut buffer);
        assert!(buffer[VNET_HEADER + 1] & CE == CE && sums_up(&buffer));
    }

    #[test]
    fn a_flipped_bit_breaks_the_checksum() {
        for bit in 0..32 * 8 {
            let mut whole = datagram(1000);
            complete_checksum(&mut whole);
            assert!(sums_up(&whole) && whole[0] & NEEDS_CHECKSUM == 0);
            let mut broken = datagram(1000);
            flip(&mut broken, bit + 32 * 8 * 7);
            let differ = whole.iter().zip(&broken).filter(|(a, b)| a != b).count();
            assert_eq!(differ, 1, "bit {bit}");
            // A source port with one bit flipped still changes the sum.
            assert!(!sums_up(&broken), "bit {bit}");
        }
    }

    proptest::proptest! {
        #[test]
        fn any_bytes_are_accepted_without_a_panic(mut buffer in proptest::collection::vec(0u8.., 0..120), draw in 0u64..) {
            let _ = (flow(&buffer), ecn(&buffer));
            mark(&mut buffer);
            window_scale(&mut buffer, WindowScale::Strip);
            flip(&mut buffer, draw);
        }
    }
}
