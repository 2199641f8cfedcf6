//! The page of repeated tests: the median, the limit over all runs, each run, and the statistics.

use super::baseline::{STYLE, track, track_axis};
use super::{CSS, compared, document, footer, header::class, markup::Markup};
use crate::axis::{Axis, RATE};
use crate::{calendar, wording};
use record::{RepeatReport, RunFigures};
use units::percent;

/// Runs that are listed; JSON has all.
const MAX_RUNS: usize = 400;

/// The page as one HTML document.
#[must_use]
pub fn repeats_page(report: &RepeatReport) -> String {
    let mut m = Markup::new();
    let title = format!("{} tests to {}", report.runs.len(), report.spec.target);
    document(&mut m, &title, &[CSS, STYLE], "", |m| {
        m.element("main", &[], |m| {
            m.element("header", &[], |m| {
                m.leaf("p", &[("class", &"eyebrow")], &"Longhaul");
                m.leaf("h1", &[], &title);
                m.leaf("p", &[("class", &"lead")], &lead(report));
            });
            result(m, report);
            compared::write(m, report.comparison.as_ref());
            runs(m, report);
            conditions(m, report);
        });
        footer(m, &report.version);
    });
    m.finish()
}

/// The limit, and what one of the runs with it says.
fn lead(report: &RepeatReport) -> String {
    let limit = &report.summary.limit_sentence;
    let agreed = report.summary.limit;
    let says = report.runs.iter().find(|run| agreed.is_some() && run.limit == agreed);
    match says {
        Some(run) => format!("Limit: {limit}. {}", run.sentence),
        None => format!("Limit: {limit}."),
    }
}

fn result(m: &mut Markup, report: &RepeatReport) {
    let summary = &report.summary;
    let Some(median) = summary.median_bps.map(wording::bps) else { return };
    m.element("section", &[("class", &"result")], |m| {
        let (number, unit) = median.split_once(' ').unwrap_or((&median, ""));
        m.element("p", &[("class", &"figure-big")], |m| {
            m.text(&number).leaf("small", &[], &format!(" {unit}"));
        });
        m.element("div", &[], |m| {
            m.leaf("p", &[("class", &"figure-step")], &"median goodput");
            let mean = summary.mean_bps.map(wording::bps).unwrap_or_default();
            let interval = summary.mean_low_bps.zip(summary.mean_high_bps);
            let note = match interval {
                Some((low, high)) => {
                    let level = percent(summary.confidence);
                    let interval = wording::rates(low, high);
                    format!("Mean {mean}; {level} confidence interval {interval} (Student's t).")
                }
                None => format!("Mean {mean}; one test has no interval."),
            };
            m.leaf("p", &[("class", &"figure-note")], &note);
        });
    });
    for warning in &summary.warnings {
        m.leaf("p", &[("class", &"note")], &format!("Warning: {warning}."));
    }
}

fn runs(m: &mut Markup, report: &RepeatReport) {
    let summary = &report.summary;
    let axis = Axis::over(summary.max_bps.unwrap_or(0.0), RATE, 4.0);
    m.element("section", &[], |m| {
        m.leaf("h2", &[], &"Tests");
        let note = "Goodput of the steady part. Points: tests. Mark: median. Bar: confidence \
                    interval of the mean.";
        m.leaf("p", &[("class", &"note")], &note);
        m.element("div", &[("class", &"dots")], |m| {
            m.element("div", &[("class", &"dots-row")], |m| {
                m.leaf("span", &[("class", &"dots-label")], &format!("{} tests", summary.count));
                m.element("span", &[("class", &"dots-track")], |m| {
                    let interval = summary.mean_low_bps.zip(summary.mean_high_bps);
                    track(m, &report.runs, summary.median_bps, interval, &axis);
                });
                let median = summary.median_bps.map_or("–".to_owned(), wording::bps);
                m.leaf("span", &[("class", &"dots-value")], &median);
            });
            track_axis(m, &axis);
        });
        m.element("details", &[("open", &"")], |m| {
            m.leaf("summary", &[], &"Values");
            m.element("div", &[("class", &"scroll")], |m| table(m, &report.runs));
        });
        for note in &report.notes {
            m.leaf("p", &[("class", &"note")], note);
        }
    });
}

fn table(m: &mut Markup, runs: &[RunFigures]) {
    m.element("table", &[("class", &"figures")], |m| {
        m.element("tr", &[], |m| {
            let heads = ["test", "steady", "whole test", "retransmits", "min RTT", "limit"];
            for head in heads {
                m.leaf("th", &[("scope", &"col")], &head);
            }
        });
        for (number, run) in (1..).zip(runs).take(MAX_RUNS) {
            let dash = || "–".to_owned();
            m.element("tr", &[], |m| {
                m.leaf("th", &[("scope", &"row")], &number);
                m.leaf("td", &[], &run.throughput_bps);
                m.leaf("td", &[], &run.average_bps);
                m.leaf("td", &[], &run.retransmits.map_or_else(dash, wording::grouped));
                m.leaf("td", &[], &run.min_rtt_ms.map_or_else(dash, |ms| format!("{ms:.1} ms")));
                m.element("td", &[], |m| {
                    let chip = format!("chip {}", class(wording::tone(run.limit)));
                    m.leaf("span", &[("class", &chip)], &wording::limit_name(run.limit));
                });
            });
        }
    });
}

fn conditions(m: &mut Markup, report: &RepeatReport) {
    let spec = &report.spec;
    let started = report.runs.first().map(|run| calendar::utc(run.started_unix_s));
    let rows = [
        ("First test", started),
        ("Server", Some(format!("{}, port {}", spec.target, spec.port))),
        ("Tests", Some(format!("{} of {}", report.runs.len(), report.asked))),
        ("Duration of each", spec.duration_s().map(wording::seconds)),
        ("Streams", Some(spec.streams.to_string())),
        ("Longhaul version", Some(report.version.clone())),
    ];
    m.element("section", &[], |m| {
        m.leaf("h2", &[], &"Conditions");
        m.element("table", &[("class", &"conditions")], |m| {
            m.element("tbody", &[], |m| {
                for (name, text) in rows.into_iter().filter_map(|(name, text)| Some((name, text?)))
                {
                    m.row(&name, [&text]);
                }
            });
        });
    });
}
