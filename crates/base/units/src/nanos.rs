//! Moments on a virtual clock.

use std::time::Duration;

/// A moment on a virtual clock, in ns since the clock began; up to 584 years.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Nanos(pub u64);

impl Nanos {
    /// Seconds since the clock began.
    #[must_use]
    pub fn secs_f64(self) -> f64 {
        self.0 as f64 / 1e9
    }

    /// Time since `earlier`; zero if `earlier` is later.
    #[must_use]
    pub const fn since(self, earlier: Nanos) -> Duration {
        Duration::from_nanos(self.nanos_since(earlier))
    }

    /// As [`Nanos::since`], in ns.
    #[must_use]
    pub const fn nanos_since(self, earlier: Nanos) -> u64 {
        self.0.saturating_sub(earlier.0)
    }

    /// This time plus `time`, saturating.
    #[must_use]
    pub fn plus(self, time: Duration) -> Nanos {
        self.plus_nanos(nanos(time))
    }

    /// As [`Nanos::plus`], in ns.
    #[must_use]
    pub const fn plus_nanos(self, ns: u64) -> Nanos {
        Nanos(self.0.saturating_add(ns))
    }
}

/// A duration in ns, saturating at 584 years.
#[must_use]
pub fn nanos(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sums_and_differences_saturate() {
        let (early, late) = (Nanos(1_000), Nanos(4_500_000_000));
        assert_eq!(late.since(early), Duration::from_nanos(4_499_999_000));
        assert_eq!(early.since(late), Duration::ZERO);
        assert_eq!(early.plus(Duration::from_micros(2)), Nanos(3_000));
        assert_eq!(late.plus(Duration::MAX), Nanos(u64::MAX));
        assert_eq!(Nanos(u64::MAX).plus_nanos(1), Nanos(u64::MAX));
        assert!((late.secs_f64() - 4.5).abs() < 1e-12);
    }
}
