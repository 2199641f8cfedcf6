//! Linux's `struct tcp_info` as ndt7 writes it (m-lab/tcp-info, `tcp/tcp.go`): times in µs,
//! rates in bytes/s, windows in segments.

use crate::number::{self, count, count32};
use record::{ReceiverSample, Sample};
use serde::Deserialize;

/// A slow start threshold from which on there was no reduction yet.
const UNSET_SEGMENTS: u64 = (1 << 31) - 1;

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub(crate) struct TcpInfo {
    #[serde(deserialize_with = "number::maybe")]
    elapsed_time: Option<f64>,
    #[serde(rename = "SndMSS", deserialize_with = "number::maybe")]
    snd_mss: Option<f64>,
    #[serde(deserialize_with = "number::maybe")]
    snd_cwnd: Option<f64>,
    #[serde(deserialize_with = "number::maybe")]
    snd_ss_thresh: Option<f64>,
    #[serde(deserialize_with = "number::maybe")]
    snd_wnd: Option<f64>,
    #[serde(deserialize_with = "number::maybe")]
    unacked: Option<f64>,
    #[serde(deserialize_with = "number::maybe")]
    sacked: Option<f64>,
    #[serde(deserialize_with = "number::maybe")]
    lost: Option<f64>,
    #[serde(deserialize_with = "number::maybe")]
    retrans: Option<f64>,
    #[serde(deserialize_with = "number::maybe")]
    total_retrans: Option<f64>,
    #[serde(rename = "RTT", deserialize_with = "number::maybe")]
    rtt: Option<f64>,
    #[serde(rename = "RTTVar", deserialize_with = "number::maybe")]
    rtt_var: Option<f64>,
    #[serde(rename = "MinRTT", deserialize_with = "number::maybe")]
    min_rtt: Option<f64>,
    #[serde(rename = "RcvRTT", deserialize_with = "number::maybe")]
    rcv_rtt: Option<f64>,
    #[serde(deserialize_with = "number::maybe")]
    pacing_rate: Option<f64>,
    #[serde(deserialize_with = "number::maybe")]
    delivery_rate: Option<f64>,
    #[serde(deserialize_with = "number::maybe")]
    app_limited: Option<f64>,
    #[serde(deserialize_with = "number::maybe")]
    bytes_acked: Option<f64>,
    #[serde(deserialize_with = "number::maybe")]
    bytes_received: Option<f64>,
    #[serde(deserialize_with = "number::maybe")]
    notsent_bytes: Option<f64>,
    #[serde(deserialize_with = "number::maybe")]
    segs_in: Option<f64>,
    #[serde(deserialize_with = "number::maybe")]
    data_segs_in: Option<f64>,
    #[serde(rename = "RcvOooPack", deserialize_with = "number::maybe")]
    rcv_ooo_pack: Option<f64>,
    #[serde(deserialize_with = "number::maybe")]
    busy_time: Option<f64>,
    #[serde(rename = "RWndLimited", deserialize_with = "number::maybe")]
    rwnd_limited: Option<f64>,
    #[serde(deserialize_with = "number::maybe")]
    snd_buf_limited: Option<f64>,
    #[serde(rename = "DeliveredCE", deserialize_with = "number::maybe")]
    delivered_ce: Option<f64>,
    #[serde(rename = "DSackDups", deserialize_with = "number::maybe")]
    dsack_dups: Option<f64>,
    #[serde(deserialize_with = "number::maybe")]
    reord_seen: Option<f64>,
    #[serde(rename = "WScale", deserialize_with = "number::maybe")]
    wscale: Option<f64>,
}

impl TcpInfo {
    /// Seconds since the test began.
    fn seconds(&self) -> f64 {
        self.elapsed_time.unwrap_or(0.0) / 1e6
    }

    /// Whether the kernel has the sender's timers (Linux 4.10).
    pub(crate) fn has_timers(&self) -> bool {
        self.busy_time.is_some()
    }

    /// The sending side.
    pub(crate) fn sender(&self) -> Sample {
        let mss = count(self.snd_mss).unwrap_or(1).clamp(1, 65_535);
        let segments = |number| count(number).map(|count| count.saturating_mul(mss));
        let of = |number| segments(number).unwrap_or(0);
        let us = |number| count32(number).unwrap_or(0);
        let rate = |number: Option<f64>| count(number.map(|bytes| bytes * 8.0));
        let acked = count(self.bytes_acked).unwrap_or(0);
        let unsent = count(self.notsent_bytes).unwrap_or(0);
        let unacked = of(self.unacked);
        let threshold = count(self.snd_ss_thresh).filter(|segments| *segments < UNSET_SEGMENTS);
        Sample {
            t_s: self.seconds(),
            written_bytes: acked.saturating_add(unacked).saturating_add(unsent),
            acked_bytes: acked,
            delivered_bytes: acked.saturating_add(of(self.sacked)),
            mss_bytes: mss as u32,
            cwnd_bytes: of(self.snd_cwnd),
            ssthresh_bytes: threshold.map(|segments| segments.saturating_mul(mss)),
            in_flight_bytes: unacked
                .saturating_add(of(self.retrans))
                .saturating_sub(of(self.sacked).saturating_add(of(self.lost))),
            unsent_bytes: unsent,
            peer_window_bytes: count(self.snd_wnd).filter(|window| *window > 0),
            rtt_us: us(self.rtt),
            rttvar_us: us(self.rtt_var),
            min_rtt_us: count32(self.min_rtt).filter(|us| *us > 0),
            delivery_rate_bps: rate(self.delivery_rate).unwrap_or(0),
            delivery_app_limited: count(self.app_limited).unwrap_or(0) & 1 == 1,
            pacing_rate_bps: rate(self.pacing_rate).filter(|rate| *rate > 0),
            retransmits: count(self.total_retrans).unwrap_or(0),
            busy_us: count(self.busy_time).unwrap_or(0),
            rwnd_limited_us: count(self.rwnd_limited).unwrap_or(0),
            sndbuf_limited_us: count(self.snd_buf_limited).unwrap_or(0),
            ce_delivered: count32(self.delivered_ce),
            dsack_duplicates: count32(self.dsack_dups),
            reorderings: count32(self.reord_seen),
            acks: count32(self.segs_in),
            // Four bits each: that of the peer's windows, and of the own.
            peer_window_scale: count(self.wscale).map(|both| (both & 15) as u8),
            ..Sample::default()
        }
    }

    /// The receiving side.
    pub(crate) fn receiver(&self) -> ReceiverSample {
        ReceiverSample {
            t_s: self.seconds(),
            received_bytes: count(self.bytes_received).unwrap_or(0),
            min_rtt_us: count32(self.min_rtt).filter(|us| *us > 0),
            rtt_us: count32(self.rcv_rtt).filter(|us| *us > 0),
            segments: count32(self.data_segs_in),
            out_of_order: count32(self.rcv_ooo_pack),
            window_scale: count(self.wscale).map(|both| (both >> 4 & 15) as u8),
            ..ReceiverSample::default()
        }
    }
}
