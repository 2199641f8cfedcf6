//! `zoo`: its trends hold as the controls' papers have them, and fail where all controls are alike.

use super::*;

/// Goodput of a control in a cell of the short form, bit/s.
fn published(part: &str, test: &Test, flow: &Traffic) -> FlowFigures {
    let has = |text: &str| test.path.contains(text);
    let control = flow.congestion();
    match part {
        "queues" => {
            let bps = match control {
                "bbr" | "bbr3" => 92e6,
                "psockets" if has("up.loss=1%") => 8.0 * 3.6e6,
                "psockets" => 90e6,
                _ if has("up.loss=1%") => 3.6e6,
                _ if has("up.loss=0.1%") => 11.2e6,
                _ if has("queue=0.1bdp") => 75e6,
                _ => 95e6,
            };
            let mean_rtt_ms = Some(if has("queue=1bdp") { 65.0 } else { 45.0 });
            FlowFigures { mean_rtt_ms, ..rate(bps) }
        }
        "recovery" => {
            // At 1 Gbit/s CUBIC is back to 99.9 % in 15.5 s, and Reno rises by 1.16 Mbit/s each second.
            let second = |second: u32| match control {
                "cubic" => 960e6 - 18e6 * f64::from(15u32.saturating_sub(second % 30)),
                _ => 480e6 + 1.16e6 * f64::from(second),
            };
            FlowFigures { series_bps: (0..60).map(second).collect(), ..rate(900e6) }
        }
        "xcp" => {
            let rtt_ms = test.spec.rtt().secs_f64() * 1e3;
            FlowFigures { mean_rtt_ms: Some(rtt_ms + 0.7), ..rate(96e6) }
        }
        "loss-budget" if has("0.00065%") => rate(170e6),
        "loss-budget" if has("0.000065%") => rate(800e6),
        _ => rate(940e6),
    }
}

#[test]
fn zoo_holds_as_the_papers_have_it_and_fails_where_all_are_alike() {
    for (name, holds) in verdicts("zoo", published) {
        assert!(holds, "{name}");
    }
    let alike =
        |_: &str, _: &Test, _: &Traffic| FlowFigures { mean_rtt_ms: Some(60.0), ..rate(50e6) };
    for (name, holds) in verdicts("zoo", alike) {
        assert!(!holds, "{name}");
    }
}

#[test]
fn every_control_over_any_path_is_in_every_part_but_that_of_xcp() {
    let study = BuiltIn::named("zoo").unwrap().study(false, None).unwrap();
    for part in study.parts.iter().filter(|part| part.name != "xcp") {
        for control in control::NamedControl::all() {
            assert!(part.text.contains(&format!("\"{control}\"")), "{}", part.name);
        }
    }
}
