//! A server's error codes, with cause and remedy for the client's user.

use std::fmt;

/// errno of Linux: a key was rejected.
const EKEYREJECTED: i32 = 129;

/// What follows the `SERVER_ERROR` byte: two big-endian `i32`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Refusal {
    /// iperf3's own error number.
    pub code: i32,
    /// The server's errno; zero if no system call failed.
    pub errno: i32,
}

impl Refusal {
    /// Bytes after `SERVER_ERROR`.
    pub const LEN: usize = 8;

    /// The feature is not offered (iperf3's "not implemented").
    pub const NOT_OFFERED: Refusal = Refusal::of(13);
    /// The duration is out of range, for clients before 3.20.
    pub const DURATION: Refusal = Refusal::of(5);
    /// The duration exceeds this server's limit, for clients from 3.20.
    pub const OVER_SERVER_DURATION: Refusal = Refusal::of(37);
    /// Too many streams.
    pub const STREAMS: Refusal = Refusal::of(6);
    /// The buffers are too large.
    pub const BUFFERS: Refusal = Refusal::of(8);
    /// The parameters could not be read.
    pub const PARAMETERS: Refusal = Refusal::of(114);
    /// An unexpected message was received.
    pub const UNEXPECTED: Refusal = Refusal::of(110);
    /// Authentication failed.
    pub const AUTHENTICATION: Refusal = Refusal::of(142);
    /// The same for want of a valid token: iperf3 prints the errno as "Key was rejected by service".
    pub const TOKEN: Refusal = Refusal { code: 142, errno: EKEYREJECTED };
    /// The streams could not be set up.
    pub const STREAM_SETUP: Refusal = Refusal::of(104);
    /// The total rate or byte count of all streams exceeds the limit.
    pub const TOTAL_RATE: Refusal = Refusal::of(27);
    /// The client sent no data.
    pub const NO_DATA: Refusal = Refusal::of(144);
    /// The test exceeded its maximum duration.
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

    /// Decodes the eight bytes received after `SERVER_ERROR`.
    #[must_use]
    pub fn from_wire(wire: [u8; Self::LEN]) -> Self {
        let [a, b, c, d, e, f, g, h] = wire;
        Refusal { code: i32::from_be_bytes([a, b, c, d]), errno: i32::from_be_bytes([e, f, g, h]) }
    }

    /// Cause and remedy in words; `None` for an unknown code.
    #[must_use]
    pub const fn meaning(self) -> Option<&'static str> {
        if self.code == Refusal::TOKEN.code && self.errno == Refusal::TOKEN.errno {
            return Some(
                "it admits only clients with one of its tokens: give ‹token_file› FILE or set \
                 LONGHAUL_TOKEN; a token of its own is refused where the versions of longhaul \
                 differ, the clocks differ by minutes, or the server is behind NAT without \
                 ‹token_name›",
            );
        }
        Some(match self.code {
            5 => "the duration is out of range; request a shorter test",
            6 => "too many streams; request fewer",
            7 => "the block size is out of range; request another length",
            8 | 130 => "it could not set the socket buffers; request a smaller window",
            10 | 123 => "it could not set the segment size; request another",
            12 => "the omitted time is out of range; request less",
            13 => "it does not support the request; run a plain TCP test in one direction",
            27 => "the total rate exceeds its limit; request a lower rate or fewer bytes",
            37 => "the duration exceeds its limit; request a shorter test",
            104 => {
                "it could not set up the streams; check for a firewall that closes connections to its port"
            }
            109 => "it lost the control connection; try again",
            110 => "it received an unexpected message; compare the versions of both ends",
            114 => "it could not parse the parameters; compare the versions of both ends",
            118 => "its select() call failed; try again",
            134 => {
                "its kernel lacks the congestion control; load the module there or request another"
            }
            142 => "authentication failed; check the user name, password and key, and both clocks",
            144 => "it received no data; check for a firewall that drops the streams",
            160 => "the test exceeded its maximum duration; request a shorter test",
            _ => return None,
        })
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.meaning() {
            Some(meaning) => f.write_str(meaning)?,
            None => f.write_str("unknown error code; see the server's output")?,
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
