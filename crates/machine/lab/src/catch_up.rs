//! How fast late deliveries are passed on where a host would lose packets of a burst: its devices
//! hold 1000 at once.
//!
//! Pure: the caller has the clock.

use std::time::Duration;
use units::Nanos;

/// Late deliveries are passed on at this multiple of the rate at which they were due.
const SPEED: u32 = 3;

/// Most time between two iterations of the driver that counts for that.
const STEP: Duration = Duration::from_millis(1);

/// See the module.
#[derive(Debug, Default)]
pub(crate) struct CatchUp {
    /// When deliveries were last passed on.
    last: Nanos,
    /// Up to which due time they were, while later ones had to wait.
    reached: Option<Nanos>,
}

impl CatchUp {
    /// Until when deliveries are passed on of those that are due by `until`, the first of them at
    /// `due`.
    pub(crate) fn until(&mut self, now: Nanos, until: Nanos, due: Option<Nanos>) -> Nanos {
        let passed = now.since(self.last).min(STEP);
        self.last = now;
        let reached = self.reached.take();
        let Some(due) = due.filter(|due| *due <= until) else { return until };
        // Nothing was due before the first one unless others had to wait: an idle link is not late.
        let paced = reached.unwrap_or(due).plus(passed * SPEED).min(until);
        self.reached = (paced < until).then_some(paced);
        paced
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn us(us: u64) -> Nanos {
        Nanos(us * 1_000)
    }

    #[test]
    fn what_is_due_on_time_passes() {
        let mut catch_up = CatchUp::default();
        for now in (0..1_000).map(|at| us(10 * at)) {
            assert_eq!(catch_up.until(now, now, None), now);
            assert_eq!(catch_up.until(now, now, Some(now)), now);
        }
    }

    #[test]
    fn a_sleep_on_an_idle_link_is_not_late() {
        let mut catch_up = CatchUp::default();
        catch_up.until(us(100), us(100), None);
        // Asleep for 50 ms, and woken 0.3 ms too late.
        let (due, now) = (us(50_100), us(50_400));
        assert_eq!(catch_up.until(now, now, Some(due)), now);
    }

    #[test]
    fn after_a_stall_deliveries_pass_at_three_times_their_rate() {
        let mut catch_up = CatchUp::default();
        catch_up.until(us(0), us(0), Some(us(0)));
        // A stall of 20 ms, with a delivery due every 10 us, then an iteration every 50 us.
        let (mut now, mut next, mut most) = (20_000, 10, 0);
        loop {
            let until = catch_up.until(us(now), us(now), Some(us(next)));
            let count = (until.0 / 1_000).saturating_sub(next) / 10 + 1;
            most = most.max(count);
            next += 10 * count;
            if until == us(now) {
                break;
            }
            now += 50;
        }
        assert!((8_000..9_000).contains(&(now - 20_000)), "{now}");
        assert!(most <= 301, "{most}");
    }
}
