//! DNS (RFC 1035, section 4), also multicast (RFC 6762): header, questions and records.

use super::Emit;
use super::application::{number, put_text};
use crate::application::Payload;
use crate::field::Field;
use crate::value::Value;

/// Questions and records of a message that are read.
const MAX_ENTRIES: i64 = 128;

/// Longest name, and most pointers in one.
const MAX_NAME: usize = 255;
const MAX_POINTERS: usize = 16;

const HEADER: usize = 12;

/// A message.
#[derive(Clone, Copy)]
pub(super) struct Message<'a> {
    pub(super) bytes: &'a [u8],
    /// True for multicast DNS, in which the first bit of a class is a flag (RFC 6762, section 18).
    pub(super) is_multicast: bool,
}

impl<'a> Message<'a> {
    /// The message in a payload: over TCP, a length goes before it.
    pub(super) fn of(payload: &Payload<'a>) -> Self {
        let bytes = payload.bytes.get(if payload.is_stream { 2 } else { 0 }..);
        Message { bytes: bytes.unwrap_or_default(), is_multicast: false }
    }

    /// The class at `at`.
    fn class(self, at: usize) -> Option<i64> {
        let mask = if self.is_multicast { 0x7fff } else { 0xffff };
        number(self.bytes, at, 2).map(|class| class & mask)
    }

    /// The flag in the class at `at`.
    fn class_flag(self, at: usize) -> Option<i64> {
        number(self.bytes, at, 2).filter(|_| self.is_multicast).map(|class| class >> 15)
    }
}

pub(super) fn values(it: Message<'_>, field: Field, emit: Emit<'_>) {
    let message = it.bytes;
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
            entries(it, field, emit);
            return;
        }
    };
    super::put(value, emit);
}

/// Walks over the questions and the records.
fn entries(it: Message<'_>, field: Field, emit: Emit<'_>) -> Option<()> {
    let message = it.bytes;
    let mut at = HEADER;
    for _ in 0..number(message, 4, 2)?.min(MAX_ENTRIES) {
        let (name, end) = name(message, at)?;
        let value = |at| number(message, at, 2).map(Value::Integer);
        match field {
            Field::DnsQryName => emit(Value::Text(&name)),
            Field::DnsQryNameLen => emit(Value::Integer(name.len() as i64)),
            Field::DnsQryType => emit(value(end)?),
            Field::DnsQryClass => super::put(it.class(end + 2), emit),
            Field::DnsQryQu => super::put(it.class_flag(end + 2), emit),
            _ => {}
        }
        at = end + 4;
    }
    let records = [6, 8, 10].into_iter().filter_map(|at| number(message, at, 2)).sum::<i64>();
    for _ in 0..records.min(MAX_ENTRIES) {
        let (name, end) = name(message, at)?;
        let length = usize::try_from(number(message, end + 8, 2)?).ok()?;
        record(it, (&name, end, length), field, emit);
        at = end + 10 + length;
    }
    Some(())
}

/// The values in a record whose type is at `end`.
fn record(
    it: Message<'_>,
    (its_name, end, length): (&str, usize, usize),
    field: Field,
    emit: Emit<'_>,
) {
    const SRV: i64 = 33;
    const OPT: i64 = 41;
    let kind = number(it.bytes, end, 2);
    match field {
        // Wireshark divides that of SRV into other fields.
        Field::DnsRespName if kind != Some(SRV) => emit(Value::Text(its_name)),
        Field::DnsRespType => super::put(kind, emit),
        // The class and the time to live of OPT are something else (RFC 6891, section 6.1.3).
        Field::DnsRespClass if kind != Some(OPT) => super::put(it.class(end + 2), emit),
        Field::DnsRespCacheFlush => super::put(it.class_flag(end + 2), emit),
        Field::DnsRespTtl if kind != Some(OPT) => super::put(number(it.bytes, end + 4, 4), emit),
        _ => {
            let data = it.bytes.get(end + 10..end + 10 + length).unwrap_or_default();
            in_data(it.bytes, (kind, end + 10, data), field, emit);
        }
    }
}

/// The values in the data of a record, which begin at `at`.
fn in_data(
    message: &[u8],
    (kind, at, data): (Option<i64>, usize, &[u8]),
    field: Field,
    emit: Emit<'_>,
) {
    let mut put_name = |at| {
        if let Some((name, _)) = name(message, at) {
            emit(Value::Text(&name));
        }
    };
    match (field, kind, data) {
        (Field::DnsA, Some(1), &[a, b, c, d]) => {
            emit(Value::Ipv4(u32::from_be_bytes([a, b, c, d])));
        }
        (Field::DnsAaaa, Some(28), data) => {
            if let Ok(address) = <[u8; 16]>::try_from(data) {
                emit(Value::Ipv6(u128::from_be_bytes(address)));
            }
        }
        (Field::DnsCname, Some(5), _) | (Field::DnsPtr, Some(12), _) => put_name(at),
        (Field::DnsSrvPriority, Some(33), data) => super::put(number(data, 0, 2), emit),
        (Field::DnsSrvWeight, Some(33), data) => super::put(number(data, 2, 2), emit),
        (Field::DnsSrvPort, Some(33), data) => super::put(number(data, 4, 2), emit),
        (Field::DnsSrvTarget, Some(33), _) => put_name(at + 6),
        (Field::DnsTxt, Some(16), mut rest) => {
            while let Some((length, tail)) = rest.split_first() {
                let Some((text, tail)) = tail.split_at_checked(usize::from(*length)) else {
                    return;
                };
                put_text(text, emit);
                rest = tail;
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
