//! UDP: the connect datagrams that open a stream, and the header of every datagram.
//!
//! A client sends four bytes to the server's port; the server replies with four,
//! and that pair of addresses is the stream. Versions up to 3.11 use other bytes;
//! servers ignore the content of a connect datagram, clients check the reply's.

/// What a client sends to open a stream.
pub const CONNECT: [u8; 4] = *b"9876";
/// What a server replies.
pub const CONNECT_REPLY: [u8; 4] = *b"6789";
/// What versions up to 3.11 send to open a stream.
pub const OLD_CONNECT: [u8; 4] = [0x15, 0xCD, 0x5B, 0x07];
/// What servers up to 3.11 reply.
pub const OLD_CONNECT_REPLY: [u8; 4] = [0xB1, 0x68, 0xDE, 0x3A];

/// What the receiver of a train sends when it has seen enough losses. Longhaul only, and only in a
/// test that asked for it ([`Extension::train`](crate::Extension::train)).
pub const STOP: [u8; 4] = *b"stop";

/// Minimum datagram length: a header with either counter.
pub const MIN_LENGTH: i64 = 16;
/// Largest payload of a UDP datagram over IPv4 (65535 less the headers, RFC 768, RFC 791).
pub const MAX_LENGTH: i64 = 65_507;
/// Payload if the path's segment size is unknown.
pub const DEFAULT_LENGTH: u32 = 1460;

/// Whether a datagram opens a stream.
#[must_use]
pub fn is_connect(bytes: &[u8]) -> bool {
    bytes == CONNECT || bytes == OLD_CONNECT
}

/// Whether a datagram is the reply.
#[must_use]
pub fn is_connect_reply(bytes: &[u8]) -> bool {
    bytes == CONNECT_REPLY || bytes == OLD_CONNECT_REPLY
}

/// Width of a datagram's sequence number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Counter {
    /// 32 bits: it wraps after 4 billion datagrams.
    Narrow,
    /// 64 bits (`--udp-counters-64bit`).
    Wide,
}

impl Counter {
    /// Bytes of the header.
    #[must_use]
    pub const fn header_len(self) -> usize {
        match self {
            Counter::Narrow => 12,
            Counter::Wide => 16,
        }
    }
}

/// The start of every datagram, big-endian.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Header {
    /// When it was sent, by the sender's monotonic clock, in µs.
    pub sent_us: u64,
    /// Its sequence number, from 1.
    pub number: u64,
}

impl Header {
    /// Writes it to the start of `datagram`, which is at least
    /// [`Counter::header_len`] long; a shorter one is not changed.
    pub fn write(self, counter: Counter, datagram: &mut [u8]) {
        let Some(wire) = datagram.get_mut(..counter.header_len()) else { return };
        let seconds = u32::try_from(self.sent_us / 1_000_000).unwrap_or(u32::MAX);
        let micros = u32::try_from(self.sent_us % 1_000_000).unwrap_or(0);
        wire[..4].copy_from_slice(&seconds.to_be_bytes());
        wire[4..8].copy_from_slice(&micros.to_be_bytes());
        match counter {
            Counter::Wide => wire[8..].copy_from_slice(&self.number.to_be_bytes()),
            // The low 32 bits, as iperf3 counts.
            Counter::Narrow => wire[8..].copy_from_slice(&self.number.to_be_bytes()[4..]),
        }
    }

    /// Reads it; `None` from a datagram too short for one.
    #[must_use]
    pub fn read(counter: Counter, datagram: &[u8]) -> Option<Self> {
        let word = |at: usize| -> Option<u64> {
            let bytes: [u8; 4] = datagram.get(at..at + 4)?.try_into().ok()?;
            Some(u32::from_be_bytes(bytes).into())
        };
        let sent_us = word(0)? * 1_000_000 + word(4)?;
        let number = match counter {
            Counter::Narrow => word(8)?,
            Counter::Wide => (word(8)? << 32) | word(12)?,
        };
        Some(Header { sent_us, number })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_header_is_as_on_the_wire() {
        let header = Header { sent_us: 7_000_009, number: 0x1_0000_0002 };
        let mut wire = [0xff; 16];
        header.write(Counter::Wide, &mut wire);
        assert_eq!(wire, [0, 0, 0, 7, 0, 0, 0, 9, 0, 0, 0, 1, 0, 0, 0, 2]);
        let mut wire = [0; 12];
        header.write(Counter::Narrow, &mut wire);
        assert_eq!(wire, [0, 0, 0, 7, 0, 0, 0, 9, 0, 0, 0, 2]);
    }

    #[test]
    fn both_generations_greet() {
        assert!(is_connect(&CONNECT) && is_connect(&OLD_CONNECT) && !is_connect(&CONNECT_REPLY));
        assert!(
            is_connect_reply(&CONNECT_REPLY)
                && is_connect_reply(&OLD_CONNECT_REPLY)
                && !is_connect_reply(b"6789 ")
        );
    }

    proptest! {
        #[test]
        fn headers_survive(sent_us in 0u64..u64::from(u32::MAX) * 1_000_000, number in any::<u64>()) {
            let mut wire = [0; 16];
            let header = Header { sent_us, number };
            header.write(Counter::Wide, &mut wire);
            prop_assert_eq!(Header::read(Counter::Wide, &wire), Some(header));
            header.write(Counter::Narrow, &mut wire);
            let narrow = Header { sent_us, number: number & 0xffff_ffff };
            prop_assert_eq!(Header::read(Counter::Narrow, &wire), Some(narrow));
        }

        #[test]
        fn any_datagram_is_answered(mut bytes in prop::collection::vec(any::<u8>(), 0..20)) {
            for counter in [Counter::Narrow, Counter::Wide] {
                let whole = bytes.len() >= counter.header_len();
                prop_assert_eq!(Header::read(counter, &bytes).is_some(), whole);
                Header { sent_us: 1, number: 2 }.write(counter, &mut bytes);
            }
        }
    }
}
