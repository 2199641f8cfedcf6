//! Samples of one direction of a connection, as its vantage point allows.
//!
//! Each field of [`Sample`] that a capture shows is what the sender's kernel would report;
//! the others say so. Where the capture is not at the sender, its segments and ACKs are first
//! put into the sender's order by the timestamps that it echoes (`echo_order`).
//!
//! | field | from the capture |
//! |---|---|
//! | `acked`, `delivered`, `in_flight`, `rtt`, `delivery_rate`, `retransmits`, `reorderings` | `scoreboard` |
//! | `cwnd` | estimate: the most bytes in flight of this round trip and the one before |
//! | `ssthresh` | estimate: `slow_start` |
//! | `peer_window`, its scale | the last window and the SYN's option |
//! | `dsack_duplicates`, `ce_delivered` | D-SACK blocks; ACKs with ECE, if ECN was negotiated |
//! | `busy`, `rwnd_limited` | time with data in flight; with less than a segment of window left |
//! | `unsent`, `app_limited` | a short last segment, or none in flight: nothing more to send |
//! | `sndbuf_limited` | estimate: `rounds` |
//! | `pacing_rate` | from `cwnd`, as in Linux but for BBR |
//!
//! A [`ReceiverSample`] has the bytes read (acknowledged, but for what the window has shrunk by
//! from its largest), the window, segments and how many came out
//! of order, and the RTT by timestamps.

mod samples;
mod time;

use crate::congestion_family::{FamilyEstimate, RoundFlight};
use crate::connection::{Connection, PacketPosition};
use crate::echo_order::EchoOrder;
use crate::one_way::OneWayDelay;
use crate::recovery::Kind;
use crate::rounds::{Round, Rounds};
use crate::scoreboard::Scoreboard;
use crate::slow_start::SlowStart;
use crate::time_by_cause::{Span, TimeByCause};
use crate::wireshark::PacketAnalysis;
use capture::dissect::{Direction, TcpFlags, TcpSegment};
use record::{CapturePoint, ReceiverSample, Sample};

/// Samples of a stream at most; a longer one is sampled less often.
const MOST_SAMPLES: usize = 4000;

/// Intervals between samples, in ns: as in a test, short while the ramp-up lasts.
const RAMP_INTERVAL_NS: u64 = 10_000_000;
const RAMP_NS: u64 = 2_000_000_000;
const INTERVAL_NS: u64 = 100_000_000;

/// SACK blocks of an ACK at most (RFC 2018, section 3).
const SACKS: usize = 4;

/// An ACK as its receiver, the sender of the data, processes it.
#[derive(Debug, Clone, Copy)]
struct Ack {
    number: u32,
    window: u64,
    sacks: [(u32, u32); SACKS],
    sack_count: u8,
    has_echo: bool,
}

/// Takes samples of the data of one direction.
#[derive(Debug, Clone)]
pub struct Sampler {
    direction: Direction,
    point: CapturePoint,
    interval_ns: u64,
    start_ns: Option<u64>,
    next_ns: u64,
    last_ns: u64,
    /// Sequence number of position 0.
    base: Option<u32>,
    board: Scoreboard,
    /// In the order in which they passed here; away from the sender, what is delivered shows
    /// here an RTT earlier.
    passed: Scoreboard,
    order: EchoOrder<Ack>,
    slow_start: SlowStart,
    rounds: Rounds,
    family: FamilyEstimate,
    /// Recoveries that began in this round trip, and timers that expired.
    round_recoveries: u32,
    round_timeouts: u32,
    /// Where the round trip ends, when it began, and the most bytes in flight of this and the
    /// last one.
    round_end: u64,
    round_ns: u64,
    /// Segments of it, those that came without an ACK before them, and whether something was
    /// lost or another window full.
    round_segments: u32,
    round_unprompted: u32,
    round_disturbed: bool,
    acked_ns: u64,
    round_most: u64,
    last_most: u64,
    /// As last advertised; `None` before the first ACK.
    window: Option<u64>,
    largest_window: u64,
    busy_ns: u64,
    window_limited_ns: u64,
    short_segment: bool,
    acks: u32,
    segments: u32,
    out_of_order: u32,
    /// SYNs with ECE and what SYN-ACKs answered; ACKs with ECE.
    ecn: [bool; 2],
    echoed_marks: u32,
    timestamp_rtt_ns: u64,
    /// Delays of the packets that come from the far host, and of late how long they were.
    one_way: OneWayDelay,
    far_delay_ns: Option<f64>,
    /// Whether the handshake was seen to begin, and is not complete.
    in_handshake: bool,
    last_time_ns: Option<u64>,
    times: TimeByCause,
    /// Of this round trip: its packets, and the time that the congestion window took.
    round_window: Span,
    sender: Vec<Sample>,
    receiver: Vec<ReceiverSample>,
}

impl Sampler {
    /// For the data of `direction`, captured over `duration_ns` at `point`.
    #[must_use]
    pub fn new(direction: Direction, duration_ns: u64, point: CapturePoint) -> Self {
        Sampler {
            direction,
            point,
            interval_ns: (duration_ns / (MOST_SAMPLES as u64 / 2)).max(INTERVAL_NS),
            start_ns: None,
            next_ns: 0,
            last_ns: 0,
            base: None,
            board: Scoreboard::default(),
            passed: Scoreboard::default(),
            order: EchoOrder::default(),
            slow_start: SlowStart::default(),
            rounds: Rounds::default(),
            family: FamilyEstimate::default(),
            round_recoveries: 0,
            round_timeouts: 0,
            round_end: 0,
            round_ns: 0,
            round_segments: 0,
            round_unprompted: 0,
            round_disturbed: false,
            acked_ns: 0,
            round_most: 0,
            last_most: 0,
            window: None,
            largest_window: 0,
            busy_ns: 0,
            window_limited_ns: 0,
            short_segment: false,
            acks: 0,
            segments: 0,
            out_of_order: 0,
            ecn: [false; 2],
            echoed_marks: 0,
            timestamp_rtt_ns: 0,
            one_way: OneWayDelay::default(),
            far_delay_ns: None,
            in_handshake: false,
            last_time_ns: None,
            times: TimeByCause::default(),
            round_window: Span::default(),
            sender: Vec::new(),
            receiver: Vec::new(),
        }
    }

    /// Follows a packet of the connection after its analysis.
    pub fn add(
        &mut self,
        connection: &Connection,
        position: PacketPosition,
        segment: &TcpSegment<'_>,
        found: &PacketAnalysis,
    ) {
        self.take_time(connection, position, segment, found);
        self.follow(connection, position.time_ns, segment, found);
    }

    fn follow(
        &mut self,
        connection: &Connection,
        time_ns: u64,
        segment: &TcpSegment<'_>,
        found: &PacketAnalysis,
    ) {
        let is_data = segment.direction == self.direction;
        if segment.flags.has(TcpFlags::SYN) {
            let place = usize::from(segment.flags.has(TcpFlags::ACK));
            self.ecn[place] = segment.flags.has(TcpFlags::ECE);
            if is_data {
                self.base = Some(segment.seq.wrapping_add(1));
            }
            return;
        }
        let mss = mss(connection, self.direction);
        let Some(start) = self.start_ns else {
            // A small first message is a request, not the transfer.
            if is_data && segment.payload_len >= mss.min(MOST_REQUEST) {
                self.begin(connection, time_ns, segment);
                self.follow(connection, time_ns, segment, found);
            }
            return;
        };
        // Times that run backwards count as no time.
        let now = time_ns.max(self.last_ns).max(start);
        while start + self.next_ns <= now {
            if self.sender.len() >= MOST_SAMPLES {
                // Times that jump, further than the capture lasts.
                self.next_ns = u64::MAX - start;
                break;
            }
            let due = self.next_ns;
            self.pass_time(mss, start + due);
            self.sample(connection, due, mss);
            self.next_ns += if due < RAMP_NS { RAMP_INTERVAL_NS } else { self.interval_ns };
        }
        self.pass_time(mss, now);
        // At the receiver, what comes from afar is the data; elsewhere the ACKs.
        if is_data != self.at_sender()
            && let Some((value, _)) = segment.options().timestamps
            && let Some(delay) = self.one_way.add(value, now)
        {
            // As RFC 6298 smooths the RTT.
            let before = self.far_delay_ns.unwrap_or(delay as f64);
            self.far_delay_ns = Some(before + (delay as f64 - before) / 8.0);
        }
        if is_data {
            self.add_data(segment, found, u64::from(mss), now);
            if let Some(rtt) = found.timestamp_rtt_ns {
                self.timestamp_rtt_ns = rtt;
            }
        } else if segment.flags.has(TcpFlags::ACK) {
            self.add_ack(connection, segment, u64::from(mss), now);
        }
        let (data, _) = connection.pair(self.direction);
        if is_data && data.recovery.as_ref().is_some_and(|recovery| recovery.has_holes()) {
            self.out_of_order = self.out_of_order.saturating_add(1);
        }
        self.round_most = self.round_most.max(self.board.in_flight());
    }

    fn begin(&mut self, connection: &Connection, time_ns: u64, segment: &TcpSegment<'_>) {
        self.start_ns = Some(time_ns);
        (self.last_ns, self.round_ns) = (time_ns, time_ns);
        // What came before, a request or a part that was not captured, is delivered.
        self.base = Some(segment.seq);
        let (_, acks) = connection.pair(self.direction);
        self.window = acks.window_bytes();
        if let Some(rtt) = path_rtt(connection, self.direction) {
            self.board.start(rtt);
        }
    }

    /// A sequence number without wrap, near the position `near`; `None` before the start.
    fn position(&self, number: u32, near: u64) -> Option<u64> {
        let base = self.base?;
        let distance = number.wrapping_sub(base.wrapping_add(near as u32)) as i32;
        near.checked_add_signed(i64::from(distance))
    }

    fn add_data(&mut self, segment: &TcpSegment<'_>, found: &PacketAnalysis, mss: u64, now: u64) {
        if !self.at_sender()
            && let Some((_, echo)) = segment.options().timestamps
        {
            // The sender answered the last one; when it received those before is not known.
            let mut last = None;
            while let Some(ack) = self.order.echoed(echo) {
                if let Some(earlier) = last.replace(ack) {
                    self.receive(&earlier, mss, now, false);
                }
            }
            if let Some(ack) = last {
                self.receive(&ack, mss, now, true);
            }
        }
        let length = u64::from(segment.payload_len);
        if length == 0 {
            return;
        }
        self.segments = self.segments.saturating_add(1);
        self.short_segment = length < mss;
        self.round_disturbed |= segment.ecn == 3;
        if !self.at_sender() && segment.ecn == 3 {
            self.echoed_marks = self.echoed_marks.saturating_add(1);
        }
        self.round_segments += 1;
        let prompt = (self.board.min_rtt_ns / PROMPT_SHARE).max(PROMPT_NS);
        self.round_unprompted += u32::from(now.saturating_sub(self.acked_ns) > prompt);
        let Some(at) = self.position(segment.seq, self.board.nxt()) else { return };
        // Not more than a window can follow: a number that is not of this stream.
        if at > self.board.nxt() + MOST_GAP {
            return;
        }
        if let Some(kind) = found.kind {
            if matches!(kind, Kind::Fast | Kind::Timeout) {
                self.slow_start.lose(self.round_most.max(self.last_most));
            }
            self.round_recoveries += u32::from(kind == Kind::Fast);
            if kind == Kind::Timeout {
                self.round_timeouts += 1;
                self.board.time_out();
            }
        }
        // At the sender a segment is sent where it passes, be it for the second time.
        let end = at + length;
        let is_late = found.kind.is_none() && end <= self.board.nxt();
        if !is_late || self.at_sender() {
            self.board.send(at, end, mss, now);
        }
        if !self.at_sender() {
            self.passed.send(at, end, mss, now);
        }
    }

    fn add_ack(&mut self, connection: &Connection, segment: &TcpSegment<'_>, mss: u64, now: u64) {
        let (_, acks) = connection.pair(self.direction);
        let options = segment.options();
        let mut ack = Ack {
            number: segment.ack,
            window: acks.window_bytes().unwrap_or(0),
            sacks: [(0, 0); SACKS],
            sack_count: 0,
            has_echo: segment.flags.has(TcpFlags::ECE),
        };
        for (place, block) in ack.sacks.iter_mut().zip(options.sack_blocks()) {
            *place = *block;
            ack.sack_count += 1;
        }
        match options.timestamps.filter(|_| !self.at_sender()) {
            Some((value, _)) => {
                let near = self.passed.una();
                if let Some(number) = self.position(ack.number, near) {
                    let blocks = self.blocks(&ack, near).into_iter().flatten();
                    self.passed.acknowledge(number, blocks, mss, now, false);
                }
                if let Some(oldest) = self.order.ack(value, ack) {
                    self.receive(&oldest, mss, now, false);
                }
            }
            None => self.receive(&ack, mss, now, true),
        }
    }

    /// The sender of the data receives an ACK.
    fn receive(&mut self, ack: &Ack, mss: u64, now: u64, takes_rtt: bool) {
        self.acks = self.acks.saturating_add(1);
        self.window = Some(ack.window);
        self.largest_window = self.largest_window.max(ack.window);
        self.round_disturbed |= ack.has_echo;
        if self.at_sender() && ack.has_echo {
            self.echoed_marks = self.echoed_marks.saturating_add(1);
        }
        let near = self.board.una();
        let Some(number) = self.position(ack.number, near) else { return };
        let blocks = self.blocks(ack, near);
        self.board.acknowledge(number, blocks.into_iter().flatten(), mss, now, takes_rtt);
        self.acked_ns = now;
        self.round_disturbed |= self.board.in_recovery();
        if self.board.una() >= self.round_end && self.board.nxt() > self.round_end {
            self.end_round(mss, now);
        }
    }

    /// An ACK's SACK blocks as positions.
    fn blocks(&self, ack: &Ack, near: u64) -> [Option<(u64, u64)>; SACKS] {
        let blocks = &ack.sacks[..usize::from(ack.sack_count)];
        std::array::from_fn(|index| {
            let (left, right) = *blocks.get(index)?;
            Some((self.position(left, near)?, self.position(right, near)?))
        })
    }

    /// All that was in flight when the round trip began is delivered.
    fn end_round(&mut self, mss: u64, now: u64) {
        let flight = self.round_most;
        let held = self.window.is_some_and(|window| window < flight + 2 * mss);
        self.slow_start.end_round(flight, held || self.app_limited(mss));
        self.family.add(RoundFlight {
            from_ns: self.round_ns,
            to_ns: now,
            flight: flight as f64 / mss as f64,
            packets: self.round_window,
            is_disturbed: self.round_disturbed,
            is_held: held || self.app_limited(mss),
            recoveries: self.round_recoveries,
            timeouts: self.round_timeouts,
        });
        (self.round_recoveries, self.round_timeouts) = (0, 0);
        self.rounds.add(Round {
            from_ns: self.round_ns,
            to_ns: now,
            flight,
            window: self.round_window,
            is_clocked: !held
                && !self.round_disturbed
                && (!self.at_sender() || 2 * self.round_unprompted <= self.round_segments),
        });
        self.round_end = self.board.nxt();
        self.round_ns = now;
        let last = self.round_window.packets.1;
        self.round_window = Span { packets: (last, last), ns: 0 };
        (self.round_segments, self.round_unprompted) = (0, 0);
        self.round_disturbed = self.board.in_recovery();
        (self.last_most, self.round_most) = (flight, self.board.in_flight());
    }

    /// Counts the time since the last packet for what limited it.
    fn pass_time(&mut self, mss: u32, now: u64) {
        let passed = now.saturating_sub(self.last_ns);
        self.last_ns = self.last_ns.max(now);
        let outstanding = self.board.nxt() - self.board.una();
        let is_full = self.window.is_some_and(|window| window < outstanding + u64::from(mss));
        // A window that is closed holds the sender back with nothing in flight, too.
        if outstanding > 0 || is_full {
            self.busy_ns += passed;
        }
        if is_full {
            self.window_limited_ns += passed;
        }
    }

    /// Whether there was nothing more to send.
    fn app_limited(&self, mss: u64) -> bool {
        let most = self.round_most.max(self.last_most);
        let in_flight = self.board.in_flight();
        let is_idle = self.board.nxt() == self.board.una();
        let is_closed = self.window.is_some_and(|window| window < mss);
        (is_idle && !is_closed) || (self.short_segment && in_flight + mss < most)
    }

    /// The direction that is sampled.
    #[must_use]
    pub fn direction(&self) -> Direction {
        self.direction
    }

    /// Where the stream was captured.
    #[must_use]
    pub fn point(&self) -> CapturePoint {
        self.point
    }

    /// Whether the segments come in the sender's order.
    fn at_sender(&self) -> bool {
        matches!(self.point, CapturePoint::Sender | CapturePoint::Unknown)
    }

    /// Whether the sender's view is known: at the sender, or by the timestamps it echoed.
    pub(crate) fn has_sender(&self) -> bool {
        self.at_sender() || self.timestamp_rtt_ns > 0
    }

    pub(crate) fn into_samples(self) -> (Vec<Sample>, Vec<ReceiverSample>) {
        (self.sender, self.receiver)
    }
}

/// A segment follows an ACK within this share of the RTT and time, in ns: it waited for it.
const PROMPT_SHARE: u64 = 50;
const PROMPT_NS: u64 = 300_000;

/// Payload up to which a first segment is a request, in bytes: iperf3's cookie has 37.
const MOST_REQUEST: u32 = 512;

/// Bytes by which a segment may be ahead of what was captured: the largest window.
const MOST_GAP: u64 = 1 << 30;

/// The RTT of the path without its queues: the soonest answers of both sides.
fn path_rtt(connection: &Connection, direction: Direction) -> Option<u64> {
    let point = connection.vantage(direction);
    point.to_sender_ns.zip(point.to_receiver_ns).map(|(near, far)| near + far)
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
