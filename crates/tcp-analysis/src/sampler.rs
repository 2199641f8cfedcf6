//! Samples of one direction of a connection, as its vantage point allows.
//!
//! Each field of [`Sample`] that a capture shows is what the sender's kernel would report;
//! the others say so:
//!
//! | field | from the capture at the sender |
//! |---|---|
//! | `acked`, `delivered`, `in_flight` | sequence numbers, ACKs and SACK blocks |
//! | `cwnd` | estimate: the most bytes in flight of this round trip and the one before |
//! | `peer_window`, its scale | the last window and the SYN's option |
//! | `rtt`, `min_rtt`, `delivery_rate` | segments and the ACKs that end at them; a round trip's ACKs |
//! | `retransmits`, `dsack_duplicates`, `reorderings` | as classified |
//! | `busy`, `rwnd_limited` | time with data in flight; with less than a segment of window left |
//! | `unsent`, `app_limited` | a short last segment, or none in flight: nothing more to send |
//! | `sndbuf_limited`, `ssthresh`, pacing | not visible: 0, `None` |
//!
//! At the receiver, [`ReceiverSample`] has the bytes it acknowledged, its window, segments and
//! how many came out of order, and the RTT by timestamps.

use crate::connection::Connection;
use crate::sequence::after;
use crate::wireshark::PacketAnalysis;
use capture::dissect::{Direction, TcpFlags, TcpSegment};
use record::{ReceiverSample, Sample};

/// Samples of a stream at most; a longer one is sampled less often.
const MOST_SAMPLES: u64 = 4000;

/// The least interval between two, in ns.
const LEAST_INTERVAL_NS: u64 = 20_000_000;

/// A sequence number that does not wrap.
#[derive(Debug, Clone, Copy, Default)]
struct Position {
    last: Option<u32>,
    total: u64,
}

impl Position {
    fn advance(&mut self, number: u32) {
        match self.last {
            None => self.last = Some(number),
            Some(last) if after(number, last) => {
                self.total += u64::from(number.wrapping_sub(last));
                self.last = Some(number);
            }
            Some(_) => {}
        }
    }
}

/// Takes samples of the data of one direction.
#[derive(Debug)]
pub struct Sampler {
    direction: Direction,
    interval_ns: u64,
    start_ns: Option<u64>,
    next_ns: u64,
    last_ns: u64,
    sent: Position,
    acked: Position,
    round_end: u64,
    round_ns: u64,
    round_acked: u64,
    round_most: u64,
    last_most: u64,
    delivery_rate_bps: u64,
    in_flight: u64,
    busy_ns: u64,
    window_limited_ns: u64,
    short_segment: bool,
    acks: u32,
    segments: u32,
    out_of_order: u32,
    marked: u32,
    timestamp_rtt_ns: u64,
    sender: Vec<Sample>,
    receiver: Vec<ReceiverSample>,
}

impl Sampler {
    /// For the data of `direction` over `duration_ns`.
    #[must_use]
    pub fn new(direction: Direction, duration_ns: u64) -> Self {
        Sampler {
            direction,
            interval_ns: (duration_ns / MOST_SAMPLES).max(LEAST_INTERVAL_NS),
            start_ns: None,
            next_ns: 0,
            last_ns: 0,
            sent: Position::default(),
            acked: Position::default(),
            round_end: 0,
            round_ns: 0,
            round_acked: 0,
            round_most: 0,
            last_most: 0,
            delivery_rate_bps: 0,
            in_flight: 0,
            busy_ns: 0,
            window_limited_ns: 0,
            short_segment: false,
            acks: 0,
            segments: 0,
            out_of_order: 0,
            marked: 0,
            timestamp_rtt_ns: 0,
            sender: Vec::new(),
            receiver: Vec::new(),
        }
    }

    /// Follows a packet of the connection after its analysis.
    pub fn add(
        &mut self,
        connection: &Connection,
        time_ns: u64,
        segment: &TcpSegment<'_>,
        found: &PacketAnalysis,
    ) {
        let start = *self.start_ns.get_or_insert(time_ns);
        // Times that run backwards count as no time.
        let now = time_ns.max(self.last_ns).max(start);
        self.pass_time(connection, now);
        let (data, acks) = connection.pair(self.direction);
        if segment.direction == self.direction {
            self.sent.advance(data.next_seq);
            if segment.payload_len > 0 {
                self.segments = self.segments.saturating_add(1);
                self.short_segment = segment.payload_len < mss(connection, self.direction);
                if data.recovery.as_ref().is_some_and(|recovery| recovery.has_holes()) {
                    self.out_of_order = self.out_of_order.saturating_add(1);
                }
            }
            if segment.ecn == 3 {
                self.marked = self.marked.saturating_add(1);
            }
            if let Some(rtt) = found.timestamp_rtt_ns {
                self.timestamp_rtt_ns = rtt;
            }
        } else {
            if segment.flags.has(TcpFlags::ACK) {
                self.acked.advance(segment.ack);
            }
            self.acks = self.acks.saturating_add(1);
        }
        let outstanding = self.sent.total.saturating_sub(self.acked.total);
        self.in_flight = outstanding.saturating_sub(u64::from(acks.sacked_bytes));
        self.round_most = self.round_most.max(self.in_flight);
        if self.acked.total >= self.round_end && self.sent.total > self.round_end {
            self.end_round(now);
        }
        if now >= self.next_ns {
            self.next_ns = now + self.interval_ns;
            self.sample(connection, now - start);
        }
    }

    /// Counts the time since the last packet for what limited it.
    fn pass_time(&mut self, connection: &Connection, now: u64) {
        let passed = if self.last_ns == 0 { 0 } else { now - self.last_ns };
        self.last_ns = now;
        if self.in_flight == 0 {
            return;
        }
        self.busy_ns += passed;
        let (_, acks) = connection.pair(self.direction);
        let outstanding = self.sent.total.saturating_sub(self.acked.total);
        let mss = u64::from(mss(connection, self.direction));
        if acks.window_bytes().is_some_and(|window| window < outstanding + mss) {
            self.window_limited_ns += passed;
        }
    }

    /// Everything sent before the round's start is acknowledged.
    fn end_round(&mut self, now: u64) {
        let (bytes, ns) = (self.acked.total - self.round_acked, now - self.round_ns);
        if self.round_ns > 0 && ns > 0 {
            let rate = u128::from(bytes) * 8_000_000_000 / u128::from(ns);
            self.delivery_rate_bps = u64::try_from(rate).unwrap_or(u64::MAX);
        }
        (self.round_end, self.round_acked, self.round_ns) =
            (self.sent.total, self.acked.total, now);
        (self.last_most, self.round_most) = (self.round_most, self.in_flight);
    }

    fn sample(&mut self, connection: &Connection, at_ns: u64) {
        let (data, acks) = connection.pair(self.direction);
        let counts = connection.retransmissions(self.direction);
        let t_s = at_ns as f64 / 1e9;
        let mss = mss(connection, self.direction);
        let cwnd = self.round_most.max(self.last_most);
        let window = acks.window_bytes();
        let app_limited =
            self.in_flight == 0 || (self.short_segment && self.in_flight + u64::from(mss) < cwnd);
        let rtt_us = |ns: u64| u32::try_from(ns / 1000).unwrap_or(u32::MAX);
        let delivered = self.acked.total + u64::from(acks.sacked_bytes);
        self.sender.push(Sample {
            t_s,
            written_bytes: self.sent.total,
            acked_bytes: self.acked.total,
            delivered_bytes: delivered.min(self.sent.total),
            mss_bytes: mss,
            cwnd_bytes: cwnd,
            in_flight_bytes: self.in_flight,
            unsent_bytes: if app_limited { 0 } else { u64::from(mss) },
            peer_window_bytes: window,
            rtt_us: rtt_us(data.smoothed_rtt_ns),
            min_rtt_us: (data.min_rtt_ns > 0).then(|| rtt_us(data.min_rtt_ns)),
            delivery_rate_bps: self.delivery_rate_bps,
            delivery_app_limited: app_limited,
            retransmits: u64::from(counts.total()),
            busy_us: self.busy_ns / 1000,
            rwnd_limited_us: self.window_limited_ns / 1000,
            dsack_duplicates: Some(counts.spurious_dsack.saturating_add(counts.duplicated)),
            acks: Some(self.acks),
            peer_window_scale: Some(acks.scale.shift()),
            ..Sample::default()
        });
        let handshake = connection.vantage(self.direction);
        let path = handshake.to_sender_ns.zip(handshake.to_receiver_ns);
        self.receiver.push(ReceiverSample {
            t_s,
            received_bytes: self.acked.total,
            window_bytes: window,
            min_rtt_us: path.map(|(near, far)| rtt_us(near + far)),
            rtt_us: (self.timestamp_rtt_ns > 0).then(|| rtt_us(self.timestamp_rtt_ns)),
            segments: Some(self.segments),
            out_of_order: Some(self.out_of_order),
            window_scale: Some(acks.scale.shift()),
            ..ReceiverSample::default()
        });
    }

    /// Takes a last sample, at the connection's end.
    pub(crate) fn finish(&mut self, connection: &Connection) {
        let last = self.sender.last().map(|sample| sample.t_s);
        let at_ns = self.last_ns.saturating_sub(self.start_ns.unwrap_or(0));
        if last.is_some_and(|t_s| t_s < at_ns as f64 / 1e9) {
            self.sample(connection, at_ns);
        }
    }

    /// The direction that is sampled.
    #[must_use]
    pub fn direction(&self) -> Direction {
        self.direction
    }

    pub(crate) fn into_samples(self) -> (Vec<Sample>, Vec<ReceiverSample>) {
        (self.sender, self.receiver)
    }
}

/// Payload of a full segment: the receiver's MSS without the timestamps' 12 bytes, or the
/// longest one that was seen, if that is shorter.
fn mss(connection: &Connection, direction: Direction) -> u32 {
    let (data, acks) = connection.pair(direction);
    let options = if data.latest_ts == 0 { 0 } else { 12 };
    let most = u32::from(acks.mss).saturating_sub(options);
    match (most, data.longest) {
        (0, 0) => 1,
        (0, longest) => longest.min(65_495),
        (most, 0) => most,
        (most, longest) => most.min(longest),
    }
}
