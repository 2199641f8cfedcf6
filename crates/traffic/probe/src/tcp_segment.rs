//! Probes within an open TCP connection, without I/O: segments as a keepalive sends them (RFC 9293,
//! section 3.8.4), and the ICMP errors that quote them.
//!
//! A probe has a sequence number that was acknowledged before and no payload: whoever receives it
//! answers with an acknowledgement at most, and a stateful firewall or NAT sees an old segment of a
//! connection that it knows. Its acknowledgement number is one less than what the connection expects:
//! a reset in answer to it has that sequence number, which is outside the window (RFC 5961, section
//! 3.2), so that it does not end the connection.

use std::net::{IpAddr, SocketAddr};

/// Length of a TCP header without options, bytes.
const TCP_HEADER: usize = 20;
/// The protocol number of TCP.
const TCP: u8 = 6;
/// Flag bits (RFC 9293, section 3.1).
const ACK: u8 = 0x10;
const SYN: u8 = 0x02;
const FIN: u8 = 0x01;
/// A window that no NAT takes for a closed one.
const WINDOW: u16 = 501;
/// Sequence numbers of probes: so many below the oldest unacknowledged one.
pub(crate) const NUMBERS: u32 = 1024;

/// The state of the connection that a segment of the peer shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Position {
    /// The oldest sequence number that is not acknowledged (SND.UNA).
    pub(crate) una: u32,
    /// The next sequence number that is expected (RCV.NXT).
    pub(crate) next: u32,
}

impl Position {
    /// Probe `number`; fewer than [`NUMBERS`] are told apart, of those with one `una`.
    pub(crate) fn probe(
        self,
        local: SocketAddr,
        peer: SocketAddr,
        number: u32,
    ) -> [u8; TCP_HEADER] {
        let sequence = self.sequence(number);
        let mut segment = [0; TCP_HEADER];
        segment[..2].copy_from_slice(&local.port().to_be_bytes());
        segment[2..4].copy_from_slice(&peer.port().to_be_bytes());
        segment[4..8].copy_from_slice(&sequence.to_be_bytes());
        segment[8..12].copy_from_slice(&self.next.wrapping_sub(1).to_be_bytes());
        segment[12] = (TCP_HEADER as u8 / 4) << 4;
        segment[13] = ACK;
        segment[14..16].copy_from_slice(&WINDOW.to_be_bytes());
        let sum = checksum(local.ip(), peer.ip(), &segment);
        segment[16..18].copy_from_slice(&sum.to_be_bytes());
        segment
    }

    /// The sequence number of a probe.
    pub(crate) fn sequence(self, number: u32) -> u32 {
        self.una.wrapping_sub(1 + number % NUMBERS)
    }
}

/// The checksum with the pseudo-header (RFC 9293, section 3.1; RFC 8200, section 8.1).
fn checksum(from: IpAddr, to: IpAddr, segment: &[u8]) -> u16 {
    let octets = |address: IpAddr| match address {
        IpAddr::V4(address) => address.octets().to_vec(),
        IpAddr::V6(address) => address.octets().to_vec(),
    };
    let mut bytes = [octets(from), octets(to)].concat();
    bytes.extend([0, TCP]);
    bytes.extend((segment.len() as u16).to_be_bytes());
    bytes.extend(segment);
    let sum = bytes.chunks(2).map(|pair| match pair {
        [high, low] => u32::from(u16::from_be_bytes([*high, *low])),
        [high] => u32::from(*high) << 8,
        _ => 0,
    });
    let mut sum: u32 = sum.sum();
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    !(sum as u16)
}

/// The position that a segment of the peer tells. `packet` is what a raw socket delivers: for IPv4
/// with the IP header.
pub(crate) fn position(packet: &[u8], local: SocketAddr, peer: SocketAddr) -> Option<Position> {
    let (segment, length) = match peer {
        SocketAddr::V4(_) => {
            let header = ipv4_header(packet)?;
            let total = usize::from(u16::from_be_bytes(field(packet, 2)?));
            (packet.get(header..)?, total.checked_sub(header)?)
        }
        SocketAddr::V6(_) => (packet, packet.len()),
    };
    let ports = [u16::from_be_bytes(field(segment, 0)?), u16::from_be_bytes(field(segment, 2)?)];
    if ports != [peer.port(), local.port()] {
        return None;
    }
    let [words, flags] = field(segment, 12)?;
    // The first segments have no data to go by.
    if flags & ACK == 0 || flags & SYN != 0 {
        return None;
    }
    let payload = length.checked_sub(usize::from(words >> 4) * 4)? as u32 + u32::from(flags & FIN);
    let sequence = u32::from_be_bytes(field(segment, 4)?);
    let una = u32::from_be_bytes(field(segment, 8)?);
    Some(Position { una, next: sequence.wrapping_add(payload) })
}

/// The sequence number of the segment from `local` to the port of `peer` that a "time exceeded"
/// quotes. A NAT on the path may have rewritten the address of the peer.
pub(crate) fn expired(packet: &[u8], local: SocketAddr, peer: SocketAddr) -> Option<u32> {
    let (message, kind) = match peer {
        SocketAddr::V4(_) => (packet.get(ipv4_header(packet)?..)?, 11),
        SocketAddr::V6(_) => (packet, 3),
    };
    if field(message, 0)? != [kind, 0] {
        return None;
    }
    let quoted = message.get(8..)?;
    let (segment, is_from_here) = match local.ip() {
        IpAddr::V4(address) => {
            let header = ipv4_header(quoted)?;
            let is_tcp = quoted.get(9) == Some(&TCP);
            (quoted.get(header..)?, is_tcp && field(quoted, 12)? == address.octets())
        }
        IpAddr::V6(address) => {
            let is_tcp = quoted.first()? >> 4 == 6 && quoted.get(6) == Some(&TCP);
            (quoted.get(40..)?, is_tcp && field(quoted, 8)? == address.octets())
        }
    };
    let ports = [u16::from_be_bytes(field(segment, 0)?), u16::from_be_bytes(field(segment, 2)?)];
    let is_ours = is_from_here && ports == [local.port(), peer.port()];
    is_ours.then_some(u32::from_be_bytes(field(segment, 4)?))
}

/// The length of an IPv4 header (RFC 791, section 3.1).
fn ipv4_header(packet: &[u8]) -> Option<usize> {
    let first = *packet.first()?;
    let length = usize::from(first & 0x0f) * 4;
    (first >> 4 == 4 && length >= 20 && packet.len() >= length).then_some(length)
}

fn field<const N: usize>(bytes: &[u8], at: usize) -> Option<[u8; N]> {
    bytes.get(at..at.checked_add(N)?)?.try_into().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    const POSITION: Position = Position { una: 5, next: 900 };

    fn ends(v6: bool) -> (SocketAddr, SocketAddr) {
        match v6 {
            false => ("192.0.2.1:8080".parse().unwrap(), "198.51.100.7:50000".parse().unwrap()),
            true => ("[2001:db8::1]:8080".parse().unwrap(), "[2001:db8::7]:50000".parse().unwrap()),
        }
    }

    /// An IP header before a segment.
    fn packet(from: SocketAddr, to: SocketAddr, segment: &[u8]) -> Vec<u8> {
        match (from.ip(), to.ip()) {
            (IpAddr::V4(from), IpAddr::V4(to)) => {
                let mut packet = vec![0x45, 0];
                packet.extend((20 + segment.len() as u16).to_be_bytes());
                packet.extend([0, 0, 0, 0, 1, TCP, 0, 0]);
                packet.extend([from.octets(), to.octets()].concat());
                [packet, segment.to_vec()].concat()
            }
            (IpAddr::V6(from), IpAddr::V6(to)) => {
                let mut packet = vec![0x60, 0, 0, 0];
                packet.extend((segment.len() as u16).to_be_bytes());
                packet.extend([TCP, 1]);
                packet.extend([from.octets(), to.octets()].concat());
                [packet, segment.to_vec()].concat()
            }
            _ => panic!("both ends have one family"),
        }
    }

    /// The error of a router, as a raw socket delivers it.
    fn error(v6: bool, quoted: &[u8]) -> Vec<u8> {
        let kind = if v6 { 3 } else { 11 };
        let message = [&[kind, 0, 0, 0, 0, 0, 0, 0], quoted].concat();
        let (local, peer) = ends(false);
        if v6 { message } else { packet(peer, local, &message) }
    }

    #[test]
    fn a_probe_is_an_old_segment_without_payload() {
        for v6 in [false, true] {
            let (local, peer) = ends(v6);
            let probe = POSITION.probe(local, peer, 7);
            assert_eq!(probe[..4], [0x1f, 0x90, 0xc3, 0x50]);
            // 5 - 8 wraps.
            assert_eq!(probe[4..8], (u32::MAX - 2).to_be_bytes());
            assert_eq!(probe[8..12], 899u32.to_be_bytes());
            assert_eq!(probe[12..14], [0x50, ACK]);
            // With its checksum the sum is zero.
            assert_eq!(checksum(local.ip(), peer.ip(), &probe), 0);
        }
    }

    #[test]
    fn a_quoted_probe_is_told_by_its_sequence_number() {
        for v6 in [false, true] {
            let (local, peer) = ends(v6);
            let quoted = packet(local, peer, &POSITION.probe(local, peer, 7));
            // Routers quote eight bytes of the segment at least (RFC 792).
            let short = quoted.len() - 12;
            for quoted in [&quoted[..], &quoted[..short]] {
                assert_eq!(expired(&error(v6, quoted), local, peer), Some(POSITION.sequence(7)));
            }
            assert_eq!(expired(&error(v6, &quoted[..short - 1]), local, peer), None);
            let mut other = error(v6, &quoted);
            let at = other.len() - TCP_HEADER;
            other[at] ^= 1;
            assert_eq!(expired(&other, local, peer), None);
            let mut unreachable = error(v6, &quoted);
            unreachable[if v6 { 0 } else { 20 }] = 1;
            assert_eq!(expired(&unreachable, local, peer), None);
            let sender = packet(peer, local, &POSITION.probe(local, peer, 7));
            assert_eq!(expired(&error(v6, &sender), local, peer), None);
        }
    }

    #[test]
    fn the_position_is_that_of_the_peers_last_segment() {
        for v6 in [false, true] {
            let (local, peer) = ends(v6);
            // As if the peer sent it, with three bytes of payload.
            let sent = Position { una: 101, next: 71 };
            let segment = [&sent.probe(peer, local, 0)[..], &[1, 2, 3]].concat();
            let received = if v6 { segment.clone() } else { packet(peer, local, &segment) };
            let expected = Position { una: 70, next: 103 };
            assert_eq!(position(&received, local, peer), Some(expected));
            assert_eq!(position(&received, peer, local), None);
            for end in 0..received.len() - 3 {
                let _ = position(&received[..end], local, peer);
                let _ = expired(&received[..end], local, peer);
            }
        }
        assert_eq!(position(&[0x45; 20], ends(false).0, ends(false).1), None);
        assert_eq!(position(&[], ends(false).0, ends(false).1), None);
    }
}
