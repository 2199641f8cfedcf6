//! The long header of QUIC (RFC 9000, section 17.2; version 2, RFC 9369).

use super::{Emit, Header, bits, put};
use crate::field::Field;
use crate::value::Value;

pub(super) fn values(header: Header<'_>, field: Field, emit: Emit<'_>) {
    const DCIL: usize = 5;
    let dcil = header.byte(DCIL);
    let scil_at = dcil.and_then(|length| usize::try_from(length).ok()).map(|it| DCIL + 1 + it);
    let scil = scil_at.and_then(|at| header.byte(at));
    let id = |at: usize, length: Option<i64>| {
        let length = usize::try_from(length?).ok()?;
        header.bytes.get(at..at + length).filter(|id| !id.is_empty())
    };
    let number = match field {
        Field::QuicHeaderForm => bits(header.byte(0), 7, 1),
        // Version negotiation has no type; version 2 has a field of its own.
        Field::QuicPacketType if header.long(1) == Some(1) => bits(header.byte(0), 4, 3),
        Field::QuicVersion => header.long(1),
        Field::QuicDcil => dcil,
        Field::QuicScil => scil,
        Field::QuicDcid => {
            id(DCIL + 1, dcil).into_iter().for_each(|id| emit(Value::Bytes(id)));
            None
        }
        Field::QuicScid => {
            let found = scil_at.and_then(|at| id(at + 1, scil));
            found.into_iter().for_each(|id| emit(Value::Bytes(id)));
            None
        }
        _ => None,
    };
    put(number, emit);
}
