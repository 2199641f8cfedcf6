//! What a lab's report of its path rules out.

use crate::{
    evidence::Evidence,
    predict,
    statistics::{Statistic, Statistics},
};
use record::{Limit, Measurement, PathReport};
use units::{BitRate, LossRatio};

/// The share of the path's payload rate from which its bottleneck is saturated, and below
/// which it is not.
const SATURATED: f64 = 0.92;
const IDLE: f64 = 0.7;

/// The path of a lab, with its payload rate.
pub(crate) struct KnownPath<'a> {
    path: &'a PathReport,
    payload: Option<BitRate>,
}

impl<'a> KnownPath<'a> {
    /// The path that a lab emulated; `None` on a real path.
    pub(crate) fn of(m: &'a Measurement, e: &Evidence) -> Option<Self> {
        let path = m.path.as_ref()?;
        Some(KnownPath { path, payload: predict::path_payload(m, e).map(|path| path.goodput) })
    }

    /// The payload rate, bit/s; `None` without a rate limit.
    pub(crate) fn payload(&self) -> Option<f64> {
        self.payload.map(BitRate::as_f64)
    }

    /// Whether the counters tell a policer from a shallow queue, which drop the same packets.
    pub(crate) fn tells_policer_from_queue(&self) -> bool {
        let drops = &self.path.achieved.drops;
        (drops.policer == 0) != (drops.queue == 0)
    }

    /// Whether the counters exclude a limit for a part with these statistics.
    pub(crate) fn excludes(&self, limit: Limit, s: &Statistics) -> bool {
        let (drops, achieved) = (&self.path.achieved.drops, &self.path.achieved);
        let rate = s.get(Statistic::LnMbps).map_or(0.0, |ln| ln.exp() * 1e6);
        let used = self.payload.map(|payload| rate / payload.as_f64().max(1.0));
        let unsaturated = used.is_some_and(|used| used < IDLE);
        match limit {
            Limit::Loss | Limit::ClusteredLoss => {
                achieved.lost == 0 && drops.bursts == 0 && self.path.loss == LossRatio::NONE
            }
            Limit::Policer => drops.policer == 0,
            Limit::ShallowQueue => drops.queue == 0,
            Limit::Reordering => achieved.reordered == 0,
            Limit::EcnMarks => achieved.marked == 0,
            Limit::Aqm => drops.aqm == 0 || unsaturated,
            Limit::PathRate | Limit::SharedBottleneck => unsaturated,
            Limit::PathChange => self.path.asked.changes.is_empty(),
            Limit::CongestionAvoidance | Limit::Ramp | Limit::AckPath => {
                used.is_some_and(|used| used >= SATURATED)
            }
            _ => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        example::{Example, samples},
        prepared,
    };

    /// Whether a path of 100 Mbit/s excludes a limit of a transfer of `mbit`.
    fn excludes(mbit: f64, limit: Limit, count: impl Fn(&mut PathReport)) -> bool {
        let mut example = Example::new(mbit, 20.0).on_path(100);
        example.m.streams[0].sender = samples(4.0, mbit, |_, _| {});
        example.m.path.as_mut().map(count).unwrap();
        let statistics = prepared(&example.m).over(0.0, 4.0);
        KnownPath::of(&example.m, &example.e).unwrap().excludes(limit, &statistics)
    }

    #[test]
    fn counters_of_zero_exclude_their_causes() {
        let none = |limit| excludes(50.0, limit, |_| {});
        for limit in [
            Limit::Loss,
            Limit::ClusteredLoss,
            Limit::Policer,
            Limit::ShallowQueue,
            Limit::Reordering,
            Limit::EcnMarks,
            Limit::PathChange,
        ] {
            assert!(none(limit), "{limit:?}");
        }
        assert!(!none(Limit::ReceiveWindow) && !none(Limit::CongestionAvoidance));
        assert!(!excludes(50.0, Limit::Loss, |path| path.achieved.lost = 1));
        assert!(!excludes(50.0, Limit::ClusteredLoss, |path| path.achieved.drops.bursts = 1));
        assert!(!excludes(50.0, Limit::Policer, |path| path.achieved.drops.policer = 1));
        assert!(!excludes(50.0, Limit::ShallowQueue, |path| path.achieved.drops.queue = 1));
        assert!(!excludes(50.0, Limit::Reordering, |path| path.achieved.reordered = 1));
        assert!(!excludes(50.0, Limit::EcnMarks, |path| path.achieved.marked = 1));
    }

    #[test]
    fn the_rate_tells_a_saturated_bottleneck_from_an_idle_one() {
        // 1448 of 1500 bytes: 96.5 Mbit/s of payload.
        let rate = |mbit, limit| excludes(mbit, limit, |path| path.achieved.drops.aqm = 1);
        for limit in [Limit::PathRate, Limit::SharedBottleneck, Limit::Aqm] {
            assert!(rate(60.0, limit) && !rate(75.0, limit), "{limit:?}");
        }
        for limit in [Limit::CongestionAvoidance, Limit::Ramp, Limit::AckPath] {
            assert!(rate(93.0, limit) && !rate(85.0, limit), "{limit:?}");
        }
    }

    #[test]
    fn a_real_path_excludes_nothing() {
        let example = Example::new(50.0, 20.0);
        assert!(KnownPath::of(&example.m, &example.e).is_none());
    }
}
