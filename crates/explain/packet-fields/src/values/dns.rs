//! DNS (RFC 1035, section 4): header, questions and records.

use super::Emit;
use super::application::number;
use crate::application::Payload;
use crate::field::Field;
use crate::value::Value;

/// Questions and records of a message that are read.
const MAX_ENTRIES: i64 = 128;

/// Longest name, and most pointers in one.
const MAX_NAME: usize = 255;
const MAX_POINTERS: usize = 16;

const HEADER: usize = 12;

pub(super) fn values(payload: &Payload<'_>, field: Field, emit: Emit<'_>) {
    // Over TCP, a length goes before a message.
    let message = payload.bytes.get(if payload.is_stream { 2 } else { 0 }..).unwrap_or_default();
    let word = |at| number(message, at, 2);
    let Some(flags) = word(2).filter(|_| message.len() >= HEADER) else { return };
    let is_response = flags >> 15 & 1 == 1;
    let flag = |shift: u32| Some(flags >> shift & 1);
    let value = match field {
        Field::DnsId => word(0),
        Field::DnsFlags => Some(flags),
        Field::DnsFlagsResponse => flag(15),
        Field::DnsFlagsOpcode => Some(flags >> 11 & 15),
        Field::DnsFlagsAuthoritative if is_response => flag(10),
        Field::DnsFlagsTruncated => flag(9),
        Field::DnsFlagsRecdesired => flag(8),
        Field::DnsFlagsRecavail if is_response => flag(7),
        Field::DnsFlagsRcode if is_response => Some(flags & 15),
        Field::DnsCountQueries => word(4),
        Field::DnsCountAnswers => word(6),
        Field::DnsCountAuthRr => word(8),
        Field::DnsCountAddRr => word(10),
        _ => {
            entries(message, field, emit);
            return;
        }
    };
    super::put(value, emit);
}

/// Walks over the questions and the records.
fn entries(message: &[u8], field: Field, emit: Emit<'_>) -> Option<()> {
    let mut at = HEADER;
    for _ in 0..number(message, 4, 2)?.min(MAX_ENTRIES) {
        let (name, end) = name(message, at)?;
        let value = |at| number(message, at, 2).map(Value::Integer);
        match field {
            Field::DnsQryName => emit(Value::Text(&name)),
            Field::DnsQryNameLen => emit(Value::Integer(name.len() as i64)),
            Field::DnsQryType => emit(value(end)?),
            Field::DnsQryClass => emit(value(end + 2)?),
            _ => {}
        }
        at = end + 4;
    }
    let records = [6, 8, 10].into_iter().filter_map(|at| number(message, at, 2)).sum::<i64>();
    for _ in 0..records.min(MAX_ENTRIES) {
        let (name, end) = name(message, at)?;
        let length = usize::try_from(number(message, end + 8, 2)?).ok()?;
        record(message, (&name, end, length), field, emit);
        at = end + 10 + length;
    }
    Some(())
}

/// The values in a record whose type is at `end`.
fn record(
    message: &[u8],
    (its_name, end, length): (&str, usize, usize),
    field: Field,
    emit: Emit<'_>,
) {
    const A: i64 = 1;
    const CNAME: i64 = 5;
    const AAAA: i64 = 28;
    let kind = number(message, end, 2);
    let data = message.get(end + 10..end + 10 + length).unwrap_or_default();
    match (field, kind, data) {
        (Field::DnsRespName, ..) => emit(Value::Text(its_name)),
        (Field::DnsRespType, Some(kind), _) => emit(Value::Integer(kind)),
        (Field::DnsRespTtl, ..) => super::put(number(message, end + 4, 4), emit),
        (Field::DnsA, Some(A), &[a, b, c, d]) => {
            emit(Value::Ipv4(u32::from_be_bytes([a, b, c, d])));
        }
        (Field::DnsAaaa, Some(AAAA), data) => {
            if let Ok(address) = <[u8; 16]>::try_from(data) {
                emit(Value::Ipv6(u128::from_be_bytes(address)));
            }
        }
        (Field::DnsCname, Some(CNAME), _) => {
            if let Some((name, _)) = name(message, end + 10) {
                emit(Value::Text(&name));
            }
        }
        _ => {}
    }
}

/// The name at `at`, and where it ends; the root's is `<Root>`, as in Wireshark.
fn name(message: &[u8], mut at: usize) -> Option<(String, usize)> {
    let (mut name, mut end, mut pointers) = (Vec::new(), None, 0);
    loop {
        let length = usize::from(*message.get(at)?);
        match length {
            0 => break,
            1..=63 => {
                if !name.is_empty() {
                    name.push(b'.');
                }
                name.extend_from_slice(message.get(at + 1..at + 1 + length)?);
                at += 1 + length;
            }
            0xc0.. => {
                end.get_or_insert(at + 2);
                at = usize::try_from(number(message, at, 2)? & 0x3fff).ok()?;
                pointers += 1;
            }
            _ => return None,
        }
        if name.len() > MAX_NAME || pointers > MAX_POINTERS {
            return None;
        }
    }
    if name.is_empty() {
        name.extend_from_slice(b"<Root>");
    }
    Some((String::from_utf8_lossy(&name).into_owned(), end.unwrap_or(at + 1)))
}
