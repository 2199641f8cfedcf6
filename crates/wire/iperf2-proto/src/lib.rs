//! The iperf 2 protocol: messages, receiver statistics, and formats of sizes and rates.
//!
//! Pure: no I/O, no clock, no sockets. No input causes a panic.
//!
//! | module | contents |
//! |---|---|
//! | [`header`] | the client's request, before its data and in every datagram |
//! | [`datagram`] | sequence number and send time of a datagram |
//! | [`report`] | the server's report to a UDP client |
//! | [`receive_stats`] | loss, reordering and jitter of a UDP receiver |
//! | [`quantity`] | parsing and printing of sizes and rates |
//!
//! Compatible with versions 2.0.5 to 2.1.8; numbers are big-endian. The only handshake is
//! an acknowledgement of 28 bytes ([`header::ACKNOWLEDGEMENT`]): a client connects, sends
//! its header and then data.

mod be32;
pub mod datagram;
pub mod header;
pub mod quantity;
pub mod receive_stats;
pub mod report;

pub use datagram::Datagram;
pub use header::{Amount, ClientHeader, Mode, Preamble};
pub use quantity::{Format, Pace};
pub use receive_stats::ReceiveStats;
pub use report::ServerReport;

/// Default port for TCP and UDP.
pub const DEFAULT_PORT: u16 = 5001;

/// Default block length of TCP, bytes.
pub const DEFAULT_BLOCK: u32 = 128 * 1024;

/// Default length of a datagram over IPv4, bytes: it fits into an Ethernet frame.
pub const DEFAULT_DATAGRAM_V4: u32 = 1470;

/// Default length of a datagram over IPv6, bytes.
pub const DEFAULT_DATAGRAM_V6: u32 = 1450;

/// Default rate of a UDP stream, bit/s: 1M.
pub const DEFAULT_RATE: u64 = 1 << 20;
