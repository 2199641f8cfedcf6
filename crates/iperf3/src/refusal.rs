//! A server's error codes, and what they mean to the person at the client.

use std::fmt;

/// What follows the `SERVER_ERROR` byte: two big-endian `i32`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Refusal {
    /// iperf3's own error number.
    pub code: i32,
    /// The errno beside it; zero where the system had no part in it.
    pub errno: i32,
}

impl Refusal {
    /// Bytes after `SERVER_ERROR`.
    pub const LEN: usize = 8;

    /// The feature is not offered (iperf3's "not implemented").
    pub const NOT_OFFERED: Refusal = Refusal::of(13);
    /// The duration is out of bounds, for clients before 3.20.
    pub const DURATION: Refusal = Refusal::of(5);
    /// The duration is over this server's own limit, for clients from 3.20.
    pub const OVER_SERVER_DURATION: Refusal = Refusal::of(37);
    /// Too many streams.
    pub const STREAMS: Refusal = Refusal::of(6);
    /// The parameters could not be read.
    pub const PARAMETERS: Refusal = Refusal::of(114);
    /// The message was not expected.
    pub const UNEXPECTED: Refusal = Refusal::of(110);
    /// Authentication failed.
    pub const AUTHENTICATION: Refusal = Refusal::of(142);
    /// The streams could not be set up.
    pub const STREAM_SETUP: Refusal = Refusal::of(104);
    /// The rate, or the bytes, of all streams together are over the limit.
    pub const TOTAL_RATE: Refusal = Refusal::of(27);
    /// A client that was to send sent nothing.
    pub const NO_DATA: Refusal = Refusal::of(144);
    /// The test ran longer than it was meant to.
    pub const EXPIRED: Refusal = Refusal::of(160);

    const fn of(code: i32) -> Self {
        Refusal { code, errno: 0 }
    }

    /// The eight bytes to send after `SERVER_ERROR`.
    #[must_use]
    pub fn to_wire(self) -> [u8; Self::LEN] {
        let mut wire = [0; Self::LEN];
        wire[..4].copy_from_slice(&self.code.to_be_bytes());
        wire[4..].copy_from_slice(&self.errno.to_be_bytes());
        wire
    }

    /// The eight bytes as they came.
    #[must_use]
    pub fn from_wire(wire: [u8; Self::LEN]) -> Self {
        let [a, b, c, d, e, f, g, h] = wire;
        Refusal { code: i32::from_be_bytes([a, b, c, d]), errno: i32::from_be_bytes([e, f, g, h]) }
    }

    /// Cause and remedy in words; `None` for a code that only its own version knows.
    #[must_use]
    pub const fn meaning(self) -> Option<&'static str> {
        Some(match self.code {
            5 => "the duration is out of its bounds; ask for a shorter test",
            6 => "too many streams; ask for fewer",
            7 => "the block size is out of its bounds; ask for another length",
            8 | 130 => "it could not set the socket buffer; ask for a smaller window",
            10 | 123 => "it could not set the segment size; ask for another",
            12 => "the omitted time is out of its bounds; ask for less",
            13 => "it does not offer what was asked; run a plain TCP test one way",
            27 => "the total rate is over its limit; ask for a lower rate, or fewer bytes",
            37 => "the duration is over its limit; ask for a shorter test",
            104 => {
                "it could not set up the streams; is a firewall closing connections to its port?"
            }
            109 => "it lost the control connection; try again",
            110 => "it received a message it did not expect; compare the two versions",
            114 => "it could not read the parameters; compare the two versions",
            118 => "waiting for the network failed on its side; try again",
            134 => "its kernel has no such congestion control; load it there or ask for another",
            142 => "it did not accept the credentials; check user, password, key and both clocks",
            144 => "it received no data; is a firewall dropping the streams?",
            160 => "the test ran longer than it allows; ask for a shorter test",
            _ => return None,
        })
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.meaning() {
            Some(meaning) => f.write_str(meaning)?,
            None => f.write_str("a code only its own version knows; see the server's output")?,
        }
        write!(f, " (iperf3 error {}", self.code)?;
        if self.errno != 0 {
            write!(f, ", errno {}", self.errno)?;
        }
        f.write_str(")")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn any_codes_survive_and_print(code in any::<i32>(), errno in any::<i32>()) {
            let refusal = Refusal { code, errno };
            prop_assert_eq!(Refusal::from_wire(refusal.to_wire()), refusal);
            prop_assert!(!refusal.to_string().contains('\n'));
        }
    }
}
