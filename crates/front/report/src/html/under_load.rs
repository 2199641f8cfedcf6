//! RTT before, during and after a load: a curve, a table, bufferbloat grade and
//! responsiveness.

use super::{
    Page, PageRun,
    chart::{Band, Chart, Curve, NARROW, WIDE},
    curves::{run_class, section},
    markup::Markup,
};
use crate::{
    axis::{Axis, DELAY},
    series, wording,
};
use record::{LatencyPhase, LatencyUnderLoad};

/// A section for every run that measured it; one for both directions of a test.
pub(super) fn write(m: &mut Markup, page: &Page<'_>) {
    let measured = page.runs.iter().enumerate();
    let mut measured: Vec<_> = measured
        .filter_map(|(index, run)| Some((index, run, run.measurement.latency.as_ref()?)))
        .collect();
    measured.dedup_by(|later, earlier| later.2 == earlier.2);
    let several = measured.len() > 1;
    for (index, run, latency) in measured {
        let title = match several {
            false => "Latency under load".to_owned(),
            true => format!("Latency under load, {}", run.label),
        };
        let how = wording::probed_by(latency);
        let note =
            format!("RTT of {how}, on a separate flow, before, during and after the transfer.");
        section(m, &title, &note, |m| {
            let chart = chart(latency, run, index, run_class(page, index));
            if !chart.is_empty() {
                chart.figure(m, &[WIDE, NARROW], None);
            }
            phases(m, latency);
            for (name, text) in [
                ("Bufferbloat grade", wording::bufferbloat(latency)),
                ("Responsiveness", wording::responsiveness(latency)),
            ] {
                if let Some(text) = text {
                    m.leaf("p", &[("class", &"note")], &format!("{name} {text}."));
                }
            }
            for note in &latency.notes {
                m.leaf("p", &[("class", &"note")], note);
            }
        });
    }
}

fn chart(latency: &LatencyUnderLoad, run: &PageRun<'_>, index: usize, class: String) -> Chart {
    // Time zero is the first probe, before the load.
    let begin = latency.probes.iter().map(|probe| probe.at_s).fold(0.0, f64::min);
    let points: Vec<(f64, f64)> = latency
        .probes
        .iter()
        .filter_map(|probe| Some((probe.at_s - begin, probe.rtt_ms? * 1e-3)))
        .filter(|(at, rtt)| at.is_finite() && rtt.is_finite())
        .collect();
    let last = points.iter().map(|point| point.0).fold(0.0, f64::max);
    let load_ends = series::end_s(run.measurement) - begin;
    let highest = points.iter().map(|point| point.1).fold(0.0, f64::max);
    Chart {
        id: format!("latency{index}"),
        title: "RTT before, during and after the load".to_owned(),
        description: wording::bufferbloat(latency).unwrap_or_default(),
        y: Axis::over(highest * 1.1, DELAY, 4.0),
        until_s: last.max(load_ends),
        curves: vec![Curve { name: "RTT".to_owned(), class, points, filled: false }],
        marks: Vec::new(),
        naks: Vec::new(),
        band: Some(Band { name: "under load", from_s: -begin, to_s: load_ends }),
        segments: None,
    }
}

type Figure = fn(&LatencyPhase) -> Option<f64>;

const FIGURES: [(&str, Figure); 6] = [
    ("min", |phase| phase.min_ms),
    ("mean", |phase| phase.mean_ms),
    ("p50", |phase| phase.p50_ms),
    ("p95", |phase| phase.p95_ms),
    ("p99", |phase| phase.p99_ms),
    ("max", |phase| phase.max_ms),
];

fn phases(m: &mut Markup, latency: &LatencyUnderLoad) {
    let phases =
        [("before", &latency.before), ("during", &latency.during), ("after", &latency.after)];
    let heads = ["ms"].into_iter().chain(FIGURES.map(|(name, _)| name)).chain(["lost"]);
    let heads: Vec<_> = heads.map(str::to_owned).collect();
    let dash = || "–".to_owned();
    let row = |(name, phase): (&str, &LatencyPhase)| {
        let mut row = vec![name.to_owned()];
        let value = |(_, figure): (_, Figure)| figure(phase);
        let texts = FIGURES.map(value).map(|it| it.map_or_else(dash, |ms| format!("{ms:.2}")));
        row.extend(texts);
        row.push(wording::probe_loss(phase).unwrap_or_else(dash));
        row
    };
    m.element("div", &[("class", &"phases")], |m| {
        m.figures(&heads, &phases.map(row));
    });
}
