//! The first 16 bytes of each datagram: its number and when it was sent.
//!
//! `id:32 seconds:32 microseconds:32 id, upper half:32`. Numbers count from 1. The
//! last datagram carries its number negated, and so does each repetition of
//! it. Programs before 2.0.10 have 12 bytes and numbers of 32 bits.

use crate::header;
use crate::words::{high, join, low, read, write};
use std::time::Duration;

/// Bytes a datagram has at least.
pub const LEAST: usize = 12;

/// Bytes we write.
pub const WRITTEN: usize = 16;

/// What a datagram says of itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Datagram {
    /// Its number, from 1.
    pub number: u64,
    /// Whether the sender is done with it.
    pub last: bool,
    /// When it was sent, since 1970-01-01 by the sender's clock.
    pub sent: Duration,
}

impl Datagram {
    /// Reads one. `None` where it is too short, or is numbered zero as a
    /// server's report is, or has more microseconds than a second.
    #[must_use]
    pub fn decode(bytes: &[u8]) -> Option<Self> {
        if bytes.len() < LEAST {
            return None;
        }
        let micros = read(bytes, 8);
        // Only a header that says so makes numbers 64 bits long: in an older
        // program's datagram the data begins there.
        let number = if header::has_long_numbers(bytes) {
            join(read(bytes, 12), read(bytes, 0)).cast_signed()
        } else {
            i64::from(read(bytes, 0).cast_signed())
        };
        if number == 0 || micros >= 1_000_000 {
            return None;
        }
        let sent = Duration::new(read(bytes, 4).into(), micros * 1000);
        Some(Datagram { number: number.unsigned_abs(), last: number < 0, sent })
    }

    /// Writes it over the head of a datagram; as much as there is room for.
    pub fn encode(&self, bytes: &mut [u8]) {
        let number = if self.last { self.number.wrapping_neg() } else { self.number };
        write(bytes, 0, low(number));
        write(bytes, 4, low(self.sent.as_secs()));
        write(bytes, 8, self.sent.subsec_micros());
        write(bytes, 12, high(number));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_one_is_negative() {
        let sent = Duration::new(1_795_264_573, 703_394_000);
        let mut bytes = [0; WRITTEN];
        let last = Datagram { number: 12, last: true, sent };
        last.encode(&mut bytes);
        assert_eq!(bytes[..4], [0xff, 0xff, 0xff, 0xf4]);
        assert_eq!(bytes[12..], [0xff; 4]);
        assert_eq!(Datagram::decode(&bytes), Some(last));
    }

    #[test]
    fn an_older_programs_data_is_no_upper_half() {
        let mut bytes = *b"\0\0\0\x07\0\0\0\x01\0\0\0\x012345678901234567";
        let read = Datagram::decode(&bytes).unwrap();
        assert_eq!((read.number, read.last), (7, false));
        bytes[..4].copy_from_slice(&(-7i32).to_be_bytes());
        let read = Datagram::decode(&bytes).unwrap();
        assert_eq!((read.number, read.last), (7, true));
    }

    #[test]
    fn what_is_no_datagram() {
        assert_eq!(Datagram::decode(&[1; 11]), None);
        assert_eq!(Datagram::decode(&[0; 128]), None, "a report has the number 0");
        let mut bytes = [0; 12];
        bytes[3] = 1;
        bytes[8..].copy_from_slice(&1_000_000u32.to_be_bytes());
        assert_eq!(Datagram::decode(&bytes), None);
    }
}
