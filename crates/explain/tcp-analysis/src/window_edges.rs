//! The least window scale of a side whose SYN was not captured.
//!
//! A sender never has more outstanding than the window allows (RFC 9293, section 3.8.6), so data
//! beyond an edge without scaling proves scaling, and how far beyond bounds the scale. The edge
//! is that of the ACKs that the sender had received: by the timestamp that its segment echoes
//! (RFC 7323), or those that passed this point before.

use crate::sequence::after;
use std::collections::VecDeque;

/// The largest scale (RFC 7323, section 2.3).
const MAX_SCALE: usize = 14;

/// ACKs that wait for a segment to echo them; beyond it, the oldest count as received.
const MAX_WAITING: usize = 4096;

/// Segments beyond the edge that prove a scale: one alone may follow an ACK that was not captured.
const PROOF: u8 = 3;

/// The sender fills a window up to so many segments, and this part of it, for this share of the time
/// at least where the window is the limit. What is in flight for another reason is anywhere between
/// the window and half of it, as scales are powers of two.
const FILLED_SEGMENTS: u32 = 2;
const FILLED_PART: u32 = 8;
const FILLED_SHARE: f64 = 0.5;

/// ACKs with the timestamp that a segment echoes are received before or after it is sent, if they
/// open at most this part of the window.
const DOUBTFUL_PART: u32 = 16;

/// The least window scale where no SYN says it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct LeastScale {
    pub(crate) shift: u8,
    /// Whether the sender fills the window with it, so that it is the scale.
    pub(crate) is_filled: bool,
}

/// What the data of one side proves of the windows of the other.
#[derive(Debug, Clone, Default)]
pub(crate) struct WindowEdges {
    /// The right edge of the window that the sender has, with each scale; `None` before an ACK.
    edges: Option<[u32; MAX_SCALE + 1]>,
    /// Number and window of the last ACK that the sender has, and of the last one that it had for
    /// certain when it sent: further ones may carry the timestamp that it echoes.
    latest: (u32, u16),
    certain: (u32, u16),
    /// The timestamp that its last segment echoed.
    echo: u32,
    /// Timestamp value, number and window of ACKs that the sender may not have received.
    waiting: VecDeque<(u32, u32, u16)>,
    least: u8,
    /// Segments beyond the edge with the least scale so far, and the least that they need.
    beyond: (u8, u8),
    /// Since the last segment: whether it filled the window, and its time.
    last: Option<(bool, u64)>,
    filled_ns: u64,
    total_ns: u64,
}

impl WindowEdges {
    /// The side advertises a window; `value` is its timestamp, 0 without.
    pub(crate) fn add_ack(&mut self, value: u32, ack: u32, window: u16) {
        if value == 0 {
            self.receive(ack, window);
            return;
        }
        self.waiting.push_back((value, ack, window));
        if self.waiting.len() > MAX_WAITING
            && let Some((_, ack, window)) = self.waiting.pop_front()
        {
            self.receive(ack, window);
        }
    }

    fn receive(&mut self, ack: u32, window: u16) {
        self.latest = (ack, window);
        let new = std::array::from_fn(|scale| ack.wrapping_add(u32::from(window) << scale));
        let edges = self.edges.get_or_insert(new);
        for (edge, new) in edges.iter_mut().zip(new) {
            if after(new, *edge) {
                *edge = new;
            }
        }
    }

    /// The sender has received ACKs that wait, as long as their timestamps are those, at most `most`.
    fn receive_waiting(&mut self, is_received: impl Fn(u32) -> bool, most: usize) {
        for _ in 0..most {
            let first = self.waiting.front().copied().filter(|first| is_received(first.0));
            let Some((_, ack, window)) = first else { return };
            self.waiting.pop_front();
            self.receive(ack, window);
        }
    }

    /// The other side sends data up to `end` in segments of `mss` bytes; `echo` is the timestamp
    /// that it echoes, 0 without.
    pub(crate) fn add_data(&mut self, end: u32, echo: u32, mss: u32, now_ns: u64) {
        let is_new = echo == 0 || echo != self.echo;
        self.receive_waiting(|value| (value.wrapping_sub(echo) as i32) < 0, usize::MAX);
        // The one that it echoes, at least.
        if is_new {
            self.receive_waiting(|value| value == echo, 1);
            (self.echo, self.certain) = (echo, self.latest);
        }
        self.receive_waiting(|value| value == echo || echo == 0, usize::MAX);
        let Some(edges) = self.edges else { return };
        if let Some((is_filled, since_ns)) = self.last {
            let passed = now_ns.saturating_sub(since_ns);
            self.total_ns = self.total_ns.saturating_add(passed);
            self.filled_ns = self.filled_ns.saturating_add(if is_filled { passed } else { 0 });
        }
        let least = usize::from(self.least);
        let needed = edges.iter().skip(least).position(|edge| !after(end, *edge));
        // Beyond any window: numbers of another connection.
        let Some(more) = needed else { return };
        if more > 0 {
            // At most MAX_SCALE.
            let scale = (least + more) as u8;
            let (count, smallest) = self.beyond;
            self.beyond = (count + 1, if count == 0 { scale } else { smallest.min(scale) });
            if self.beyond.0 >= PROOF {
                self.least = self.beyond.1;
                self.beyond = (0, 0);
                (self.filled_ns, self.total_ns) = (0, 0);
            }
        }
        let edge_of = |(ack, window): (u32, u16)| ack.wrapping_add(u32::from(window) << self.least);
        let window = u32::from(self.latest.1) << self.least;
        // Of a window that has few segments, one ACK is a good part.
        let (certain, latest) = (edge_of(self.certain), edge_of(self.latest));
        let is_doubtful = latest.wrapping_sub(certain) <= window / DOUBTFUL_PART;
        let edge = if is_doubtful { certain } else { latest };
        let room = edge.wrapping_sub(end) as i32;
        let little = (mss * FILLED_SEGMENTS).min(window / FILLED_PART);
        self.last = Some((i64::from(room) <= i64::from(little), now_ns));
    }

    /// The least scale: proven, or one with which the sender fills the window for most of the
    /// time.
    pub(crate) fn least_scale(&self) -> Option<LeastScale> {
        let is_filled =
            self.total_ns > 0 && self.filled_ns as f64 >= FILLED_SHARE * self.total_ns as f64;
        let shift = self.least;
        (shift > 0 || is_filled).then_some(LeastScale { shift, is_filled })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MSS: u32 = 1000;

    /// A window of so many bytes is filled again and again, without or with timestamps.
    fn filled(window: u32, scale: u8, has_timestamps: bool) -> Option<LeastScale> {
        let mut edges = WindowEdges::default();
        let raw = (window >> scale) as u16;
        let window = u32::from(raw) << scale;
        let mut ack = u32::MAX - 30_000;
        for round in 1..50_u32 {
            let echo = if has_timestamps { round } else { 0 };
            edges.add_ack(echo, ack, raw);
            // The ACK of the next round passes here, and has yet to reach the sender.
            if has_timestamps {
                edges.add_ack(echo + 1, ack.wrapping_add(window), raw);
            }
            for segment in 1..=window / MSS {
                let end = ack.wrapping_add(segment * MSS);
                edges.add_data(end, echo, MSS, u64::from(round) * 100_000_000);
            }
            ack = ack.wrapping_add(window / MSS * MSS);
        }
        edges.least_scale()
    }

    #[test]
    fn bytes_beyond_the_edge_prove_a_scale() {
        for (window, scale) in [(39_600, 8), (200_000, 3), (200_000, 10), (60_000, 1)] {
            let found = Some(LeastScale { shift: scale, is_filled: true });
            assert_eq!(filled(window, scale, false), found, "{window} {scale}");
            assert_eq!(filled(window, scale, true), found, "{window} {scale}");
        }
        // A window that needs no scale, and is full.
        let found = Some(LeastScale { shift: 0, is_filled: true });
        assert_eq!(filled(60_000, 0, false), found);
    }

    /// Eight ACKs in each tick of the clock, which all pass before the data that they release.
    #[test]
    fn a_timestamp_of_several_acks_is_that_of_the_first() {
        let (mut edges, raw) = (WindowEdges::default(), 1560);
        let window = u32::from(raw) << 7;
        for tick in 1..200 {
            let acks = || (0..8).map(move |number| (8 * tick + number) * MSS);
            acks().for_each(|ack| edges.add_ack(tick, ack, raw));
            acks().for_each(|ack| {
                edges.add_data(ack + window, tick, MSS, u64::from(ack) * 125);
            });
        }
        assert_eq!(edges.least_scale(), Some(LeastScale { shift: 7, is_filled: true }));
    }

    #[test]
    fn little_in_flight_proves_nothing() {
        let mut edges = WindowEdges::default();
        for segment in 1..100 {
            edges.add_ack(0, segment * MSS, 20_000);
            edges.add_data(segment * MSS + MSS, 0, MSS, u64::from(segment) * 1_000_000);
        }
        assert_eq!(edges.least_scale(), None);
        // Two segments beyond: an ACK was not captured.
        edges.add_data(100 * MSS + 19_500, 0, MSS, 200_000_000);
        edges.add_data(100 * MSS + 20_500, 0, MSS, 200_000_000);
        assert_eq!(edges.least_scale(), None);
    }

    #[test]
    fn numbers_of_another_connection_prove_nothing() {
        let mut edges = WindowEdges::default();
        edges.add_ack(0, 0, 10);
        for end in 0..10 {
            edges.add_data(1_500_000_000 + end, 0, MSS, u64::from(end) * 1_000_000);
        }
        assert_eq!(edges.least_scale(), None);
    }
}
