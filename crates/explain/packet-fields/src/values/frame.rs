//! The fields of the frame.

use super::Emit;
use super::application::number;
use crate::application::Payload;
use crate::field::Field;
use crate::value::Value;
use crate::view::PacketView;
use capture::dissect::Protocol;

/// The values of a field of the frame.
pub(crate) fn values(view: &PacketView<'_>, field: Field, emit: Emit<'_>) {
    let packet = view.packet;
    let integer = |number: u64| Value::Integer(number.cast_signed());
    emit(match field {
        Field::FrameNumber => integer(packet.number),
        Field::FrameTime | Field::FrameTimeEpoch => Value::Time(packet.time_ns.cast_signed()),
        Field::FrameTimeRelative => Value::Time(view.since_first_ns),
        Field::FrameTimeDelta => Value::Time(view.since_previous_ns),
        Field::FrameTimeDeltaDisplayed => Value::Time(view.since_passed_ns),
        Field::FrameLen => integer(u64::from(packet.original_len)),
        Field::FrameCapLen => integer(packet.frame.len() as u64),
        Field::FrameInterfaceId => integer(u64::from(packet.interface)),
        Field::FrameMarked | Field::FrameIgnored => Value::Integer(0),
        Field::FrameProtocols => return emit(Value::Text(&protocols(view))),
        Field::FrameDirection => match packet.options.inbound() {
            Some(inbound) => Value::Integer(if inbound { 1 } else { 2 }),
            None => return,
        },
        Field::FrameComment => {
            return packet.options.comments().for_each(|text| emit(Value::Text(text)));
        }
        _ => return,
    });
}

/// The protocols from the outside in, as Wireshark lists them: `ethertype` behind each header that
/// has such a type, and IPv6's extension headers by name.
fn protocols(view: &PacketView<'_>) -> String {
    let mut names: Vec<&str> = Vec::new();
    let payload = Payload::of(view);
    for (place, (protocol, layer)) in view.layers.iter().enumerate() {
        let bytes = view.bytes(place, layer);
        // Below 1536, the number is a length (IEEE 802.3, 3.2.6).
        let typed = |at: usize| number(bytes, at, 2).is_some_and(|kind| kind >= 1536);
        let has_type = match protocol {
            Protocol::Ethernet => typed(12),
            Protocol::Vlan | Protocol::ServiceVlan => typed(2),
            Protocol::LinuxCooked => typed(if layer.header_len == 20 { 0 } else { 14 }),
            _ => false,
        };
        match (protocol, payload) {
            (Protocol::Data, Some(payload)) => names.push(payload.application.name()),
            // One name for a stack of labels.
            (Protocol::Mpls, _) if names.last() == Some(&"mpls") => {}
            // A dissector for every version, of the same name.
            (Protocol::Igmp, _) => names.extend(["igmp", "igmp"]),
            _ => names.push(protocol.name()),
        }
        if has_type {
            names.push("ethertype");
        }
        let header = bytes.get(..layer.header_len as usize).unwrap_or(bytes);
        match protocol {
            Protocol::Ipv6 => extension_headers(header, &mut names),
            Protocol::Icmp | Protocol::Icmpv6 if has_echo_data(protocol, bytes) => {
                names.push("data");
            }
            _ => {}
        }
    }
    names.join(":")
}

/// The extension headers behind an IPv6 header of 40 bytes (RFC 8200, section 4).
fn extension_headers(header: &[u8], names: &mut Vec<&str>) {
    let (mut next, mut at) = (number(header, 6, 1), 40);
    while at < header.len() {
        let (name, length) = match next {
            Some(0) => ("ipv6.hopopts", None),
            Some(43) => ("ipv6.routing", None),
            Some(44) => ("ipv6.fraghdr", Some(8)),
            Some(60) => ("ipv6.dstopts", None),
            _ => return,
        };
        names.push(name);
        next = number(header, at, 1);
        let units = header.get(at + 1).map_or(0, |units| usize::from(*units));
        at += length.unwrap_or(units * 8 + 8);
    }
}

/// Whether an echo request or reply has more than its header of 8 bytes.
fn has_echo_data(protocol: Protocol, bytes: &[u8]) -> bool {
    let types = if protocol == Protocol::Icmp { [0, 8] } else { [128, 129] };
    bytes.len() > 8 && bytes.first().is_some_and(|kind| types.contains(kind))
}
