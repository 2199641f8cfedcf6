//! The search for the highest rate that loses no more than a target: pure, with
//! the tries made by whoever asks for the next one.
//!
//! From the first rate it doubles while tries pass (or halves until one does),
//! then halves the gap, by ratio, until pass and failure lie within
//! [`RESOLUTION`]. A failure counts once seen twice, since a burst of loss comes
//! by chance; the rate found passes twice, or a lower one must.

use units::BitRate;

/// How close the highest rate that passes and the lowest that fails come.
pub const RESOLUTION: f64 = 0.01;

/// Lowest rate that is tried, in bit/s: a datagram a second or so.
const LEAST: f64 = 10e3;

/// A sender that sends less than this share of what was asked was held up, and
/// where that happens again it is at its own limit.
const SENT: f64 = 0.9;

/// Tries that agree settle a failure, and the rate that is found.
const AGREE: u32 = 2;

/// Why a search is over.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ending {
    /// A rate passes, and one just above it fails.
    Found,
    /// This sender sends no faster.
    SenderLimited,
    /// The highest rate that was allowed passes.
    HighestAsked,
    /// The lowest rate fails.
    LossyAtLeast,
    /// The number of tries was used up.
    TriesUsedUp,
}

/// What to do next.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Step {
    /// Try this rate and tell what came of it.
    Try(BitRate),
    /// Nothing: it is over.
    Over(Ending),
}

/// Tries of one rate.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Votes {
    rate: f64,
    passed: u32,
    failed: u32,
    /// Passed, but far less was sent than asked: says nothing of this rate.
    short: u32,
}

impl Votes {
    fn none(rate: f64) -> Self {
        Votes { rate, passed: 0, failed: 0, short: 0 }
    }
}

/// A search under way.
#[derive(Debug, Clone, PartialEq)]
pub struct Search {
    most: f64,
    left: u32,
    now: Votes,
    /// The highest rate that passes.
    passing: Option<Votes>,
    /// The lowest that fails.
    failing: Option<f64>,
    confirming: bool,
    ending: Option<Ending>,
}

impl Search {
    /// Begins at `first` and goes no higher than `most`, with so many tries at
    /// most.
    #[must_use]
    pub fn new(first: BitRate, most: BitRate, tries: u32) -> Self {
        let most = most.as_f64().max(LEAST);
        Search {
            most,
            left: tries,
            now: Votes::none(first.as_f64().clamp(LEAST, most)),
            passing: None,
            failing: None,
            confirming: false,
            ending: None,
        }
    }

    /// The next rate to try, or why there is none.
    #[must_use]
    pub fn next(&self) -> Step {
        match self.ending {
            Some(ending) => Step::Over(ending),
            None if self.left == 0 => Step::Over(Ending::TriesUsedUp),
            None => Step::Try(BitRate::from_bps_f64(self.now.rate)),
        }
    }

    /// What came of that try: whether it lost no more than the target, and
    /// what the sender sent.
    pub fn tell(&mut self, within: bool, sent: BitRate) {
        self.left = self.left.saturating_sub(1);
        match within {
            true if sent.as_f64() < SENT * self.now.rate => self.now.short += 1,
            true => self.now.passed += 1,
            false => self.now.failed += 1,
        }
        let needed = if self.confirming { AGREE } else { 1 };
        if self.now.failed >= AGREE {
            self.fails();
        } else if self.now.short >= AGREE {
            self.ending = Some(Ending::SenderLimited);
        } else if self.now.passed >= needed {
            self.passes();
        }
    }

    /// The highest rate that passed, as far as is known now.
    #[must_use]
    pub fn found(&self) -> Option<BitRate> {
        self.passing.map(|votes| BitRate::from_bps_f64(votes.rate))
    }

    /// The lowest rate that failed.
    #[must_use]
    pub fn failed(&self) -> Option<BitRate> {
        self.failing.map(BitRate::from_bps_f64)
    }

    fn passes(&mut self) {
        self.passing = Some(self.now);
        if self.confirming {
            self.ending = Some(Ending::Found);
        } else if self.failing.is_some() {
            self.close_in();
        } else if self.now.rate >= self.most {
            self.ending = Some(Ending::HighestAsked);
        } else {
            self.now = Votes::none((self.now.rate * 2.0).min(self.most));
        }
    }

    fn fails(&mut self) {
        let rate = self.now.rate;
        self.failing = Some(rate);
        if self.confirming {
            // What passed once does not pass again: the next one down must.
            self.passing = None;
            self.lower(rate / (1.0 + RESOLUTION));
        } else if self.passing.is_some() {
            self.close_in();
        } else {
            self.lower(rate / 2.0);
        }
    }

    fn lower(&mut self, rate: f64) {
        if self.now.rate <= LEAST {
            self.ending = Some(Ending::LossyAtLeast);
        } else {
            self.now = Votes::none(rate.max(LEAST));
        }
    }

    fn close_in(&mut self) {
        let (Some(passing), Some(failing)) = (self.passing, self.failing) else { return };
        if failing <= passing.rate * (1.0 + RESOLUTION) {
            self.confirming = true;
            self.now = passing;
            if passing.passed >= AGREE {
                self.ending = Some(Ending::Found);
            }
        } else {
            self.now = Votes::none((passing.rate * failing).sqrt());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Searches a link that passes what fits, except where `bad` says that a try
    /// is struck by chance.
    fn search(
        capacity: f64,
        sender: f64,
        most: f64,
        mut bad: impl FnMut() -> bool,
    ) -> (Search, Ending, Vec<f64>) {
        let rate = BitRate::from_bps_f64;
        let mut search = Search::new(rate(1e6), rate(most), 200);
        let mut tried = Vec::new();
        loop {
            match search.next() {
                Step::Over(ending) => return (search, ending, tried),
                Step::Try(asked) => {
                    let sent = asked.as_f64().min(sender);
                    tried.push(asked.as_f64());
                    search.tell(sent <= capacity && !bad(), rate(sent));
                }
            }
        }
    }

    #[test]
    fn a_clean_link_is_found_in_few_tries() {
        let (search, ending, tried) = search(95e6, 1e12, 1e12, || false);
        let found = search.found().unwrap().as_f64();
        assert_eq!(ending, Ending::Found);
        assert!((94e6..=95e6).contains(&found), "{found}");
        // Doubling to 128 Mbit/s takes 9 tries, 7 halvings reach 1 %, and one
        // confirms; the failures among them take two.
        assert!(tried.len() <= 26, "{tried:?}");
        assert!(search.failed().unwrap().as_f64() > 95e6);
    }

    #[test]
    fn each_end_has_its_reason() {
        let (limited, ending, tried) = search(1e12, 3e9, 1e12, || false);
        assert_eq!(
            (ending, limited.found()),
            (Ending::SenderLimited, Some(BitRate::from_bps(2_048_000_000)))
        );
        assert!(tried.ends_with(&[2.048e9, 4.096e9, 4.096e9]), "{tried:?}");
        let (high, ending, _) = search(1e12, 1e12, 5e6, || false);
        assert_eq!(
            (ending, high.found()),
            (Ending::HighestAsked, Some(BitRate::from_bps(5_000_000)))
        );
        let (none, ending, _) = search(0.0, 1e12, 1e12, || false);
        assert_eq!((ending, none.found()), (Ending::LossyAtLeast, None));
        let mut short = Search::new(BitRate::from_bps(1), BitRate::ZERO, 1);
        short.tell(false, BitRate::ZERO);
        assert_eq!(short.next(), Step::Over(Ending::TriesUsedUp));
    }

    #[test]
    fn below_the_first_rate_it_goes_down() {
        let (search, ending, _) = search(120e3, 1e12, 1e12, || false);
        let found = search.found().unwrap().as_f64();
        assert_eq!(ending, Ending::Found);
        assert!((118.5e3..=120e3).contains(&found), "{found}");
    }

    proptest! {
        /// Tries struck by chance, never twice within three: each failure by
        /// chance is outvoted.
        #[test]
        fn lone_bursts_do_not_mislead(capacity in 20e3..5e9f64, strikes in prop::collection::vec(0usize..8, 60)) {
            let mut strikes = strikes.into_iter().map(|gap| gap + 3);
            let mut left = strikes.next().unwrap_or(9);
            let (search, ending, _) = search(capacity, 1e12, 1e12, || {
                left = left.saturating_sub(1);
                let struck = left == 0;
                if struck {
                    left = strikes.next().unwrap_or(usize::MAX);
                }
                struck
            });
            let found = search.found().unwrap().as_f64();
            prop_assert_eq!(ending, Ending::Found);
            prop_assert!(found <= capacity && found >= capacity * 0.98, "{} of {}", found, capacity);
        }

        /// Whatever is told, it ends, and what it found lies below what failed.
        #[test]
        fn it_always_ends(told: Vec<bool>, first: u64, most: u64) {
            let mut search = Search::new(BitRate::from_bps(first), BitRate::from_bps(most), 100);
            let mut told = told.into_iter().cycle();
            let mut tries = 0;
            while let Step::Try(rate) = search.next() {
                search.tell(told.next().unwrap_or(true), rate);
                tries += 1;
            }
            prop_assert!(tries <= 100);
            if let (Some(found), Some(failed)) = (search.found(), search.failed()) {
                prop_assert!(found <= failed, "{found:?} {failed:?}");
            }
        }
    }
}
