//! How often both sides look for each other's record before they sleep.
//!
//! Looking saves waking a process where each side has a core, and costs the other one time where
//! they share it, or other simulations need it. Which of the two holds shows in whether it helped.

/// Most looks, some 50 us: waking a process and its answer take less.
const MOST: u64 = 1_000;
/// What is left of the looks each time that they did not help.
const DECREASE: u64 = 4;
/// Events without any look, after which it is tried again.
const REST: u32 = 256;

/// The number of looks, adapted at each event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Spins {
    most: u64,
    now: u64,
    rested: u32,
}

impl Spins {
    /// With only one core there is nothing to look for: the other side does not run.
    pub(crate) const fn new(has_cores: bool) -> Self {
        let most = if has_cores { MOST } else { 0 };
        Spins { most, now: most, rested: 0 }
    }

    /// How often to look at the next event.
    pub(crate) const fn now(&self) -> u64 {
        self.now
    }

    /// An answer came, `in_time` if it was seen before sleeping.
    pub(crate) const fn on_answer(&mut self, in_time: bool) {
        if in_time {
            self.now = self.most;
        } else if self.now > 0 {
            self.now /= DECREASE;
            self.rested = 0;
        } else {
            self.rested += 1;
            if self.rested >= REST {
                self.now = self.most;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The looks of `events` events that are all answered in time, or not.
    fn looks(spins: &mut Spins, events: u32, in_time: bool) -> u64 {
        let look = |_| {
            let now = spins.now();
            spins.on_answer(in_time && now > 0);
            now
        };
        (0..events).map(look).sum()
    }

    #[test]
    fn looks_that_help_go_on_and_others_become_rare() {
        let mut spins = Spins::new(true);
        assert_eq!(looks(&mut spins, 100, true), 100 * MOST);
        assert_eq!(looks(&mut spins, 5, false), 1_000 + 250 + 62 + 15 + 3);
        assert_eq!(looks(&mut spins, REST, false), 0);
        assert_eq!(spins.now(), MOST, "one more attempt");
        assert_eq!(looks(&mut spins, 1, true), MOST);
        assert_eq!(spins.now(), MOST);
        assert!(looks(&mut spins, 100_000, false) < 1_000_000, "10 an event");
        assert_eq!(looks(&mut Spins::new(false), 1_000, false), 0);
    }
}
