//! The fields of the frame.

use super::Emit;
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

/// The protocols from the outside in, with Wireshark's `ethertype` behind each header that has
/// such a type.
fn protocols(view: &PacketView<'_>) -> String {
    let mut names: Vec<&str> = Vec::new();
    let payload = Payload::of(view);
    for (place, (protocol, layer)) in view.layers.iter().enumerate() {
        if protocol == Protocol::Data
            && let Some(payload) = payload
        {
            names.push(payload.application.name());
            continue;
        }
        names.push(protocol.name());
        // Below 1536, the number is a length (IEEE 802.3, 3.2.6).
        let typed = |at: usize| {
            let bytes = view.bytes(place, layer).get(at..).and_then(<[u8]>::first_chunk::<2>);
            bytes.is_some_and(|bytes| u16::from_be_bytes(*bytes) >= 1536)
        };
        let has_type = match protocol {
            Protocol::Ethernet => typed(12),
            Protocol::Vlan | Protocol::ServiceVlan => typed(2),
            Protocol::LinuxCooked => typed(if layer.header_len == 20 { 0 } else { 14 }),
            _ => false,
        };
        if has_type {
            names.push("ethertype");
        }
    }
    names.join(":")
}
