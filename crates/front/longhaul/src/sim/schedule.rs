//! A path whose settings a plan changes, as one schedule of a link.

use link::Schedule;
use std::time::Duration;
use topology::PathSpec;
use units::{Nanos, nanos};

/// The links of both directions under the paths that apply from each moment on, the first of them
/// at zero. All draw from `seed`.
pub(super) fn of(paths: &[(Duration, PathSpec)], seed: u64) -> Option<[Schedule; 2]> {
    let (_, first) = paths.first()?;
    let mut whole = first.schedules(seed);
    for (at, path) in paths.iter().skip(1) {
        let at = Nanos(nanos(*at));
        for (schedule, next) in whole.iter_mut().zip(path.schedules(seed)) {
            schedule.changes.retain(|(moment, _)| *moment < at);
            schedule.changes.push((at, next.at(at).0.clone()));
            schedule.changes.extend(next.changes.into_iter().filter(|(moment, _)| *moment > at));
        }
    }
    Some(whole)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_change_keeps_what_the_path_schedules_later() {
        let seconds = Duration::from_secs;
        let paths = [
            (seconds(0), "rate=10mbit,rtt=10ms,@2s.loss=1%,@8s.loss=none".parse().unwrap()),
            (seconds(5), "rate=20mbit,rtt=10ms,@2s.loss=1%,@8s.loss=none".parse().unwrap()),
        ];
        let [up, _] = of(&paths, 1).unwrap();
        let moments: Vec<u64> = up.changes.iter().map(|(at, _)| at.0 / 1_000_000_000).collect();
        assert_eq!(moments, [2, 5, 8]);
        let rate = |at: u64| format!("{:?}", up.at(Nanos(at * 1_000_000_000)).0.rate);
        assert!(rate(4).contains("10000000") && rate(5).contains("20000000"), "{}", rate(5));
        assert_ne!(up.at(Nanos(6_000_000_000)).0.loss, link::Loss::None);
        assert_eq!(up.at(Nanos(9_000_000_000)).0.loss, link::Loss::None);
    }
}
