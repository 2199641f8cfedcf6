//! Round trips of a sender, and those in which its send buffer must have held it back.
//!
//! Neither the send buffer nor the congestion window is in a packet. A congestion window that
//! is used up grows: Reno's by a segment in each round trip, CUBIC's by three segments within
//! 3.8 s even where it is flattest, around its last maximum (RFC 9438, equation 1: 0.4 t^3, in
//! segments and seconds). Where the bytes in flight stay the same for longer, each ACK releases
//! as much as it acknowledged, the receiver's window has room and nothing was lost or marked,
//! something else limits them, and that is the send buffer. An application with a rate of its
//! own does not wait for ACKs. BBR probes each 2 to 3 s.

use crate::time_by_cause::Span;

/// Round trips, and time in ns, over which the bytes in flight stay the same.
const MIN_ROUNDS: usize = 8;
const MIN_NS: u64 = 3_800_000_000;
/// By how much they may differ: segments, and share of them at most.
const SEGMENTS: f64 = 2.5;
const SHARE: f64 = 0.1;
/// Round trips that are kept; beyond, two become one.
const MAX: usize = 1 << 14;

/// One round trip.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Round {
    pub(crate) from_ns: u64,
    pub(crate) to_ns: u64,
    /// The most bytes in flight.
    pub(crate) flight: u64,
    /// Its packets and the time in it that nothing but the congestion window, or the send
    /// buffer, took.
    pub(crate) window: Span,
    /// Whether only the congestion window or the send buffer can have limited it: no loss,
    /// room in the receiver's window, and segments that follow ACKs.
    pub(crate) is_clocked: bool,
}

/// The round trips of a stream.
#[derive(Debug, Clone, Default)]
pub(crate) struct Rounds {
    all: Vec<Round>,
    /// Round trips that make one of `all`.
    merged: u32,
    pending: Option<(Round, u32)>,
}

impl Rounds {
    pub(crate) fn add(&mut self, round: Round) {
        let (joined, count) = match self.pending.take() {
            None => (round, 1),
            Some((before, count)) => (join(before, round), count + 1),
        };
        if count < self.merged.max(1) {
            self.pending = Some((joined, count));
            return;
        }
        self.all.push(joined);
        if self.all.len() == MAX {
            self.all = self.all.chunks(2).map(|pair| join(pair[0], pair[pair.len() - 1])).collect();
            self.merged = self.merged.max(1) * 2;
        }
    }

    /// Spans in which the send buffer limited the bytes in flight, in ns.
    pub(crate) fn buffer_limited(&self, mss: u32) -> Vec<(u64, u64)> {
        let ends = |rounds: &[Round]| Some((rounds.first()?.from_ns, rounds.last()?.to_ns));
        self.flat_parts(mss).into_iter().filter_map(ends).collect()
    }

    /// The packets of these spans, and the time in them that it took.
    pub(crate) fn buffer_time(&self, mss: u32) -> Vec<Span> {
        let span = |rounds: &[Round]| {
            let (first, last) = (rounds.first()?, rounds.last()?);
            let ns = rounds.iter().map(|round| round.window.ns).sum();
            Some(Span { packets: (first.window.packets.0, last.window.packets.1), ns })
        };
        self.flat_parts(mss).into_iter().filter_map(span).collect()
    }

    fn flat_parts(&self, mss: u32) -> Vec<&[Round]> {
        let mut parts = Vec::new();
        let mut first = 0;
        while first < self.all.len() {
            let length = self.flat(first, mss);
            let rounds = &self.all[first..first + length];
            if let (Some(from), Some(to)) = (rounds.first(), rounds.last())
                && length * self.merged.max(1) as usize >= MIN_ROUNDS
                && to.to_ns - from.from_ns >= MIN_NS
            {
                parts.push(rounds);
            }
            first += length.max(1);
        }
        parts
    }

    /// Round trips from `first` on that are clocked and have the same bytes in flight.
    fn flat(&self, first: usize, mss: u32) -> usize {
        let (mut least, mut most) = (u64::MAX, 0);
        let same = |round: &&Round| {
            least = least.min(round.flight);
            most = most.max(round.flight);
            let allowed = (f64::from(mss) * SEGMENTS).min(most as f64 * SHARE);
            round.is_clocked && (most - least) as f64 <= allowed
        };
        self.all[first..].iter().take_while(same).count()
    }
}

fn join(first: Round, second: Round) -> Round {
    Round {
        from_ns: first.from_ns,
        to_ns: second.to_ns,
        flight: first.flight.max(second.flight),
        window: Span {
            packets: (first.window.packets.0, second.window.packets.1),
            ns: first.window.ns + second.window.ns,
        },
        is_clocked: first.is_clocked && second.is_clocked,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rounds(flights: impl IntoIterator<Item = u64>) -> Rounds {
        let mut rounds = Rounds::default();
        for (index, flight) in (0..).zip(flights) {
            let (from_ns, to_ns) = (index * 1_000_000_000, (index + 1) * 1_000_000_000);
            let window = Span { packets: (index + 1, index + 2), ns: 900_000_000 };
            rounds.add(Round { from_ns, to_ns, flight, window, is_clocked: true });
        }
        rounds
    }

    #[test]
    fn a_window_that_grows_is_no_buffer() {
        let flat = rounds([64_000; 8]);
        assert_eq!(flat.buffer_limited(1448), [(0, 8_000_000_000)]);
        let span = Span { packets: (1, 9), ns: 7_200_000_000 };
        assert_eq!(flat.buffer_time(1448), [span]);
        assert!(rounds([64_000; 7]).buffer_limited(1448).is_empty());
        // Eight round trips of 0.4 s are too short a time.
        let mut brief = rounds([64_000; 8]);
        for round in &mut brief.all {
            (round.from_ns, round.to_ns) = (round.from_ns * 4 / 10, round.to_ns * 4 / 10);
        }
        assert!(brief.buffer_limited(1448).is_empty());
        // Half a segment in a round trip is what CUBIC grows by at least.
        let grows = rounds((0..30).map(|round| 64_000 + round * 724));
        assert!(grows.buffer_limited(1448).is_empty());
    }

    #[test]
    fn memory_is_bounded() {
        let many = rounds((0..3 * MAX as u64).map(|_| 64_000));
        assert!(many.all.len() < MAX);
        let [(0, to_ns)] = many.buffer_limited(1448)[..] else { panic!("one span") };
        assert!(to_ns > 2 * MAX as u64 * 1_000_000_000);
    }
}
