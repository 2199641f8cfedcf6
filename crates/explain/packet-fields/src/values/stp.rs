//! BPDUs of STP, RSTP and MSTP (IEEE 802.1Q, section 14).

use super::{Emit, Header, bits, put, put_values};
use crate::field::Field;
use crate::value::Value;

/// Length of a configuration BPDU, which those of RSTP and MSTP begin with.
const CONFIGURATION: usize = 35;

/// Types of BPDUs.
pub(crate) const TOPOLOGY_CHANGE: i64 = 0x80;
pub(crate) const RAPID: i64 = 2;

pub(super) fn values(header: Header<'_>, field: Field, emit: Emit<'_>) {
    let kind = header.byte(3);
    let is_change = kind == Some(TOPOLOGY_CHANGE);
    if !is_change && header.bytes.len() < CONFIGURATION {
        return;
    }
    match field {
        Field::StpVersion => put(header.byte(2), emit),
        Field::StpType => put(kind, emit),
        _ if is_change => {}
        _ => configuration(header, kind == Some(RAPID), field, emit),
    }
}

fn configuration(header: Header<'_>, is_rapid: bool, field: Field, emit: Emit<'_>) {
    let flags = header.byte(4);
    // A bridge's identifier: priority in four bits, extension in twelve, address.
    let priority = |at| header.word(at).map(|it| it & 0xf000);
    let extension = |at| bits(header.word(at), 0, 0xfff);
    let number = match field {
        Field::StpFlags => flags,
        Field::StpFlagsTcAck => bits(flags, 7, 1),
        Field::StpFlagsTc => bits(flags, 0, 1),
        Field::StpFlagsAgreement if is_rapid => bits(flags, 6, 1),
        Field::StpFlagsForwarding if is_rapid => bits(flags, 5, 1),
        Field::StpFlagsLearning if is_rapid => bits(flags, 4, 1),
        Field::StpFlagsPortRole if is_rapid => bits(flags, 2, 3),
        Field::StpFlagsProposal if is_rapid => bits(flags, 1, 1),
        Field::StpRootPriority => priority(5),
        Field::StpRootExtension => extension(5),
        Field::StpRootCost => header.long(13),
        Field::StpBridgePriority => priority(17),
        Field::StpBridgeExtension => extension(17),
        Field::StpPort => header.word(25),
        _ => None,
    };
    put(number, emit);
    // In units of 1/256 s.
    let time = |at| header.word(at).map(|units| Value::Time(units * 1_000_000_000 / 256));
    let value = match field {
        Field::StpRootAddress => header.ethernet(7),
        Field::StpBridgeAddress => header.ethernet(19),
        Field::StpMessageAge => time(27),
        Field::StpMaxAge => time(29),
        Field::StpHello => time(31),
        Field::StpForward => time(33),
        _ => None,
    };
    put_values([value], emit);
}
