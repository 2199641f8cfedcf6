//! The evidence of the steady part, gathered once from the samples.

mod samples;

pub(crate) use samples::{arrived, min_rtt};

use crate::{curve::Curve, facts::Facts, steady};
use record::{Measurement, Steady};
use samples::{Window, average, goodput, length, peak_rtt, retransmits};
use units::{BitRate, ByteCount, Rtt};

/// The backlog in segments below which Veno takes a loss for a random one (Fu and Liew,
/// "TCP Veno", IEEE JSAC 21(2), 2003).
const IDLE_SEGMENTS: f64 = 3.0;

/// A slow start threshold from which on there was no reduction yet: the kernel's initial
/// one is 2^31 segments, and no window exceeds 2^30 bytes.
const UNSET: u64 = 1 << 31;

/// Facts about the steady part; an unavailable one is `None`.
#[derive(Debug, Clone)]
pub(crate) struct Evidence {
    pub(crate) steady: Steady,
    /// Payload received over the steady part.
    pub(crate) goodput: BitRate,
    /// Payload received over the whole test.
    pub(crate) average: BitRate,
    pub(crate) streams: usize,
    pub(crate) min_rtt: Option<Rtt>,
    pub(crate) loaded_rtt: Option<Rtt>,
    /// The mean over bytes: bytes in flight over it are the goodput (Little's law), also where bursts
    /// queue for a part of the time, which the median does not show.
    pub(crate) mean_rtt: Option<Rtt>,
    pub(crate) mss: Option<ByteCount>,
    /// Each stream's typical receive window, from the sender's samples or else from the
    /// receiver's.
    pub(crate) windows: Option<Vec<ByteCount>>,
    /// How far the advertised window closed: its 10th percentile over its maximum.
    pub(crate) window_floor: Option<f64>,
    /// Bytes in the send buffers, in flight or unsent: the mean over time, summed over streams.
    pub(crate) held: Option<ByteCount>,
    /// Congestion windows, summed over streams.
    pub(crate) cwnd: Option<ByteCount>,
    /// Delivery rate while not application-limited, summed over streams.
    pub(crate) delivery: Option<BitRate>,
    /// Pacing rates, summed over streams.
    pub(crate) pacing: Option<BitRate>,
    /// Retransmitted segments over the whole test.
    pub(crate) retransmits: u64,
    /// The maximum smoothed RTT of the whole test.
    pub(crate) peak_rtt: Option<Rtt>,
    /// Retransmitted segments within the part.
    pub(crate) losses: f64,
    /// Bytes in flight: the mean over time, summed over streams.
    pub(crate) in_flight: Option<ByteCount>,
    /// The same over the segments sent in it: the loss ratio.
    pub(crate) loss: Option<f64>,
    /// Retransmitted segments per sampling interval with any.
    pub(crate) burst: f64,
    /// Segments of this flow in the queue at a loss: the median over intervals with
    /// retransmissions of `cwnd x (1 - minimum RTT / RTT)` (Vegas; Veno, Fu and Liew 2003).
    pub(crate) backlog_at_losses: Option<f64>,
    /// Slow start threshold: each stream's congestion window after its latest reduction,
    /// as a mean over streams.
    pub(crate) ssthresh: Option<ByteCount>,
    /// Share of the known path's packets that were marked CE.
    pub(crate) marked: Option<f64>,
    /// The first and the last quarter of the steady part.
    pub(crate) ends: Option<[Level; 2]>,
}

/// Rate and RTT of a part of the test.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Level {
    pub(crate) goodput: BitRate,
    /// The minimum smoothed RTT.
    pub(crate) rtt: Option<Rtt>,
}

impl Evidence {
    /// The evidence of the steady part.
    pub(crate) fn gather(m: &Measurement) -> Self {
        Evidence::steady(&Facts::of(m), &arrived(m))
    }

    /// The same, with the bytes of each stream that arrived.
    pub(crate) fn steady(facts: &Facts<'_>, arrived: &[Curve]) -> Self {
        let (m, min_rtt) = (facts.m, facts.min_rtt.map(Rtt::secs_f64));
        let part = steady::find(arrived, m.spec.duration_s(), min_rtt);
        let (from, to) = part.map_or((0.0, length(m)), |part| (part.from, part.to));
        Evidence::over(facts, from, to)
    }

    /// The evidence of any part of the test.
    pub(crate) fn over(facts: &Facts<'_>, from: f64, to: f64) -> Self {
        let (m, min_rtt) = (facts.m, facts.min_rtt);
        let average = average(m);
        let window = Window { m, from, to };
        Evidence {
            steady: Steady { from_s: from, to_s: to },
            goodput: goodput(m, from, to).unwrap_or(average),
            average,
            streams: m.streams.len(),
            min_rtt,
            loaded_rtt: window
                .median(|s| (s.rtt_us > 0).then(|| f64::from(s.rtt_us)))
                .map(|us| Rtt::from_micros(us as u64)),
            mean_rtt: window.mean_rtt(),
            mss: window
                .median(|s| (s.mss_bytes > 0).then(|| f64::from(s.mss_bytes)))
                .map(ByteCount::from_f64),
            windows: window.windows(),
            window_floor: window.window_floor(),
            // The mean: a full buffer drains and fills by whole writes.
            held: window
                .mean(|s| {
                    let written = s.written_bytes.saturating_sub(s.acked_bytes);
                    // Writes are counted when they return, later than their bytes are sent.
                    Some(written.max(s.in_flight_bytes.saturating_add(s.unsent_bytes)) as f64)
                })
                .map(|each| ByteCount::from_f64(each * m.streams.len() as f64)),
            cwnd: window.sum(|s| Some(s.cwnd_bytes)).map(ByteCount::from_f64),
            delivery: window
                .sum(|s| (!s.delivery_app_limited).then_some(s.delivery_rate_bps))
                .map(BitRate::from_bps_f64),
            pacing: window.sum(|s| s.pacing_rate_bps).map(BitRate::from_bps_f64),
            retransmits: retransmits(m),
            peak_rtt: peak_rtt(m),
            losses: window.growth(|s| s.retransmits),
            in_flight: window
                .mean(|s| Some(s.in_flight_bytes as f64))
                .map(|each| ByteCount::from_f64(each * m.streams.len() as f64)),
            loss: window.loss(),
            burst: window.burst(),
            backlog_at_losses: min_rtt.and_then(|least| window.backlog_at_losses(least)),
            ssthresh: window
                .sum(|s| s.ssthresh_bytes.filter(|bytes| *bytes < UNSET))
                .map(|all| ByteCount::from_f64(all / m.streams.len().max(1) as f64)),
            marked: m.path.as_ref().map(|path| path.achieved).and_then(|achieved| {
                (achieved.marked > 0).then(|| units::share(achieved.marked, achieved.packets))
            }),
            ends: window.ends(),
        }
    }

    /// The queueing delay: the RTT under load less the minimum RTT.
    pub(crate) fn queueing(&self) -> Option<Rtt> {
        let (least, loaded) = (self.min_rtt?, self.loaded_rtt?);
        Some(Rtt::from_nanos(loaded.nanos().saturating_sub(least.nanos())))
    }

    /// The mean RTT, else the minimum: bytes in flight over it are the goodput.
    pub(crate) fn rtt(&self) -> Option<Rtt> {
        self.mean_rtt.or(self.loaded_rtt).or(self.min_rtt)
    }

    /// Whether there is a standing queue: a queueing delay above 15 % of the minimum
    /// RTT and above the kernel's own jitter (0.2 ms), or above 5 ms on any path.
    pub(crate) fn has_standing_queue(&self) -> bool {
        self.min_rtt.zip(self.queueing()).is_some_and(|(least, queueing)| {
            let (least, queueing) = (least.millis_f64(), queueing.millis_f64());
            queueing > 5.0 || (queueing > 0.15 * least && queueing > 0.2)
        })
    }

    /// Whether losses happen while the bottleneck's queue is idle: fewer than three
    /// segments of the flow are queued then (Veno's threshold).
    pub(crate) fn loses_at_idle_queue(&self) -> bool {
        self.backlog_at_losses.is_some_and(|backlog| backlog < IDLE_SEGMENTS)
    }

    /// The streams' receive windows, summed.
    pub(crate) fn window_sum(&self) -> Option<ByteCount> {
        let windows = self.windows.as_ref()?;
        Some(windows.iter().fold(ByteCount::ZERO, |sum, window| sum.plus(*window)))
    }

    /// One stream's share of the goodput.
    pub(crate) fn per_stream(&self) -> BitRate {
        self.goodput.scaled(1.0 / self.streams.max(1) as f64)
    }
}
