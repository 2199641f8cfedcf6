//! How long the tests of each form are.

use super::*;

/// A goodput is counted to a round trip or so.
const ROUND_TRIPS: f64 = 40.0;

#[test]
fn what_is_compared_with_a_window_over_the_rtt_lasts_forty_round_trips() {
    for quick in [false, true] {
        let study = BuiltIn::named("edge-cloud").unwrap().study(quick, None).unwrap();
        let parts = study.parts.iter().filter(|part| {
            let of_part = |trend: &&Trend| trend.parts.contains(&part.name.as_str());
            let trends = edge_cloud::STUDY.trends.iter().filter(of_part);
            trends
                .map(|trend| trend.name)
                .any(|name| ["window-64k", "window-128k", "streams-10", "iperf2"].contains(&name))
        });
        let mut tests = 0;
        for part in parts {
            for cell in 0..part.plan.cells() {
                let test = part.plan.test(&part.plan.cell(cell)).unwrap();
                let seconds = test.flows[0].duration.as_secs_f64();
                assert!(seconds >= ROUND_TRIPS * test.spec.rtt().secs_f64(), "{}", part.name);
                tests += 1;
            }
        }
        assert!(tests > 10, "{tests}");
    }
}

/// The durations of the flows of a part's first cell, in s.
fn durations(study: &str, part: &str) -> Vec<[f64; 2]> {
    let study = BuiltIn::named(study).unwrap().study(false, None).unwrap();
    let part = study.parts.iter().find(|known| known.name == part).unwrap();
    let test = part.plan.test(&part.plan.cell(0)).unwrap();
    let flows = test.flows.iter();
    flows.map(|flow| [flow.start, flow.end()].map(|time| time.as_secs_f64())).collect()
}

#[test]
fn the_full_form_is_as_long_as_what_was_published() {
    assert_eq!(durations("http-buffers", "buffers"), [[0.0, 600.0]]);
    for part in ["fairness", "fairness-udt"] {
        assert_eq!(durations("emulab", part), [[0.0, 150.0], [30.0, 120.0], [60.0, 90.0]]);
    }
    assert_eq!(durations("understanding", "pairs-long"), [[0.0, 610.0]; 2]);
}

#[test]
fn buffers_predict_what_they_allow_per_round_trip() {
    let predicted = |study: &str, part: &str, has: &str| -> Vec<f64> {
        let study = BuiltIn::named(study).unwrap().study(false, None).unwrap();
        let part = study.parts.iter().find(|known| known.name == part).unwrap();
        let cells =
            (0..part.plan.cells()).map(|cell| part.plan.test(&part.plan.cell(cell)).unwrap());
        let of_path = cells.filter(|test| test.path.contains(has));
        of_path.map(|test| test.predict().unwrap().rate.as_f64() / 1e6).collect()
    };
    let rates = predicted("http-buffers", "buffers", "rtt=200ms");
    // 0.773 of 6.29 MB and of 16.8 MB over 200 ms, and 1448 of 1500 bytes of 1 Gbit/s.
    for (at, expected) in [(0, 194.6), (2, 519.1), (5, 965.3), (7, 965.3)] {
        assert!((rates[at] - expected).abs() < 0.1, "{at}: {rates:?}");
    }
    // The sender's 131,072 B are less than what the receiver advertises of 174,760 B.
    for rate in predicted("emulab", "grid", "rtt=101ms,loss=0%") {
        assert!((rate - 10.38).abs() < 0.01, "{rate}");
    }
}

#[test]
fn tcp_beside_udp_is_explained_by_the_loss_that_it_shares() {
    let study = BuiltIn::named("edge-cloud").unwrap().study(true, Some("udp-and-tcp")).unwrap();
    let text = trends(&study, &ideal(&study, 0.173)).remove(0).measured.unwrap();
    // 1.68 of 5.35 Mbit/s are 3.3 of 10.6 s.
    assert!(text.contains("5.35 Mbit/s during 3.3 of"), "{text}");
    assert!(text.contains("Padhye's equation gives 5.") && text.contains(" kbit/s"), "{text}");
}
