//! DHCPv6 (RFC 8415, sections 8, 9 and 21): messages, those that relays forward, and options.

use super::Emit;
use super::application::number;
use crate::field::Field;
use crate::value::Value;

/// Messages and options in each other that are read: a relayed message may be relayed again.
const MAX_DEPTH: usize = 16;

/// Types of messages.
pub(crate) const RELAYED: [i64; 2] = [12, 13];

pub(super) fn values(message: &[u8], field: Field, emit: Emit<'_>) {
    in_message(message, 0, field, emit);
}

fn in_message(message: &[u8], depth: usize, field: Field, emit: Emit<'_>) {
    let Some(kind) = number(message, 0, 1) else { return };
    let is_relayed = RELAYED.contains(&kind);
    match field {
        Field::Dhcpv6MsgType => emit(Value::Integer(kind)),
        Field::Dhcpv6HopCount if is_relayed => super::put(number(message, 1, 1), emit),
        Field::Dhcpv6LinkAddr if is_relayed => put_address(message, 2, emit),
        Field::Dhcpv6PeerAddr if is_relayed => put_address(message, 18, emit),
        Field::Dhcpv6Xid if !is_relayed => super::put(number(message, 1, 3), emit),
        _ => {}
    }
    options(message.get(if is_relayed { 34 } else { 4 }..), depth, field, emit);
}

fn options(options: Option<&[u8]>, depth: usize, field: Field, emit: Emit<'_>) {
    let mut rest = options.filter(|_| depth < MAX_DEPTH).unwrap_or_default();
    while let Some((kind, length)) = number(rest, 0, 2).zip(number(rest, 2, 2)) {
        match field {
            Field::Dhcpv6OptionType => emit(Value::Integer(kind)),
            Field::Dhcpv6OptionLength => emit(Value::Integer(length)),
            _ => {}
        }
        let behind = rest.get(4..).unwrap_or_default();
        let length = usize::try_from(length).unwrap_or(usize::MAX);
        let Some((data, tail)) = behind.split_at_checked(length) else { return };
        in_option(kind, data, depth, field, emit);
        rest = tail;
    }
}

fn in_option(kind: i64, data: &[u8], depth: usize, field: Field, emit: Emit<'_>) {
    let inner = depth + 1;
    match (kind, field) {
        // The identifier of the client, or of the server.
        (1 | 2, Field::Dhcpv6DuidBytes) => emit(Value::Bytes(data)),
        (1 | 2, Field::Dhcpv6DuidType) => super::put(number(data, 0, 2), emit),
        // Identity associations, of addresses or prefixes.
        (3 | 25, Field::Dhcpv6Iaid) => {
            if let Some(id) = number(data, 0, 4) {
                emit(Value::Text(&format!("{id:08x}")));
            }
        }
        (3 | 25, _) => options(data.get(12..), inner, field, emit),
        (4, _) => options(data.get(4..), inner, field, emit),
        (5, Field::Dhcpv6IaAddress) => put_address(data, 0, emit),
        (5, Field::Dhcpv6IaPreferred) => super::put(number(data, 16, 4), emit),
        (5, Field::Dhcpv6IaValid) => super::put(number(data, 20, 4), emit),
        (5, _) => options(data.get(24..), inner, field, emit),
        (6, Field::Dhcpv6RequestedOption) => {
            for [high, low] in data.as_chunks::<2>().0 {
                emit(Value::Integer(u16::from_be_bytes([*high, *low]).into()));
            }
        }
        // In hundredths of a second.
        (8, Field::Dhcpv6ElapsedTime) => super::put(number(data, 0, 2).map(|it| it * 10), emit),
        (9, _) => in_message(data, inner, field, emit),
        (13, Field::Dhcpv6StatusCode) => super::put(number(data, 0, 2), emit),
        (23, Field::Dhcpv6DnsServer) => {
            for address in data.as_chunks::<16>().0 {
                emit(Value::Ipv6(u128::from_be_bytes(*address)));
            }
        }
        (26, Field::Dhcpv6PrefixLength) => super::put(number(data, 8, 1), emit),
        (26, Field::Dhcpv6PrefixAddress) => put_address(data, 9, emit),
        (26, _) => options(data.get(25..), inner, field, emit),
        (39, Field::Dhcpv6ClientDomain) => {
            if let Some(name) = data.get(1..).and_then(domain) {
                emit(Value::Text(&name));
            }
        }
        _ => {}
    }
}

fn put_address(bytes: &[u8], at: usize, emit: Emit<'_>) {
    if let Some(address) = bytes.get(at..).and_then(<[u8]>::first_chunk) {
        emit(Value::Ipv6(u128::from_be_bytes(*address)));
    }
}

/// A domain name without pointers, with a dot at the end of each label, as in Wireshark.
fn domain(mut rest: &[u8]) -> Option<String> {
    let mut name = Vec::new();
    while let Some((length, tail)) = rest.split_first().filter(|(length, _)| **length > 0) {
        let (label, tail) = tail.split_at_checked(usize::from(*length))?;
        name.extend_from_slice(label);
        name.push(b'.');
        rest = tail;
    }
    Some(String::from_utf8_lossy(&name).into_owned())
}
