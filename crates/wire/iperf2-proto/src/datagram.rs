//! The first 16 bytes of each datagram: sequence number and send time.
//!
//! `id:32 seconds:32 microseconds:32 id, upper half:32`. Numbers start at 1. The last
//! datagram and its retransmissions have a negated number. Versions before 2.0.10 have
//! 12 bytes and 32-bit numbers.

use crate::be32::{high, join, low, read, write};
use crate::header;
use std::time::Duration;

/// Minimum length of a datagram, bytes.
pub const MIN_LENGTH: usize = 12;

/// Length of the datagram header that is written, bytes.
pub const LENGTH: usize = 16;

/// The header of a datagram.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Datagram {
    /// Sequence number, from 1.
    pub number: u64,
    /// Whether it is the last of its stream.
    pub last: bool,
    /// Send time since 1970-01-01 by the sender's clock.
    pub sent: Duration,
}

impl Datagram {
    /// Parses a datagram. `None` if it is too short, has the number zero as server reports
    /// have, or invalid microseconds.
    #[must_use]
    pub fn decode(bytes: &[u8]) -> Option<Self> {
        if bytes.len() < MIN_LENGTH {
            return None;
        }
        let micros = read(bytes, 8);
        // Numbers have 64 bits only if the header says so: older versions have data there.
        let number = if header::has_64_bit_numbers(bytes) {
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

    /// Writes the header into a datagram, as far as it fits.
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
    fn the_last_number_is_negative() {
        let sent = Duration::new(1_795_264_573, 703_394_000);
        let mut bytes = [0; LENGTH];
        let last = Datagram { number: 12, last: true, sent };
        last.encode(&mut bytes);
        assert_eq!(bytes[..4], [0xff, 0xff, 0xff, 0xf4]);
        assert_eq!(bytes[12..], [0xff; 4]);
        assert_eq!(Datagram::decode(&bytes), Some(last));
    }

    #[test]
    fn data_of_older_versions_is_not_read_as_upper_half() {
        let mut bytes = *b"\0\0\0\x07\0\0\0\x01\0\0\0\x012345678901234567";
        let read = Datagram::decode(&bytes).unwrap();
        assert_eq!((read.number, read.last), (7, false));
        bytes[..4].copy_from_slice(&(-7i32).to_be_bytes());
        let read = Datagram::decode(&bytes).unwrap();
        assert_eq!((read.number, read.last), (7, true));
    }

    #[test]
    fn invalid_datagrams_are_refused() {
        assert_eq!(Datagram::decode(&[1; 11]), None);
        assert_eq!(Datagram::decode(&[0; 128]), None, "a report has the number 0");
        let mut bytes = [0; 12];
        bytes[3] = 1;
        bytes[8..].copy_from_slice(&1_000_000u32.to_be_bytes());
        assert_eq!(Datagram::decode(&bytes), None);
    }
}
