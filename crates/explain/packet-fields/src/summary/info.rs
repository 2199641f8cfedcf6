//! The last column: ports, flags and numbers of TCP, what an ICMP message or an ARP packet
//! says.

use super::{MARKS, Summary, messages};
use crate::field::Field;
use crate::value::Value;
use crate::values::acknowledgment;
use crate::view::{PacketView, StreamView};
use capture::dissect::{Protocol, TcpFlags, TcpSegment};
use core::fmt::{self, Write};
use core::net::Ipv4Addr;
use tcp_analysis::Flags;

/// Writes the column for the header at `place`.
pub(super) fn write(
    summary: &mut Summary,
    view: &PacketView<'_>,
    place: Option<usize>,
) -> fmt::Result {
    let Some(place) = place else { return Ok(()) };
    let Some((protocol, _)) = view.layers.get(place) else { return Ok(()) };
    let number = |field: Field| {
        let mut found = None;
        view.each_value_at(field, place, |value| {
            if let Value::Integer(number) = value {
                found.get_or_insert(number);
            }
        });
        found
    };
    let out = &mut summary.info;
    match protocol {
        Protocol::Tcp => match view.segment {
            Some(segment) => {
                if let Some(stream) = &view.stream {
                    marks(&mut summary.marks, stream)?;
                }
                tcp(out, segment, view.stream.as_ref())
            }
            None => Ok(()),
        },
        Protocol::Udp => {
            let [source, destination, length] =
                [Field::UdpSrcport, Field::UdpDstport, Field::UdpLength].map(number);
            let (Some(source), Some(destination)) = (source, destination) else { return Ok(()) };
            let length = length.map_or(0, |length| (length - 8).max(0));
            write!(out, "{source} \u{2192} {destination} Len={length}")
        }
        Protocol::Icmp => match number(Field::IcmpType) {
            Some(kind @ (0 | 8)) => {
                let [id, seq] = [Field::IcmpIdent, Field::IcmpSeq].map(number);
                echo(out, kind == 8, [id, seq], hops(view, place))
            }
            kind => icmp(out, kind.unwrap_or(0), number(Field::IcmpCode).unwrap_or(0)),
        },
        Protocol::Icmpv6 => match number(Field::Icmpv6Type) {
            Some(kind @ (128 | 129)) => {
                let [id, seq] = [Field::Icmpv6Ident, Field::Icmpv6Seq].map(number);
                echo(out, kind == 128, [id, seq], hops(view, place))
            }
            kind => icmpv6(out, kind.unwrap_or(0)),
        },
        Protocol::Arp => arp(out, view, place, number(Field::ArpOpcode)),
        Protocol::Ipv4 if view.layers.is_fragment() => {
            let [protocol, offset, id] = [Field::IpProto, Field::IpFragOffset, Field::IpId]
                .map(|it| number(it).unwrap_or(0));
            let name = match protocol {
                1 => "ICMP ",
                6 => "TCP ",
                17 => "UDP ",
                _ => "",
            };
            write!(
                out,
                "Fragmented IP protocol (proto={name}{protocol}, off={}, ID={id:04x})",
                offset * 8
            )
        }
        Protocol::Ipv6 if view.layers.is_fragment() => {
            let [offset, more, id] =
                [Field::Ipv6FragOffset, Field::Ipv6FragMore, Field::Ipv6FragIdent]
                    .map(|it| number(it).unwrap_or(0));
            let more = if more == 1 { "y" } else { "n" };
            write!(out, "IPv6 fragment (off={} more={more} ident=0x{id:08x})", offset * 8)
        }
        Protocol::Ipv4 => write!(out, "protocol {}", number(Field::IpProto).unwrap_or(0)),
        Protocol::Ipv6 => write!(out, "next header {}", number(Field::Ipv6Nxt).unwrap_or(0)),
        Protocol::Ethernet => match number(Field::EthType) {
            Some(kind) => write!(out, "type 0x{kind:04x}"),
            None => Ok(()),
        },
        Protocol::Quic => quic(out, number(Field::QuicVersion), number(Field::QuicPacketType)),
        Protocol::Mdns => messages::mdns(out, view),
        Protocol::Dhcpv6 => messages::dhcpv6(out, view),
        Protocol::Stp => messages::stp(out, view),
        Protocol::Iperf3 => {
            if let Some(stream) = &view.stream {
                marks(&mut summary.marks, stream)?;
            }
            messages::iperf3(out, view)
        }
        Protocol::Truncated => out.write_str("captured in part: a header is cut off"),
        Protocol::Malformed => out.write_str("a header contradicts the packet's length"),
        _ => Ok(()),
    }
}

fn marks(out: &mut String, stream: &StreamView) -> fmt::Result {
    let flags = stream.analysis.flags;
    let is_special =
        flags.has(Flags::FAST_RETRANSMISSION) || flags.has(Flags::SPURIOUS_RETRANSMISSION);
    for (flag, text) in MARKS.into_iter().filter(|(flag, _)| flags.has(*flag)) {
        if flag == Flags::RETRANSMISSION && is_special {
            continue;
        }
        if flag == Flags::DUPLICATE_ACK {
            let analysis = &stream.analysis;
            write!(out, "[{text} {}#{}] ", analysis.repeats_packet, analysis.duplicate_ack)?;
        } else {
            write!(out, "[{text}] ")?;
        }
    }
    Ok(())
}

/// Flags in the order of their bits.
const FLAGS: [(TcpFlags, &str); 9] = [
    (TcpFlags::FIN, "FIN"),
    (TcpFlags::SYN, "SYN"),
    (TcpFlags::RST, "RST"),
    (TcpFlags::PSH, "PSH"),
    (TcpFlags::ACK, "ACK"),
    (TcpFlags::URG, "URG"),
    (TcpFlags::ECE, "ECE"),
    (TcpFlags::CWR, "CWR"),
    (TcpFlags::AE, "AE"),
];

fn tcp(out: &mut String, segment: &TcpSegment<'_>, stream: Option<&StreamView>) -> fmt::Result {
    let (source, destination) = segment.ports();
    write!(out, "{source} \u{2192} {destination} [")?;
    let mut names = FLAGS.iter().filter(|(flag, _)| segment.flags.has(*flag)).map(|(_, it)| *it);
    out.write_str(names.next().unwrap_or("<None>"))?;
    names.try_for_each(|name| write!(out, ", {name}"))?;
    let seq = stream.map_or(segment.seq, |stream| stream.relative_seq(segment.seq));
    write!(out, "] Seq={seq}")?;
    if segment.flags.has(TcpFlags::ACK) {
        let ack = stream.map_or(segment.ack, |stream| acknowledgment(segment, stream));
        write!(out, " Ack={ack}")?;
    }
    let window = stream.map_or(u32::from(segment.window), |stream| stream.window_bytes(segment));
    write!(out, " Win={window}")?;
    if segment.flags.has(TcpFlags::URG) {
        write!(out, " Urg={}", segment.urgent)?;
    }
    write!(out, " Len={}", segment.payload_len)?;
    for option in segment.each_option() {
        let long = |at: usize| {
            let bytes: Option<&[u8; 4]> = option.data.get(at..)?.first_chunk();
            bytes.map(|bytes| u32::from_be_bytes(*bytes))
        };
        match (option.kind, option.data) {
            (2, &[a, b]) => write!(out, " MSS={}", u16::from_be_bytes([a, b]))?,
            (3, [shift]) => write!(out, " WS={}", 1_u32 << (*shift).min(14))?,
            (4, []) => out.write_str(" SACK_PERM")?,
            (5, data) => {
                for at in (0..data.len() / 8 * 8).step_by(8) {
                    let (Some(left), Some(right)) = (long(at), long(at + 4)) else { break };
                    let [left, right] = [left, right]
                        .map(|edge| stream.map_or(edge, |stream| stream.relative_ack(edge)));
                    write!(out, " SLE={left} SRE={right}")?;
                }
            }
            (8, _) => {
                if let (Some(value), Some(echo)) = (long(0), long(4)) {
                    write!(out, " TSval={value} TSecr={echo}")?;
                }
            }
            _ => {}
        }
    }
    Ok(())
}

/// Hop limit of the IP header outside of `place`.
fn hops(view: &PacketView<'_>, place: usize) -> Option<i64> {
    let mut found = None;
    let outer = place.checked_sub(1)?;
    for field in [Field::IpTtl, Field::Ipv6Hlim] {
        view.each_value_at(field, outer, |value| {
            if let Value::Integer(number) = value {
                found = Some(number);
            }
        });
    }
    found
}

fn echo(
    out: &mut String,
    is_request: bool,
    [id, seq]: [Option<i64>; 2],
    hops: Option<i64>,
) -> fmt::Result {
    write!(out, "Echo (ping) {:<8}", if is_request { "request" } else { "reply" })?;
    if let (Some(id), Some(seq)) = (id, seq) {
        // In both byte orders, as Windows numbers in its own.
        let swapped = (seq as u16).swap_bytes();
        write!(out, " id=0x{id:04x}, seq={seq}/{swapped}")?;
    }
    match hops {
        Some(hops) => write!(out, ", ttl={hops}"),
        None => Ok(()),
    }
}

fn icmp(out: &mut String, kind: i64, code: i64) -> fmt::Result {
    match kind {
        3 => {
            let reason = match code {
                0 => "Network unreachable",
                1 => "Host unreachable",
                2 => "Protocol unreachable",
                3 => "Port unreachable",
                4 => "Fragmentation needed",
                13 => "Communication administratively filtered",
                _ => return write!(out, "Destination unreachable (code {code})"),
            };
            write!(out, "Destination unreachable ({reason})")
        }
        5 => out.write_str("Redirect"),
        11 if code == 0 => {
            out.write_str("Time-to-live exceeded (Time to live exceeded in transit)")
        }
        11 => out.write_str("Time-to-live exceeded (Fragment reassembly time exceeded)"),
        kind => write!(out, "type {kind}, code {code}"),
    }
}

fn icmpv6(out: &mut String, kind: i64) -> fmt::Result {
    match kind {
        1 => out.write_str("Destination Unreachable"),
        2 => out.write_str("Packet Too Big"),
        3 => out.write_str("Time Exceeded"),
        133 => out.write_str("Router Solicitation"),
        134 => out.write_str("Router Advertisement"),
        135 => out.write_str("Neighbor Solicitation"),
        136 => out.write_str("Neighbor Advertisement"),
        kind => write!(out, "type {kind}"),
    }
}

fn arp(out: &mut String, view: &PacketView<'_>, place: usize, opcode: Option<i64>) -> fmt::Result {
    let ipv4 = |field: Field| {
        let mut found = None;
        view.each_value_at(field, place, |value| {
            if let Value::Ipv4(address) = value {
                found = Some(Ipv4Addr::from_bits(address));
            }
        });
        found
    };
    let sender = ipv4(Field::ArpSrcProtoIpv4);
    match (opcode, sender, ipv4(Field::ArpDstProtoIpv4)) {
        (Some(1), Some(sender), Some(target)) if sender == target => {
            write!(out, "ARP Announcement for {target}")
        }
        (Some(1), Some(Ipv4Addr::UNSPECIFIED), Some(target)) => {
            write!(out, "Who has {target}? (ARP Probe)")
        }
        (Some(1), Some(sender), Some(target)) => write!(out, "Who has {target}? Tell {sender}"),
        (Some(2), Some(sender), _) => {
            write!(out, "{sender} is at ")?;
            view.each_value_at(Field::ArpSrcHwMac, place, |value| {
                if let Value::Ethernet(address) = value {
                    write_ethernet(out, &address);
                }
            });
            Ok(())
        }
        (Some(opcode), ..) => write!(out, "opcode {opcode}"),
        _ => Ok(()),
    }
}

fn quic(out: &mut String, version: Option<i64>, kind: Option<i64>) -> fmt::Result {
    let name = match (version, kind) {
        (Some(0), _) => "Version negotiation",
        (_, Some(0)) => "Initial",
        (_, Some(1)) => "0-RTT",
        (_, Some(2)) => "Handshake",
        (_, Some(3)) => "Retry",
        _ => "long header",
    };
    write!(out, "{name}, version 0x{:08x}", version.unwrap_or(0))
}

/// An Ethernet address.
pub(super) fn write_ethernet(out: &mut String, address: &[u8]) {
    for (place, byte) in address.iter().enumerate() {
        let colon = if place > 0 { ":" } else { "" };
        // Formatting into a string cannot fail.
        let _ = write!(out, "{colon}{byte:02x}");
    }
}
