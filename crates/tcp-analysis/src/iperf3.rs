//! iperf3's connections, recognised by what they send.
//!
//! Every connection of a test, control and data, begins with the test's cookie: 36
//! characters of base 32 and a NUL (esnet/iperf `src/iperf_util.c`). On the control
//! connection the client then sends the parameters as JSON after their length in 32 bits.

use crate::Requested;
use capture::dissect::TcpSegment;
use serde_json::Value;
use units::BitRate;

/// Length of a cookie with its NUL.
const COOKIE: usize = 37;

/// Longest parameters that are read; those of iperf3 3.17 take 300 bytes.
const LONGEST: usize = 4096;

/// A test's cookie.
pub type Cookie = [u8; COOKIE];

/// What a test was asked for.
#[derive(Debug, Clone, PartialEq)]
pub struct Parameters {
    /// The test's cookie.
    pub cookie: Cookie,
    /// The JSON, an object.
    pub json: Value,
}

impl Parameters {
    /// What concerns a stream. iperf3 leaves out what was not asked for; 0 means no limit.
    #[must_use]
    pub fn requested(&self) -> Requested<'_> {
        let rate = |key: &str| {
            let rate = self.json.get(key).and_then(Value::as_u64).filter(|rate| *rate > 0);
            rate.map(BitRate::from_bps)
        };
        Requested {
            congestion: self.json.get("congestion").and_then(Value::as_str),
            rate: rate("bandwidth"),
            pacing: rate("fqrate"),
        }
    }
}

/// The cookie at the beginning of a payload.
#[must_use]
pub fn cookie(payload: &[u8]) -> Option<Cookie> {
    let cookie: &Cookie = payload.first_chunk()?;
    let (nul, text) = cookie.split_last()?;
    let base32 = |byte: &u8| matches!(byte, b'a'..=b'z' | b'2'..=b'7');
    (*nul == 0 && text.iter().all(base32)).then_some(*cookie)
}

/// Follows what a client sends on one connection, at most `LONGEST` bytes of it.
#[derive(Debug, Default)]
pub struct Control {
    cookie: Option<Cookie>,
    next: u32,
    bytes: Vec<u8>,
    is_done: bool,
}

impl Control {
    /// Adds a segment of the client's, in order of sequence numbers; the parameters when they
    /// are complete. A gap ends it.
    pub fn add(&mut self, segment: &TcpSegment<'_>) -> Option<Parameters> {
        if self.is_done || segment.payload.is_empty() {
            return None;
        }
        let whole = segment.payload.len() == segment.payload_len as usize;
        if self.cookie.is_none() {
            self.cookie = cookie(segment.payload);
            self.is_done = self.cookie.is_none() || !whole;
            self.next = segment.next_seq();
            self.bytes.extend(segment.payload.get(COOKIE..).unwrap_or_default());
            return self.complete();
        }
        if segment.seq != self.next {
            // A retransmission of what was read changes nothing.
            self.is_done |= crate::sequence::after(segment.seq, self.next);
            return None;
        }
        self.next = segment.next_seq();
        self.bytes.extend(segment.payload);
        self.is_done |= !whole || self.bytes.len() > LONGEST;
        self.complete()
    }

    /// The cookie, if the connection began with one.
    #[must_use]
    pub fn cookie(&self) -> Option<Cookie> {
        self.cookie
    }

    fn complete(&mut self) -> Option<Parameters> {
        let (length, rest) = self.bytes.split_first_chunk::<4>()?;
        let length = u32::from_be_bytes(*length) as usize;
        if length > LONGEST || rest.first().is_some_and(|first| *first != b'{') {
            self.is_done = true;
            return None;
        }
        let json = serde_json::from_slice(rest.get(..length)?).ok();
        self.is_done = true;
        self.bytes = Vec::new();
        json.filter(Value::is_object)
            .zip(self.cookie)
            .map(|(json, cookie)| Parameters { cookie, json })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cookie_is_base_32_with_a_nul() {
        let mut bytes = b"abcdefghijklmnopqrstuvwxyz2345672345\0{".to_vec();
        assert!(cookie(&bytes).is_some());
        assert!(cookie(&bytes[..36]).is_none());
        bytes[3] = b'1';
        assert!(cookie(&bytes).is_none());
        bytes[3] = b'a';
        bytes[36] = b'a';
        assert!(cookie(&bytes).is_none());
    }
}
