//! How the sender came to retransmit a segment, from what passes this point.
//!
//! ```text
//!            duplicate ACKs, SACK                 ACK of all sent until then
//!   Open ──────────────────────────> Recovery ──────────────────────────────> Open
//!    │  silence: the last segment = probe │  silence
//!    └────────────────────────────────────┴──────────> Loss ─ ACK as above ─> Open
//! ```
//!
//! The states are those of RFC 6675 and of Linux. A retransmission without evidence of a
//! loss, after a silence, comes from a timer: of the segment sent last, a tail loss probe
//! (RFC 8985, section 7), otherwise the retransmission timer (RFC 6298). The first one upon
//! duplicate ACKs or SACK is a fast retransmit, the others until everything sent before is
//! acknowledged belong to that recovery.

use crate::outstanding::ALLOCATION;
use crate::sequence::{after, before, up_to};
use crate::side::Side;
use crate::wireshark::CapturedSegment;
use capture::dissect::{TcpFlags, TcpOptions};

/// How the sender came to retransmit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// The retransmission timer expired.
    Timeout,
    /// Later segments of a window, after the timer expired.
    AfterTimeout,
    /// Duplicate ACKs or SACK blocks: the first one of a recovery.
    Fast,
    /// The others of a recovery.
    Recovery,
    /// A tail loss probe.
    TailLossProbe,
}

/// How many kinds there are.
pub const KIND_COUNT: usize = 5;

impl Kind {
    /// Every kind, in the order in which counts are stored.
    pub const ALL: [Kind; KIND_COUNT] =
        [Kind::Timeout, Kind::AfterTimeout, Kind::Fast, Kind::Recovery, Kind::TailLossProbe];

    /// Its name in tables and JSON.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Kind::Timeout => "timeout",
            Kind::AfterTimeout => "after_timeout",
            Kind::Fast => "fast",
            Kind::Recovery => "recovery",
            Kind::TailLossProbe => "tail_loss_probe",
        }
    }
}

/// Retransmissions of a direction.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Retransmissions {
    /// By kind, in the order of [`Kind::ALL`].
    pub kinds: [u32; KIND_COUNT],
    /// The first packet of each kind; 0: none.
    pub first_packet: [u32; KIND_COUNT],
    /// Of segments that had passed this point: lost behind it, or not at all.
    pub seen_before: u32,
    /// Of segments that had not: lost before it.
    pub not_seen_before: u32,
    /// Spurious by Eifel (RFC 3522): the ACK echoes a time before the retransmission.
    pub spurious_eifel: u32,
    /// Spurious by DSACK (RFC 2883): the receiver had it twice.
    pub spurious_dsack: u32,
    /// Segments that came late without being retransmitted: overtaken on the path.
    pub reordered: u32,
    /// DSACKs of segments that were not retransmitted: duplicated on the path.
    pub duplicated: u32,
}

impl Retransmissions {
    /// Retransmissions of all kinds.
    #[must_use]
    pub fn total(&self) -> u32 {
        self.kinds.iter().fold(0, |sum, count| sum.saturating_add(*count))
    }

    /// How many of one kind.
    #[must_use]
    pub fn of(&self, kind: Kind) -> u32 {
        self.kinds[kind as usize]
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum State {
    #[default]
    Open,
    /// Until this number is acknowledged.
    Recovery(u32),
    Loss(u32),
}

/// A gap in what passed this point.
#[derive(Debug, Clone, Copy)]
struct Hole {
    start: u32,
    end: u32,
    opened_ns: u64,
    /// Timestamp value of the segment that came in its place.
    ts_value: u32,
}

/// Gaps that are remembered for a direction; the oldest ones are forgotten.
const MAX_HOLES: usize = 1024;

/// Retransmissions that a DSACK is compared with.
const RECENT: usize = 32;

/// A retransmission that no DSACK has reported yet; packet 0: none.
#[derive(Debug, Clone, Copy, Default)]
struct Retransmitted {
    seq: u32,
    end: u32,
    packet: u32,
}

/// State of a direction that loses segments.
#[derive(Debug, Clone, Default)]
pub(crate) struct Recovery {
    state: State,
    /// End of a tail loss probe that is not acknowledged.
    probe: Option<u32>,
    holes: Vec<Hole>,
    recent: [Retransmitted; RECENT],
    recent_at: usize,
    /// When an ACK last reported a gap; 0: never.
    evidence_ns: u64,
    /// The last recovery: until which number, when that was acknowledged (0: none), and
    /// whether it was one after a timeout.
    ended: u32,
    ended_ns: u64,
    ended_loss: bool,
    pub(crate) counts: Retransmissions,
}

/// A retransmission timer is never shorter (Linux `TCP_RTO_MIN`), less the timer's
/// granularity.
const MIN_TIMEOUT_NS: u64 = 180_000_000;

/// What an ACK makes a sender send follows it sooner than this.
const MIN_PAUSE_NS: u64 = 20_000_000;

/// A retransmission as classified.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Classified {
    pub(crate) kind: Kind,
    pub(crate) seen_before: bool,
}

/// Looks at a segment that takes sequence space, before [`Side`] knows it.
#[inline]
pub(crate) fn observe_data(
    seen: &CapturedSegment<'_, '_>,
    own: &mut Side,
    peer: &Side,
) -> Option<Classified> {
    let segment = seen.segment;
    if own.next_seq == 0 {
        return None;
    }
    let (seq, end) = (segment.seq, segment.next_seq());
    if !before(seq, own.next_seq) {
        if after(seq, own.next_seq) && !segment.flags.has(TcpFlags::RST) {
            open_hole(seen, own, peer);
        }
        let since = seen.time_ns.saturating_sub(own.last_ack_ns);
        let silent = since >= MIN_TIMEOUT_NS && since >= own.smoothed_rtt_ns;
        own.after_silence = if silent && seq == own.next_seq { end } else { 0 };
        return None;
    }
    // Keep-alives repeat one byte, and probes of a closed window are no repair.
    let keep_alive = segment.payload_len <= 1
        && seq == own.next_seq.wrapping_sub(1)
        && !segment.flags.is_control();
    if keep_alive || peer.window == Some(0) {
        return None;
    }
    late(seen, own, peer, seq, end)
}

/// A segment that leaves a gap behind the last one.
#[inline(never)]
fn open_hole(seen: &CapturedSegment<'_, '_>, own: &mut Side, peer: &Side) {
    let (start, end) = (own.next_seq, seen.segment.seq);
    let rtt = own.smoothed_rtt_ns.max(seen.initial_rtt_ns);
    let waited = seen.time_ns.saturating_sub(own.next_seq_ns);
    // Where a whole flight is lost, the retransmission upon the timer looks like new data. F-RTO
    // (RFC 5682) sends what is new indeed when that is acknowledged.
    let forward = far_from_sender(own, peer)
        && own.after_silence == start
        && start != 0
        && waited >= rtt / 2
        && waited < 2 * rtt;
    let recovery = own.recovery.get_or_insert_default();
    recovery.open(Hole { start, end, opened_ns: seen.time_ns, ts_value: seen.ts_value });
    if forward && recovery.state == State::Open {
        recovery.state = State::Loss(end);
    }
}

/// Whether the receiver of the data is nearer.
fn far_from_sender(own: &Side, peer: &Side) -> bool {
    own.responses.least_ns() > peer.responses.least_ns()
}

#[inline(never)]
fn late(
    seen: &CapturedSegment<'_, '_>,
    own: &mut Side,
    peer: &Side,
    seq: u32,
    end: u32,
) -> Option<Classified> {
    let now = seen.time_ns;
    let next_seq = own.next_seq;
    let rtt = own.smoothed_rtt_ns.max(seen.initial_rtt_ns);
    // Each packet of either side ends a silence.
    let quiet = now.saturating_sub(own.last_ack_ns.max(peer.last_ack_ns));
    let gap = now.saturating_sub(own.last_ack_ns);
    let far_from_sender = far_from_sender(own, peer);
    let silence = if far_from_sender { gap } else { quiet };
    let reported =
        peer.duplicate_acks > 0 || (peer.has_sack && after(peer.sacked_to, peer.last_ack));
    let acked = if peer.packets > 0 { peer.last_ack } else { seq };
    let sack = own.sack_permitted && peer.sack_permitted;
    // Without SACK a recovery does not begin twice in one window (RFC 6582), whatever duplicate
    // ACKs come, and these do not restart the timer. What they do release follows one of them, and
    // arrives within an RTT.
    let pause = if far_from_sender {
        (MIN_TIMEOUT_NS / 2).max(2 * seen.initial_rtt_ns)
    } else {
        MIN_PAUSE_NS.max(seen.initial_rtt_ns / 2)
    };
    let oldest_ns = own.outstanding.oldest_ns();
    let since_sent = now.saturating_sub(oldest_ns.unwrap_or(now));
    let is_soon = oldest_ns.is_some() && since_sent < MIN_TIMEOUT_NS;
    let between_acks = !sack
        && peer.packets > 0
        && silence >= pause
        && (far_from_sender || since_sent >= MIN_TIMEOUT_NS);
    let timer = silence >= MIN_TIMEOUT_NS.max(rtt) || between_acks;
    let tail = end == next_seq;
    let syn = seen.segment.flags.has(TcpFlags::SYN);
    let passed = own.outstanding.ts_value_at(seq);

    let recovery = own.recovery.get_or_insert_default();
    // At the receiver, what made the sender retransmit passed an RTT ago.
    let recent = recovery.evidence_ns != 0
        && now.saturating_sub(recovery.evidence_ns) < 2 * rtt.max(1_000_000);
    // Without the other direction, what a sender repeats without a silence before was reported.
    let unseen = peer.packets == 0 && silence < MIN_TIMEOUT_NS.max(rtt);
    let evidence = reported || (far_from_sender && recent) || unseen;
    let filled = recovery.fill(seq, end);
    // The original, which arrives after its retransmission: that has a later timestamp, by an
    // RTT.
    let is_original = match passed {
        Some(value) => after(value, seen.ts_value),
        None => {
            let behind_ms = own.latest_ts.wrapping_sub(seen.ts_value) as i32;
            i64::from(behind_ms) * 4_000_000 > rtt as i64 * 3
        }
    };
    if filled.is_none() && seen.ts_value != 0 && is_original {
        recovery.counts.reordered = recovery.counts.reordered.saturating_add(1);
        return None;
    }
    if let Some(hole) = filled
        && overtaken(seen, &hole, rtt)
    {
        recovery.counts.reordered = recovery.counts.reordered.saturating_add(1);
        return None;
    }
    recovery.settle(acked, now);
    let at_head = up_to(seq, acked) || !before(acked, next_seq);
    let kind = match recovery.state {
        _ if syn => Kind::Timeout,
        State::Loss(_) if timer && at_head => Kind::Timeout,
        State::Loss(_) => Kind::AfterTimeout,
        State::Recovery(_) if timer && at_head => Kind::Timeout,
        State::Recovery(_) => Kind::Recovery,
        // The ACK that ends the recovery has yet to reach the sender.
        State::Open if far_from_sender && !timer && recovery.lasts(seq, now, rtt) => {
            if recovery.ended_loss { Kind::AfterTimeout } else { Kind::Recovery }
        }
        State::Open if evidence && !timer => Kind::Fast,
        State::Open if tail && sack && recovery.probe.is_none() && !evidence => Kind::TailLossProbe,
        // Duplicate ACKs that were not captured: no timer expires so soon.
        State::Open if !timer && !far_from_sender && is_soon => Kind::Fast,
        State::Open if timer || !evidence => Kind::Timeout,
        State::Open => Kind::Fast,
    };
    match kind {
        Kind::Timeout => recovery.state = State::Loss(next_seq),
        Kind::Fast => recovery.state = State::Recovery(next_seq),
        Kind::TailLossProbe => recovery.probe = Some(end),
        Kind::AfterTimeout | Kind::Recovery => {}
    }
    let seen_before = filled.is_none();
    recovery.count(kind, seen.packet, seen_before);
    recovery.recent[recovery.recent_at % RECENT] = Retransmitted { seq, end, packet: seen.packet };
    recovery.recent_at = (recovery.recent_at + 1) % RECENT;
    Some(Classified { kind, seen_before })
}

/// Whether a segment that fills a hole was overtaken on the path, and not retransmitted: by
/// its timestamp it was sent with the one that opened the hole, and not an RTT after it.
/// Values count milliseconds, as in Linux; for a short RTT, or without them, the time of
/// arrival decides.
fn overtaken(seen: &CapturedSegment<'_, '_>, hole: &Hole, rtt_ns: u64) -> bool {
    if seen.ts_value != 0 && hole.ts_value != 0 {
        let later_ns = i64::from(seen.ts_value.wrapping_sub(hole.ts_value) as i32) * 1_000_000;
        let rtt_ns = rtt_ns.max(8_000_000) as i64;
        if later_ns < rtt_ns / 4 || later_ns >= rtt_ns * 3 / 4 {
            return later_ns < rtt_ns / 4;
        }
    }
    let waited = seen.time_ns.saturating_sub(hole.opened_ns);
    rtt_ns > 0 && waited < rtt_ns - rtt_ns / 8
}

/// What an ACK says of earlier transmissions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Evidence {
    /// Its first SACK block reports a duplicate.
    pub(crate) duplicate_sack: bool,
    /// The packet of a retransmission that was not necessary.
    pub(crate) spurious: Option<u32>,
}

/// Looks at an ACK of `data`'s segments, before they are removed from its list.
#[inline]
pub(crate) fn observe_ack(
    seen: &CapturedSegment<'_, '_>,
    options: &TcpOptions,
    acks: &Side,
    data: &mut Side,
) -> Evidence {
    let duplicate = duplicate_block(options, seen.segment.ack);
    let repeats = acks.duplicate_acks > 0 && acks.last_ack == seen.segment.ack;
    if repeats || (options.sack_count > 0 && duplicate.is_none()) {
        data.recovery.get_or_insert_default().evidence_ns = seen.time_ns;
    }
    let mut evidence = Evidence { duplicate_sack: duplicate.is_some(), spurious: None };
    let Some(recovery) = &mut data.recovery else { return evidence };
    let ack = seen.segment.ack;
    if let Some((left, right)) = duplicate {
        evidence.spurious = recovery.duplicate(left, right);
    }
    if ack == acks.last_ack || !seen.segment.flags.has(TcpFlags::ACK) {
        return evidence;
    }
    if let Some((_, echo)) = options.timestamps
        && echo != 0
        && recovery.counts.total() > 0
    {
        // The first ACK of a retransmission that echoes an earlier time is one of the
        // original (RFC 3522, section 3).
        let earlier = data.outstanding.late(ack).find(|segment| {
            segment.ts_value != 0
                && after(segment.next, acks.last_ack)
                && (echo.wrapping_sub(segment.ts_value) as i32) < 0
        });
        let first = !matches!(recovery.state, State::Open) || recovery.probe.is_some();
        if let Some(segment) = earlier
            && first
        {
            evidence.spurious = Some(segment.packet);
            recovery.counts.spurious_eifel = recovery.counts.spurious_eifel.saturating_add(1);
            // The sender undoes the reduction, and what follows is a recovery of its own.
            recovery.state = State::Open;
        }
    }
    recovery.settle(ack, seen.time_ns);
    evidence
}

/// A first SACK block that reports a duplicate: below the ACK, or within the second one
/// (RFC 2883, section 4).
#[inline]
fn duplicate_block(options: &TcpOptions, ack: u32) -> Option<(u32, u32)> {
    let blocks = options.sack_blocks();
    let (left, right) = *blocks.first()?;
    if up_to(right, ack) {
        return Some((left, right));
    }
    let (outer_left, outer_right) = *blocks.get(1)?;
    (up_to(outer_left, left) && up_to(right, outer_right)).then_some((left, right))
}

impl Recovery {
    /// Bytes that it takes on the heap, itself included.
    pub(crate) fn heap_bytes(&self) -> usize {
        size_of::<Self>() + self.holes.capacity() * size_of::<Hole>() + 2 * ALLOCATION
    }

    /// Whether something is missing of what passed this point.
    pub(crate) fn has_holes(&self) -> bool {
        !self.holes.is_empty()
    }

    pub(crate) fn forget_gaps(&mut self) {
        self.holes = Vec::new();
    }

    fn open(&mut self, hole: Hole) {
        if self.holes.len() >= MAX_HOLES {
            self.holes.remove(0);
        }
        self.holes.push(hole);
    }

    /// Takes `seq` to `end` out of the holes; the one that it was in.
    fn fill(&mut self, seq: u32, end: u32) -> Option<Hole> {
        let place =
            self.holes.iter().position(|hole| before(seq, hole.end) && after(end, hole.start))?;
        let hole = self.holes[place];
        let front = before(hole.start, seq).then_some(Hole { end: seq, ..hole });
        let back = before(end, hole.end).then_some(Hole { start: end, ..hole });
        match (front, back) {
            (Some(front), Some(back)) => {
                self.holes[place] = front;
                if self.holes.len() < MAX_HOLES {
                    self.holes.insert(place + 1, back);
                }
            }
            (Some(rest), None) | (None, Some(rest)) => self.holes[place] = rest,
            (None, None) => {
                self.holes.remove(place);
            }
        }
        Some(hole)
    }

    /// Whether the sender had not left its last recovery when it sent what arrives now.
    fn lasts(&self, seq: u32, now_ns: u64, rtt_ns: u64) -> bool {
        let since = now_ns.saturating_sub(self.ended_ns);
        let soon = !self.ended_loss && since < rtt_ns - rtt_ns / 8;
        self.ended_ns != 0 && (soon || (before(seq, self.ended) && since < 2 * rtt_ns))
    }

    /// Everything before `ack` is acknowledged.
    #[inline]
    fn settle(&mut self, ack: u32, now_ns: u64) {
        match self.state {
            State::Recovery(high) | State::Loss(high) if !before(ack, high) => {
                (self.ended, self.ended_ns) = (high, now_ns);
                self.ended_loss = matches!(self.state, State::Loss(_));
                self.state = State::Open;
            }
            _ => {}
        }
        if self.probe.is_some_and(|end| !before(ack, end)) {
            self.probe = None;
        }
        if !self.holes.is_empty() {
            self.holes.retain(|hole| after(hole.end, ack));
        }
    }

    fn count(&mut self, kind: Kind, packet: u32, seen_before: bool) {
        let counts = &mut self.counts;
        let place = kind as usize;
        counts.kinds[place] = counts.kinds[place].saturating_add(1);
        if counts.first_packet[place] == 0 {
            counts.first_packet[place] = packet;
        }
        let side = if seen_before { &mut counts.seen_before } else { &mut counts.not_seen_before };
        *side = side.saturating_add(1);
    }

    /// A DSACK; the packet of the retransmission that it reports.
    fn duplicate(&mut self, left: u32, right: u32) -> Option<u32> {
        let within = |sent: &&mut Retransmitted| {
            sent.packet != 0 && before(sent.seq, right) && after(sent.end, left)
        };
        let Some(sent) = self.recent.iter_mut().find(within) else {
            self.counts.duplicated = self.counts.duplicated.saturating_add(1);
            return None;
        };
        self.counts.spurious_dsack = self.counts.spurious_dsack.saturating_add(1);
        Some(std::mem::take(sent).packet)
    }
}
