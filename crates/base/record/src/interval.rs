//! One report interval of a running test.

use serde::Serialize;
use units::{BitRate, ByteCount, Rtt};

/// What one stream, or all streams of one direction, transferred in one report
/// interval, as one end counted it.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize)]
pub struct Interval {
    /// The stream's id; `None` in the sum over all streams of one direction,
    /// which follows them and exists only for two or more streams.
    pub stream: Option<u32>,
    /// Whether this end sends.
    pub sending: bool,
    /// Start, in seconds since the test began; an omitted warm-up counts on its own.
    pub from_s: f64,
    /// End, in seconds since the test began.
    pub to_s: f64,
    /// Bytes written where this end sends, read where it receives.
    pub bytes: ByteCount,
    /// Those bytes divided by the interval's length.
    pub rate: BitRate,
    /// Rate of the payload that arrived within the interval: bytes that only
    /// filled the send buffer are not included. `None` where the kernel does not
    /// report it.
    pub arrival_rate: Option<BitRate>,
    /// Segments retransmitted within the interval; `None` where this end
    /// receives, and for UDP.
    pub retransmits: Option<u64>,
    /// Congestion window at the end of the interval; `None` likewise, and in sums.
    pub cwnd: Option<ByteCount>,
    /// The window the receiver advertised; `None` likewise.
    pub peer_window: Option<ByteCount>,
    /// Smoothed RTT at the end of the interval; `None` likewise.
    pub rtt: Option<Rtt>,
    /// RTT variation (`tcpi_rttvar`); `None` likewise.
    pub rttvar: Option<Rtt>,
    /// Path MTU in bytes; `None` likewise.
    pub pmtu: Option<u32>,
    /// UDP only.
    pub datagrams: Option<DatagramInterval>,
    /// Whether it belongs to the warm-up, which the result omits (`-O`).
    pub omitted: bool,
}

/// Datagram counts of one report interval.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize)]
pub struct DatagramInterval {
    /// Sent where this end sends; otherwise expected.
    pub packets: u64,
    /// Lost; zero where this end sends.
    pub lost: u64,
    /// Received after one that was sent later.
    pub out_of_order: u64,
    /// Interarrival jitter at the end of the interval (RFC 3550 section 6.4.1);
    /// in sums the mean over the streams.
    pub jitter: Rtt,
}
