//! `netherlight`: what holds in an ideal lab, and where runs are as published.

use super::*;

#[test]
fn each_published_figure_of_netherlight_has_a_plot() {
    for quick in [false, true] {
        let study = BuiltIn::named("netherlight").unwrap().study(quick, None).unwrap();
        let plots = study.parts.iter().flat_map(|part| &part.plan.plots);
        let mut titles: Vec<&str> = plots.filter_map(|plot| plot.title.as_deref()).collect();
        titles.sort_by_key(|title| title.trim_start_matches("Figure ").parse::<u32>().unwrap());
        let all: Vec<String> = (1..=18).map(|number| format!("Figure {number}")).collect();
        assert_eq!(titles, all);
    }
}

/// Trends of `netherlight` that hold, those that are not reproduced, and those that fail.
fn of_netherlight(
    study: &Study,
    flow: impl Fn(&str, &Test, &Traffic) -> FlowFigures,
) -> [Vec<String>; 3] {
    let found = trends(study, &made(study, flow));
    let of = |holds, is_reproduced: bool| {
        let fits = |trend: &&StudyTrend| {
            trend.holds == Some(holds) && trend.not_reproduced.is_none() == is_reproduced
        };
        found.iter().filter(fits).map(|trend| trend.name.clone()).collect()
    };
    [of(true, true), of(false, false), of(false, true)]
}

/// A flow on a path of that many bit/s, and of 100 ms.
fn over(link_bps: f64, test: &Test, flow: &Traffic) -> FlowFigures {
    let streams = f64::from(test.streams());
    match (flow.bitrate, test.window) {
        (Some(offered), _) => {
            let offered = offered.as_f64() * streams;
            let loss = Some((1.0 - 588e6 / offered).max(0.0));
            FlowFigures { loss, sent_bps: offered, ..rate(offered.min(588e6)) }
        }
        (None, window) => rate((window.unwrap().as_f64() * 8.0 * streams / 0.1).min(link_bps)),
    }
}

#[test]
fn netherlight_does_not_fail_in_an_ideal_lab() {
    let study = BuiltIn::named("netherlight").unwrap().study(true, None).unwrap();
    let ideal = |_: &str, test: &Test, flow: &Traffic| over(579.2e6, test, flow);
    let [_, not_reproduced, failing] = of_netherlight(&study, ideal);
    assert_eq!(failing, [""; 0]);
    let expected = [
        "maximum-2-pairs",
        "more-hosts",
        "more-streams-less-memory",
        "udp-more-streams",
        "udp-more-streams-back",
        "four-streams",
        "four-streams-back",
    ];
    assert_eq!(not_reproduced, expected);
    // Over the hour, sparse loss has to show.
    let hour = BuiltIn::named("netherlight").unwrap().study(false, Some("four-streams")).unwrap();
    assert_eq!(of_netherlight(&hour, ideal), [vec![], vec![], vec!["four-streams".to_owned()]]);
}

#[test]
fn netherlight_holds_where_runs_are_as_published() {
    let study = BuiltIn::named("netherlight").unwrap().study(true, None).unwrap();
    let published = |part: &str, test: &Test, flow: &Traffic| {
        let share = match (part, test.streams()) {
            ("pair" | "long-1" | "long-1-back", 1) => 0.7,
            _ => 1.0,
        };
        let link = if part.starts_with("two-pairs") { 500e6 } else { 550e6 };
        let figures = over(link * share, test, flow);
        let more = if test.streams() > 2 { 0.03 } else { 0.0 };
        FlowFigures { loss: figures.loss.map(|loss| loss + more), ..figures }
    };
    let [holding, not_reproduced, failing] = of_netherlight(&study, published);
    assert_eq!((not_reproduced, failing), (vec![], vec![]));
    assert_eq!(holding.len(), study_trends("netherlight"));
    // Goodput that follows neither windows nor offered load, and the same loss of all.
    let flat = |_: &str, _: &Test, _: &Traffic| FlowFigures {
        loss: Some(0.02),
        sent_bps: 50e6,
        ..rate(50e6)
    };
    let [holding, _, failing] = of_netherlight(&study, flat);
    assert_eq!(holding, [""; 0]);
    // Nothing excuses these.
    let surfaces = failing.iter().filter(|name| name.starts_with("window-surface")).count();
    assert_eq!((surfaces, failing.len()), (6, 8), "{failing:?}");
}

fn study_trends(name: &str) -> usize {
    BuiltIn::named(name).unwrap().trends().count()
}

#[test]
fn memory_is_named_beside_the_goodput_of_few_and_of_many_streams() {
    let only = Some("more-streams-less-memory");
    let study = BuiltIn::named("netherlight").unwrap().study(true, only).unwrap();
    let flow = |_: &str, test: &Test, flow: &Traffic| FlowFigures {
        mean_rtt_ms: Some(110.0),
        ..over(if test.streams() == 1 { 400e6 } else { 579e6 }, test, flow)
    };
    let found = trends(&study, &made(&study, flow));
    let measured = found.iter().find(|trend| Some(trend.name.as_str()) == only).unwrap();
    assert_eq!(
        measured.measured.as_deref(),
        Some(
            "of the same 8MiB at the hosts: 579 Mbit/s with 8 of 1 MiB, 724 kB in the router's \
             queue; 400 Mbit/s with 1 of 8 MiB, 500 kB in the router's queue (+44.8 %)"
        )
    );
}
