//! TLS (RFC 8446, sections 4 and 5): the records that begin in the segment, and the hellos in
//! them.

use super::Emit;
use super::application::{number, put_text};
use crate::field::Field;
use crate::value::Value;

const ALERT: u8 = 21;
const HANDSHAKE: u8 = 22;

/// A record as far as it was captured.
struct Record<'a> {
    kind: u8,
    version: i64,
    length: usize,
    fragment: &'a [u8],
}

fn records(mut bytes: &[u8]) -> impl Iterator<Item = Record<'_>> {
    core::iter::from_fn(move || {
        let &[kind @ 20..=24, 3, minor, high, low, ref rest @ ..] = bytes else { return None };
        let length = usize::from(u16::from_be_bytes([high, low]));
        let fragment = rest.get(..length).unwrap_or(rest);
        bytes = rest.get(length..).unwrap_or_default();
        Some(Record { kind, version: 0x300 | i64::from(minor), length, fragment })
    })
}

/// Messages of a handshake record: type and body. Encrypted ones have no type that exists, or a
/// length beyond the record.
fn messages<'a>(record: &Record<'a>) -> impl Iterator<Item = (u8, &'a [u8])> + use<'a> {
    let is_handshake = record.kind == HANDSHAKE;
    let (mut rest, mut left) = (record.fragment, record.length);
    core::iter::from_fn(move || {
        let (&[kind, a, b, c], body) = rest.split_first_chunk::<4>().filter(|_| is_handshake)?;
        let length = u32::from_be_bytes([0, a, b, c]) as usize;
        left = left.checked_sub(length.checked_add(4)?)?;
        let is_known = matches!(kind, 0..=6 | 8 | 11..=16 | 20..=25 | 67 | 254);
        rest = body.get(length..).unwrap_or_default();
        is_known.then(|| (kind, body.get(..length).unwrap_or(body)))
    })
}

pub(super) fn values(bytes: &[u8], field: Field, emit: Emit<'_>) {
    for record in records(bytes) {
        match (field, record.kind, record.fragment) {
            (Field::TlsRecord, ..) | (Field::TlsAlertMessage, ALERT, [_, _]) => {
                emit(Value::Present);
            }
            (Field::TlsRecordContentType, kind, _) => emit(Value::Integer(i64::from(kind))),
            (Field::TlsRecordVersion, ..) => emit(Value::Integer(record.version)),
            (Field::TlsRecordLength, ..) => emit(Value::Integer(record.length as i64)),
            (Field::TlsChangeCipherSpec, 20, _) => emit(Value::Present),
            (Field::TlsAlertLevel, ALERT, [level, _]) => emit(Value::Integer((*level).into())),
            (Field::TlsAlertDesc, ALERT, [_, text]) => emit(Value::Integer((*text).into())),
            (Field::TlsAppData, 23, data) => emit(Value::Bytes(data)),
            (Field::TlsHandshake, HANDSHAKE, _) => emit(Value::Present),
            (_, HANDSHAKE, _) => {
                messages(&record).for_each(|message| handshake(message, field, emit));
            }
            _ => {}
        }
    }
}

fn handshake((kind, body): (u8, &[u8]), field: Field, emit: Emit<'_>) {
    match (field, kind) {
        (Field::TlsHandshakeType, _) => emit(Value::Integer(i64::from(kind))),
        (Field::TlsHandshakeVersion, 1 | 2) => super::put(number(body, 0, 2), emit),
        (_, 1 | 2) => {
            extensions(kind, body, field, emit);
        }
        _ => {}
    }
}

/// The extensions of a hello: behind version and random, session, cipher suites and compression
/// (sections 4.1.2 and 4.1.3).
fn extensions(kind: u8, body: &[u8], field: Field, emit: Emit<'_>) -> Option<()> {
    let length = |at: usize, bytes: usize| usize::try_from(number(body, at, bytes)?).ok();
    let mut at = 34;
    at += 1 + length(at, 1)?;
    at += if kind == 1 { 2 + length(at, 2)? } else { 2 };
    at += if kind == 1 { 1 + length(at, 1)? } else { 1 };
    let end = at + 2 + length(at, 2)?;
    at += 2;
    while at < end {
        let (number, size) = (length(at, 2)?, length(at + 2, 2)?);
        let data = body.get(at + 4..at + 4 + size)?;
        match (field, number) {
            (Field::TlsHandshakeExtensionType, _) => emit(Value::Integer(number as i64)),
            // A list of names, each with type and length (RFC 6066, section 3).
            (Field::TlsHandshakeServerName, 0) => {
                if let [_, _, _, high, low, name @ ..] = data {
                    let length = usize::from(u16::from_be_bytes([*high, *low]));
                    put_text(name.get(..length).unwrap_or(name), emit);
                }
            }
            // A list of names, each with its length (RFC 7301, section 3.1).
            (Field::TlsHandshakeAlpn, 16) => {
                let mut rest = data.get(2..).unwrap_or_default();
                while let Some((length, tail)) = rest.split_first()
                    && let Some((name, tail)) = tail.split_at_checked((*length).into())
                {
                    put_text(name, emit);
                    rest = tail;
                }
            }
            _ => {}
        }
        at += 4 + size;
    }
    Some(())
}
