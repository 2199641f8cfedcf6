//! Recorded links: when they could send (the format of mahimahi's `mm-link`,
//! Netravali et al., USENIX ATC 2015).

use crate::Nanos;
use units::{BitRate, ByteCount};

/// Bytes of one delivery opportunity.
const OPPORTUNITY: u64 = 1504;

/// What mahimahi counts on each packet beside its IP bytes: the header of its
/// own TUN device.
const HEADER: u64 = 4;

const MILLISECOND: u64 = 1_000_000;

/// Times at which a link could send 1504 bytes each, in ms; again from the
/// beginning after the last.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Trace {
    stamps: Vec<u64>,
    period: u64,
}

/// A trace that is none.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TraceError {
    /// A line that is no number.
    #[error("line {line}: '{text}' is not a whole number of milliseconds")]
    Number {
        /// Its number, from 1.
        line: usize,
        /// What stands there.
        text: String,
    },
    /// Times that run backwards.
    #[error("line {line}: {stamp} ms comes after {before} ms; times must not run backwards")]
    Order {
        /// Its number, from 1.
        line: usize,
        /// The time there.
        stamp: u64,
        /// The one before.
        before: u64,
    },
    /// No time passes.
    #[error("the trace is empty or ends at 0 ms; it needs a later last line")]
    Empty,
}

impl Trace {
    /// Reads a trace: one time stamp in whole milliseconds a line.
    ///
    /// # Errors
    /// [`TraceError`], with the line.
    pub fn parse(text: &str) -> Result<Self, TraceError> {
        let mut stamps = Vec::new();
        for (index, line) in text.lines().enumerate() {
            let (number, word) = (index + 1, line.trim());
            if word.is_empty() {
                continue;
            }
            // 10^12 ms are 31 years; beyond it nanoseconds would overflow.
            let stamp = word.parse().ok().filter(|ms| *ms <= 1_000_000_000_000);
            let stamp: u64 = stamp.ok_or_else(|| {
                let text = word.chars().filter(|c| !c.is_control()).take(20).collect();
                TraceError::Number { line: number, text }
            })?;
            match stamps.last() {
                Some(before) if *before > stamp => {
                    return Err(TraceError::Order { line: number, stamp, before: *before });
                }
                _ => stamps.push(stamp),
            }
        }
        match stamps.last() {
            None | Some(0) => Err(TraceError::Empty),
            Some(last) => Ok(Trace { period: *last, stamps }),
        }
    }

    /// The rate of the whole trace.
    #[must_use]
    pub fn mean_rate(&self) -> BitRate {
        let bytes = ByteCount::from_bytes(OPPORTUNITY * self.stamps.len() as u64);
        BitRate::of(bytes, std::time::Duration::from_millis(self.period))
    }

    /// How long it lasts before it begins again.
    #[must_use]
    pub const fn period(&self) -> std::time::Duration {
        std::time::Duration::from_millis(self.period)
    }
}

/// Where in a trace a link is.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Cursor {
    lap: u64,
    index: usize,
    /// Bytes of the opportunity that are used.
    used: u64,
}

impl Cursor {
    /// Sends `size` bytes from `start` on; tells when the last of them leaves.
    pub(crate) fn serve(&mut self, trace: &Trace, start: Nanos, size: u64) -> Nanos {
        if self.time(trace) < start {
            self.seek(trace, start);
        }
        let mut left = size + HEADER;
        loop {
            let taken = left.min(OPPORTUNITY - self.used);
            self.used += taken;
            left -= taken;
            if left == 0 {
                return self.time(trace);
            }
            self.used = 0;
            self.index += 1;
            if self.index == trace.stamps.len() {
                self.index = 0;
                self.lap += 1;
            }
        }
    }

    fn time(self, trace: &Trace) -> Nanos {
        let ms = self.lap.saturating_mul(trace.period) + trace.stamps[self.index];
        Nanos(ms.saturating_mul(MILLISECOND))
    }

    /// To the first opportunity at `start` or after it. One at the end of a
    /// lap is at the same time as one at the beginning of the next that says 0.
    fn seek(&mut self, trace: &Trace, start: Nanos) {
        let ms = start.0.div_ceil(MILLISECOND);
        let lap = (ms.saturating_sub(1)) / trace.period;
        let within = ms - lap * trace.period;
        let index = trace.stamps.partition_point(|stamp| *stamp < within);
        *self = Cursor { lap, index, used: 0 };
        if self.index == trace.stamps.len() {
            *self = Cursor { lap: lap + 1, index: 0, used: 0 };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(ms: u64) -> Nanos {
        Nanos(ms * MILLISECOND)
    }

    #[test]
    fn one_packet_an_opportunity_round_and_round() {
        let trace = Trace::parse("2\n2\n5\n").unwrap();
        let mut cursor = Cursor::default();
        let ends: Vec<_> = (0..7).map(|_| cursor.serve(&trace, Nanos(0), 1500)).collect();
        assert_eq!(ends, [2, 2, 5, 7, 7, 10, 12].map(at));
    }

    #[test]
    fn small_packets_share_one_and_pauses_waste_them() {
        let trace = Trace::parse("1\n2\n3\n").unwrap();
        let mut cursor = Cursor::default();
        assert_eq!(cursor.serve(&trace, Nanos(0), 748), at(1));
        assert_eq!(cursor.serve(&trace, Nanos(0), 748), at(1));
        assert_eq!(cursor.serve(&trace, Nanos(0), 748), at(2));
        // A packet of 3000 bytes takes what is left and one more.
        assert_eq!(cursor.serve(&trace, at(2), 2248), at(3));
        assert_eq!(cursor.serve(&trace, Nanos(31 * MILLISECOND + 1), 100), at(32));
    }

    #[test]
    fn the_end_of_a_lap_is_the_beginning_of_the_next() {
        let trace = Trace::parse("0\n4\n").unwrap();
        let mut cursor = Cursor::default();
        let ends: Vec<_> = (0..5).map(|_| cursor.serve(&trace, Nanos(0), 1500)).collect();
        assert_eq!(ends, [0, 4, 4, 8, 8].map(at));
        assert_eq!(cursor.serve(&trace, at(20), 1500), at(20));
        assert_eq!(cursor.serve(&trace, at(20), 1500), at(20));
        assert_eq!(cursor.serve(&trace, at(20), 1500), at(24));
    }

    #[test]
    fn refuses_what_is_no_trace() {
        for (text, part) in [
            ("", "empty"),
            ("0\n0\n", "empty"),
            ("1\nx\n", "line 2: 'x'"),
            ("3\n2\n", "line 2: 2 ms comes after 3 ms"),
            ("99999999999999999", "line 1"),
        ] {
            let error = Trace::parse(text).unwrap_err().to_string();
            assert!(error.contains(part), "{text}: {error}");
        }
    }

    #[test]
    fn knows_its_rate() {
        assert_eq!(Trace::parse("1\n").unwrap().mean_rate().bps(), 12_032_000);
    }
}
