//! The client header: 24 bytes since version 1.7, 36 more since 2.0.13.
//!
//! Over TCP it precedes the data; over UDP it is in every datagram, after the 16 bytes
//! of [`crate::datagram`].
//!
//! | byte | 32 bits each |
//! |---|---|
//! | 0 | flags; the length of the header in bits 1 to 8 where bit 16 is set |
//! | 4 | streams |
//! | 8 | port on which the client listens for the reverse connection (`-L`) |
//! | 12 | block length in bytes, 0 for the default |
//! | 16 | window or rate, no longer used |
//! | 20 | amount: units of 10 ms if negative, otherwise bytes |
//! | 24, 28 | type and length, no longer used |
//! | 32 | upper flags: 16 bits; lower flags: 16 bits |
//! | 36, 40 | version of the program: 2.1 and 8.3 |
//! | 44 | 16 bits unused, 16 bits type of service |
//! | 48, 52 | rate in bit/s, lower half; upper half times 256 |
//! | 56 | unused here |

use crate::be32::{high, join, low, read, write};
use crate::datagram;
use std::time::Duration;

/// Length of the header that is written, bytes.
pub const LENGTH: usize = 60;

/// Maximum length of a header, bytes.
pub const MAX_LENGTH: usize = 256;

/// Minimum length, of version 1.7.
const MIN_LENGTH: usize = 24;

const VERSION1: u32 = 0x8000_0000;
const EXTENDED: u32 = 0x4000_0000;
const UDP_TESTS: u32 = 0x2000_0000;
const KEY: u32 = 0x1000_0000;
const LONG_NUMBERS: u32 = 0x0800_0000;
const VERSION2: u32 = 0x0400_0000;
const PEER_DETECT: u32 = 0x0200_0000;
const BOUNCE_BACK: u32 = 0x0080_0000;
const HAS_LENGTH: u32 = 0x0001_0000;
const LENGTH_BITS: u32 = 0x0000_01fe;
const RUN_NOW: u32 = 0x0000_0001;

const ISOCHRONOUS: u32 = 0x0001;
const NO_REPORT: u32 = 0x0008;
const REVERSE: u32 = 0x0400;
const FULL_DUPLEX: u32 = 0x0800;
const BURSTS: u32 = 0x2000;

/// The version in our headers: 2.1.8.
const VERSION: [u32; 2] = [0x0002_0001, 0x0008_0003];

/// The server's reply to a TCP header of version 2.0.13 or later, unless the test is
/// reversed: type 2, its length, and the version.
pub const ACKNOWLEDGEMENT: [u8; 28] =
    [0, 0, 0, 2, 0, 0, 0, 28, 0, 0, 0, 0, 0, 2, 0, 1, 0, 8, 0, 3, 0, 0, 0, 0, 0, 0, 0, 0];

/// Who sends, and when.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Mode {
    /// The client sends.
    #[default]
    Normal,
    /// The client sends, then the server, over a second connection (`-r`).
    TradeOff,
    /// Both at the same time, over two connections (`-d`).
    Dual,
    /// The server sends, over the client's connection (`-R`).
    Reverse,
    /// Both at the same time over one connection (`--full-duplex`).
    FullDuplex,
}

/// When a test ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Amount {
    /// After a time, in steps of 10 ms on the wire.
    Time(Duration),
    /// After so many bytes per stream, at most 2^31 - 1 on the wire.
    Bytes(u64),
}

/// The parameters of a test, as the client requests them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ClientHeader {
    /// Who sends.
    pub mode: Mode,
    /// Streams of the test.
    pub streams: u32,
    /// The port on which the client listens for the reverse connection.
    pub port: u32,
    /// Block length in bytes; zero for the default.
    pub length: u32,
    /// When the test ends.
    pub amount: Amount,
    /// Bits per second; zero if not limited.
    pub rate_bps: u64,
    /// Type of service, the byte of the IP header.
    pub tos: u8,
    /// The client accepts [`ACKNOWLEDGEMENT`] (TCP).
    pub acknowledged: bool,
    /// The client wants no server report (UDP).
    pub no_report: bool,
}

/// The type of a TCP connection, by its first four bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Preamble {
    /// Data: a client before 2.0.13, or the reverse connection of `-d` and `-r`.
    Data,
    /// A header of this length, including these four bytes.
    Header(usize),
    /// An unsupported test, by its option.
    Unsupported(&'static str),
}

impl Preamble {
    /// Parses the four bytes.
    #[must_use]
    pub fn of(first: [u8; 4]) -> Self {
        let flags = u32::from_be_bytes(first);
        if flags == BOUNCE_BACK {
            return Preamble::Unsupported("--bounceback");
        }
        if flags & (VERSION1 | VERSION2 | EXTENDED) == 0 {
            return Preamble::Data;
        }
        if flags & KEY != 0 {
            return Preamble::Unsupported("--permit-key");
        }
        match length(flags) {
            Some(length) => Preamble::Header(length),
            None => Preamble::Unsupported("an invalid header length"),
        }
    }
}

/// The header's length, from its flags.
fn length(flags: u32) -> Option<usize> {
    if flags & HAS_LENGTH != 0 {
        let length = usize::try_from((flags & LENGTH_BITS) >> 1).ok()?;
        return (MIN_LENGTH..=MAX_LENGTH).contains(&length).then_some(length);
    }
    let base = if flags & (VERSION1 | EXTENDED) != 0 { MIN_LENGTH } else { 0 };
    let more = if flags & (VERSION2 | EXTENDED) != 0 { LENGTH - MIN_LENGTH } else { 0 };
    Some((base + more).max(MIN_LENGTH))
}

/// Whether the header in a datagram declares 64-bit sequence numbers.
pub(crate) fn has_64_bit_numbers(datagram: &[u8]) -> bool {
    let flags = read(datagram, datagram::LENGTH);
    flags & LONG_NUMBERS != 0 && flags & EXTENDED != 0
}

impl ClientHeader {
    /// Parses the header of a TCP connection; `None` if it is data or incomplete.
    ///
    /// # Errors
    /// The option of an unsupported test.
    pub fn decode(bytes: &[u8]) -> Result<Option<Self>, &'static str> {
        let Some(&first) = bytes.first_chunk() else { return Ok(None) };
        match Preamble::of(first) {
            Preamble::Unsupported(what) => Err(what),
            Preamble::Header(length) if bytes.len() >= length => Self::fields(&bytes[..length]),
            Preamble::Header(_) | Preamble::Data => Ok(None),
        }
    }

    /// Parses the header in a datagram; `None` if it has none.
    ///
    /// # Errors
    /// The option of an unsupported test.
    pub fn decode_datagram(bytes: &[u8]) -> Result<Option<Self>, &'static str> {
        let Some(header) = bytes.get(datagram::LENGTH..) else { return Ok(None) };
        let flags = read(header, 0);
        // Without a length it is data.
        if flags & HAS_LENGTH == 0 || flags & (VERSION1 | EXTENDED) == 0 {
            return Ok(None);
        }
        Self::fields(&header[..header.len().min(LENGTH)])
    }

    fn fields(bytes: &[u8]) -> Result<Option<Self>, &'static str> {
        let flags = read(bytes, 0);
        let more = if flags & EXTENDED != 0 { read(bytes, 32) >> 16 } else { 0 };
        if more & ISOCHRONOUS != 0 {
            return Err("--isochronous");
        }
        if more & BURSTS != 0 {
            return Err("--burst-period");
        }
        let mode = if flags & VERSION2 != 0 {
            if more & FULL_DUPLEX != 0 {
                Mode::FullDuplex
            } else if more & REVERSE != 0 {
                Mode::Reverse
            } else {
                Mode::Normal
            }
        } else if flags & VERSION1 != 0 {
            if flags & RUN_NOW != 0 { Mode::Dual } else { Mode::TradeOff }
        } else {
            Mode::Normal
        };
        let amount = read(bytes, 20).cast_signed();
        let amount = if amount < 0 {
            Amount::Time(Duration::from_millis(10) * amount.unsigned_abs())
        } else {
            Amount::Bytes(u64::from(amount.unsigned_abs()))
        };
        Ok(Some(ClientHeader {
            mode,
            streams: read(bytes, 4),
            port: read(bytes, 8),
            length: read(bytes, 12),
            amount,
            rate_bps: join(read(bytes, 52) >> 8, read(bytes, 48)),
            tos: u8::try_from(read(bytes, 44) & 0xff).unwrap_or_default(),
            acknowledged: flags & PEER_DETECT != 0 || flags & (VERSION2 | EXTENDED) == EXTENDED,
            no_report: more & NO_REPORT != 0,
        }))
    }

    /// The header of a TCP connection.
    #[must_use]
    pub fn encode(&self) -> [u8; LENGTH] {
        let length = u32::try_from(LENGTH).unwrap_or_default();
        self.write(EXTENDED | HAS_LENGTH | length << 1)
    }

    /// The header in a datagram, after its sequence number.
    #[must_use]
    pub fn encode_datagram(&self) -> [u8; LENGTH] {
        let length = u32::try_from(LENGTH + datagram::LENGTH).unwrap_or_default();
        let tests = match self.mode {
            Mode::Reverse | Mode::FullDuplex => UDP_TESTS,
            _ if self.no_report => UDP_TESTS,
            _ => 0,
        };
        self.write(EXTENDED | LONG_NUMBERS | HAS_LENGTH | length << 1 | tests)
    }

    fn write(&self, flags: u32) -> [u8; LENGTH] {
        let (mode, mut more) = match self.mode {
            Mode::Normal => (0, 0),
            Mode::TradeOff => (VERSION1, 0),
            Mode::Dual => (VERSION1 | RUN_NOW, 0),
            Mode::Reverse => (VERSION2, REVERSE),
            Mode::FullDuplex => (VERSION2, FULL_DUPLEX),
        };
        if self.no_report {
            more |= NO_REPORT;
        }
        let max = i32::MAX.unsigned_abs();
        let amount = match self.amount {
            Amount::Time(time) => {
                let steps = u32::try_from(time.as_millis() / 10).unwrap_or(max).clamp(1, max);
                steps.wrapping_neg()
            }
            Amount::Bytes(bytes) => u32::try_from(bytes).unwrap_or(max).min(max),
        };
        let mut bytes = [0; LENGTH];
        let fields = [
            (0, flags | mode),
            (4, self.streams),
            (8, self.port),
            (12, self.length),
            (20, amount),
            (32, more << 16),
            (36, VERSION[0]),
            (40, VERSION[1]),
            (44, u32::from(self.tos)),
            (48, low(self.rate_bps)),
            (52, high(self.rate_bps) << 8),
        ];
        for (at, value) in fields {
            write(&mut bytes, at, value);
        }
        bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn header(mode: Mode) -> ClientHeader {
        ClientHeader {
            mode,
            streams: 1,
            port: 6001,
            length: 12_500,
            amount: Amount::Time(Duration::from_secs(1)),
            rate_bps: 1_000_000,
            tos: 0,
            acknowledged: !matches!(mode, Mode::Reverse | Mode::FullDuplex),
            no_report: false,
        }
    }

    /// Captured from version 2.1.8 with `-t 1 -b 1m -l 12500 -p 6001`.
    #[test]
    fn headers_match_iperf2() {
        let flags = |mode| u32::from_be_bytes(*header(mode).encode().first_chunk().unwrap());
        assert_eq!(flags(Mode::Normal), 0x4001_0078);
        assert_eq!(flags(Mode::TradeOff), 0xc001_0078);
        assert_eq!(flags(Mode::Dual), 0xc001_0079);
        assert_eq!(flags(Mode::Reverse), 0x4401_0078);
        let bytes = header(Mode::FullDuplex).encode();
        assert_eq!(bytes[20..24], [0xff, 0xff, 0xff, 0x9c]);
        assert_eq!(bytes[32..36], [8, 0, 0, 0]);
        assert_eq!(bytes[48..52], [0, 0x0f, 0x42, 0x40]);
        let flags =
            |mode| u32::from_be_bytes(*header(mode).encode_datagram().first_chunk().unwrap());
        assert_eq!(flags(Mode::Normal), 0x4801_0098);
        assert_eq!(flags(Mode::Dual), 0xc801_0099);
        assert_eq!(flags(Mode::Reverse), 0x6c01_0098);
    }

    #[test]
    fn headers_round_trip() {
        for mode in [Mode::Normal, Mode::TradeOff, Mode::Dual, Mode::Reverse, Mode::FullDuplex] {
            let asked = ClientHeader { rate_bps: 40 << 30, ..header(mode) };
            assert_eq!(ClientHeader::decode(&asked.encode()), Ok(Some(asked)));
            let mut datagram = vec![0; 16];
            datagram.extend(asked.encode_datagram());
            assert_eq!(ClientHeader::decode_datagram(&datagram), Ok(Some(asked)));
        }
    }

    #[test]
    fn an_incomplete_header_is_none() {
        let bytes = header(Mode::Dual).encode();
        assert_eq!(ClientHeader::decode(&bytes[..59]), Ok(None));
        assert_eq!(Preamble::of(*bytes.first_chunk().unwrap()), Preamble::Header(60));
    }

    #[test]
    fn data_and_unsupported_tests_are_recognised() {
        assert_eq!(Preamble::of(*b"0123"), Preamble::Data);
        assert_eq!(Preamble::of([0, 0x80, 0, 0]), Preamble::Unsupported("--bounceback"));
        assert_eq!(Preamble::of([0x50, 1, 0, 0x78]), Preamble::Unsupported("--permit-key"));
        // 23 bytes and 24.
        assert!(matches!(Preamble::of([0x40, 1, 0, 46]), Preamble::Unsupported(_)));
        assert_eq!(Preamble::of([0x40, 1, 0, 48]), Preamble::Header(24));
    }
}
