//! Loss, reordering, duplicates and jitter of a UDP stream, from sequence numbers
//! and timestamps.
//!
//! A window records which of the latest numbers have arrived: a repeated number is
//! a duplicate, a late one fills its gap. Numbers that leave the window are final,
//! and runs of missing ones become loss bursts. Pure: every time is an argument.

use iperf3_proto::datagram::{Counter, Header};
use record::LossBurst;
use std::collections::BTreeMap;
use units::Rtt;

/// Numbers in the window. A datagram that arrives after this many later ones counts
/// as reordered; it may be a duplicate.
const WINDOW: u64 = 16_384;

/// Loss bursts up to this length are counted by their exact length, longer
/// ones by powers of two.
const EXACT_LENGTHS: u64 = 8;

/// Maximum valid number. No test reaches it, and sums over 128 streams do not
/// overflow.
const MAX_NUMBER: u64 = 1 << 56;

/// Weight of a new difference in the jitter (RFC 3550 section 6.4.1).
const JITTER_GAIN: f64 = 1.0 / 16.0;

/// Counts so far.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(crate) struct Counts {
    /// The highest number seen.
    pub(crate) highest: u64,
    /// Datagrams received, each once.
    pub(crate) received: u64,
    pub(crate) duplicates: u64,
    pub(crate) reordered: u64,
    /// Maximum distance of a reordered datagram from the highest number.
    pub(crate) extent: u64,
    jitter_us: f64,
}

impl Counts {
    /// Numbers missing below the highest.
    pub(crate) fn lost(&self) -> u64 {
        self.highest.saturating_sub(self.received)
    }

    pub(crate) fn jitter(&self) -> Rtt {
        Rtt::from_secs(self.jitter_s())
    }

    /// Jitter in seconds, as in iperf3's results.
    pub(crate) fn jitter_s(&self) -> f64 {
        self.jitter_us * 1e-6
    }
}

/// One stream's arrivals.
#[derive(Debug, Clone)]
pub(crate) struct Arrivals {
    counter: Counter,
    counts: Counts,
    /// Bit `n % WINDOW` for number `n` of the last [`WINDOW`] up to the highest.
    seen: Vec<u64>,
    /// Missing numbers in a row at the window's lower end.
    run: u64,
    bursts: BTreeMap<u64, u64>,
    /// Arrival less departure of the last datagram, µs; the clocks' difference
    /// is in it and cancels out.
    transit: Option<i64>,
}

impl Arrivals {
    pub(crate) fn new(counter: Counter) -> Self {
        Arrivals {
            counter,
            counts: Counts::default(),
            // Numbers begin at 1: what lies below them is not missing.
            seen: vec![u64::MAX; usize::try_from(WINDOW / 64).unwrap_or(0)],
            run: 0,
            bursts: BTreeMap::new(),
            transit: None,
        }
    }

    pub(crate) fn counts(&self) -> Counts {
        self.counts
    }

    /// Resets the jitter at the end of the warm-up, as iperf3 does.
    pub(crate) fn forget_jitter(&mut self) {
        self.counts.jitter_us = 0.0;
        self.transit = None;
    }

    /// A datagram with this header arrived at `now_us` of this host's clock.
    pub(crate) fn take(&mut self, header: Header, now_us: u64) {
        let number = self.unwrapped(header.number);
        if number > MAX_NUMBER {
            return;
        }
        if self.is_plainly_next(number) {
            self.counts.highest = number;
            self.counts.received += 1;
        } else if number > self.counts.highest {
            self.advance(number);
            self.mark(number);
            self.counts.received += 1;
        } else {
            let behind = self.counts.highest - number;
            if behind < WINDOW && self.is_seen(number) {
                self.counts.duplicates += 1;
            } else {
                let counts = &mut self.counts;
                counts.reordered += 1;
                counts.extent = counts.extent.max(behind);
                // Beyond the window it may be a second copy: never more than were sent.
                counts.received = (counts.received + 1).min(counts.highest);
                if behind < WINDOW {
                    self.mark(number);
                }
            }
        }
        // Invalid timestamps must not panic.
        let transit = now_us.wrapping_sub(header.sent_us).cast_signed();
        if let Some(before) = self.transit.replace(transit) {
            let difference = transit.abs_diff(before) as f64;
            self.counts.jitter_us += (difference - self.counts.jitter_us) * JITTER_GAIN;
        }
    }

    /// Fast path for the next number in sequence, if the one a window before it
    /// arrived and no run of missing numbers is open.
    fn is_plainly_next(&self, number: u64) -> bool {
        number == self.counts.highest + 1 && self.run == 0 && self.is_seen(number)
    }

    /// Loss bursts so far, by length.
    pub(crate) fn bursts(&self) -> Vec<LossBurst> {
        let mut rest = self.clone();
        // Everything in the window is settled by moving it out.
        let end = rest.counts.highest.saturating_add(WINDOW);
        for number in rest.counts.highest + 1..=end {
            rest.settle(number);
            rest.mark(number);
        }
        rest.close_run();
        rest.bursts
            .into_iter()
            .map(|(from, count)| {
                let to = if from <= EXACT_LENGTHS { from } else { from.saturating_mul(2) - 1 };
                LossBurst { from, to, count }
            })
            .collect()
    }

    /// Extends a 32-bit number to the one nearest to the highest.
    fn unwrapped(&self, number: u64) -> u64 {
        if self.counter == Counter::Wide {
            return number;
        }
        const SPAN: u64 = 1 << 32;
        let highest = self.counts.highest;
        let near = (highest & !(SPAN - 1)) | (number & (SPAN - 1));
        if near.saturating_add(SPAN / 2) < highest {
            near + SPAN
        } else if near > highest.saturating_add(SPAN / 2) && near >= SPAN {
            near - SPAN
        } else {
            near
        }
    }

    fn advance(&mut self, to: u64) {
        let highest = self.counts.highest;
        let step = to - highest;
        // Numbers skipped beyond a whole window are one run of missing numbers.
        for number in highest + 1..=highest + step.min(WINDOW) {
            self.settle(number);
        }
        if step > WINDOW {
            self.run = self.run.saturating_add(step - WINDOW);
        }
        self.counts.highest = to;
    }

    /// `number` replaces the one a window before it, which is final now.
    fn settle(&mut self, number: u64) {
        if self.is_seen(number) {
            self.close_run();
        } else {
            self.run += 1;
        }
        let (word, bit) = place(number);
        self.seen[word] &= !bit;
    }

    fn close_run(&mut self) {
        let run = std::mem::take(&mut self.run);
        if run > 0 {
            let length = if run <= EXACT_LENGTHS { run } else { 1 << run.ilog2() };
            *self.bursts.entry(length.max(1)).or_default() += 1;
        }
    }

    fn is_seen(&self, number: u64) -> bool {
        let (word, bit) = place(number);
        self.seen[word] & bit != 0
    }

    fn mark(&mut self, number: u64) {
        let (word, bit) = place(number);
        self.seen[word] |= bit;
    }
}

fn place(number: u64) -> (usize, u64) {
    let at = number % WINDOW;
    (usize::try_from(at / 64).unwrap_or(0), 1 << (at % 64))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn after(numbers: impl IntoIterator<Item = u64>) -> Arrivals {
        let mut arrivals = Arrivals::new(Counter::Wide);
        for number in numbers {
            arrivals.take(Header { sent_us: 0, number }, 0);
        }
        arrivals
    }

    fn told(arrivals: &Arrivals) -> (u64, u64, u64, u64, u64) {
        let counts = arrivals.counts();
        (counts.received, counts.lost(), counts.duplicates, counts.reordered, counts.extent)
    }

    fn lengths(arrivals: &Arrivals) -> Vec<(u64, u64)> {
        arrivals.bursts().iter().map(|burst| (burst.from, burst.count)).collect()
    }

    #[test]
    fn loss_reordering_and_duplicates_are_distinguished() {
        assert_eq!(told(&after(1..=100)), (100, 0, 0, 0, 0));
        assert_eq!(told(&after([1, 2, 5, 6])), (4, 2, 0, 0, 0));
        assert_eq!(told(&after([1, 2, 5, 3, 4])), (5, 0, 0, 2, 2));
        assert_eq!(told(&after([1, 2, 2, 2, 3])), (3, 0, 2, 0, 0));
        assert_eq!(told(&after([3, 1, 1, 2])), (3, 0, 1, 2, 2), "the first may be late too");
        assert_eq!(told(&after([])), (0, 0, 0, 0, 0));
    }

    #[test]
    fn loss_bursts_exclude_reordered_datagrams() {
        assert_eq!(lengths(&after([1, 3, 6, 9, 10])), [(1, 1), (2, 2)]);
        assert_eq!(lengths(&after([1, 6, 3])), [(1, 1), (2, 1)], "a late one splits its gap");
        assert_eq!(lengths(&after([1, 21])), [(16, 1)]);
        assert_eq!(lengths(&after([5])), [(4, 1)], "the first ones can be lost as well");
        assert_eq!(lengths(&after(1..=50_000)), []);
        let periodic = after((1..=100_000).filter(|n| n % 10 != 0));
        assert_eq!(lengths(&periodic), [(1, 9_999)], "the last one lost has no successor yet");
    }

    #[test]
    fn a_gap_beyond_the_window_is_one_burst() {
        let arrivals = after([1, 2, 100_000, 100_001]);
        assert_eq!(told(&arrivals), (4, 99_997, 0, 0, 0));
        assert_eq!(arrivals.bursts(), [LossBurst { from: 65_536, to: 131_071, count: 1 }]);
        let wild = after([1, u64::MAX, 7, u64::MAX, 1 << 60]);
        assert_eq!((told(&wild), lengths(&wild)), ((2, 5, 0, 0, 0), vec![(5, 1)]), "not believed");
        let wild = after([1, MAX_NUMBER, 7, MAX_NUMBER + 1]);
        assert_eq!(wild.counts().lost(), MAX_NUMBER - 3);
        assert_eq!(lengths(&wild).len(), 1);
    }

    #[test]
    fn a_narrow_counter_wraps() {
        let mut arrivals = Arrivals::new(Counter::Narrow);
        let start = (1u64 << 32) - 3;
        for number in (1..10).chain([1 << 31, start]).chain(start + 1..start + 8) {
            arrivals.take(Header { sent_us: 0, number: number & 0xffff_ffff }, 0);
        }
        assert_eq!(arrivals.counts().highest, start + 7);
        arrivals.take(Header { sent_us: 0, number: start + 1 }, 0);
        assert_eq!(arrivals.counts().duplicates, 1, "one from before the wrap");
    }

    #[test]
    fn jitter_follows_its_formula() {
        let mut arrivals = Arrivals::new(Counter::Wide);
        // Sent every 1000 us, arriving after 500 and 660 us in turn: |D| is 160.
        let mut expected = 0.0;
        for number in 1..=4u64 {
            let late = if number % 2 == 0 { 660 } else { 500 };
            arrivals.take(Header { sent_us: number * 1000, number }, number * 1000 + late);
            if number > 1 {
                expected += (160.0 - expected) / 16.0;
            }
        }
        assert!((arrivals.counts().jitter_s() - expected * 1e-6).abs() < 1e-12);
        arrivals.forget_jitter();
        assert_eq!(arrivals.counts().jitter(), Rtt::from_micros(0));
        assert_eq!(arrivals.counts().received, 4);
    }
}
