//! Changes of a congestion window.

use std::ops::{Add, Sub};

/// A change of a congestion window, or the sum of several: whole 1/65536 of a packet, so that
/// sums are exact.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct WindowChange(i64);

impl WindowChange {
    /// No change.
    pub const NONE: WindowChange = WindowChange(0);

    /// Parts of a packet.
    pub const PARTS: u32 = 65_536;

    /// A change by that many parts of a packet.
    #[must_use]
    pub const fn from_parts(parts: i64) -> Self {
        WindowChange(parts)
    }

    /// The change in packets.
    #[must_use]
    pub fn packets(self) -> f64 {
        self.0 as f64 / f64::from(WindowChange::PARTS)
    }
}

impl Add for WindowChange {
    type Output = WindowChange;

    fn add(self, other: WindowChange) -> WindowChange {
        WindowChange(self.0.saturating_add(other.0))
    }
}

impl Sub for WindowChange {
    type Output = WindowChange;

    fn sub(self, other: WindowChange) -> WindowChange {
        WindowChange(self.0.saturating_sub(other.0))
    }
}
