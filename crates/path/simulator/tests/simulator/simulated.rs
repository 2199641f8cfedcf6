//! Scenarios in virtual time.

use simulator::{
    CrossFlow, MAX_CROSS_FLOWS, MAX_SECONDS, MAX_STREAMS, Scenario, ScenarioError, ScenarioSet,
    Vantage,
};
use units::BitRate;

#[test]
fn a_scenario_runs_the_same_again() {
    let scenario = Scenario { number: 5, ..Scenario::new("rate=10mbit,rtt=20ms,loss=1%", 2.0) };
    let (one, other) = (scenario.run(3).unwrap(), scenario.run(3).unwrap());
    assert_eq!(one, other);
    let another = scenario.run(4).unwrap();
    assert_ne!(one.intervals, another.intervals);
}

#[test]
fn down_is_the_direction_of_a_reverse_transfer() {
    let path = "rate=10mbit,rtt=20ms,down.rate=2mbit";
    let rate = |reverse| {
        let scenario = Scenario { reverse, ..Scenario::new(path, 4.0) };
        scenario.run(1).unwrap().read[0] as f64 * 12e3 / 4.0
    };
    assert!(rate(true) < 2.1e6, "{}", rate(true));
    assert!(rate(false) > 8e6, "{}", rate(false));
}

#[test]
fn scenarios_that_exceed_a_bound_are_refused_before_they_run() {
    let good = || Scenario::new("rate=10mbit,rtt=20ms", 1.0);
    for seconds in [0.0, -1.0, f64::NAN, f64::INFINITY, MAX_SECONDS * 1.01] {
        let refused = Scenario { seconds, ..good() }.run(1);
        assert_eq!(refused.unwrap_err(), ScenarioError::Seconds, "{seconds}");
    }
    for streams in [0, MAX_STREAMS + 1] {
        let refused = Scenario { streams, ..good() }.run(1);
        assert_eq!(refused.unwrap_err(), ScenarioError::Streams);
    }
    let flow = CrossFlow::OnOffUdp { rate: BitRate::from_bps(1_000), on_s: 1.0, off_s: 1.0 };
    let cross = vec![flow; MAX_CROSS_FLOWS + 1];
    let refused = Scenario { cross, ..good() }.run_captured(1).map(|(run, _)| run);
    assert_eq!(refused.unwrap_err(), ScenarioError::CrossFlows);
    let path = "rate=fast".to_owned();
    assert!(matches!(Scenario { path, ..good() }.run(1), Err(ScenarioError::Path(_))));
    assert_eq!(good().check(), Ok(()));
}

/// Draws that every later figure rests on: a change of the families shows here.
#[test]
fn a_seed_draws_the_same_scenarios_for_ever() {
    let drawn = [0, 1].map(|number| Scenario::draw(ScenarioSet::default(), 1, number));
    assert_eq!(
        drawn.map(|scenario| scenario.to_string()),
        [
            "0 plain rate=1376820kbit,rtt=8462us,queue=4517222 cubic x1 4.2 s",
            "1 succession rate=23427kbit,rtt=25003us,queue=red,limit=128647,ecn=no,\
             @10000ms.police=13146kbit:407727 cubic x1 16.5 s",
        ]
    );
}

#[test]
fn a_vantage_point_leaves_out_what_is_not_seen_there() {
    let (run, captures) = Scenario::new("rate=5mbit,rtt=20ms", 3.0).run_captured(1).unwrap();
    let seen = |vantage: Vantage, captured| vantage.view(&run.measurement, captured);
    let all = |vantage| seen(vantage, Some(&captures.measurements)).unwrap();
    assert_eq!(all(Vantage::Full), run.measurement);
    assert!(all(Vantage::Receiver).streams[0].sender.is_empty());
    assert!(all(Vantage::Watch).streams[0].receiver.is_empty());
    let [watched, slow] = [Vantage::Watch, Vantage::Slow].map(|it| all(it).streams[0].sender.len());
    assert!((3..=4).contains(&slow) && watched > 20, "{watched} {slow}");
    assert_eq!(all(Vantage::CaptureReceiver), captures.measurements[1]);
    for vantage in Vantage::ALL {
        assert_eq!(seen(vantage, None).is_none(), vantage.captured_host().is_some());
    }
}
