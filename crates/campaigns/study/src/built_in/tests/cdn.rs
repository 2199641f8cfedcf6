//! `cdn`: what holds where times are those of the equations, and what fails where they are not.

use super::*;
use crate::value::CacheState;

/// Runs whose times are `slower` times the predicted ones, and whose origin sends `fetched` times the
/// object that is cold, and `confirmed` of it otherwise.
fn runs(study: &Study, slower: f64, fetched: f64, confirmed: f64) -> Vec<Vec<StudyRun>> {
    let run = |part: &Part, cell: usize| {
        let test = part.plan.test(&part.plan.cell(cell)).unwrap();
        let traffic = &test.flows[0];
        let predicted = test.predict().unwrap().rate.as_f64() / slower;
        let size = traffic.object.unwrap().as_f64();
        let length = traffic.range.map_or(size, |(first, last)| (last + 1 - first) as f64);
        let seconds = length * 8.0 / predicted;
        let sent = match traffic.cache_state {
            CacheState::Cold => fetched * length,
            CacheState::Warm | CacheState::Expired => confirmed * length,
        };
        let figures = FlowFigures {
            name: traffic.name.clone(),
            seconds,
            throughput_bps: predicted,
            sent_bps: sent * 8.0 / seconds,
            ..FlowFigures::default()
        };
        valid_run(cell, vec![figures])
    };
    let of_part = |part: &Part| (0..part.plan.cells()).map(|cell| run(part, cell)).collect();
    study.parts.iter().map(of_part).collect()
}

#[test]
fn cdn_holds_as_predicted_and_fails_otherwise() {
    let study = BuiltIn::named("cdn").unwrap().study(false, None).unwrap();
    let failing = |slower, fetched, confirmed| -> Vec<String> {
        let found = trends(&study, &runs(&study, slower, fetched, confirmed));
        found.into_iter().filter(|one| one.holds == Some(false)).map(|one| one.name).collect()
    };
    assert_eq!(failing(1.0, 1.0, 0.0), Vec::<String>::new());
    assert_eq!(failing(1.09, 1.0, 0.0), Vec::<String>::new());
    let times = ["origin", "cold", "warm", "expired", "ranges", "crowd"];
    assert_eq!(failing(1.3, 1.0, 0.0), times);
    assert_eq!(failing(1.0, 2.0, 0.0), ["once"]);
    assert_eq!(failing(1.0, 1.0, 0.01), ["not-modified"]);
}

#[test]
fn a_gain_needs_a_nearer_edge() {
    let study = BuiltIn::named("cdn").unwrap().study(true, Some("gain")).unwrap();
    let mut runs = runs(&study, 1.0, 1.0, 0.0);
    for flow in runs[1].iter_mut().flat_map(|run| &mut run.flows) {
        flow.throughput_bps /= 20.0;
    }
    let found = trends(&study, &runs);
    assert_eq!(found.iter().find(|one| one.name == "gain").unwrap().holds, Some(false));
}

#[test]
fn an_object_is_predicted_for_each_state() {
    let study = BuiltIn::named("cdn").unwrap().study(false, Some("edge")).unwrap();
    let plan = &study.parts[0].plan;
    let seconds = |state: CacheState, size: &str| {
        let size = size.parse().unwrap();
        let tests = (0..plan.cells()).map(|cell| plan.test(&plan.cell(cell)).unwrap());
        let mut of = tests.filter(|test| {
            (test.flows[0].cache_state, test.flows[0].object) == (state, Some(size))
        });
        size.as_f64() * 8.0 / of.next().unwrap().predict().unwrap().rate.as_f64()
    };
    // The first slice is waited for; while eleven more are confirmed, the queue drains.
    let (warm, expired) =
        (seconds(CacheState::Warm, "100MB"), seconds(CacheState::Expired, "100MB"));
    assert!((expired - warm - 0.166).abs() < 1e-3, "{expired} {warm}");
    let cold = seconds(CacheState::Cold, "100kB");
    // Two handshakes and requests, and two rounds of slow start before the last window.
    assert!((0.67..0.69).contains(&cold), "{cold}");
}
