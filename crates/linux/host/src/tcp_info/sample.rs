//! Conversion of `TCP_INFO` to the samples of a measurement.

use super::{MemInfo, TcpInfo};
use record::{ReceiverSample, Sample};

/// A sample from the sender's `TCP_INFO`. `written`: bytes written by the program,
/// including the cookie, as the kernel counts it.
#[must_use]
pub fn sender_sample(t_s: f64, written: u64, info: &TcpInfo) -> Sample {
    let mss = u64::from(info.snd_mss);
    let acked = info.bytes_acked.unwrap_or(0);
    Sample {
        t_s,
        // A blocked write is counted when it returns, by when much of it may have been
        // sent already. The SYN counts as one acknowledged byte.
        written_bytes: written.max(acked.saturating_sub(1)),
        acked_bytes: acked,
        delivered_bytes: info.delivered_bytes(),
        mss_bytes: info.snd_mss,
        cwnd_bytes: u64::from(info.snd_cwnd) * mss,
        ssthresh_bytes: info.snd_ssthresh.map(|segments| u64::from(segments) * mss),
        in_flight_bytes: u64::from(info.in_flight_segments()) * mss,
        unsent_bytes: u64::from(info.notsent_bytes.unwrap_or(0)),
        peer_window_bytes: info.snd_wnd.map(u64::from),
        rtt_us: info.rtt_us,
        rttvar_us: info.rttvar_us,
        min_rtt_us: info.min_rtt_us,
        delivery_rate_bps: info.delivery_rate.unwrap_or(0).saturating_mul(8),
        delivery_app_limited: info.delivery_rate_app_limited,
        pacing_rate_bps: info.pacing_rate.map(|rate| rate.saturating_mul(8)),
        max_pacing_rate_bps: info.max_pacing_rate.map(|rate| rate.saturating_mul(8)),
        retransmits: u64::from(info.total_retrans),
        busy_us: info.busy_us.unwrap_or(0),
        rwnd_limited_us: info.rwnd_limited_us.unwrap_or(0),
        sndbuf_limited_us: info.sndbuf_limited_us.unwrap_or(0),
        ce_delivered: info.delivered_ce,
        dsack_duplicates: info.dsack_dups,
        reorderings: info.reord_seen,
        acks: info.segs_in,
        peer_window_scale: Some(info.snd_wscale),
        naks: None,
        capacity_bps: None,
        light_acks: None,
        source_bytes: None,
        ack_delay_us: None,
        cpu_us: None,
    }
}

/// A sample from the receiver's `TCP_INFO`.
#[must_use]
pub fn receiver_sample(
    t_s: f64,
    received: u64,
    info: Option<&TcpInfo>,
    memory: Option<&MemInfo>,
) -> ReceiverSample {
    ReceiverSample {
        t_s,
        received_bytes: received,
        window_bytes: info.and_then(|info| info.rcv_wnd).map(u64::from),
        buffer_bytes: memory.map(|memory| u64::from(memory.receive_buffer)),
        // u32::MAX: no measurement yet.
        min_rtt_us: info.and_then(|info| info.min_rtt_us).filter(|us| *us < u32::MAX),
        rtt_us: info.map(|info| info.rcv_rtt_us).filter(|us| *us > 0),
        unread_bytes: info
            .and_then(|info| info.bytes_received)
            .map(|arrived| arrived.saturating_sub(received)),
        segments: info.and_then(|info| info.data_segs_in),
        out_of_order: info.and_then(|info| info.rcv_ooopack),
        window_scale: info.map(|info| info.rcv_wscale),
        cpu_us: None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn segments_become_bytes_and_bytes_become_bits() {
        let info = TcpInfo {
            snd_mss: 1000,
            snd_cwnd: 10,
            unacked: 9,
            sacked: 3,
            lost: 2,
            retrans: 1,
            delivery_rate: Some(125),
            bytes_acked: Some(7),
            ..TcpInfo::default()
        };
        let sample = sender_sample(1.0, 5, &info);
        assert_eq!((sample.cwnd_bytes, sample.in_flight_bytes), (10_000, 5_000));
        assert_eq!((sample.delivery_rate_bps, sample.ssthresh_bytes), (1000, None));
        assert_eq!(sample.delivered_bytes, 3007, "what is missing lies before three that came");
    }
}
