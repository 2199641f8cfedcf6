//! The server report: sent to a UDP client after its last datagram.
//!
//! 128 bytes: a datagram header with the number 0 (12 bytes before 2.0.10, 16 since), 10
//! words of version 1.7, 15 that only the option `-e` prints, and the upper halves of
//! three 64-bit counters.

use crate::be32::{high, join, low, read, write};
use std::time::Duration;

/// Length of the report that is written, bytes.
pub const LENGTH: usize = 128;

const VERSION1: u32 = 0x8000_0000;
const LONG_NUMBERS: u32 = 0x0800_0000;

/// Length of the fields of version 1.7, bytes.
const BASE_LENGTH: usize = 40;

/// The statistics of a stream at the receiver.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ServerReport {
    /// Bytes received.
    pub bytes: u64,
    /// Duration, to the microsecond.
    pub time: Duration,
    /// Datagrams lost.
    pub lost: u64,
    /// Datagrams received out of order.
    pub late: u64,
    /// Datagrams sent, by their sequence numbers.
    pub datagrams: u64,
    /// Jitter (RFC 1889, section 6.3.1), to the microsecond.
    pub jitter: Duration,
}

impl ServerReport {
    /// Parses a report; `None` for other datagrams.
    #[must_use]
    pub fn decode(bytes: &[u8]) -> Option<Self> {
        // The flags follow 12 or 16 bytes.
        let head = if read(bytes, 12) & VERSION1 != 0 { 12 } else { 16 };
        let body = bytes.get(head..).filter(|body| body.len() >= BASE_LENGTH)?;
        let flags = read(body, 0);
        if flags & VERSION1 == 0 || read(bytes, 0) != 0 && head == 16 {
            return None;
        }
        let upper = |at| if flags & LONG_NUMBERS != 0 { read(body, at) } else { 0 };
        let time = |at| {
            let micros = read(body, at + 4).min(999_999);
            Duration::new(read(body, at).into(), micros * 1000)
        };
        Some(ServerReport {
            bytes: join(read(body, 4), read(body, 8)),
            time: time(12),
            lost: join(upper(100), read(body, 20)),
            late: join(upper(104), read(body, 24)),
            datagrams: join(upper(108), read(body, 28)),
            jitter: time(32),
        })
    }

    /// The report on the wire.
    #[must_use]
    pub fn encode(&self) -> [u8; LENGTH] {
        let mut bytes = [0; LENGTH];
        let fields = [
            (0, VERSION1 | LONG_NUMBERS),
            (4, high(self.bytes)),
            (8, low(self.bytes)),
            (12, low(self.time.as_secs())),
            (16, self.time.subsec_micros()),
            (20, low(self.lost)),
            (24, low(self.late)),
            (28, low(self.datagrams)),
            (32, low(self.jitter.as_secs())),
            (36, self.jitter.subsec_micros()),
            (100, high(self.lost)),
            (104, high(self.late)),
            (108, high(self.datagrams)),
        ];
        for (at, value) in fields {
            write(&mut bytes[16..], at, value);
        }
        bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reports_round_trip() {
        let report = ServerReport {
            bytes: 17_640 << 30,
            time: Duration::from_micros(1_176_323),
            lost: 3,
            late: 1,
            datagrams: 12 << 32,
            jitter: Duration::from_micros(14),
        };
        assert_eq!(ServerReport::decode(&report.encode()), Some(report));
    }

    /// The report of version 2.1.8 after 12 datagrams of 1470 bytes.
    #[test]
    fn a_report_of_iperf2_is_parsed() {
        let mut bytes = [0; LENGTH];
        let seen = [(16, 0x8800_0000), (24, 0x44e8), (28, 1), (32, 0x2_b0c3), (44, 12), (52, 14)];
        for (at, value) in seen {
            write(&mut bytes, at, value);
        }
        let report = ServerReport::decode(&bytes).unwrap();
        assert_eq!((report.bytes, report.datagrams, report.lost), (17_640, 12, 0));
        assert_eq!(report.time, Duration::from_micros(1_176_323));
        assert_eq!(report.jitter, Duration::from_micros(14));
        // Versions before 2.0.10 have no fourth word.
        let older = ServerReport::decode(&[&bytes[..12], &bytes[16..56]].concat()).unwrap();
        assert_eq!((older.bytes, older.datagrams), (17_640, 12));
    }

    #[test]
    fn short_datagrams_are_not_reports() {
        let bytes = ServerReport::default().encode();
        assert!(ServerReport::decode(&bytes[..56]).is_some());
        assert_eq!(ServerReport::decode(&bytes[..55]), None);
        assert_eq!(ServerReport::decode(&[0; 128]), None);
    }
}
