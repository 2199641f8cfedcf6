//! When attackers act, and when they end.

use host::clock;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

/// Ends the attack: raised, or after a time that bounds the test in any case.
pub(crate) struct Stop {
    raised: AtomicBool,
    deadline: Instant,
}

impl Stop {
    pub(crate) fn after(seconds: u32) -> Self {
        let deadline = clock::now() + Duration::from_secs(seconds.into());
        Stop { raised: AtomicBool::new(false), deadline }
    }

    pub(crate) fn raise(&self) {
        self.raised.store(true, Ordering::Relaxed);
    }

    pub(crate) fn is_raised(&self) -> bool {
        self.raised.load(Ordering::Relaxed) || clock::now() >= self.deadline
    }

    /// Raises it when dropped, by a panic as well.
    pub(crate) fn guard(&self) -> Guard<'_> {
        Guard(self)
    }

    /// Runs `act` so many times a second, with the number of the turn. Turns that an
    /// act took too long for are left out: there is never a burst to catch up.
    pub(crate) fn repeat(&self, per_second: u32, mut act: impl FnMut(u32)) {
        let period = Duration::from_secs(1) / per_second;
        let mut next = clock::now();
        let mut turn = 0u32;
        while !self.is_raised() {
            let now = clock::now();
            if let Some(early) = next.checked_duration_since(now) {
                // A sleep is a millisecond at least: what falls due within is done at once.
                thread::sleep(early.max(Duration::from_millis(1)));
                continue;
            }
            act(turn);
            turn = turn.wrapping_add(1);
            next += period;
            if now.saturating_duration_since(next) > Duration::from_millis(50) {
                next = now;
            }
        }
    }
}

pub(crate) struct Guard<'a>(&'a Stop);

impl Drop for Guard<'_> {
    fn drop(&mut self) {
        self.0.raise();
    }
}
