//! What a sampler notes at a moment, and at the end.

use super::{Captured, Sampler, mss, path_rtt};
use crate::connection::Connection;
use crate::ecn::EcnMode;
use record::{ReceiverSample, Sample};

/// Outstanding segments that are followed of all streams that are sampled together, 56 bytes each.
const OUTSTANDING: usize = 1 << 21;

impl Sampler {
    /// One of so many samplers that share the memory for outstanding segments, 120 MB.
    #[must_use]
    pub fn sharing(mut self, samplers: usize) -> Self {
        let most = OUTSTANDING / 2 / samplers.max(1);
        self.board.limit(most);
        self.passed.limit(most);
        self.order.limit(most);
        self
    }

    /// The rate by which Linux sizes bursts: twice a window per RTT in slow start, 1.2 times
    /// later (`tcp_update_pacing_rate`); BBR has one of its own.
    fn pacing_rate(&self, cwnd: u64) -> Option<u64> {
        let grows = self.slow_start.threshold().is_none_or(|threshold| 2 * cwnd < threshold);
        let factor = if grows { 2.0 } else { 1.2 };
        let rtt_s = self.board.smoothed_rtt_ns as f64 / 1e9;
        (rtt_s > 0.0).then(|| (factor * cwnd as f64 * 8.0 / rtt_s) as u64)
    }

    /// How much longer ACKs take than the fastest: as they come, or what is left of the RTT
    /// where it is the data that comes from afar.
    fn ack_delay_ns(&self) -> Option<u64> {
        let far = self.far_delay_ns? as u64;
        if self.at_sender() {
            return Some(far);
        }
        let queueing = self.board.smoothed_rtt_ns.checked_sub(self.board.min_rtt_ns)?;
        Some(queueing.saturating_sub(far))
    }

    /// Segments delivered with CE. Classic ECN repeats ECE on every ACK until CWR; a mark that
    /// passed this point arrives, too.
    fn ce_delivered(&self, connection: &Connection) -> u32 {
        match connection.ecn_mode() {
            EcnMode::Off => 0,
            EcnMode::Classic | EcnMode::Accurate if self.at_sender() => self.echoed_marks,
            EcnMode::Accurate => self.passed_marks.max(self.echoed_marks),
            EcnMode::Classic => self.passed_marks,
            EcnMode::Unknown if self.passed_marks > 0 => self.passed_marks,
            EcnMode::Unknown => self.echoed_marks,
        }
    }

    pub(super) fn sample(&mut self, connection: &Connection, at_ns: u64, mss: u32) {
        let (_, acks) = connection.pair(self.direction);
        let counts = connection.retransmissions(self.direction);
        let t_s = at_ns as f64 / 1e9;
        let cwnd = match self.round_most.max(self.last_most) {
            most if self.last_most > 0 => most,
            // The first round trip (RFC 6928).
            most => most.max(u64::from(mss) * 10),
        };
        let app_limited = self.app_limited(u64::from(mss));
        let rtt_us = |ns: u64| u32::try_from(ns / 1000).unwrap_or(u32::MAX);
        let board = &self.board;
        let passed = if self.at_sender() { board } else { &self.passed };
        self.sender.push(Sample {
            t_s,
            written_bytes: board.nxt(),
            acked_bytes: passed.una(),
            delivered_bytes: passed.delivered(),
            mss_bytes: mss,
            cwnd_bytes: cwnd,
            ssthresh_bytes: self.slow_start.threshold().map(|threshold| threshold.min(cwnd)),
            in_flight_bytes: board.in_flight(),
            unsent_bytes: if app_limited { 0 } else { u64::from(mss) },
            peer_window_bytes: self.window,
            rtt_us: rtt_us(board.smoothed_rtt_ns),
            rttvar_us: rtt_us(board.rtt_deviation_ns),
            min_rtt_us: (board.min_rtt_ns > 0).then(|| rtt_us(board.min_rtt_ns)),
            delivery_rate_bps: board.delivery_rate_bps,
            pacing_rate_bps: self.pacing_rate(cwnd),
            delivery_app_limited: app_limited,
            retransmits: board.resent_segments,
            busy_us: self.busy_ns / 1000,
            rwnd_limited_us: self.window_limited_ns / 1000,
            dsack_duplicates: Some(counts.spurious_dsack.saturating_add(counts.duplicated)),
            reorderings: Some(board.reorderings),
            ce_delivered: Some(self.ce_delivered(connection)),
            acks: Some(self.acks),
            peer_window_scale: acks.shift(),
            ack_delay_us: self.ack_delay_ns().map(rtt_us),
            ..Sample::default()
        });
        // The window is what is free of the receiver's buffer: it was all of it once.
        let unread = self.largest_window.saturating_sub(self.window.unwrap_or(0));
        self.receiver.push(ReceiverSample {
            t_s,
            received_bytes: match self.captured {
                Captured::Data => passed.nxt(),
                Captured::Both | Captured::Acks => passed.una().saturating_sub(unread),
            },
            window_bytes: acks.window_bytes(),
            min_rtt_us: path_rtt(connection, self.direction).map(rtt_us),
            rtt_us: (self.timestamp_rtt_ns > 0).then(|| rtt_us(self.timestamp_rtt_ns)),
            segments: Some(self.segments),
            out_of_order: Some(self.out_of_order),
            window_scale: acks.shift(),
            ..ReceiverSample::default()
        });
    }

    /// Takes a last sample, at the connection's end, and marks where the send buffer was the
    /// limit: that shows over many round trips only.
    pub(crate) fn finish(&mut self, connection: &Connection) {
        let mss = mss(connection, self.direction);
        let start = self.start_ns.unwrap_or(0);
        let last = self.sender.last().map(|sample| sample.t_s);
        let at_ns = self.last_ns.saturating_sub(start);
        if last.is_some_and(|t_s| t_s < at_ns as f64 / 1e9) {
            self.sample(connection, at_ns, mss);
        }
        let is_idle = self.is_mostly_idle();
        let spans = if is_idle { Vec::new() } else { self.rounds.buffer_limited(mss) };
        let (mut spans, mut before_us) = (spans.into_iter().peekable(), 0);
        for sample in &mut self.sender {
            let now = start + (sample.t_s * 1e9) as u64;
            while let Some((from, to)) = spans.next_if(|(_, to)| *to <= now) {
                before_us += (to - from) / 1000;
            }
            let under_way = spans.peek().filter(|(from, _)| *from < now);
            let inside_us = under_way.map_or(0, |(from, _)| (now - from) / 1000);
            sample.sndbuf_limited_us = before_us + inside_us;
            if inside_us > 0 {
                // The buffer is all in flight.
                (sample.unsent_bytes, sample.delivery_app_limited) = (0, true);
            }
        }
        if is_idle {
            self.begin_with_life(start);
        }
    }

    /// Shifts the samples, so that they begin with the connection and not with the transfer: what
    /// the application waited before is part of it.
    fn begin_with_life(&mut self, start_ns: u64) {
        let Some((_, born_ns)) = self.activity() else { return };
        let before_s = start_ns.saturating_sub(born_ns) as f64 / 1e9;
        if before_s <= 0.0 {
            return;
        }
        self.sender.iter_mut().for_each(|sample| sample.t_s += before_s);
        self.receiver.iter_mut().for_each(|sample| sample.t_s += before_s);
        if let Some(first) = self.sender.first().copied() {
            self.sender.insert(0, Sample { t_s: 0.0, in_flight_bytes: 0, ..first });
        }
        if let Some(first) = self.receiver.first().copied() {
            self.receiver.insert(0, ReceiverSample { t_s: 0.0, ..first });
        }
    }
}
