//! Sizes of a queue, in the unit in which they are given.

use super::error::{PathError, short};
use super::quantity::quantity;
use link::Limit;
use units::{ByteCount, Rtt};

/// A size in the unit in which it was given.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Size {
    /// A multiple of the BDP, in thousandths.
    Bdp(u64),
    /// Packets of MTU size or less.
    Packets(u64),
    /// Bytes, framing included.
    Bytes(ByteCount),
    /// What the bottleneck sends in that time.
    Time(Rtt),
}

pub(super) const SIZES: &str = "1bdp, 1000p, 2MiB or 250ms";

impl Size {
    /// `1bdp`, `1000p`, `250ms` or a number of bytes.
    pub(super) fn read(name: &str, text: &str) -> Result<Self, PathError> {
        let wrong = || {
            let wrong = format!("'{}' is not a size; write {SIZES}", short(text));
            PathError::at(name, wrong)
        };
        let lower = text.to_ascii_lowercase();
        if let Some(number) = lower.strip_suffix("bdp") {
            let number: f64 = number.trim().parse().map_err(|_| wrong())?;
            if !(0.001..=1000.0).contains(&number) {
                let wrong = format!("{number} BDP is outside 0.001bdp to 1000bdp");
                return Err(PathError::at(name, wrong));
            }
            #[expect(
                clippy::cast_possible_truncation,
                clippy::cast_sign_loss,
                reason = "in 1..=1 000 000 by the check above"
            )]
            return Ok(Size::Bdp((number * 1000.0).round() as u64));
        }
        if let Some(number) = lower.strip_suffix('p').filter(|n| n.trim().parse::<f64>().is_ok()) {
            let packets = number.trim().parse().ok().filter(|n| (1..=100_000_000).contains(n));
            return packets
                .map(Size::Packets)
                .ok_or_else(|| PathError::at(name, "from 1p to 100000000p"));
        }
        if lower.ends_with('s') && !lower.ends_with("bytes") {
            return quantity(name, text).map(Size::Time);
        }
        text.parse().map(Size::Bytes).map_err(|_| wrong())
    }
}

/// A size in the unit in which it was given, and in bytes.
pub(super) fn size_in_words(size: Option<Size>, limit: Limit, bytes: ByteCount) -> String {
    match size {
        Some(Size::Bdp(thousandths)) => {
            let number = format!("{}.{:03}", thousandths / 1000, thousandths % 1000);
            format!("{} BDP ({bytes})", number.trim_end_matches('0').trim_end_matches('.'))
        }
        Some(Size::Time(time)) => format!("{time} ({bytes})"),
        _ => match limit {
            Limit::Packets(packets) => format!("{packets} packets"),
            Limit::Bytes(bytes) => bytes.to_string(),
        },
    }
}
