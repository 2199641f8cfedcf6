//! Figures of calibration.

use record::{Finding, Limit, Probability};
use simulator::draws::Draws;
use simulator::score::{
    Boundaries, Calibration, Confusion, Scored, bootstrap, errors, labels, reliability_diagram,
    segments,
};
use simulator::{Scenario, TrueSegment};

/// Points that are right as often as their probability says, by chance.
fn calibrated(count: usize, shift: f64) -> Vec<(f64, bool)> {
    let mut draws = Draws::new(7, count);
    let mut points: Vec<(f64, bool)> = (0..count)
        .map(|_| {
            let probability = draws.between(0.3, 0.9);
            (probability, draws.chance(probability - shift))
        })
        .collect();
    points.sort_by(|one, other| one.0.total_cmp(&other.0));
    points
}

#[test]
fn a_calibrated_model_has_no_debiased_error() {
    let (plain, debiased) = errors(&calibrated(600, 0.0));
    // Chance alone gives it 2.4 to 4.3 %, more at 600 findings spread over 0.3 to 0.9.
    assert!((0.01..0.07).contains(&plain), "{plain}");
    assert!(debiased < 0.03, "{debiased}");
}

#[test]
fn an_overconfident_model_is_seen() {
    let (plain, debiased) = errors(&calibrated(2_000, 0.15));
    assert!((plain - 0.15).abs() < 0.03, "{plain}");
    assert!((debiased - 0.15).abs() < 0.03, "{debiased}");
}

#[test]
fn the_bootstrap_interval_holds_the_error() {
    let points = calibrated(1_000, 0.1);
    let mut resampled = bootstrap(&points);
    resampled.sort_by(f64::total_cmp);
    assert!(resampled[25] < 0.1 && 0.1 < resampled[974] + 0.02, "{resampled:?}");
}

/// A run limited by its path's rate, with a finding that gives that limit a probability
/// and the rest to random loss.
fn scored(found: f64) -> Scored {
    let scenario =
        Scenario { family: "plain", ..Scenario::new("rate=2mbit,rtt=20ms,queue=1bdp", 2.0) };
    let run = scenario.run(1).unwrap();
    let mut posterior = vec![
        Probability { limit: Limit::PathRate, probability: found },
        Probability { limit: Limit::Loss, probability: 1.0 - found },
    ];
    posterior.sort_by(|one, other| other.probability.total_cmp(&one.probability));
    let limit = Some(posterior[0].limit);
    let finding = diagnose::explain(&run.measurement);
    Scored::new(&scenario, &run.truth, Some(Finding { limit, posterior, ..finding }))
}

#[test]
fn the_report_counts_right_findings_and_scores_probabilities() {
    let (right, wrong) = (scored(0.8), scored(0.2));
    assert!(right.is_right() && !wrong.is_right());
    assert_eq!(right.mistake("plain"), None);
    assert!(wrong.mistake("plain").unwrap().starts_with("path-rate"));
    assert!(right.label("plain").ends_with("from 0.0 s path-rate"), "{}", right.label("plain"));
    let text = Calibration::of(&[right.clone(), wrong.clone()]).to_string();
    // -(ln 0.8 + ln 0.2) / 2
    assert!(text.contains("2 findings") && text.contains("log score 0.916"), "{text}");
    assert!(text.contains("path-rate taken for loss"), "{text}");
    let both = [right, wrong];
    let text = Confusion::of(&both).to_string();
    assert!(text.contains("2 runs: right  50.0 %"), "{text}");
    assert!(labels(&both).contains("plain              path-rate 2"));
}

#[test]
fn the_diagram_has_a_point_for_each_bin() {
    let calibration = Calibration::of(&[scored(0.8), scored(0.2)]);
    let svg = reliability_diagram(calibration.bins());
    assert_eq!(svg.matches("<circle").count(), calibration.bins().len());
    // At 0.8 of the width, and at the bottom: it is wrong.
    assert!(svg.contains("<circle cx=\"336\" cy=\"408\""), "{svg}");
}

#[test]
fn without_probabilities_there_is_nothing_to_calibrate() {
    let mut none = scored(0.8);
    none.posterior.clear();
    assert_eq!(Calibration::of(&[none]).to_string(), "No finding has probabilities.\n");
}

#[test]
fn boundaries_within_three_tenths_of_a_second_are_found() {
    let segment = |from_s, to_s, limit| TrueSegment { from_s, to_s, limit };
    let one = Scored {
        segments: vec![segment(0.0, 4.0, Limit::PathRate), segment(4.0, 10.0, Limit::Loss)],
        found_segments: vec![segment(0.0, 4.2, Limit::PathRate), segment(4.2, 10.0, Limit::Loss)],
        ..scored(0.8)
    };
    assert!((one.time_right() - 0.98).abs() < 1e-9, "{}", one.time_right());
    let all =
        Boundaries { true_ones: 1, found: 1, reported: 1, right: 1, lasting: 1, lasting_found: 1 };
    assert_eq!(one.boundaries(), all);
    let far = Scored { near_s: 0.1, ..one.clone() };
    assert_eq!(far.boundaries(), Boundaries { found: 0, right: 0, lasting_found: 0, ..all });
    let short = Scored {
        segments: vec![segment(0.0, 0.9, Limit::Ramp), segment(0.9, 9.0, Limit::Loss)],
        ..one.clone()
    };
    assert_eq!(short.boundaries().lasting, 0, "one of the two is shorter than a second");
    assert!(segments(&[one]).contains("98.0 % of the time; 1 of 1"));
}
