//! Recorded links as lists of delivery opportunities (the format of mahimahi's
//! `mm-link`, Netravali et al., USENIX ATC 2015).

use units::{BitRate, ByteCount, Nanos};

/// Bytes per delivery opportunity.
const OPPORTUNITY: u64 = 1504;

/// Bytes that mahimahi counts per packet in addition to its IP bytes: the header of its
/// TUN device.
const HEADER: u64 = 4;

const MILLISECOND: u64 = 1_000_000;

/// Times of delivery opportunities of 1504 bytes each, in ms; repeats after the last one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Trace {
    stamps: Vec<u64>,
    period: u64,
}

/// An invalid trace. The errors do not quote the file's content, which may be
/// confidential if the file was named by mistake or by somebody without access to it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TraceError {
    /// Not a number.
    #[error("line {line}: expected a whole number of milliseconds, up to 10^12")]
    Number {
        /// Line number, from 1.
        line: usize,
    },
    /// A time earlier than the one before.
    #[error("line {line}: expected a time no earlier than on the line before")]
    Order {
        /// Line number, from 1.
        line: usize,
    },
    /// The trace has no duration.
    #[error("the trace is empty or ends at 0 ms; it needs a later last line")]
    Empty,
}

impl Trace {
    /// Parses a trace: one timestamp in whole milliseconds per line.
    ///
    /// # Errors
    /// [`TraceError`].
    pub fn parse(text: &str) -> Result<Self, TraceError> {
        let mut stamps = Vec::new();
        for (index, line) in text.lines().enumerate() {
            let (number, word) = (index + 1, line.trim());
            if word.is_empty() {
                continue;
            }
            // 10^12 ms are 31 years; more could overflow in nanoseconds.
            let stamp = word.parse().ok().filter(|ms| *ms <= 1_000_000_000_000);
            let stamp: u64 = stamp.ok_or(TraceError::Number { line: number })?;
            match stamps.last() {
                Some(before) if *before > stamp => {
                    return Err(TraceError::Order { line: number });
                }
                _ => stamps.push(stamp),
            }
        }
        match stamps.last() {
            None | Some(0) => Err(TraceError::Empty),
            Some(last) => Ok(Trace { period: *last, stamps }),
        }
    }

    /// Mean rate over the whole trace.
    #[must_use]
    pub fn mean_rate(&self) -> BitRate {
        let bytes = ByteCount::from_bytes(OPPORTUNITY * self.stamps.len() as u64);
        BitRate::of(bytes, std::time::Duration::from_millis(self.period))
    }

    /// Duration until it repeats.
    #[must_use]
    pub const fn period(&self) -> std::time::Duration {
        std::time::Duration::from_millis(self.period)
    }
}

/// Position of a link in its trace.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Cursor {
    lap: u64,
    index: usize,
    /// Bytes used of the current opportunity.
    used: u64,
}

impl Cursor {
    /// Sends `size` bytes from `start` on; returns when the last of them has left.
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

    /// Moves to the first opportunity at or after `start`. The last one of a lap may be at
    /// the same time as the first one of the next lap.
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
    fn one_packet_per_opportunity_repeatedly() {
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
        // A packet of 3000 bytes uses the rest of this one and one more.
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
    fn invalid_traces_are_refused() {
        for (text, part) in [
            ("", "empty"),
            ("0\n0\n", "empty"),
            ("1\nsecret\n", "line 2: expected a whole number"),
            ("3\n2\n", "line 2: expected a time no earlier"),
            ("99999999999999999", "line 1"),
        ] {
            let error = Trace::parse(text).unwrap_err().to_string();
            assert!(error.contains(part), "{text}: {error}");
            assert!(!error.contains("secret"), "it repeats the file: {error}");
        }
    }

    #[test]
    fn mean_rate_of_a_trace() {
        assert_eq!(Trace::parse("1\n").unwrap().mean_rate().bps(), 12_032_000);
    }
}
