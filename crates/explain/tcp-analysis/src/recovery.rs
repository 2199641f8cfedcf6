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
use crate::retransmissions::{RetransmissionKind, Retransmissions};
use crate::sequence::{after, before, up_to};
use crate::side::Side;
use crate::wireshark::CapturedSegment;
use capture::dissect::{TcpFlags, TcpOptions};
use std::num::{NonZeroU32, NonZeroU64};

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
    ts_value: Option<NonZeroU32>,
}

/// Gaps that are remembered for a direction; the oldest ones are forgotten.
const MAX_HOLES: usize = 1024;

/// Retransmissions that a DSACK is compared with.
const RECENT: usize = 32;

/// A retransmission that no DSACK has reported yet.
#[derive(Debug, Clone, Copy)]
struct Retransmitted {
    seq: u32,
    end: u32,
    packet: NonZeroU32,
}

/// The end of a recovery.
#[derive(Debug, Clone, Copy)]
struct Ended {
    /// Until which number, and when that was acknowledged.
    until: u32,
    at_ns: NonZeroU64,
    /// Whether it was one after a timeout.
    was_loss: bool,
}

/// State of a direction that loses segments.
#[derive(Debug, Clone, Default)]
pub(crate) struct Recovery {
    state: State,
    /// End of a tail loss probe that is not acknowledged.
    probe: Option<u32>,
    holes: Vec<Hole>,
    recent: [Option<Retransmitted>; RECENT],
    recent_at: usize,
    /// When an ACK last reported a gap.
    evidence_ns: Option<NonZeroU64>,
    /// The last recovery that ended.
    ended: Option<Ended>,
    pub(crate) counts: Retransmissions,
}

/// A retransmission timer is never shorter (Linux `TCP_RTO_MIN`), less the timer's
/// granularity.
const MIN_TIMEOUT_NS: u64 = 180_000_000;

/// What an ACK makes a sender send follows it sooner than this.
const MIN_PAUSE_NS: u64 = 20_000_000;

/// The least RTT within twice which an ACK's evidence of a loss reaches the sender.
const MIN_EVIDENCE_RTT_NS: u64 = 1_000_000;

/// A tick of timestamp values, as in Linux, and the least RTT that they tell from none.
const TICK_NS: i64 = 1_000_000;
const MIN_TICKED_RTT_NS: u64 = 8_000_000;

/// An RTT less the eighth by which answers may come early.
const fn nearly(rtt_ns: u64) -> u64 {
    rtt_ns - rtt_ns / 8
}

/// What the pauses before a retransmission say of its sender.
#[derive(Debug, Clone, Copy)]
struct Pause {
    rtt_ns: u64,
    /// Whether the receiver of the data is nearer.
    far_from_sender: bool,
    /// Whether the sender was silent for as long as its timer takes.
    is_timer: bool,
    /// Whether the oldest outstanding segment was sent sooner before than any timer takes.
    is_soon: bool,
    /// Whether no silence precedes it, and no other direction was captured.
    is_unseen: bool,
}

impl Pause {
    fn before(seen: &CapturedSegment<'_, '_>, own: &Side, peer: &Side, sack: bool) -> Self {
        let now = seen.time_ns;
        let initial_ns = seen.initial_rtt_ns.map_or(0, NonZeroU64::get);
        let rtt_ns = own.smoothed_rtt_ns().max(initial_ns);
        let far_from_sender = far_from_sender(own, peer);
        // Each packet of either side ends a silence of the sender's, where it is near.
        let last_ns =
            if far_from_sender { own.last_ack_ns } else { own.last_ack_ns.max(peer.last_ack_ns) };
        let silence = now.saturating_sub(last_ns);
        // Without SACK a recovery does not begin twice in one window (RFC 6582), whatever duplicate
        // ACKs come, and these do not restart the timer. What they do release follows one of them,
        // and arrives within an RTT.
        let pause = if far_from_sender {
            (MIN_TIMEOUT_NS / 2).max(2 * initial_ns)
        } else {
            MIN_PAUSE_NS.max(initial_ns / 2)
        };
        let oldest_ns = own.outstanding.oldest_ns();
        let since_sent = now.saturating_sub(oldest_ns.unwrap_or(now));
        let between_acks = !sack
            && peer.packets > 0
            && silence >= pause
            && (far_from_sender || since_sent >= MIN_TIMEOUT_NS);
        let is_silent = silence >= MIN_TIMEOUT_NS.max(rtt_ns);
        Pause {
            rtt_ns,
            far_from_sender,
            is_timer: is_silent || between_acks,
            is_soon: oldest_ns.is_some() && since_sent < MIN_TIMEOUT_NS,
            is_unseen: peer.packets == 0 && !is_silent,
        }
    }
}

/// A retransmission as classified.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Classified {
    pub(crate) kind: RetransmissionKind,
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
        let silent = since >= MIN_TIMEOUT_NS && since >= own.smoothed_rtt_ns();
        own.after_silence = NonZeroU32::new(end).filter(|_| silent && seq == own.next_seq);
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
    let rtt = own.smoothed_rtt_ns().max(seen.initial_rtt_ns.map_or(0, NonZeroU64::get));
    let waited = seen.time_ns.saturating_sub(own.next_seq_ns);
    // Where a whole flight is lost, the retransmission upon the timer looks like new data. F-RTO
    // (RFC 5682) sends what is new indeed when that is acknowledged.
    let forward = far_from_sender(own, peer)
        && own.after_silence.is_some_and(|end| end.get() == start)
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
    let (now, next_seq) = (seen.time_ns, own.next_seq);
    let sack = own.sack_permitted && peer.sack_permitted;
    let pause = Pause::before(seen, own, peer, sack);
    let Pause { rtt_ns, far_from_sender, is_timer, .. } = pause;
    let reported =
        peer.duplicate_acks > 0 || (peer.has_sack && after(peer.sacked_to, peer.last_ack));
    let acked = if peer.packets > 0 { peer.last_ack } else { seq };
    let tail = end == next_seq;
    let syn = seen.segment.flags.has(TcpFlags::SYN);
    let is_original = is_original(seen, own, rtt_ns);

    let recovery = own.recovery.get_or_insert_default();
    // At the receiver, what made the sender retransmit passed an RTT ago.
    let recent = recovery
        .evidence_ns
        .is_some_and(|at_ns| now.saturating_sub(at_ns.get()) < 2 * rtt_ns.max(MIN_EVIDENCE_RTT_NS));
    // Without the other direction, what a sender repeats without a silence before was reported.
    let evidence = reported || (far_from_sender && recent) || pause.is_unseen;
    let filled = recovery.fill(seq, end);
    let is_late = match filled {
        None => is_original,
        Some(hole) => overtaken(seen, &hole, rtt_ns),
    };
    if is_late {
        recovery.counts.reordered = recovery.counts.reordered.saturating_add(1);
        return None;
    }
    recovery.settle(acked, now);
    let at_head = up_to(seq, acked) || !before(acked, next_seq);
    let kind = match recovery.state {
        _ if syn => RetransmissionKind::Timeout,
        State::Loss(_) if is_timer && at_head => RetransmissionKind::Timeout,
        State::Loss(_) => RetransmissionKind::AfterTimeout,
        State::Recovery(_) if is_timer && at_head => RetransmissionKind::Timeout,
        State::Recovery(_) => RetransmissionKind::Recovery,
        // The ACK that ends the recovery has yet to reach the sender.
        State::Open if far_from_sender && !is_timer && recovery.lasts(seq, now, rtt_ns) => {
            let was_loss = recovery.ended.is_some_and(|ended| ended.was_loss);
            if was_loss { RetransmissionKind::AfterTimeout } else { RetransmissionKind::Recovery }
        }
        State::Open if evidence && !is_timer => RetransmissionKind::Fast,
        State::Open if tail && sack && recovery.probe.is_none() && !evidence => {
            RetransmissionKind::TailLossProbe
        }
        // Duplicate ACKs that were not captured: no timer expires so soon.
        State::Open if !is_timer && !far_from_sender && pause.is_soon => RetransmissionKind::Fast,
        State::Open if is_timer || !evidence => RetransmissionKind::Timeout,
        State::Open => RetransmissionKind::Fast,
    };
    match kind {
        RetransmissionKind::Timeout => recovery.state = State::Loss(next_seq),
        RetransmissionKind::Fast => recovery.state = State::Recovery(next_seq),
        RetransmissionKind::TailLossProbe => recovery.probe = Some(end),
        RetransmissionKind::AfterTimeout | RetransmissionKind::Recovery => {}
    }
    let seen_before = filled.is_none();
    recovery.count(kind, seen.packet, seen_before);
    recovery.recent[recovery.recent_at % RECENT] =
        NonZeroU32::new(seen.packet).map(|packet| Retransmitted { seq, end, packet });
    recovery.recent_at = (recovery.recent_at + 1) % RECENT;
    Some(Classified { kind, seen_before })
}

/// Whether it is the original, which arrives after its retransmission: that has a later timestamp,
/// by an RTT.
fn is_original(seen: &CapturedSegment<'_, '_>, own: &Side, rtt_ns: u64) -> bool {
    let Some(sent) = seen.ts_value else { return false };
    match own.outstanding.ts_value_at(seen.segment.seq) {
        Some(passed) => after(passed, sent.get()),
        None => {
            let latest = own.latest_ts.map_or(0, NonZeroU32::get);
            let behind_ns = i64::from(latest.wrapping_sub(sent.get()) as i32) * TICK_NS;
            4 * behind_ns > rtt_ns as i64 * 3
        }
    }
}

/// Whether a segment that fills a hole was overtaken on the path, and not retransmitted: by
/// its timestamp it was sent with the one that opened the hole, and not an RTT after it.
/// Values count milliseconds, as in Linux; for a short RTT, or without them, the time of
/// arrival decides.
fn overtaken(seen: &CapturedSegment<'_, '_>, hole: &Hole, rtt_ns: u64) -> bool {
    if let (Some(own), Some(before)) = (seen.ts_value, hole.ts_value) {
        let later_ns = i64::from(own.get().wrapping_sub(before.get()) as i32) * TICK_NS;
        let rtt_ns = rtt_ns.max(MIN_TICKED_RTT_NS) as i64;
        if later_ns < rtt_ns / 4 || later_ns >= rtt_ns * 3 / 4 {
            return later_ns < rtt_ns / 4;
        }
    }
    let waited = seen.time_ns.saturating_sub(hole.opened_ns);
    waited < nearly(rtt_ns)
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
        data.recovery.get_or_insert_default().evidence_ns = NonZeroU64::new(seen.time_ns);
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
            after(segment.next, acks.last_ack)
                && segment.ts_value.is_some_and(|sent| (echo.wrapping_sub(sent.get()) as i32) < 0)
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
        let Some(ended) = self.ended else { return false };
        let since = now_ns.saturating_sub(ended.at_ns.get());
        let soon = !ended.was_loss && since < nearly(rtt_ns);
        soon || (before(seq, ended.until) && since < 2 * rtt_ns)
    }

    /// Everything before `ack` is acknowledged.
    #[inline]
    fn settle(&mut self, ack: u32, now_ns: u64) {
        match self.state {
            State::Recovery(high) | State::Loss(high) if !before(ack, high) => {
                let was_loss = matches!(self.state, State::Loss(_));
                let ended = |at_ns| Ended { until: high, at_ns, was_loss };
                self.ended = NonZeroU64::new(now_ns).map(ended);
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

    fn count(&mut self, kind: RetransmissionKind, packet: u32, seen_before: bool) {
        let counts = &mut self.counts;
        let place = kind as usize;
        if counts.kinds[place] == 0 {
            counts.first_packet[place] = packet;
        }
        counts.kinds[place] = counts.kinds[place].saturating_add(1);
        let side = if seen_before { &mut counts.seen_before } else { &mut counts.not_seen_before };
        *side = side.saturating_add(1);
    }

    /// A DSACK; the packet of the retransmission that it reports.
    fn duplicate(&mut self, left: u32, right: u32) -> Option<u32> {
        let within = |sent: &mut Retransmitted| before(sent.seq, right) && after(sent.end, left);
        let Some(sent) = self.recent.iter_mut().find_map(|sent| sent.take_if(within)) else {
            self.counts.duplicated = self.counts.duplicated.saturating_add(1);
            return None;
        };
        self.counts.spurious_dsack = self.counts.spurious_dsack.saturating_add(1);
        Some(sent.packet.get())
    }
}
