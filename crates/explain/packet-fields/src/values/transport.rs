//! TCP and UDP headers, TCP's options, and tunnels.

use super::{Emit, Header, bits, checksum, put, stream};
use crate::field::Field;
use crate::value::Value;
use crate::view::PacketView;

pub(super) fn udp(
    view: &PacketView<'_>,
    header: Header<'_>,
    place: usize,
    field: Field,
    emit: Emit<'_>,
) {
    match field {
        Field::UdpSrcport => put(header.word(0), emit),
        Field::UdpDstport => put(header.word(2), emit),
        Field::UdpPort => {
            put(header.word(0), emit);
            put(header.word(2), emit);
        }
        Field::UdpLength => put(header.word(4), emit),
        Field::UdpChecksum => put(header.word(6), emit),
        Field::UdpChecksumStatus => put(Some(checksum::transport(view, place, 6, 17)), emit),
        Field::UdpStream => {
            let key = view.layers.conversation(place, view.packet.data).map(|(key, _)| key);
            put(key.and_then(|key| view.conversations.udp_stream(&key)).map(i64::from), emit);
        }
        Field::UdpPayload if !header.payload().is_empty() => emit(Value::Bytes(header.payload())),
        _ => {}
    }
}

pub(super) fn tcp(
    view: &PacketView<'_>,
    header: Header<'_>,
    place: usize,
    field: Field,
    emit: Emit<'_>,
) {
    let flag = |shift| bits(header.word(12), shift, 1);
    let number = match field {
        Field::TcpSrcport => header.word(0),
        Field::TcpDstport => header.word(2),
        Field::TcpPort => {
            put(header.word(0), emit);
            header.word(2)
        }
        Field::TcpLen => Some(i64::from(header.layer.payload_len)),
        Field::TcpSeqRaw => header.long(4),
        Field::TcpAckRaw => header.long(8),
        Field::TcpHdrLen => bits(header.byte(12), 4, 15).map(|words| words * 4),
        Field::TcpFlags => bits(header.word(12), 0, 0xfff),
        Field::TcpFlagsRes => bits(header.word(12), 9, 7).map(|it| i64::from(it != 0)),
        Field::TcpFlagsAe => flag(8),
        Field::TcpFlagsAce => bits(header.word(12), 6, 7),
        Field::TcpFlagsCwr => flag(7),
        Field::TcpFlagsEce => flag(6),
        Field::TcpFlagsUrg => flag(5),
        Field::TcpFlagsAck => flag(4),
        Field::TcpFlagsPush => flag(3),
        Field::TcpFlagsReset => flag(2),
        Field::TcpFlagsSyn => flag(1),
        Field::TcpFlagsFin => flag(0),
        Field::TcpWindowSizeValue => header.word(14),
        Field::TcpChecksum => header.word(16),
        Field::TcpChecksumStatus => Some(checksum::transport(view, place, 16, 6)),
        Field::TcpFlagsStr => {
            if let Some(flags) = bits(header.word(12), 0, 0xfff) {
                emit(Value::Text(&flag_letters(flags)));
            }
            None
        }
        Field::TcpUrgentPointer => header.word(18),
        Field::TcpPayload => {
            if !header.payload().is_empty() {
                emit(Value::Bytes(header.payload()));
            }
            None
        }
        // The stream is that of the innermost segment.
        _ if view.layers.transport() == Some(place) => return stream::values(view, field, emit),
        _ => None,
    };
    put(number, emit);
}

/// Flags as Wireshark shows them: a letter for each that is set, a middle dot for others.
fn flag_letters(flags: i64) -> String {
    let letters = "RRRACEUAPRSF".chars();
    let each = letters.enumerate();
    each.map(|(at, letter)| if flags >> (11 - at) & 1 == 1 { letter } else { '\u{b7}' }).collect()
}

/// GRE, VXLAN and GTP-U.
pub(super) fn tunnel(header: Header<'_>, field: Field, emit: Emit<'_>) {
    let number = match field {
        Field::GreProto => header.word(2),
        Field::GreKey => {
            // After a checksum or a route, each with its reserved field.
            let first = header.byte(0).unwrap_or(0);
            let at = if first & 0xc0 == 0 { 4 } else { 8 };
            header.long(at).filter(|_| first & 0x20 != 0)
        }
        Field::VxlanVni => bits(header.long(4), 8, 0xff_ffff),
        Field::GtpMessage => header.byte(1),
        Field::GtpTeid => header.long(4),
        _ => None,
    };
    put(number, emit);
}
