//! Search for the highest rate that meets a loss target. Pure: the caller runs the
//! trials.
//!
//! From the first rate it doubles while trials pass (or halves until one does), then
//! bisects by ratio until the highest passing and the lowest failing rate are within
//! [`RESOLUTION`]. A failure counts once confirmed by a second one, since bursts of loss
//! are random; the resulting rate must pass twice, otherwise a lower one is tried.

use units::BitRate;

/// How close the highest rate that passes and the lowest that fails come.
pub const RESOLUTION: f64 = 0.01;

/// Lowest rate tried, in bit/s: about one datagram per second.
const MIN_RATE_BPS: f64 = 10e3;

/// A try that sends less than this share of its rate was limited by the sender;
/// twice, and the sender's own limit is reached.
const MIN_SENT_SHARE: f64 = 0.9;

/// Consistent tries that confirm a failure, and the final rate.
const REQUIRED_TRIES: u32 = 2;

/// Why a search is over.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ending {
    /// A rate passes, and one just above it fails.
    Found,
    /// This sender cannot send faster.
    SenderLimited,
    /// The highest allowed rate passes.
    HighestAsked,
    /// The lowest rate fails.
    LossyAtLeast,
    /// The maximum number of tries was reached.
    TriesUsedUp,
}

/// What to do next.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Step {
    /// Try this rate, then call [`Search::record`].
    Try(BitRate),
    /// The search is over.
    Over(Ending),
}

/// Tries of one rate.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Votes {
    rate: f64,
    passed: u32,
    failed: u32,
    /// Passed, but far less was sent than requested: not evidence for this rate.
    short: u32,
}

impl Votes {
    fn none(rate: f64) -> Self {
        Votes { rate, passed: 0, failed: 0, short: 0 }
    }
}

/// State of a search.
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
    /// A search from `first` up to `most`, with at most `tries` tries.
    #[must_use]
    pub fn new(first: BitRate, most: BitRate, tries: u32) -> Self {
        let most = most.as_f64().max(MIN_RATE_BPS);
        Search {
            most,
            left: tries,
            now: Votes::none(first.as_f64().clamp(MIN_RATE_BPS, most)),
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

    /// Records the result of a try: whether loss was within the target, and the
    /// rate that was sent.
    pub fn record(&mut self, within: bool, sent: BitRate) {
        self.left = self.left.saturating_sub(1);
        match within {
            true if sent.as_f64() < MIN_SENT_SHARE * self.now.rate => self.now.short += 1,
            true => self.now.passed += 1,
            false => self.now.failed += 1,
        }
        let needed = if self.confirming { REQUIRED_TRIES } else { 1 };
        if self.now.failed >= REQUIRED_TRIES {
            self.fails();
        } else if self.now.short >= REQUIRED_TRIES {
            self.ending = Some(Ending::SenderLimited);
        } else if self.now.passed >= needed {
            self.passes();
        }
    }

    /// The highest rate that passed so far.
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
        if self.now.rate <= MIN_RATE_BPS {
            self.ending = Some(Ending::LossyAtLeast);
        } else {
            self.now = Votes::none(rate.max(MIN_RATE_BPS));
        }
    }

    fn close_in(&mut self) {
        let (Some(passing), Some(failing)) = (self.passing, self.failing) else { return };
        if failing <= passing.rate * (1.0 + RESOLUTION) {
            self.confirming = true;
            self.now = passing;
            if passing.passed >= REQUIRED_TRIES {
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
                    search.record(sent <= capacity && !bad(), rate(sent));
                }
            }
        }
    }

    #[test]
    fn the_rate_of_a_clean_link_takes_few_trials() {
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
    fn each_ending_has_its_reason() {
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
        short.record(false, BitRate::ZERO);
        assert_eq!(short.next(), Step::Over(Ending::TriesUsedUp));
    }

    #[test]
    fn the_search_goes_below_the_first_rate() {
        let (search, ending, _) = search(120e3, 1e12, 1e12, || false);
        let found = search.found().unwrap().as_f64();
        assert_eq!(ending, Ending::Found);
        assert!((118.5e3..=120e3).contains(&found), "{found}");
    }

    proptest! {
        /// Tries struck by chance, never twice within three: each failure by
        /// chance is outvoted.
        #[test]
        fn single_bursts_do_not_mislead(capacity in 20e3..5e9f64, strikes in prop::collection::vec(0usize..8, 60)) {
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

        /// With any results it ends, and the rate found is below the failed ones.
        #[test]
        fn the_search_always_ends(told: Vec<bool>, first: u64, most: u64) {
            let mut search = Search::new(BitRate::from_bps(first), BitRate::from_bps(most), 100);
            let mut told = told.into_iter().cycle();
            let mut tries = 0;
            while let Step::Try(rate) = search.next() {
                search.record(told.next().unwrap_or(true), rate);
                tries += 1;
            }
            prop_assert!(tries <= 100);
            if let (Some(found), Some(failed)) = (search.found(), search.failed()) {
                prop_assert!(found <= failed, "{found:?} {failed:?}");
            }
        }
    }
}
