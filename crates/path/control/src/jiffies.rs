//! Linux's clock at 250 Hz, in whole ticks of which some of its controls keep time.

use units::Nanos;

/// Ticks a second.
pub(crate) const HZ: u64 = 250;
/// A tick, ns.
pub(crate) const TICK_NS: u64 = 1_000_000_000 / HZ;

/// Whole ticks until `now`.
pub(crate) const fn tick(now: Nanos) -> u64 {
    now.0 / TICK_NS
}
