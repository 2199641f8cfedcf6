//! Segments and ACKs, in the order in which the sender of the data saw them.

use super::{Captured, Sampler};
use crate::congestion_family::RoundFlight;
use crate::connection::Connection;
use crate::retransmissions::RetransmissionKind;
use crate::rounds::Round;
use crate::time_by_cause::Span;
use crate::wireshark::PacketAnalysis;
use capture::dissect::TcpSegment;

/// SACK blocks of an ACK at most (RFC 2018, section 3).
const SACKS: usize = 4;

/// An ACK as its receiver, the sender of the data, processes it.
#[derive(Debug, Clone, Copy)]
pub(super) struct Ack {
    number: u32,
    window: Option<u64>,
    /// Whether that is closed, which takes a known scale unless it is 0.
    is_closed: bool,
    sacks: [(u32, u32); SACKS],
    sack_count: u8,
    marks: u32,
}

/// A segment follows an ACK within this share of the RTT and time, in ns: it waited for it.
const PROMPT_SHARE: u64 = 50;
const PROMPT_NS: u64 = 300_000;

/// Bytes by which a segment may be ahead of what was captured: the largest window.
const MAX_GAP: u64 = 1 << 30;

/// Payload of a segment where none was captured (RFC 9293, section 3.7.1).
const MIN_MSS: u64 = 536;

impl Sampler {
    pub(super) fn add_data(
        &mut self,
        segment: &TcpSegment<'_>,
        found: &PacketAnalysis,
        mss: u64,
        now: u64,
    ) {
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
        self.settles_ns = None;
        self.segments = self.segments.saturating_add(1);
        self.short_segment = length < mss;
        self.round_disturbed |= segment.ecn == 3;
        self.passed_marks = self.passed_marks.saturating_add(u32::from(segment.ecn == 3));
        self.round_segments += 1;
        let prompt = (self.board.min_rtt_ns / PROMPT_SHARE).max(PROMPT_NS);
        self.round_unprompted += u32::from(now.saturating_sub(self.acked_ns) > prompt);
        let Some(at) = self.position(segment.seq, self.board.nxt()) else { return };
        // Not more than a window can follow: a number that is not of this stream.
        if at > self.board.nxt() + MAX_GAP {
            return;
        }
        if let Some(kind) = found.kind {
            if matches!(kind, RetransmissionKind::Fast | RetransmissionKind::Timeout) {
                self.slow_start.lose(self.round_most.max(self.last_most));
            }
            self.round_recoveries += u32::from(kind == RetransmissionKind::Fast);
            if kind == RetransmissionKind::Timeout {
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

    pub(super) fn add_ack(
        &mut self,
        connection: &Connection,
        segment: &TcpSegment<'_>,
        found: &PacketAnalysis,
        mss: u64,
        now: u64,
    ) {
        let (_, acks) = connection.pair(self.direction);
        let options = segment.options();
        let mut ack = Ack {
            number: segment.ack,
            window: acks.window_bytes(),
            is_closed: acks.has_closed_window(mss),
            sacks: [(0, 0); SACKS],
            sack_count: 0,
            marks: found.echoed_marks,
        };
        for (place, block) in ack.sacks.iter_mut().zip(options.sack_blocks()) {
            *place = *block;
            ack.sack_count += 1;
        }
        if self.captured == Captured::Acks
            && let Some(end) = self.position(ack.number, self.board.nxt())
            && end <= self.board.nxt() + MAX_GAP
        {
            // It was sent before, at a time that no packet shows.
            self.board.send(self.board.nxt(), end, mss.max(MIN_MSS), now);
            return self.receive(&ack, mss, now, false);
        }
        match options.timestamps.filter(|_| !self.at_sender()) {
            Some((value, _)) => {
                let near = self.passed.una();
                if let Some(number) = self.position(ack.number, near) {
                    let blocks = self.blocks(&ack, near).into_iter().flatten();
                    self.passed.acknowledge(number, blocks, mss, now, false);
                }
                let is_all = self.passed.una() == self.board.nxt();
                self.settles_ns = is_all.then_some(now + self.board.min_rtt_ns);
                if let Some(oldest) = self.order.ack(value, ack) {
                    self.receive(&oldest, mss, now, false);
                }
            }
            None => self.receive(&ack, mss, now, true),
        }
    }

    /// Where everything is acknowledged and nothing follows, no segment echoes the last ACKs: the
    /// sender has them within a round trip.
    pub(super) fn settle(&mut self, mss: u64, now: u64) {
        let Some(at) = self.settles_ns.filter(|at| *at <= now) else { return };
        self.settles_ns = None;
        self.pass_time(mss, at);
        while let Some(ack) = self.order.oldest() {
            self.receive(&ack, mss, at, false);
        }
    }

    /// The sender of the data receives an ACK.
    fn receive(&mut self, ack: &Ack, mss: u64, now: u64, takes_rtt: bool) {
        self.acks = self.acks.saturating_add(1);
        (self.window, self.is_closed) = (ack.window, ack.is_closed);
        self.largest_window = self.largest_window.max(ack.window.unwrap_or(0));
        self.round_disturbed |= ack.marks > 0;
        self.echoed_marks = self.echoed_marks.saturating_add(ack.marks);
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
}
