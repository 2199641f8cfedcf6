//! The state of a sender for reports: what Linux's `struct tcp_info` has.

use super::{Reductions, Sender};
use crate::limits::{Limit, LimitTimes};
use control::{CongestionControl, Phase};
use units::{BitRate, Nanos, Rtt};

/// The state of a sender; packets are of [`SenderInfo::mss`] bytes.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct SenderInfo {
    /// Payload of a packet, bytes.
    pub mss: u32,
    /// Packets written by the application.
    pub written: u64,
    /// Packets acknowledged in order.
    pub acked: u64,
    /// Packets sacked beyond them.
    pub sacked: u64,
    /// Packets sent for the first time.
    pub sent: u64,
    /// Packets in flight: neither delivered nor known lost.
    pub in_flight: u64,
    /// Congestion window, packets.
    pub cwnd: u64,
    /// Slow-start threshold, packets.
    pub ssthresh: Option<u64>,
    /// The receiver's window, packets from `acked` on.
    pub peer_window: u64,
    /// Smoothed RTT.
    pub srtt: Option<Rtt>,
    /// Its mean deviation.
    pub rtt_deviation: Rtt,
    /// Minimum RTT.
    pub min_rtt: Option<Rtt>,
    /// Delivery rate; `None` before the first sample.
    pub delivery_rate: Option<BitRate>,
    /// That sample was application-limited.
    pub delivery_app_limited: bool,
    /// The rate by which bursts are sized, and paced where they are.
    pub pacing_rate: Option<BitRate>,
    /// Packets retransmitted.
    pub retransmits: u64,
    /// What the receiver has reported.
    pub feedback: Feedback,
    /// How often the window was reduced.
    pub reductions: Reductions,
    /// What limits it now.
    pub limit: Limit,
    /// Time in each state.
    pub times: LimitTimes,
    /// Whether a recovery is under way.
    pub phase: Phase,
}

/// Counters of what a receiver has reported, from the connection's start.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Feedback {
    /// Acknowledgements received.
    pub acknowledgements: u64,
    /// Packets that arrived twice (D-SACK, RFC 2883).
    pub duplicates: u64,
    /// Acknowledgements that showed reordering.
    pub reorderings: u64,
    /// Packets marked with congestion experienced.
    pub marked: u64,
}

impl<C: CongestionControl> Sender<C> {
    /// Its state.
    #[must_use]
    pub fn info(&self, now: Nanos) -> SenderInfo {
        let board = &self.board;
        let rate = self.rate.reported();
        SenderInfo {
            mss: self.config.mss,
            written: self.buffer.written(),
            acked: board.una(),
            sacked: board.sacked(),
            sent: board.nxt(),
            in_flight: board.in_flight(),
            cwnd: self.cwnd(),
            ssthresh: self.control.ssthresh(),
            peer_window: self.edge - board.una(),
            srtt: self.rtt.smoothed(),
            rtt_deviation: Rtt::from_nanos(self.rtt.deviation_ns()),
            min_rtt: self.rtt.min_ns().map(Rtt::from_nanos),
            delivery_rate: rate.map(|sample| {
                let bits = u128::from(sample.delivered * self.mss * 8) * 1_000_000_000;
                let bps = bits / u128::from(sample.interval_ns.max(1));
                BitRate::from_bps(u64::try_from(bps).unwrap_or(u64::MAX))
            }),
            delivery_app_limited: rate.is_some_and(|sample| sample.app_limited),
            pacing_rate: self.pacing_rate(),
            feedback: Feedback { marked: self.marked, ..self.feedback },
            retransmits: self.retransmits,
            reductions: self.reductions,
            limit: self.limits.limit(),
            times: self.limits.times(now),
            phase: self.recovery.phase(),
        }
    }
}
