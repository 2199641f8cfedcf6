//! Which segments are drawn, and how probabilities and estimates read.

use super::*;
use record::Confidence;

fn segment(from_s: f64, to_s: f64, limit: Limit, lost_share: f64) -> Segment {
    Segment {
        from_s,
        to_s,
        limit,
        confidence: Some(Confidence::Sure),
        throughput_bps: BitRate::from_bps(1_000_000),
        lost_share,
        posterior: vec![Probability { limit, probability: 0.9 }],
    }
}

fn finding(segments: Vec<Segment>) -> Finding {
    let finding = serde_json::json!({
        "throughput_bps": 0, "average_bps": 0, "steady": {"from_s": 0.0, "to_s": 1.0},
        "predicted_bps": null, "equation": null, "limit": "loss", "shares": null,
        "min_rtt_ms": null, "loaded_rtt_ms": null, "sentence": "",
    });
    Finding { segments, ..serde_json::from_value(finding).unwrap() }
}

#[test]
fn damaged_segments_are_dropped() {
    let finding = finding(vec![
        segment(f64::NAN, 1.0, Limit::Ramp, 0.1),
        segment(0.0, 2.0, Limit::Ramp, f64::NAN),
        segment(3.0, 2.5, Limit::Cpu, 0.1),
        segment(1.0, 4.0, Limit::Loss, 7.0),
        segment(2.0, 3.0, Limit::Cpu, 0.1),
        segment(4.0, f64::INFINITY, Limit::Cpu, 0.1),
        segment(-1.0, 5.0, Limit::Cpu, 0.1),
        segment(4.0, 1e300, Limit::Cpu, 0.1),
    ]);
    let timeline = Timeline::of(&finding).unwrap();
    let spans: Vec<_> = timeline.parts.iter().map(|p| (p.from_s, p.to_s, p.limit)).collect();
    assert_eq!(spans, [(0.0, 2.0, Limit::Ramp), (2.0, 4.0, Limit::Loss)]);
    assert_eq!(timeline.totals[0], Total { limit: Limit::Loss, time: 0.5, lost: 1.0 });
}

#[test]
fn one_segment_is_no_timeline() {
    assert_eq!(Timeline::of(&finding(vec![])), None);
    assert_eq!(Timeline::of(&finding(vec![segment(0.0, 9.0, Limit::Loss, 1.0)])), None);
}

#[test]
fn many_segments_are_bounded() {
    let limits = [Limit::Ramp, Limit::Loss, Limit::Cpu];
    let many = (0..300_000u32)
        .map(|n| segment(f64::from(n), f64::from(n + 1), limits[n as usize % 3], 1.0))
        .collect();
    let timeline = Timeline::of(&finding(many)).unwrap();
    assert_eq!((timeline.parts.len(), timeline.left_out), (60, 299_940));
    let lost: f64 = timeline.totals.iter().map(|total| total.lost).sum();
    assert!((lost - 1.0).abs() < 1e-6 && timeline.totals.len() == 3);
    assert_eq!(timeline.rank(Limit::Loss), 0, "the finding's limit comes first");
}

#[test]
fn alternatives_above_ten_percent_are_named() {
    let one = |limit, probability| Probability { limit, probability };
    let text = |posterior: &[Probability]| probabilities(posterior);
    let posterior = [
        one(Limit::Aqm, 0.72),
        one(Limit::SharedBottleneck, 0.2),
        one(Limit::PathRate, 0.08),
        one(Limit::Loss, f64::NAN),
    ];
    assert_eq!(text(&posterior).as_deref(), Some("aqm 72 %, shared-bottleneck 20 %"));
    assert_eq!(text(&[one(Limit::Cpu, 0.999)]).as_deref(), Some("cpu >99 %"));
    assert_eq!(text(&[one(Limit::Cpu, 0.06), one(Limit::Loss, 0.05)]).as_deref(), Some("cpu 6 %"));
    assert_eq!(text(&[]), None);
    assert_eq!(text(&[one(Limit::Cpu, f64::NAN)]), None);
    assert_eq!(
        text(&[one(Limit::Cpu, 7.0), one(Limit::Loss, 9.0)]).as_deref(),
        Some("cpu 50 %, loss 50 %")
    );
    let twice = vec![one(Limit::Cpu, 0.5); 1_000_000];
    assert_eq!(text(&twice).as_deref(), Some("cpu 50 %"));
}

#[test]
fn an_estimate_has_its_interval() {
    let mbit = |rate: u64| BitRate::from_bps(rate * 1_000_000);
    let estimate = |low, high| RateEstimate { rate_bps: mbit(96), low_bps: low, high_bps: high };
    assert_eq!(
        bottleneck(&estimate(mbit(94), Some(mbit(97)))),
        "96 Mbit/s of payload (90 % interval: 94 to 97 Mbit/s)"
    );
    assert_eq!(bottleneck(&estimate(mbit(94), None)), "at least 94 Mbit/s of payload");
    // An interval contains its estimate.
    assert_eq!(
        bottleneck(&estimate(mbit(940), Some(mbit(9)))),
        "96 Mbit/s of payload (90 % interval: 96 to 96 Mbit/s)"
    );
}
