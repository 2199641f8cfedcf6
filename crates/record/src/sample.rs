//! What the kernel says of one connection at one moment.

use serde::{Deserialize, Serialize};

/// The sending side of a connection: Linux `struct tcp_info` in plain names.
///
/// Counters (`*_bytes`, `*_us` of the limit clocks, `retransmits`, …) grow from
/// the connection's start; two samples make a rate.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct Sample {
    /// Seconds since the test's start.
    pub t_s: f64,
    /// Bytes handed to the kernel by the program.
    pub written_bytes: u64,
    /// Bytes acknowledged in order (`tcpi_bytes_acked`).
    pub acked_bytes: u64,
    /// Bytes known to have arrived, in order or not (those acknowledged, and `tcpi_sacked`
    /// times the segment size).
    pub delivered_bytes: u64,
    /// Maximum segment size in bytes of payload (`tcpi_snd_mss`).
    pub mss_bytes: u32,
    /// Congestion window in bytes (`tcpi_snd_cwnd` times the segment size).
    pub cwnd_bytes: u64,
    /// Slow-start threshold in bytes; `None` until the first loss or exit.
    pub ssthresh_bytes: Option<u64>,
    /// Bytes sent and not yet acknowledged or known lost.
    pub in_flight_bytes: u64,
    /// Bytes written and not yet sent (`tcpi_notsent_bytes`).
    pub unsent_bytes: u64,
    /// The window the receiver last advertised (`tcpi_snd_wnd`, kernel 5.4 and later).
    pub peer_window_bytes: Option<u64>,
    /// Smoothed round trip in µs.
    pub rtt_us: u32,
    /// Its mean deviation in µs.
    pub rttvar_us: u32,
    /// Least round trip seen in µs; `None` before the first.
    pub min_rtt_us: Option<u32>,
    /// The kernel's delivery-rate estimate in bit/s.
    pub delivery_rate_bps: u64,
    /// Whether that estimate was taken while the program had nothing to send.
    pub delivery_app_limited: bool,
    /// Pacing rate in bit/s; `None` where the kernel does not pace.
    pub pacing_rate_bps: Option<u64>,
    /// The most that the program lets it be (`SO_MAX_PACING_RATE`) in bit/s; `None` where it
    /// does not say.
    #[serde(default)]
    pub max_pacing_rate_bps: Option<u64>,
    /// Segments sent again so far.
    pub retransmits: u64,
    /// Time with data to send or in flight, in µs; it includes the next two.
    pub busy_us: u64,
    /// Time limited by the receiver's window, in µs.
    pub rwnd_limited_us: u64,
    /// Time limited by the send buffer, in µs.
    pub sndbuf_limited_us: u64,
}

/// The receiving side of a connection.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct ReceiverSample {
    /// Seconds since the test's start.
    pub t_s: f64,
    /// Bytes the program has read.
    pub received_bytes: u64,
    /// The window it advertises (`tcpi_rcv_wnd`, kernel 6.2 and later).
    pub window_bytes: Option<u64>,
    /// The socket's receive buffer (`SO_MEMINFO`), of which the window is a share.
    pub buffer_bytes: Option<u64>,
    /// Least round trip its kernel has seen, of the handshake at least
    /// (`tcpi_min_rtt`), in microseconds.
    #[serde(default)]
    pub min_rtt_us: Option<u32>,
}
