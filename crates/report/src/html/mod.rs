//! One page: the result, the curves behind it, and everything needed to judge it.
//!
//! Self-contained: styles, drawings and script are inside, nothing is fetched,
//! and a policy in the page's head keeps it so. Complete without the script,
//! which only reads values off the curves.

mod cards;
mod chart;
mod conditions;
mod curves;
mod head;
mod labels;
mod markup;
mod under_load;

use markup::Markup;
use record::{Finding, Measurement, PathReport, PlanItem};

const CSS: &str = include_str!("page.css");
const SCRIPT: &str = include_str!("crosshair.js");

/// What a page tells.
#[derive(Debug, Clone)]
pub struct Page<'a> {
    /// Its heading, also the document's title.
    pub title: String,
    /// One paragraph beneath it.
    pub lead: String,
    /// The path, where it is known.
    pub path: Option<&'a PathReport>,
    /// The transfers, in the order they were run: one, or before and after.
    pub runs: Vec<Run<'a>>,
    /// What was changed between them.
    pub plan: &'a [PlanItem],
    /// The last run's throughput over the first one's.
    pub gain: Option<f64>,
}

/// One transfer and the verdict on it.
#[derive(Debug, Clone, Copy)]
pub struct Run<'a> {
    /// Its name: `before`.
    pub label: &'a str,
    /// What was measured.
    pub measurement: &'a Measurement,
    /// What limited it.
    pub finding: &'a Finding,
}

/// The page as one HTML document.
#[must_use]
pub fn page(page: &Page<'_>) -> String {
    let mut m = Markup::new();
    m.raw("<!DOCTYPE html>\n");
    m.element("html", &[("lang", &"en")], |m| {
        m.element("head", &[], |m| {
            m.raw("<meta charset=\"utf-8\">\n");
            m.raw("<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; ");
            m.raw("style-src 'unsafe-inline'; script-src 'unsafe-inline'\">\n");
            m.raw("<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n");
            m.raw("<meta name=\"color-scheme\" content=\"light dark\">\n");
            m.leaf("title", &[], &page.title);
            m.raw("\n<style>\n").raw(CSS).raw("</style>\n");
        });
        m.element("body", &[], |m| {
            m.element("main", &[], |m| {
                head::write(m, page);
                curves::throughput(m, page);
                cards::write(m, page);
                curves::in_flight(m, page);
                curves::round_trip(m, page);
                under_load::write(m, page);
                conditions::plan(m, page.plan);
                conditions::write(m, page);
            });
            m.element("footer", &[], |m| {
                let version = page.runs.first().map_or("", |r| r.measurement.version.as_str());
                m.text(&"Longhaul ").text(&version);
                m.text(&" · measure, explain, tune, verify");
            });
            m.raw("\n<script>\n").raw(SCRIPT).raw("</script>\n");
        });
    });
    m.finish()
}

/// The paths a page knows of: its own, and those of its runs that differ from it.
fn paths<'a>(page: &Page<'a>) -> Vec<&'a PathReport> {
    page.path
        .into_iter()
        .chain(page.runs.iter().filter_map(|r| r.measurement.path.as_ref()))
        .collect()
}

/// The path to draw by: the page's own, or the first that a run has.
fn path<'a>(page: &Page<'a>) -> Option<&'a PathReport> {
    paths(page).first().copied()
}
