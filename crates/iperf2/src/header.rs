//! What a client asks: 24 bytes since version 1.7, 36 more since 2.0.13.
//!
//! Over TCP it comes before the data, over UDP it stands in every datagram
//! behind the 16 bytes of [`crate::datagram`].
//!
//! | byte | 32 bits each |
//! |---|---|
//! | 0 | flags; the length of the header in bits 1 to 8 where bit 16 is set |
//! | 4 | streams |
//! | 8 | the port on which the client listens (`-L`), for the other way |
//! | 12 | bytes written at a time, 0 for the default |
//! | 16 | window or rate, no longer used |
//! | 20 | how much: 10 ms each where negative, bytes otherwise |
//! | 24, 28 | type and length, no longer used |
//! | 32 | flags of 16 bits, and 16 more |
//! | 36, 40 | version of the program: 2.1 and 8.3 |
//! | 44 | 16 bits unused, 16 bits type of service |
//! | 48, 52 | rate in bit/s, lower half; upper half times 256 |
//! | 56 | unused here |

use crate::datagram;
use crate::words::{high, join, low, read, write};
use std::time::Duration;

/// Bytes of the header we write.
pub const LENGTH: usize = 60;

/// The longest header there is.
pub const LONGEST: usize = 256;

/// The shortest: version 1.7's.
const SHORTEST: usize = 24;

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

/// The version whose dialect we speak, 2.1.8, as its headers write it.
const DIALECT: [u32; 2] = [0x0002_0001, 0x0008_0003];

/// What a server answers to a TCP header of version 2.0.13 or later unless the
/// test is reversed: type 2, its own length, and the version.
pub const ACKNOWLEDGEMENT: [u8; 28] =
    [0, 0, 0, 2, 0, 0, 0, 28, 0, 0, 0, 0, 0, 2, 0, 1, 0, 8, 0, 3, 0, 0, 0, 0, 0, 0, 0, 0];

/// Who sends, and when.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Mode {
    /// The client sends.
    #[default]
    Normal,
    /// The client sends; then the server, over a connection of its own (`-r`).
    TradeOff,
    /// Both at the same time, over a connection each (`-d`).
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
    /// After so many bytes of each stream, 2^31 - 1 at most on the wire.
    Bytes(u64),
}

/// What a client asks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ClientHeader {
    /// Who sends.
    pub mode: Mode,
    /// Streams of the test.
    pub streams: u32,
    /// The port on which the client listens for the other way.
    pub port: u32,
    /// Bytes written at a time; zero for the default.
    pub length: u32,
    /// When the test ends.
    pub amount: Amount,
    /// Bits per second; zero where none was asked.
    pub rate_bps: u64,
    /// Type of service, the byte of the IP header.
    pub tos: u8,
    /// The client waits for [`ACKNOWLEDGEMENT`], or bears it (TCP).
    pub acknowledged: bool,
    /// The client wants no report in the end (UDP).
    pub no_report: bool,
}

/// What the first four bytes of a TCP connection are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Opening {
    /// Data: a client from before 2.0.13, or the other way of `-d` and `-r`.
    Data,
    /// A header of so many bytes in all, these four included.
    Header(usize),
    /// A test we do not carry, by its option.
    NotCarried(&'static str),
}

impl Opening {
    /// Reads the four bytes.
    #[must_use]
    pub fn of(first: [u8; 4]) -> Self {
        let flags = u32::from_be_bytes(first);
        if flags == BOUNCE_BACK {
            return Opening::NotCarried("--bounceback");
        }
        if flags & (VERSION1 | VERSION2 | EXTENDED) == 0 {
            return Opening::Data;
        }
        if flags & KEY != 0 {
            return Opening::NotCarried("--permit-key");
        }
        match length(flags) {
            Some(length) => Opening::Header(length),
            None => Opening::NotCarried("a header of no known length"),
        }
    }
}

/// The header's length by its flags.
fn length(flags: u32) -> Option<usize> {
    if flags & HAS_LENGTH != 0 {
        let length = usize::try_from((flags & LENGTH_BITS) >> 1).ok()?;
        return (SHORTEST..=LONGEST).contains(&length).then_some(length);
    }
    let base = if flags & (VERSION1 | EXTENDED) != 0 { SHORTEST } else { 0 };
    let more = if flags & (VERSION2 | EXTENDED) != 0 { LENGTH - SHORTEST } else { 0 };
    Some((base + more).max(SHORTEST))
}

/// Whether the header in a datagram makes its numbers 64 bits long.
pub(crate) fn has_long_numbers(datagram: &[u8]) -> bool {
    let flags = read(datagram, datagram::WRITTEN);
    flags & LONG_NUMBERS != 0 && flags & EXTENDED != 0
}

impl ClientHeader {
    /// Reads the header of a TCP connection, from its first byte; `None` where
    /// it is no header or not all of it is there.
    ///
    /// # Errors
    /// The option of a test we do not carry.
    pub fn decode(bytes: &[u8]) -> Result<Option<Self>, &'static str> {
        let Some(&first) = bytes.first_chunk() else { return Ok(None) };
        match Opening::of(first) {
            Opening::NotCarried(what) => Err(what),
            Opening::Header(length) if bytes.len() >= length => Self::fields(&bytes[..length]),
            Opening::Header(_) | Opening::Data => Ok(None),
        }
    }

    /// Reads the header in a datagram; `None` where it has none.
    ///
    /// # Errors
    /// The option of a test we do not carry.
    pub fn decode_datagram(bytes: &[u8]) -> Result<Option<Self>, &'static str> {
        let Some(header) = bytes.get(datagram::WRITTEN..) else { return Ok(None) };
        let flags = read(header, 0);
        // Any data may stand there: a header says how long it is.
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

    /// The header as it stands before the data of a TCP connection.
    #[must_use]
    pub fn encode(&self) -> [u8; LENGTH] {
        let length = u32::try_from(LENGTH).unwrap_or_default();
        self.write(EXTENDED | HAS_LENGTH | length << 1)
    }

    /// The header as it stands in a datagram, behind its number.
    #[must_use]
    pub fn encode_datagram(&self) -> [u8; LENGTH] {
        let length = u32::try_from(LENGTH + datagram::WRITTEN).unwrap_or_default();
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
        let most = i32::MAX.unsigned_abs();
        let amount = match self.amount {
            Amount::Time(time) => {
                let steps = u32::try_from(time.as_millis() / 10).unwrap_or(most).clamp(1, most);
                steps.wrapping_neg()
            }
            Amount::Bytes(bytes) => u32::try_from(bytes).unwrap_or(most).min(most),
        };
        let mut bytes = [0; LENGTH];
        let fields = [
            (0, flags | mode),
            (4, self.streams),
            (8, self.port),
            (12, self.length),
            (20, amount),
            (32, more << 16),
            (36, DIALECT[0]),
            (40, DIALECT[1]),
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

    /// What version 2.1.8 was seen to send for `-t 1 -b 1m -l 12500 -p 6001`.
    #[test]
    fn the_bytes_are_the_real_programs() {
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
    fn what_is_written_is_read() {
        for mode in [Mode::Normal, Mode::TradeOff, Mode::Dual, Mode::Reverse, Mode::FullDuplex] {
            let asked = ClientHeader { rate_bps: 40 << 30, ..header(mode) };
            assert_eq!(ClientHeader::decode(&asked.encode()), Ok(Some(asked)));
            let mut datagram = vec![0; 16];
            datagram.extend(asked.encode_datagram());
            assert_eq!(ClientHeader::decode_datagram(&datagram), Ok(Some(asked)));
        }
    }

    #[test]
    fn half_a_header_is_none() {
        let bytes = header(Mode::Dual).encode();
        assert_eq!(ClientHeader::decode(&bytes[..59]), Ok(None));
        assert_eq!(Opening::of(*bytes.first_chunk().unwrap()), Opening::Header(60));
    }

    #[test]
    fn data_is_no_header_and_other_tests_have_a_name() {
        assert_eq!(Opening::of(*b"0123"), Opening::Data);
        assert_eq!(Opening::of([0, 0x80, 0, 0]), Opening::NotCarried("--bounceback"));
        assert_eq!(Opening::of([0x50, 1, 0, 0x78]), Opening::NotCarried("--permit-key"));
        // 23 bytes and 24.
        assert!(matches!(Opening::of([0x40, 1, 0, 46]), Opening::NotCarried(_)));
        assert_eq!(Opening::of([0x40, 1, 0, 48]), Opening::Header(24));
    }
}
