//! What iperf 2 puts on the wire, and the figures it takes and prints.
//!
//! Pure: no I/O, no clock, no sockets. Bytes come in, facts go out; whatever the
//! bytes are, nothing here panics.
//!
//! | module | holds |
//! |---|---|
//! | [`header`] | what a client asks, before its data and in every datagram |
//! | [`datagram`] | number and time of a datagram, and the last one's sign |
//! | [`report`] | what a server tells a UDP client in the end |
//! | [`account`] | lost, late, jitter: what a receiver makes of the numbers |
//! | [`figures`] | sizes and rates as they are asked and printed |
//!
//! Speaks with versions 2.0.5 to 2.1.8 of the program; numbers are big-endian.
//! There is no handshake but a note of 28 bytes ([`header::ACKNOWLEDGEMENT`]):
//! a client connects, says what it wants and sends.

pub mod account;
pub mod datagram;
pub mod figures;
pub mod header;
pub mod report;
mod words;

pub use account::Account;
pub use datagram::Datagram;
pub use figures::{Format, Pace};
pub use header::{Amount, ClientHeader, Mode, Opening};
pub use report::ServerReport;

/// The port of TCP connections and UDP datagrams unless told otherwise.
pub const DEFAULT_PORT: u16 = 5001;

/// Bytes a TCP stream writes at a time unless told otherwise.
pub const DEFAULT_BLOCK: u32 = 128 * 1024;

/// Bytes of a datagram unless told otherwise: it fits into an Ethernet frame
/// over IPv4.
pub const DEFAULT_DATAGRAM_V4: u32 = 1470;

/// The same over IPv6.
pub const DEFAULT_DATAGRAM_V6: u32 = 1450;

/// Bits per second of a UDP stream unless told otherwise: 1M.
pub const DEFAULT_RATE: u64 = 1 << 20;
