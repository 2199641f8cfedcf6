//! The blocks of pcapng that are read. A body is what is between a block's two lengths.

use super::options::{COMMENT, Options, Order, padded};
use super::summary::{FileSummary, Interface, text};
use super::{MAX_PACKET, Problem, Record};
use crate::link_type::LinkType;
use core::net::IpAddr;

/// How an interface writes times (if_tsresol, if_tsoffset).
#[derive(Debug, Clone, Copy)]
pub(super) struct Clock {
    unit: Unit,
    offset_s: i64,
    link: LinkType,
}

#[derive(Debug, Clone, Copy)]
enum Unit {
    /// Nanoseconds of a tick.
    Multiple(u64),
    /// Ticks of a nanosecond.
    Fraction(u64),
    /// A tick is 2^-n seconds.
    PowerOfTwo(u32),
}

impl Clock {
    /// Nanoseconds since 1970; times outside of what 64 bits hold are the nearest.
    #[inline]
    fn time_ns(self, ticks: u64) -> u64 {
        let ns = match self.unit {
            Unit::Multiple(factor) => match ticks.checked_mul(factor) {
                Some(ns) if self.offset_s == 0 => return ns,
                _ => u128::from(ticks) * u128::from(factor),
            },
            Unit::Fraction(divisor) => u128::from(ticks / divisor),
            // 64 bits of ticks and 30 of the factor.
            Unit::PowerOfTwo(shift) => (u128::from(ticks) * 1_000_000_000) >> shift,
        };
        // At most 94 bits, so the cast is exact.
        let ns = ns as i128 + i128::from(self.offset_s) * 1_000_000_000;
        u64::try_from(ns.max(0)).unwrap_or(u64::MAX)
    }

    fn unit(resolution: u8) -> Unit {
        if resolution & 0x80 != 0 {
            return Unit::PowerOfTwo(u32::from(resolution & 0x7f));
        }
        let digits = u32::from(resolution);
        match digits {
            0..=9 => Unit::Multiple(10_u64.pow(9 - digits)),
            // 10^19 is the largest power that 64 bits hold.
            10..=28 => Unit::Fraction(10_u64.pow(digits - 9)),
            _ => Unit::Fraction(u64::MAX),
        }
    }
}

/// The first `N` bytes of a body at `at`.
#[inline]
fn at<const N: usize>(body: &[u8], at: usize) -> Option<[u8; N]> {
    body.get(at..)?.first_chunk().copied()
}

/// A body that is too short for its kind.
fn short(body: &[u8]) -> Problem {
    // A block has at most 16 MiB.
    Problem::AbsurdBlock(body.len() as u32 + 12)
}

/// The record of a packet whose bytes are at `start` of the body, followed by options.
#[inline]
fn record(
    body: &[u8],
    start: usize,
    captured: u32,
    original_len: u32,
    interface: u32,
    clocks: &[Clock],
) -> Result<(Record, Clock), Problem> {
    if captured as usize > MAX_PACKET {
        return Err(Problem::AbsurdPacket(captured));
    }
    let end = start + captured as usize;
    if end > body.len() {
        return Err(Problem::AbsurdPacket(captured));
    }
    let Some(clock) = clocks.get(interface as usize).copied() else {
        return Err(Problem::UnknownInterface(interface));
    };
    let options = (start + padded(captured as usize)).min(body.len());
    let record = Record {
        time_ns: 0,
        original_len,
        interface,
        link: clock.link,
        // From the start of the block, which has 8 bytes before its body, and at most
        // 16 MiB.
        big_endian: false,
        data: (8 + start as u32, 8 + end as u32),
        options: (8 + options as u32, 8 + body.len() as u32),
        length: 0,
        start: 0,
    };
    Ok((record, clock))
}

#[inline]
pub(super) fn enhanced_packet(
    body: &[u8],
    order: Order,
    clocks: &[Clock],
) -> Result<Record, Problem> {
    let fixed: [u8; 20] = at(body, 0).ok_or_else(|| short(body))?;
    let long = |at: usize| order.u32([fixed[at], fixed[at + 1], fixed[at + 2], fixed[at + 3]]);
    let (mut record, clock) = record(body, 20, long(12), long(16), long(0), clocks)?;
    record.time_ns = clock.time_ns(u64::from(long(4)) << 32 | u64::from(long(8)));
    Ok(record)
}

/// A packet of the first interface, without a time.
pub(super) fn simple_packet(
    body: &[u8],
    order: Order,
    clocks: &[Clock],
    snaplen: u32,
    last_time_ns: u64,
) -> Result<Record, Problem> {
    let original_len = order.u32(at(body, 0).ok_or_else(|| short(body))?);
    // What follows is padded: the captured length is the smaller of these.
    let longest = if snaplen == 0 { u32::MAX } else { snaplen };
    let captured = original_len.min(longest).min((body.len() - 4) as u32);
    let (mut record, _) = record(body, 4, captured, original_len, 0, clocks)?;
    record.options = (0, 0);
    record.time_ns = last_time_ns;
    Ok(record)
}

/// The packet block of early versions: as the enhanced one, with an interface of 16
/// bits and a count of drops.
pub(super) fn obsolete_packet(
    body: &[u8],
    order: Order,
    clocks: &[Clock],
) -> Result<Record, Problem> {
    let fixed: [u8; 20] = at(body, 0).ok_or_else(|| short(body))?;
    let long = |at: usize| order.u32([fixed[at], fixed[at + 1], fixed[at + 2], fixed[at + 3]]);
    let interface = u32::from(order.u16([fixed[0], fixed[1]]));
    let (mut record, clock) = record(body, 20, long(12), long(16), interface, clocks)?;
    record.time_ns = clock.time_ns(u64::from(long(4)) << 32 | u64::from(long(8)));
    Ok(record)
}

pub(super) fn interface(
    body: &[u8],
    order: Order,
    summary: &mut FileSummary,
) -> Result<(Interface, Clock), Problem> {
    let fixed: [u8; 8] = at(body, 0).ok_or_else(|| short(body))?;
    let link = LinkType(order.u16([fixed[0], fixed[1]]));
    let snaplen = order.u32([fixed[4], fixed[5], fixed[6], fixed[7]]);
    let mut interface = Interface::new(link, snaplen);
    let mut clock = Clock { unit: Clock::unit(6), offset_s: 0, link };
    for (code, value) in (Options { rest: &body[8..], order }) {
        match (code, value) {
            (COMMENT, value) => summary.add_comment(value),
            (2, value) => interface.name = text(value),
            (3, value) => interface.description = text(value),
            (9, [resolution, ..]) => clock.unit = Clock::unit(*resolution),
            (12, value) => summary.add_captured_by(value),
            (14, value) => {
                if let Some(bytes) = value.first_chunk() {
                    clock.offset_s = order.u64(*bytes).cast_signed();
                }
            }
            _ => {}
        }
    }
    Ok((interface, clock))
}

/// Counters of an interface.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Statistics {
    pub(super) received: Option<u64>,
    pub(super) dropped: Option<u64>,
    pub(super) os_dropped: Option<u64>,
}

/// The number of the interface in its section, and its counters.
pub(super) fn statistics(body: &[u8], order: Order) -> Option<(u32, Statistics)> {
    let number = order.u32(at(body, 0)?);
    let mut statistics = Statistics::default();
    for (code, value) in (Options { rest: body.get(12..)?, order }) {
        let count = value.first_chunk().map(|bytes| order.u64(*bytes));
        match code {
            4 => statistics.received = count,
            5 => statistics.dropped = count,
            7 => statistics.os_dropped = count,
            _ => {}
        }
    }
    Some((number, statistics))
}

/// The records of a name resolution block: an address, then its names.
pub(super) fn names(body: &[u8], order: Order, summary: &mut FileSummary) {
    for (kind, value) in (Options { rest: body, order }) {
        let (address, names) = match kind {
            1 => {
                let Some((bytes, names)) = value.split_first_chunk::<4>() else { continue };
                (IpAddr::from(*bytes), names)
            }
            2 => {
                let Some((bytes, names)) = value.split_first_chunk::<16>() else { continue };
                (IpAddr::from(*bytes), names)
            }
            _ => continue,
        };
        for name in names.split(|byte| *byte == 0).filter(|name| !name.is_empty()) {
            summary.add_name(address, name);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn time(resolution: u8, offset_s: i64, ticks: u64) -> u64 {
        let link = LinkType::ETHERNET;
        Clock { unit: Clock::unit(resolution), offset_s, link }.time_ns(ticks)
    }

    #[test]
    fn resolutions_of_times() {
        assert_eq!(time(6, 0, 1_500_000), 1_500_000_000);
        assert_eq!(time(9, 0, 7), 7);
        assert_eq!(time(0, 0, 3), 3_000_000_000);
        assert_eq!(time(12, 0, 1_999), 1);
        assert_eq!(time(0x80 | 10, 0, 1536), 1_500_000_000);
        assert_eq!(time(6, 2, 5), 2_000_005_000);
    }

    #[test]
    fn absurd_times_are_the_nearest() {
        assert_eq!(time(6, -10, 5), 0);
        assert_eq!(time(0, i64::MAX, u64::MAX), u64::MAX);
        assert_eq!(time(127, 0, u64::MAX), 1);
        assert_eq!(time(0xff, 0, u64::MAX), 0);
    }
}
