//! Which capture a packet passed first.
//!
//! Where a flow has packets of both directions, they say it whatever the clocks are: the
//! times differ by the clocks' difference plus a delay for packets from A to B, and minus
//! one for those from B to A, so it is the direction with the larger difference.

use crate::packet::PacketIdentity;
use crate::translation::Both;
use std::cmp::Ordering;

/// From which capture to which a packet goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Transit {
    /// It passes A first.
    AToB,
    /// It passes B first.
    BToA,
}

impl Transit {
    /// Both.
    pub const ALL: [Transit; 2] = [Transit::AToB, Transit::BToA];

    /// 0 or 1.
    #[must_use]
    pub fn index(self) -> usize {
        match self {
            Transit::AToB => 0,
            Transit::BToA => 1,
        }
    }

    /// The opposite one.
    #[must_use]
    pub fn reverse(self) -> Self {
        match self {
            Transit::AToB => Transit::BToA,
            Transit::BToA => Transit::AToB,
        }
    }

    /// Its name: `A to B`.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Transit::AToB => "A to B",
            Transit::BToA => "B to A",
        }
    }
}

/// What the unmistakable packets of a direction of a flow say.
#[derive(Debug, Clone, Copy)]
pub(crate) struct DirectionEvidence {
    /// Median of the time in B minus that in A.
    difference_ns: Option<i64>,
    /// TTL in A against B, of nearly all packets.
    ttl: Ordering,
}

/// Share of the packets with different TTLs that has to agree.
const AGREED: f64 = 0.9;

impl DirectionEvidence {
    pub(crate) fn of(both: &Both<'_>, pairs: &[(u32, u32)]) -> Self {
        let all = || pairs.iter().filter_map(|(a, b)| packets(both, *a, *b));
        let mut differences: Vec<i64> = all().map(|(a, b)| b.time_ns - a.time_ns).collect();
        let middle = differences.len() / 2;
        let difference_ns =
            (!differences.is_empty()).then(|| *differences.select_nth_unstable(middle).1);
        let (mut less, mut greater) = (0_usize, 0_usize);
        for (a, b) in all() {
            less += usize::from(a.ttl < b.ttl);
            greater += usize::from(a.ttl > b.ttl);
        }
        let most = (less + greater) as f64 * AGREED;
        let ttl = match less + greater {
            0 => Ordering::Equal,
            _ if greater as f64 >= most => Ordering::Greater,
            _ if less as f64 >= most => Ordering::Less,
            _ => Ordering::Equal,
        };
        DirectionEvidence { difference_ns, ttl }
    }
}

/// Two packets by their places in the slices.
pub(crate) fn packets<'a>(
    both: &Both<'a>,
    a: u32,
    b: u32,
) -> Option<(&'a PacketIdentity, &'a PacketIdentity)> {
    Some((both.a.get(a as usize)?, both.b.get(b as usize)?))
}

/// The transit of each flow's first direction; that of the second is the reverse. The
/// flag says that some rest on the clocks alone.
pub(crate) fn decide(flows: &[[DirectionEvidence; 2]]) -> (Vec<Transit>, bool) {
    // Half way between the directions is the clocks' difference.
    let mut halves: Vec<i64> = flows
        .iter()
        .filter_map(|[first, second]| {
            let (first, second) = first.difference_ns.zip(second.difference_ns)?;
            Some(first.midpoint(second))
        })
        .collect();
    let middle = halves.len() / 2;
    let clock = (!halves.is_empty()).then(|| *halves.select_nth_unstable(middle).1);
    let mut is_assumed = false;
    let transits = flows.iter().map(|[first, second]| {
        let from_first = match (first.difference_ns, second.difference_ns) {
            (Some(one), Some(other)) => one >= other,
            (one, other) => match first.ttl.then(second.ttl.reverse()) {
                Ordering::Greater => true,
                Ordering::Less => false,
                Ordering::Equal => {
                    is_assumed |= clock.is_none() && (one.is_some() || other.is_some());
                    let zero = clock.unwrap_or(0);
                    one.is_none_or(|it| it >= zero) && other.is_none_or(|it| it < zero)
                }
            },
        };
        if from_first { Transit::AToB } else { Transit::BToA }
    });
    (transits.collect(), is_assumed)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn evidence(difference_ns: Option<i64>, ttl: Ordering) -> DirectionEvidence {
        DirectionEvidence { difference_ns, ttl }
    }

    fn first(flows: &[[DirectionEvidence; 2]]) -> (Vec<Transit>, bool) {
        decide(flows)
    }

    #[test]
    fn both_directions_decide_whatever_the_clocks() {
        let equal = Ordering::Equal;
        for clock in [-3_000_000_000, 0, 5_000_000_000] {
            let near = [evidence(Some(clock + 20), equal), evidence(Some(clock - 30), equal)];
            let far = [near[1], near[0]];
            // A TTL that a middlebox raised changes nothing.
            let raised =
                [evidence(Some(clock + 20), Ordering::Less), evidence(Some(clock - 30), equal)];
            // One direction alone is compared with the clock of the others.
            let alone = [evidence(Some(clock + 10), equal), evidence(None, equal)];
            let (transits, assumed) = first(&[near, far, raised, alone]);
            assert_eq!(
                transits,
                [Transit::AToB, Transit::BToA, Transit::AToB, Transit::AToB],
                "{clock}"
            );
            assert!(!assumed);
        }
    }

    #[test]
    fn one_direction_alone_is_decided_by_ttl_then_by_the_clocks() {
        let nothing = evidence(None, Ordering::Equal);
        let lower = evidence(Some(5), Ordering::Less);
        assert_eq!(first(&[[lower, nothing]]), (vec![Transit::BToA], false));
        let clocks = evidence(Some(-5), Ordering::Equal);
        assert_eq!(first(&[[clocks, nothing]]), (vec![Transit::BToA], true));
        assert_eq!(first(&[[nothing, clocks]]), (vec![Transit::AToB], true));
    }
}
