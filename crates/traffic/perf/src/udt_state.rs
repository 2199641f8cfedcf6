//! The state of a UDT connection, as its thread last saw it.

use record::Sample;
use std::time::Duration;
use udt::{Endpoint, SendLimit, Statistics};
use units::Rtt;

/// State of one connection.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct UdtState {
    /// `None` before the handshake.
    statistics: Option<Statistics>,
    payload_bytes: u64,
    min_rtt: Option<Rtt>,
    /// Bytes written and not yet sent.
    unsent_bytes: u64,
    /// Time with data to send, and with the receiver's or our buffer as its limit.
    busy: Duration,
    window_limited: Duration,
    buffer_limited: Duration,
    /// All that was written is acknowledged.
    flushed: bool,
}

impl UdtState {
    /// Updates the state; `passed` is the time since the last update.
    pub(crate) fn update(
        &mut self,
        connection: &impl Endpoint,
        now: units::Nanos,
        passed: Duration,
    ) {
        if self.statistics.is_none() && !connection.is_established() {
            return;
        }
        let statistics = connection.statistics(now);
        // What limited the connection until now, as it was at the last update.
        match self.statistics.and_then(|before| before.limit) {
            Some(SendLimit::Application) => {}
            Some(SendLimit::ReceiveWindow) => {
                self.busy += passed;
                self.window_limited += passed;
            }
            Some(SendLimit::SendBuffer) => {
                self.busy += passed;
                self.buffer_limited += passed;
            }
            _ => self.busy += passed,
        }
        self.payload_bytes = connection.payload_bytes() as u64;
        self.unsent_bytes = statistics.unsent * self.payload_bytes;
        self.min_rtt = match (self.min_rtt, statistics.rtt) {
            (Some(least), Some(rtt)) => Some(least.min(rtt)),
            (least, rtt) => least.or(rtt),
        };
        self.flushed = connection.is_flushed();
        self.statistics = Some(statistics);
    }

    /// Bytes were written: until the next update they count as not acknowledged.
    pub(crate) const fn wrote(&mut self) {
        self.flushed = false;
    }

    /// Whether all that was written is acknowledged.
    pub(crate) const fn is_flushed(&self) -> bool {
        self.flushed
    }

    pub(crate) const fn statistics(&self) -> Option<&Statistics> {
        self.statistics.as_ref()
    }

    pub(crate) const fn payload_bytes(&self) -> u64 {
        self.payload_bytes
    }

    /// Bytes acknowledged.
    pub(crate) fn acknowledged_bytes(&self) -> u64 {
        self.statistics.map_or(0, |statistics| statistics.acknowledged * self.payload_bytes)
    }

    /// A sample of the sending side; `None` before the handshake.
    pub(crate) fn sample(&self, t_s: f64, written_bytes: u64) -> Option<Sample> {
        let statistics = self.statistics.as_ref()?;
        let bytes = |packets: u64| packets * self.payload_bytes;
        let micros = |rtt: Rtt| u32::try_from(rtt.nanos() / 1_000).unwrap_or(u32::MAX);
        let bps = |pps: f64| (pps * self.payload_bytes as f64 * 8.0) as u64;
        let time_us = |time: Duration| u64::try_from(time.as_micros()).unwrap_or(u64::MAX);
        // The last packet may be short.
        let acked_bytes = bytes(statistics.acknowledged).min(written_bytes);
        Some(Sample {
            t_s,
            written_bytes,
            acked_bytes,
            delivered_bytes: acked_bytes,
            mss_bytes: u32::try_from(self.payload_bytes).unwrap_or(u32::MAX),
            cwnd_bytes: bytes(statistics.cwnd),
            in_flight_bytes: bytes(statistics.in_flight),
            unsent_bytes: self.unsent_bytes,
            peer_window_bytes: Some(bytes(statistics.flow_window)),
            rtt_us: statistics.rtt.map_or(0, micros),
            rttvar_us: micros(statistics.rtt_variance),
            min_rtt_us: self.min_rtt.map(micros),
            delivery_rate_bps: delivery_pps(statistics).map_or(0, bps),
            pacing_rate_bps: Some(bps(1e9 / statistics.period_ns)),
            retransmits: statistics.sent.retransmitted,
            busy_us: time_us(self.busy),
            rwnd_limited_us: time_us(self.window_limited),
            sndbuf_limited_us: time_us(self.buffer_limited),
            acks: u32::try_from(statistics.sent.acks + statistics.sent.light_acks).ok(),
            light_acks: u32::try_from(statistics.sent.light_acks).ok(),
            naks: statistics.sent.naks,
            capacity_bps: statistics.reported.capacity_pps.map(bps),
            ..Sample::default()
        })
    }
}

/// Packets a second that arrive, by the receiver's report or by acknowledgements.
fn delivery_pps(statistics: &Statistics) -> Option<f64> {
    let sampled = statistics.delivery.filter(|sample| sample.interval_ns > 0);
    let sampled = sampled.map(|sample| sample.delivered as f64 * 1e9 / sample.interval_ns as f64);
    statistics.reported.arrival_pps.or(sampled)
}
