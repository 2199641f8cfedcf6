//! A line of an interval as iperf3 and iperf 2 print it, wherever in a line it begins: quoted in a
//! mail, behind a time stamp, or indented.
//!
//! `[  5]   0.00-1.00   sec   112 MBytes   941 Mbits/sec    0   1.20 MBytes`

use units::ByteCount;

/// Words of a line that are read.
const MAX_WORDS: usize = 24;

/// Which flow a line is of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RowId {
    /// That with this number.
    Flow(u32),
    /// All of them.
    Sum,
}

/// A line of an interval.
#[derive(Debug)]
pub(crate) struct TextRow<'a> {
    pub(crate) id: RowId,
    /// `TX-C`, `RX-S`: in tests of both directions, who sends, and at which end; `*` before the
    /// number: iperf 2's other direction.
    pub(crate) role: Option<&'a str>,
    pub(crate) from_s: f64,
    pub(crate) to_s: f64,
    /// Whether times have two digits after the point, as iperf3 writes them.
    pub(crate) has_two_decimals: bool,
    pub(crate) bytes: ByteCount,
    /// The words after the rate.
    pub(crate) rest: Vec<&'a str>,
}

impl<'a> TextRow<'a> {
    /// The row in a line, if it has one.
    pub(crate) fn parse(line: &'a str) -> Option<Self> {
        let (id, role, rest) = flow_of(line)?;
        let mut words = rest.split_whitespace().take(MAX_WORDS);
        // iperf 2 pads the end of an interval: `0.0- 1.0`.
        let first = words.next()?;
        let (from, to) = match first.strip_suffix('-') {
            Some(from) => (from, words.next()?),
            None => first.split_once('-')?,
        };
        if words.next()? != "sec" {
            return None;
        }
        let bytes = bytes(words.next()?, words.next()?)?;
        let _rate = number(words.next()?)?;
        let unit = words.next()?;
        if !unit.ends_with("bits/sec") && !unit.ends_with("Bytes/sec") {
            return None;
        }
        let second = |text: &str| number(text).filter(|s| (0.0..1e7).contains(s));
        let decimals = from.split(['.', ',']).nth(1).map(str::len);
        Some(TextRow {
            id,
            role,
            from_s: second(from)?,
            to_s: second(to)?,
            has_two_decimals: decimals == Some(2),
            bytes,
            rest: words.collect(),
        })
    }

    /// Jitter in ms, lost and all datagrams: `0.035 ms    0/  893 (0%)`.
    pub(crate) fn datagrams(&self) -> Option<(f64, u64, u64)> {
        let [jitter, "ms", counts, after @ ..] = &*self.rest else { return None };
        let (lost, total) = counts.split_once('/')?;
        let total = if total.is_empty() { after.first()? } else { total };
        // Without a jitter, as `-nan`, the counts still count.
        Some((number(jitter).unwrap_or(0.0), count(lost)?, count(total)?))
    }
}

/// A count; what is no number, or negative, is none.
pub(crate) fn count(text: &str) -> Option<u64> {
    text.parse().ok()
}

/// A number with a point, or with a comma as some locales have it.
pub(crate) fn number(text: &str) -> Option<f64> {
    let number: Option<f64> = text.parse().ok().or_else(|| text.replacen(',', ".", 1).parse().ok());
    number.filter(|number| number.is_finite())
}

/// `3.38`, `MBytes`: units of 1024.
pub(crate) fn bytes(amount: &str, unit: &str) -> Option<ByteCount> {
    let factor = match unit {
        "Byte" | "Bytes" => 1.0,
        "KByte" | "KBytes" => 1024.0,
        "MByte" | "MBytes" => 1024.0 * 1024.0,
        "GByte" | "GBytes" => 1024.0 * 1024.0 * 1024.0,
        "TByte" | "TBytes" => 1024.0 * 1024.0 * 1024.0 * 1024.0,
        _ => return None,
    };
    let amount = number(amount).filter(|amount| (0.0..1e15).contains(amount))?;
    Some(ByteCount::from_f64(amount * factor))
}

/// `… [  5][TX-C] …` as the flow, its role and the rest. Brackets of prompts have no number.
pub(crate) fn flow_of(line: &str) -> Option<(RowId, Option<&str>, &str)> {
    let mut rest = line;
    while let Some((_, inside)) = rest.split_once('[') {
        let (id, after) = inside.split_once(']')?;
        let id = id.trim();
        let (id, is_starred) = id.strip_prefix('*').map_or((id, false), |id| (id.trim(), true));
        let id = if id == "SUM" { Some(RowId::Sum) } else { id.parse().ok().map(RowId::Flow) };
        if let Some(id) = id {
            let role = after.strip_prefix('[').and_then(|role| role.split_once(']'));
            return Some(match role {
                Some((role, after)) => (id, Some(role), after.trim()),
                None => (id, is_starred.then_some("*"), after.trim()),
            });
        }
        rest = inside;
    }
    None
}
