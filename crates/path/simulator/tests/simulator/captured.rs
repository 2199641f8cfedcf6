//! What captures of the simulated twin show, beside what its sender knows.

use control::Algorithm;
use record::{Limit, Measurement};
use simulator::score::{Scored, agreement};
use simulator::{Proportions, Scenario, ScenarioSet};
use tcp_analysis::CongestionFamily;

const SEED: u64 = 20;

fn limit(measurement: &Measurement) -> Limit {
    diagnose::explain(measurement).limit.unwrap_or(Limit::Unknown)
}

/// How often captures at the sender and at the receiver give the cause that its own samples
/// give: 78 and 82 % of 240 runs of four seeds. `make bench` has the sharp figures.
#[test]
fn a_capture_gives_the_cause_that_the_sender_knows() {
    const RUNS: usize = 30;
    let set = ScenarioSet { proportions: Proportions::Bulk, ..ScenarioSet::default() };
    let mut same = [0; 2];
    for number in 0..RUNS {
        let scenario = Scenario::draw(set, SEED, number);
        let (outcome, captured) = scenario.run_captured(SEED).unwrap();
        let from_samples = limit(&outcome.measurement);
        for (count, seen) in same.iter_mut().zip(&captured.measurements) {
            *count += usize::from(limit(seen) == from_samples);
        }
    }
    assert!(same[0] * 100 >= RUNS * 70, "at the sender: {same:?} of {RUNS}");
    assert!(same[1] * 100 >= RUNS * 75, "at the receiver: {same:?} of {RUNS}");
}

/// A window, a loss and a rate: the numbers themselves, from either host.
#[test]
fn samples_of_a_capture_are_those_of_the_sender() {
    let scenarios =
        ["rate=20mbit,rtt=40ms,queue=1bdp", "rate=20mbit,rtt=40ms,queue=2bdp,loss=0.5%"];
    for path in scenarios {
        let scenario = Scenario::new(path, 6.0);
        let (outcome, captured) = scenario.run_captured(SEED).unwrap();
        let truth = outcome.measurement.streams[0].sender.last().unwrap();
        for (seen, within) in captured.measurements.iter().zip([0.02, 0.05]) {
            let sample = seen.streams[0].sender.last().unwrap();
            let near = |what: &str, one: u64, other: u64| {
                let error = one as f64 / other.max(1) as f64 - 1.0;
                assert!(error.abs() <= within, "{path}: {what} {one}, in fact {other}");
            };
            near("acked", sample.acked_bytes, truth.acked_bytes);
            near(
                "smallest RTT",
                sample.min_rtt_us.unwrap().into(),
                truth.min_rtt_us.unwrap().into(),
            );
            let (resent, in_fact) = (sample.retransmits, truth.retransmits);
            assert!(resent.abs_diff(in_fact) * 20 <= in_fact + 20, "{path}: {resent}, {in_fact}");
        }
    }
}

/// A family is named where losses, or probes, show it, and never another one.
#[test]
fn the_family_of_congestion_control_shows() {
    let families = [
        (Algorithm::NewReno, CongestionFamily::Reno),
        (Algorithm::Cubic, CongestionFamily::Cubic),
        (Algorithm::Bbr, CongestionFamily::Bbr),
    ];
    for (control, family) in families {
        let path = "rate=50mbit,rtt=40ms,queue=1bdp".to_owned();
        let scenario = Scenario { congestion: control, ..Scenario::new(path, 40.0) };
        let found = scenario.run_captured(SEED).unwrap().1.congestion;
        assert_eq!(found[0].family, Some(family), "{control:?} at the sender: {found:?}");
        assert!(found[1].family.is_none_or(|it| it == family), "{control:?}: {found:?}");
    }
}

#[test]
fn the_agreement_is_counted() {
    let scenario = Scenario::new("rate=2mbit,rtt=20ms", 1.0);
    let truth = scenario.run(SEED).unwrap().truth;
    let scored = |found, from_tcp_info| Scored {
        found,
        from_tcp_info: Some(from_tcp_info),
        ..Scored::new(&scenario, &truth, None)
    };
    let text = agreement(&[
        scored(Limit::Loss, Limit::Loss),
        scored(Limit::Aqm, Limit::Loss),
        scored(Limit::Loss, Limit::Loss),
    ]);
    assert!(text.starts_with("The cause from TCP_INFO: 2 of 3, 66.7 %"), "{text}");
    assert!(text.contains("1  loss                 from the capture aqm"), "{text}");
}

#[test]
fn the_family_of_congestion_control_is_found_at_both_hosts() {
    // Losses at distances that leave time to grow.
    let path = "rate=40mbit,rtt=40ms,queue=2000p,loss=0.2%".to_owned();
    for (name, family) in
        [(Algorithm::NewReno, CongestionFamily::Reno), (Algorithm::Cubic, CongestionFamily::Cubic)]
    {
        let scenario = Scenario { congestion: name, ..Scenario::new(path.clone(), 12.0) };
        for found in scenario.run_captured(5).unwrap().1.congestion {
            assert_eq!(found.family, Some(family), "{name:?}: {found:?}");
        }
    }
    // An application that sends at a rate shows neither.
    let rate = Some("2mbit".parse().unwrap());
    let scenario = Scenario { rate, ..Scenario::new("rate=40mbit,rtt=40ms", 6.0) };
    for found in scenario.run_captured(5).unwrap().1.congestion {
        assert_eq!(found.family, None, "{found:?}");
    }
}
