//! One sample of a connection: of `TCP_INFO`, or of a UDT connection's state.

use serde::{Deserialize, Serialize};

/// The sending side of a connection: Linux `struct tcp_info`, or the same figures of a UDT
/// connection.
///
/// Counters (`*_bytes`, the timers `*_us`, `retransmits`, …) count from the
/// connection's start; two samples give a rate.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct Sample {
    /// Seconds since the test's start.
    pub t_s: f64,
    /// Bytes written to the socket by the application.
    pub written_bytes: u64,
    /// Bytes acknowledged in order (`tcpi_bytes_acked`).
    pub acked_bytes: u64,
    /// Bytes delivered, in order or not (`tcpi_bytes_acked` plus `tcpi_sacked` times the
    /// segment size).
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
    /// Smoothed RTT in µs.
    pub rtt_us: u32,
    /// Its mean deviation in µs.
    pub rttvar_us: u32,
    /// Minimum RTT in µs; `None` before the first sample.
    pub min_rtt_us: Option<u32>,
    /// The kernel's delivery-rate estimate in bit/s.
    pub delivery_rate_bps: u64,
    /// Whether that estimate was application-limited.
    pub delivery_app_limited: bool,
    /// Pacing rate in bit/s; `None` where the kernel does not pace.
    pub pacing_rate_bps: Option<u64>,
    /// Its maximum set by the application (`SO_MAX_PACING_RATE`) in bit/s; `None` if not
    /// set.
    #[serde(default)]
    pub max_pacing_rate_bps: Option<u64>,
    /// Retransmitted segments (`tcpi_total_retrans`).
    pub retransmits: u64,
    /// Time with data to send or in flight, in µs; it includes the next two.
    pub busy_us: u64,
    /// Time limited by the receiver's window, in µs.
    pub rwnd_limited_us: u64,
    /// Time limited by the send buffer, in µs.
    pub sndbuf_limited_us: u64,
    /// Segments delivered with a congestion experienced mark (`tcpi_delivered_ce`).
    #[serde(default)]
    pub ce_delivered: Option<u32>,
    /// Segments that the receiver reported as duplicates, i.e. spurious retransmissions
    /// (`tcpi_dsack_dups`).
    #[serde(default)]
    pub dsack_duplicates: Option<u32>,
    /// Reordering events that the sender saw (`tcpi_reord_seen`).
    #[serde(default)]
    pub reorderings: Option<u32>,
    /// Segments received, for a sender its acknowledgements (`tcpi_segs_in`); UDT: full and light
    /// ones.
    #[serde(default)]
    pub acks: Option<u32>,
    /// Shift of the windows that the receiver advertises (RFC 7323, `tcpi_snd_wscale`).
    #[serde(default)]
    pub peer_window_scale: Option<u8>,
    /// UDT: NAKs received.
    #[serde(default)]
    pub naks: Option<u64>,
    /// UDT: capacity of the path that the receiver estimates from packet pairs, bit/s.
    #[serde(default)]
    pub capacity_bps: Option<u64>,
    /// UDT: of the acknowledgements (`acks`), the light ones, which name a packet and nothing else.
    #[serde(default)]
    pub light_acks: Option<u32>,
    /// Bytes read from the file that is sent; `None` if it is not a file.
    #[serde(default)]
    pub source_bytes: Option<u64>,
    /// How much longer acknowledgements take than the fastest, in µs: the queueing delay of their
    /// direction. A capture shows it by the hosts' timestamps (RFC 7323).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ack_delay_us: Option<u32>,
    /// CPU time of the thread that writes, in µs, divided among the streams that it carries;
    /// `None` if it is not a thread of a test.
    #[serde(default)]
    pub cpu_us: Option<u64>,
}

/// Intervals with data in flight at both ends in which a timer that exists has run.
const BUSY_INTERVALS: usize = 10;

/// Whether the kernel does not report the timers: data was in flight, and none of them ran.
pub(crate) fn have_no_timers(samples: &[Sample]) -> bool {
    let ran = |sample: &Sample| sample.busy_us > 0;
    let is_busy = |pair: &[Sample]| pair.iter().all(|sample| sample.in_flight_bytes > 0);
    !samples.iter().any(ran)
        && samples.windows(2).filter(|pair| is_busy(pair)).count() >= BUSY_INTERVALS
}

impl Sample {
    /// The sample with times and counters relative to an earlier one of the same connection.
    #[must_use]
    pub fn since(&self, first: &Sample) -> Sample {
        Sample {
            t_s: self.t_s - first.t_s,
            // Both relative to acked_bytes: their difference is what the send buffer holds.
            written_bytes: self.written_bytes.saturating_sub(first.acked_bytes),
            acked_bytes: self.acked_bytes.saturating_sub(first.acked_bytes),
            delivered_bytes: self.delivered_bytes.saturating_sub(first.delivered_bytes),
            retransmits: self.retransmits.saturating_sub(first.retransmits),
            busy_us: self.busy_us.saturating_sub(first.busy_us),
            rwnd_limited_us: self.rwnd_limited_us.saturating_sub(first.rwnd_limited_us),
            sndbuf_limited_us: self.sndbuf_limited_us.saturating_sub(first.sndbuf_limited_us),
            cpu_us: self.cpu_us.map(|us| us.saturating_sub(first.cpu_us.unwrap_or(0))),
            ..*self
        }
    }
}

/// The receiving side of a connection.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct ReceiverSample {
    /// Seconds since the test's start.
    pub t_s: f64,
    /// Bytes read by the application.
    pub received_bytes: u64,
    /// The window it advertises (`tcpi_rcv_wnd`, kernel 6.2 and later).
    pub window_bytes: Option<u64>,
    /// The socket's receive buffer (`SO_MEMINFO`), of which the window is a share.
    pub buffer_bytes: Option<u64>,
    /// Minimum RTT in µs (`tcpi_min_rtt`), at least that of the handshake.
    #[serde(default)]
    pub min_rtt_us: Option<u32>,
    /// The receiver's RTT estimate in µs (`tcpi_rcv_rtt`), queueing included: by timestamps,
    /// which have a resolution of 1 ms before Linux 6.7.
    #[serde(default)]
    pub rtt_us: Option<u32>,
    /// Bytes received in order that the application has yet to read.
    #[serde(default)]
    pub unread_bytes: Option<u64>,
    /// Data segments received (`tcpi_data_segs_in`).
    #[serde(default)]
    pub segments: Option<u32>,
    /// Of the segments, those received out of order (`tcpi_rcv_ooopack`, Linux 5.4).
    #[serde(default)]
    pub out_of_order: Option<u32>,
    /// The scale of the windows that it advertises (RFC 7323); 0: without scaling.
    #[serde(default)]
    pub window_scale: Option<u8>,
    /// CPU time of the thread that reads, in µs; `None` if it is not a thread of a test.
    #[serde(default)]
    pub cpu_us: Option<u64>,
}

impl ReceiverSample {
    /// The sample with its time and bytes relative to an earlier one of the same connection.
    #[must_use]
    pub fn since(&self, first: &ReceiverSample) -> ReceiverSample {
        ReceiverSample {
            t_s: self.t_s - first.t_s,
            received_bytes: self.received_bytes.saturating_sub(first.received_bytes),
            cpu_us: self.cpu_us.map(|us| us.saturating_sub(first.cpu_us.unwrap_or(0))),
            ..*self
        }
    }
}
