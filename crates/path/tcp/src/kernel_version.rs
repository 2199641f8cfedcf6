//! Which Linux a sender follows.

/// The Linux whose rules hold where versions differ.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum KernelVersion {
    /// 6.1, of Debian 12.
    V6_1,
    /// 6.18.
    #[default]
    V6_18,
}

/// 6.18 waits for room for a whole burst only if the acknowledgement that makes it is due
/// within this, ns.
const NEAR_NS: u64 = 1_000_000;

impl KernelVersion {
    /// Every one, the oldest first.
    pub const ALL: [Self; 2] = [KernelVersion::V6_1, KernelVersion::V6_18];

    /// `6.1`.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            KernelVersion::V6_1 => "6.1",
            KernelVersion::V6_18 => "6.18",
        }
    }

    /// The one of a name.
    #[must_use]
    pub fn by_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|version| version.name() == name)
    }

    /// Whether an acknowledgement is near enough to wait for it (`tcp_tso_should_defer`),
    /// where the first packet in flight was sent `age_ns` ago.
    pub(crate) const fn is_acknowledgement_near(self, age_ns: u64, srtt_ns: u64) -> bool {
        let left_ns = srtt_ns.saturating_sub(age_ns);
        match self {
            KernelVersion::V6_1 => left_ns <= srtt_ns / 2,
            KernelVersion::V6_18 => left_ns <= srtt_ns / 2 && left_ns <= NEAR_NS,
        }
    }

    /// Packets that a recovery below the slow-start threshold may send at an
    /// acknowledgement: `owed`, delivered since recovery began and not sent yet. `advanced`:
    /// it acknowledged in order and detected no further loss. 6.18 is RFC 9937's; 6.1
    /// catches up only while it advances.
    pub(crate) const fn recovery_allowance(
        self,
        owed: u64,
        newly_delivered: u64,
        advanced: bool,
    ) -> u64 {
        let most = if owed > newly_delivered { owed } else { newly_delivered };
        match (self, advanced) {
            (_, true) => most + 1,
            (KernelVersion::V6_18, false) => most,
            (KernelVersion::V6_1, false) => newly_delivered,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn later_kernels_wait_for_a_near_acknowledgement_only() {
        let near = |kernel: KernelVersion, age_ms: u64| {
            kernel.is_acknowledgement_near(age_ms * 1_000_000, 40_000_000)
        };
        let [old, new] = [KernelVersion::V6_1, KernelVersion::V6_18];
        assert_eq!([19, 20, 38, 39, 41].map(|age| near(old, age)), [false, true, true, true, true]);
        assert_eq!(
            [19, 20, 38, 39, 41].map(|age| near(new, age)),
            [false, false, false, true, true]
        );
    }

    #[test]
    fn later_kernels_catch_up_in_recovery_without_advancing() {
        let allowance = |kernel: KernelVersion, advanced| kernel.recovery_allowance(4, 1, advanced);
        assert_eq!(allowance(KernelVersion::V6_1, false), 1);
        assert_eq!(allowance(KernelVersion::V6_18, false), 4);
        assert_eq!(allowance(KernelVersion::V6_1, true), 5);
        assert_eq!(allowance(KernelVersion::V6_18, true), 5);
    }
}
