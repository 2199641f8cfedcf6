//! The goodput of each condition: every test as a point, the median and its interval, in plain
//! HTML so that the texts keep their size on a narrow screen; and the same as a table.

use crate::axis::{Axis, RATE};
use crate::html::markup::Markup;
use crate::wording;
use record::{AddressFamily, BaselineCondition, BaselineReport, RunFigures};

pub(super) fn write(m: &mut Markup, report: &BaselineReport) {
    if report.conditions.is_empty() {
        return;
    }
    m.element("section", &[], |m| {
        m.leaf("h2", &[], &"Goodput");
        let note = "Points: tests. Mark: median. Bar: its interval.";
        m.leaf("p", &[("class", &"note")], &note);
        plot(m, &report.conditions);
        table(m, &report.conditions);
        for one in &report.conditions {
            for warning in &one.summary.warnings {
                m.leaf("p", &[("class", &"note")], &format!("{}: {warning}.", one.condition));
            }
        }
        m.leaf("p", &[("class", &"note")], &wording::MEDIAN_INTERVAL);
    });
}

fn plot(m: &mut Markup, conditions: &[BaselineCondition]) {
    let highest = conditions.iter().filter_map(|one| one.summary.max_bps).fold(0.0, f64::max);
    let axis = Axis::over(highest, RATE, 4.0);
    m.element("div", &[("class", &"dots")], |m| {
        let mut family: Option<AddressFamily> = None;
        for one in conditions {
            let condition = &one.condition;
            if family.replace(condition.family) != Some(condition.family) {
                m.leaf("h3", &[], &condition.family.name());
            }
            m.element("div", &[("class", &"dots-row")], |m| {
                let label = format!("{}, {}", condition.direction_name(), condition.streams_name());
                m.leaf("span", &[("class", &"dots-label")], &label);
                m.element("span", &[("class", &"dots-track")], |m| {
                    let interval = one.median_low_bps.zip(one.median_high_bps);
                    track(m, &one.runs, one.summary.median_bps, interval, &axis);
                });
                let median = one.summary.median_bps.map_or("–".to_owned(), wording::bps);
                m.leaf("span", &[("class", &"dots-value")], &median);
            });
        }
        track_axis(m, &axis);
    });
}

/// The labels below the tracks.
pub(in crate::html) fn track_axis(m: &mut Markup, axis: &Axis) {
    m.element("div", &[("class", &"dots-row dots-axis")], |m| {
        m.leaf("span", &[("class", &"dots-label")], &"");
        m.element("span", &[("class", &"dots-track")], |m| {
            for (value, label) in axis.ticks() {
                let at = format!("left:{}", percent(axis.share(value)));
                m.leaf("b", &[("style", &at)], &label);
            }
        });
        m.leaf("span", &[("class", &"dots-value")], &axis.unit);
    });
}

fn percent(share: f64) -> String {
    let share = if share.is_finite() { share.clamp(0.0, 1.0) } else { 0.0 };
    format!("{:.2}%", share * 100.0)
}

/// Runs as points, with their median and an interval.
pub(in crate::html) fn track(
    m: &mut Markup,
    runs: &[RunFigures],
    median: Option<f64>,
    interval: Option<(f64, f64)>,
    axis: &Axis,
) {
    for (value, _) in axis.ticks() {
        let at = format!("left:{}", percent(axis.share(value)));
        m.leaf("i", &[("class", &"tick"), ("style", &at)], &"");
    }
    if let Some((low, high)) = interval {
        let (left, right) = (axis.share(low), axis.share(high));
        let place = format!("left:{};width:{}", percent(left), percent((right - left).max(0.0)));
        m.leaf("i", &[("class", &"interval"), ("style", &place)], &"");
    }
    for run in runs {
        let rate = run.throughput_bps;
        let at = format!("left:{}", percent(axis.share(rate.as_f64())));
        m.leaf("i", &[("class", &"run"), ("style", &at), ("title", &rate)], &"");
    }
    if let Some(median) = median {
        let at = format!("left:{}", percent(axis.share(median)));
        m.leaf("i", &[("class", &"median"), ("style", &at)], &"");
    }
}

/// A cell of the table: its column, and its text.
type Figure = (&'static str, fn(&BaselineCondition) -> Option<String>);

const FIGURES: [Figure; 5] = [
    ("Tests", |one| Some(one.runs.len().to_string())),
    ("Median goodput", |one| one.summary.median_bps.map(wording::bps)),
    ("Interval", |one| {
        let interval = one.median_low_bps.zip(one.median_high_bps)?;
        Some(wording::rates(interval.0, interval.1))
    }),
    ("Median RTT", |one| wording::rtt_under_load(one.latency.as_ref()?)),
    ("Bufferbloat", |one| one.latency.as_ref()?.grade.clone()),
];

fn table(m: &mut Markup, conditions: &[BaselineCondition]) {
    m.table("plan stacked", |m| {
        let figures = FIGURES.map(|(name, _)| match name {
            "Interval" => wording::interval_heading(conditions),
            name => name.to_owned(),
        });
        m.thead(["Condition".to_owned()].into_iter().chain(figures));
        m.element("tbody", &[], |m| {
            for one in conditions {
                m.element("tr", &[], |m| {
                    m.leaf("td", &[("class", &"first")], &one.condition);
                    for (name, text) in FIGURES {
                        let text = text(one).unwrap_or_else(|| "–".to_owned());
                        m.leaf("td", &[("data-label", &name)], &text);
                    }
                });
            }
        });
    });
}
