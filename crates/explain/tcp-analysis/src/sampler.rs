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
//! | `dsack_duplicates`, `ce_delivered` | D-SACK blocks; marks that ACKs report, or data that passed with one |
//! | `busy`, `rwnd_limited` | time with data in flight; with less than a segment of window left |
//! | `unsent`, `app_limited` | a short last segment, or none in flight: nothing more to send |
//! | `sndbuf_limited` | estimate: `rounds` |
//! | `pacing_rate` | from `cwnd`, as in Linux but for BBR |
//!
//! A [`ReceiverSample`] has the bytes read (acknowledged, but for what the window has shrunk by
//! from its largest), the window, segments and how many came out
//! of order, and the RTT by timestamps. Where the data alone was captured, the bytes read are
//! those that passed for the first time.

mod follow;
mod life;
mod samples;
mod time;

use crate::congestion_family::FamilyEstimate;
use crate::connection::{Connection, PacketPosition};
use crate::echo_order::EchoOrder;
use crate::one_way::OneWayDelay;
use crate::rounds::Rounds;
use crate::scoreboard::Scoreboard;
use crate::slow_start::SlowStart;
use crate::time_by_cause::{Span, TimeByCause};
use crate::wireshark::PacketAnalysis;
use capture::dissect::{PacketDirection, TcpFlags, TcpSegment};
use follow::Ack;
use life::Life;
use record::{CapturePoint, ReceiverSample, Sample};

/// Samples of a stream at most; a longer one is sampled less often.
const MAX_SAMPLES: usize = 4000;

/// Intervals between samples, in ns: as in a test, short while the ramp-up lasts.
const RAMP_INTERVAL_NS: u64 = 10_000_000;
const RAMP_NS: u64 = 2_000_000_000;
const INTERVAL_NS: u64 = 100_000_000;

/// The directions of a connection that were captured.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Captured {
    /// Data and acknowledgements.
    Both,
    /// The data alone.
    Data,
    /// The acknowledgements alone.
    Acks,
}

/// Takes samples of the data of one direction.
#[derive(Debug, Clone)]
pub struct Sampler {
    direction: PacketDirection,
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
    /// When the sender has the ACK of everything, be it that nothing follows that echoes it.
    settles_ns: Option<u64>,
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
    /// As last advertised; `None` before the first ACK, and where its scale is unknown.
    window: Option<u64>,
    is_closed: bool,
    largest_window: u64,
    busy_ns: u64,
    window_limited_ns: u64,
    short_segment: bool,
    acks: u32,
    segments: u32,
    out_of_order: u32,
    /// Marks that ACKs report, and data that passed with one.
    echoed_marks: u32,
    passed_marks: u32,
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
    /// RTT of the path, where an earlier pass has seen the connection: without a handshake, what
    /// comes before the first data does not show it.
    known_rtt_ns: Option<u64>,
    /// What shows over the whole life, where an earlier pass has seen the connection.
    life: Option<Life>,
    /// Payload from which a segment is the transfer's first.
    least_first: u32,
    captured: Captured,
    sender: Vec<Sample>,
    receiver: Vec<ReceiverSample>,
}

impl Sampler {
    /// For the data of `direction`, captured over `duration_ns` at `point`.
    #[must_use]
    pub fn new(direction: PacketDirection, duration_ns: u64, point: CapturePoint) -> Self {
        Sampler {
            direction,
            point,
            interval_ns: (duration_ns / (MAX_SAMPLES as u64 / 2)).max(INTERVAL_NS),
            start_ns: None,
            next_ns: 0,
            last_ns: 0,
            base: None,
            board: Scoreboard::default(),
            passed: Scoreboard::default(),
            order: EchoOrder::default(),
            settles_ns: None,
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
            is_closed: false,
            largest_window: 0,
            busy_ns: 0,
            window_limited_ns: 0,
            short_segment: false,
            acks: 0,
            segments: 0,
            out_of_order: 0,
            echoed_marks: 0,
            passed_marks: 0,
            timestamp_rtt_ns: 0,
            one_way: OneWayDelay::default(),
            far_delay_ns: None,
            in_handshake: false,
            last_time_ns: None,
            times: TimeByCause::default(),
            round_window: Span::default(),
            known_rtt_ns: None,
            life: None,
            least_first: MAX_REQUEST,
            captured: Captured::Both,
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
        let late_ns = self.far_delay(position.time_ns, segment);
        let is_idle = self.life.as_mut().is_some_and(|life| {
            life.add(self.direction, connection, position.time_ns, segment, found, late_ns)
        });
        self.take_time(connection, position, segment, found, is_idle);
        self.follow(connection, position.time_ns, segment, found);
    }

    /// How much longer a packet from afar took than the fastest: at the receiver, that is the
    /// data; elsewhere the ACKs.
    fn far_delay(&mut self, time_ns: u64, segment: &TcpSegment<'_>) -> u64 {
        let is_data = segment.direction == self.direction;
        if is_data == self.at_sender() {
            return 0;
        }
        let Some((value, _)) = segment.options().timestamps else { return 0 };
        let Some(delay) = self.one_way.add(value, time_ns) else { return 0 };
        // As RFC 6298 smooths the RTT.
        let before = self.far_delay_ns.unwrap_or(delay as f64);
        self.far_delay_ns = Some(before + (delay as f64 - before) / 8.0);
        delay
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
            if is_data {
                self.base = Some(segment.seq.wrapping_add(1));
            }
            return;
        }
        let mss = mss(connection, self.direction);
        let Some(start) = self.start_ns else {
            // A small first message is a request, not the transfer.
            let is_first = match self.captured {
                Captured::Acks => segment.flags.has(TcpFlags::ACK),
                _ => is_data && segment.payload_len >= mss.min(self.least_first),
            };
            if is_first {
                self.begin(connection, time_ns, segment);
                self.follow(connection, time_ns, segment, found);
            }
            return;
        };
        // Times that run backwards count as no time.
        let now = time_ns.max(self.last_ns).max(start);
        while start + self.next_ns <= now {
            if self.sender.len() >= MAX_SAMPLES {
                // Times that jump, further than the capture lasts.
                self.next_ns = u64::MAX - start;
                break;
            }
            let due = self.next_ns;
            self.settle(u64::from(mss), start + due);
            self.pass_time(u64::from(mss), start + due);
            self.sample(connection, due, mss);
            self.next_ns += if due < RAMP_NS { RAMP_INTERVAL_NS } else { self.interval_ns };
        }
        self.settle(u64::from(mss), now);
        self.pass_time(u64::from(mss), now);
        if is_data {
            self.add_data(segment, found, u64::from(mss), now);
            if let Some(rtt) = found.timestamp_rtt_ns {
                self.timestamp_rtt_ns = rtt;
            }
        } else if segment.flags.has(TcpFlags::ACK) {
            self.add_ack(connection, segment, found, u64::from(mss), now);
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
        let is_data = segment.direction == self.direction;
        self.base = Some(if is_data { segment.seq } else { segment.ack });
        let (_, acks) = connection.pair(self.direction);
        self.window = acks.window_bytes();
        self.is_closed = acks.has_closed_window(u64::from(mss(connection, self.direction)));
        if let Some(rtt) = path_rtt(connection, self.direction).or(self.known_rtt_ns) {
            self.board.start(rtt);
        }
    }

    /// A sequence number without wrap, near the position `near`; `None` before the start.
    fn position(&self, number: u32, near: u64) -> Option<u64> {
        let base = self.base?;
        let distance = number.wrapping_sub(base.wrapping_add(near as u32)) as i32;
        near.checked_add_signed(i64::from(distance))
    }

    /// Counts the time since the last packet for what limited it.
    fn pass_time(&mut self, mss: u64, now: u64) {
        let passed = now.saturating_sub(self.last_ns);
        self.last_ns = self.last_ns.max(now);
        let outstanding = self.board.nxt() - self.board.una();
        let is_full = self.is_closed
            || self
                .window
                .is_some_and(|window| window > 0 && outstanding > 0 && window < outstanding + mss);
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
        (is_idle && !self.is_closed) || (self.short_segment && in_flight + mss < most)
    }

    /// The direction that is sampled.
    #[must_use]
    pub fn direction(&self) -> PacketDirection {
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
        self.captured == Captured::Both && (self.at_sender() || self.timestamp_rtt_ns > 0)
    }

    pub(crate) fn into_samples(self) -> (Vec<Sample>, Vec<ReceiverSample>) {
        (self.sender, self.receiver)
    }
}

/// Payload up to which a first segment is a request, in bytes: iperf3's cookie has 37.
const MAX_REQUEST: u32 = 512;

/// The RTT of the path without its queues: the soonest answers of both sides.
fn path_rtt(connection: &Connection, direction: PacketDirection) -> Option<u64> {
    let point = connection.vantage(direction);
    point.to_sender_ns.zip(point.to_receiver_ns).map(|(near, far)| near + far)
}

/// Payload of a full segment: the receiver's MSS without the timestamps' 12 bytes, or the
/// longest one that was seen, if that is shorter.
fn mss(connection: &Connection, direction: PacketDirection) -> u32 {
    let (data, acks) = connection.pair(direction);
    let options = if data.latest_ts.is_none() { 0 } else { 12 };
    let most = u32::from(acks.mss).saturating_sub(options);
    match (most, data.longest) {
        (0, 0) => 1,
        (0, longest) => longest.min(65_495),
        (most, 0) => most,
        (most, longest) => most.min(longest),
    }
}
