//! iperf3's tests, recognised by what their connections send.
//!
//! Every connection of a test, control and data, begins with the test's cookie: 36
//! characters of base 32 and a NUL (esnet/iperf `src/iperf_util.c`). On the control
//! connection states of one byte follow, and parameters and results as JSON after their
//! length in 32 bits:
//!
//! ```text
//! client                              server
//! cookie ──────────────────────────>
//!        <────────────────────────── PARAM_EXCHANGE
//! parameters ──────────────────────>
//!        <────────────────────────── CREATE_STREAMS, TEST_START, TEST_RUNNING
//! TEST_END ────────────────────────>
//!        <────────────────────────── EXCHANGE_RESULTS
//! results ─────────────────────────>
//!        <────────────────────────── results, DISPLAY_RESULTS
//! IPERF_DONE ──────────────────────>
//! ```
//!
//! A capture may have a part of it: `reader` goes on after what is missing, and
//! `partial_json` reads the beginning of a document.

mod control;
mod partial_json;
mod reader;

use crate::Requested;
use capture::dissect::{PacketDirection, TcpSegment};
use control::Control;
pub use iperf3_proto::State;
pub use reader::Cut;
use serde_json::Value;
use std::collections::BTreeMap;
use units::{BitRate, ByteCount};

/// Length of a cookie with its NUL.
const COOKIE: usize = 37;

/// Connections of iperf3 that are followed.
const MAX_CONNECTIONS: usize = 256;

/// JSON of all tests of a capture that is kept, in bytes: a test of 128 streams has 50 kB.
const MAX_JSON: usize = 1 << 20;

/// A test's cookie.
pub type Cookie = [u8; COOKIE];

/// JSON that one side sent.
#[derive(Debug, Clone, PartialEq)]
pub struct Document {
    /// An object, with the members that were captured.
    pub json: Value,
    /// The packet that completed it.
    pub packet: u64,
    /// Why a part of it is missing.
    pub cut: Option<Cut>,
}

/// A state on the control connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StateChange {
    /// Which.
    pub state: State,
    /// The packet that has it.
    pub packet: u64,
    /// Nanoseconds since 1970.
    pub time_ns: u64,
    /// The codes after [`State::ServerError`]: iperf3's own, and errno.
    pub error: Option<(i32, i32)>,
}

/// A test, as its control connection shows it.
#[derive(Debug, Clone, PartialEq)]
pub struct Test {
    /// The test's cookie.
    pub cookie: Cookie,
    /// Number of the control connection's stream.
    pub stream: u32,
    /// What it was asked for.
    pub parameters: Option<Document>,
    /// Results of the client and of the server.
    pub results: [Option<Document>; 2],
    /// States in order of the capture.
    pub states: Vec<StateChange>,
    /// Whether a part of the control connection is missing in the capture.
    pub is_incomplete: bool,
}

impl Test {
    /// What concerns a stream. iperf3 leaves out what was not asked for; 0 means no limit.
    #[must_use]
    pub fn requested(&self) -> Requested<'_> {
        let json = self.parameters.as_ref().map_or(&Value::Null, |document| &document.json);
        let limit = |key: &str| json.get(key).and_then(Value::as_u64).filter(|limit| *limit > 0);
        Requested {
            congestion: json.get("congestion").and_then(Value::as_str),
            rate: limit("bandwidth").map(BitRate::from_bps),
            pacing: limit("fqrate").map(BitRate::from_bps),
            window: limit("window").map(ByteCount::from_bytes),
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

/// The tests of a capture, of at most 256 connections and 1 MiB of JSON.
#[derive(Debug, Default)]
pub struct Tests {
    connections: BTreeMap<u32, Control>,
    /// Bytes of JSON that were read.
    json_bytes: usize,
}

impl Tests {
    /// Follows a segment of a stream.
    #[inline]
    pub fn add(&mut self, stream: u32, packet: u64, time_ns: u64, segment: &TcpSegment<'_>) {
        let cookie = cookie(segment.payload);
        if cookie.is_none() && self.connections.is_empty() {
            return;
        }
        if let Some(cookie) = cookie
            && self.connections.len() < MAX_CONNECTIONS
        {
            let begin = || Control::new(stream, cookie, segment);
            self.connections.entry(stream).or_insert_with(begin);
        }
        if let Some(control) = self.connections.get_mut(&stream) {
            let left = MAX_JSON - self.json_bytes;
            self.json_bytes += control.add(packet, time_ns, segment, left);
        }
    }

    /// The cookie of a stream, if it began with one.
    #[must_use]
    pub fn cookie_of(&self, stream: u32) -> Option<Cookie> {
        Some(self.connections.get(&stream)?.cookie())
    }

    /// The test that a stream belongs to, be it its control connection or one with data.
    #[must_use]
    pub fn of(&self, stream: u32) -> Option<&Test> {
        let cookie = self.cookie_of(stream)?;
        self.iter().find(|test| test.cookie == cookie)
    }

    /// The tests in order of their control connections.
    pub fn iter(&self) -> impl Iterator<Item = &Test> {
        self.connections.values().filter_map(Control::test)
    }

    /// Whether the client of a stream's connection sends in `direction`.
    #[must_use]
    pub fn is_from_client(&self, stream: u32, direction: PacketDirection) -> Option<bool> {
        Some(self.connections.get(&stream)?.client() == direction)
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
