//! The parts of a test by limit.

use crate::transfer::{Transfer, over};
use diagnose::explain;
use record::{Finding, Limit, Segment};

/// Segments are in order, do not overlap, and lie within the test.
pub(crate) fn are_sound(finding: &Finding) {
    let mut end = 0.0;
    for segment in &finding.segments {
        assert!(segment.from_s >= end - 1e-9 && segment.to_s > segment.from_s, "{segment:?}");
        assert!((-1e-9..=1.0 + 1e-9).contains(&segment.lost_share), "{segment:?}");
        end = segment.to_s;
    }
    assert!(end.is_finite(), "{end}");
    let lost: f64 = finding.segments.iter().map(|segment| segment.lost_share).sum();
    assert!(lost < 1.0 + 1e-6, "{lost}");
}

fn segments(transfer: &Transfer, seed: u64) -> Vec<Segment> {
    let finding = explain(&transfer.run(seed));
    are_sound(&finding);
    finding.segments
}

/// A sawtooth, or a test with one limit, has no boundary.
#[test]
fn one_limit_is_one_segment() {
    for transfer in [
        over(20.0, 40.0, "queue=2bdp"),
        over(20.0, 30.0, "queue=fq_codel,ecn=no"),
        over(40.0, 40.0, "queue=1bdp").receive_window(0.25),
        over(50.0, 40.0, "queue=1bdp").requested(0.3),
    ] {
        let found = segments(&transfer, 0);
        assert_eq!(found.len(), 1, "{transfer:?}: {found:?}");
        assert!(found[0].from_s == 0.0 && (found[0].to_s - 6.0).abs() < 0.2, "{found:?}");
    }
}

/// The limit that cost the most is named first.
#[test]
fn the_costlier_of_two_limits_is_named() {
    let lossy = over(20.0, 40.0, "queue=1bdp,@4s.loss=1%").seconds(10.0);
    let policed = over(20.0, 30.0, "queue=1bdp,@4s.police=5mbit:100000").seconds(10.0);
    for (transfer, limit) in [(lossy, Limit::Loss), (policed, Limit::Policer)] {
        for seed in 0..2 {
            let finding = explain(&transfer.run(seed));
            assert_eq!(finding.limit, Some(limit), "{:?}", finding.posterior);
        }
    }
}

/// Half a second is the shortest segment.
#[test]
fn two_limits_in_succession_are_two_segments() {
    let lossy = over(20.0, 40.0, "queue=1bdp,@4s.loss=1%").seconds(10.0);
    let policed = over(20.0, 30.0, "queue=1bdp,@4s.police=5mbit:100000").seconds(10.0);
    for (transfer, second) in [(lossy, Limit::Loss), (policed, Limit::Policer)] {
        for seed in 0..2 {
            let found = segments(&transfer, seed);
            let limits: Vec<Limit> = found.iter().map(|segment| segment.limit).collect();
            assert_eq!(limits, [Limit::PathRate, second], "{found:?}");
            assert!((found[0].to_s - 4.0).abs() <= 0.5 + 1e-9, "{found:?}");
        }
    }
}
