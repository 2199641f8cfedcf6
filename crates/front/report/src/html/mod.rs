//! One HTML page: the result, its curves, and the test conditions.
//!
//! Self-contained: styles, drawings and script are inline, nothing is fetched, and
//! a Content-Security-Policy enforces it. The script only adds a crosshair that
//! shows values; the page is complete without it.

mod bands;
mod baseline;
mod bdp;
mod calculator;
mod calculator_plot;
mod capture;
mod chart;
mod checks;
mod compared;
mod conditions;
mod content_policy;
mod curves;
mod drawing;
mod findings;
mod header;
mod labels;
mod limit_colours;
mod markup;
mod naks;
mod pasted;
mod plot;
mod remedies;
mod repeats;
mod route_map;
mod sim;
mod sim_advice;
mod sliding_window;
mod study;
mod study_comparison;
mod under_load;

pub use baseline::baseline_page;
pub use bdp::bdp_page;
pub use calculator::{bdp_report, calc_result};
pub use capture::{
    CapturePage, MAX_BYTES, MAX_CONVERSATIONS, MAX_STREAMS, PageConversation, StreamGraphs,
    bytes_of_graphs, capture as capture_page,
};
pub use checks::checks;
pub use content_policy::source as policy_source;
pub use markup::{Attributes, Markup};
pub use pasted::pasted;
pub use remedies::remedies;
pub use repeats::repeats_page;
pub use route_map::route_page;
pub use sim::{SimPage, sim_page};
pub use sim_advice::sim_advice_page;
pub use study::{StudyPage, SvgFile, cell_page, study, study_plots};
pub use study_comparison::study_comparison_page;

use model::WindowInFlight;
use record::{Comparison, Decided, Finding, Measurement, PathReport, PlanItem};

const CSS: &str = include_str!("page.css");
const SCRIPT: &str = include_str!("crosshair.js");

/// The contents of a page.
#[derive(Debug, Clone, Default)]
pub struct Page<'a> {
    /// The heading, also the document's title.
    pub title: String,
    /// One paragraph below it.
    pub lead: String,
    /// The path, if known.
    pub path: Option<&'a PathReport>,
    /// The transfers in the order they ran: one, or before and after.
    pub runs: Vec<PageRun<'a>>,
    /// The answer of a second test that tells two limits apart.
    pub decision: Option<&'a Decided>,
    /// The settings changed between them.
    pub plan: &'a [PlanItem],
    /// Throughput of the last run over that of the first.
    pub gain: Option<f64>,
    /// The comparison with an earlier result.
    pub comparison: Option<&'a Comparison>,
    /// The page that it belongs to, as a relative address.
    pub back: Option<&'a str>,
}

/// One transfer and its finding.
#[derive(Debug, Clone, Copy)]
pub struct PageRun<'a> {
    /// Its name: `before`.
    pub label: &'a str,
    /// The measurement.
    pub measurement: &'a Measurement,
    /// The finding on it.
    pub finding: &'a Finding,
    /// The window that the finding names as the limit, to be drawn.
    pub window: Option<WindowInFlight>,
}

/// The page as one HTML document.
#[must_use]
pub fn page(page: &Page<'_>) -> String {
    let mut m = Markup::new();
    document(&mut m, &page.title, &[CSS, sliding_window::STYLE], SCRIPT, |m| {
        m.element("main", &[], |m| {
            header::title(m, page);
            sections(m, page);
        });
        footer(m, page.runs.first().map_or("", |r| r.measurement.version.as_str()));
    });
    m.finish()
}

/// The sections of a page, for a page of another layout that has [`style_sheet`].
pub fn sections(m: &mut Markup, page: &Page<'_>) {
    header::write(m, page);
    compared::write(m, page.comparison);
    curves::throughput(m, page);
    findings::write(m, page);
    bands::tables(m, page);
    curves::in_flight(m, page);
    curves::rtt(m, page);
    under_load::write(m, page);
    conditions::plan(m, page.plan);
    conditions::write(m, page);
}

/// The style sheet of [`sections`], [`calc_result`] and [`pasted()`].
#[must_use]
pub fn style_sheet() -> String {
    format!("{CSS}{}", limit_colours::style())
}

/// A document that may fetch nothing, with its styles, its body and its script.
fn document(
    m: &mut Markup,
    title: &str,
    styles: &[&str],
    script: &'static str,
    body: impl FnOnce(&mut Markup),
) {
    let mut inner = Markup::new();
    body(&mut inner);
    let style = format!("\n{}{}{}", styles.concat(), limit_colours::style(), inner.rules());
    m.raw("<!DOCTYPE html>\n");
    m.element("html", &[("lang", &"en")], |m| {
        m.element("head", &[], |m| {
            m.raw("<meta charset=\"utf-8\">\n");
            m.policy(&content_policy::of(&style, script));
            m.raw("<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n");
            m.raw("<meta name=\"color-scheme\" content=\"light dark\">\n");
            m.leaf("title", &[], &title);
            m.raw("\n").source("style", &style);
        });
        m.element("body", &[], |m| {
            m.append(&inner);
            if !script.is_empty() {
                m.raw("\n").source("script", script);
            }
        });
    });
}

fn footer(m: &mut Markup, version: &str) {
    m.element("footer", &[], |m| {
        m.text(&"Longhaul ").text(&version);
        m.text(&" · measure, explain, tune, verify");
    });
}

/// All path reports: the page's and those of its runs.
fn paths<'a>(page: &Page<'a>) -> Vec<&'a PathReport> {
    page.path
        .into_iter()
        .chain(page.runs.iter().filter_map(|r| r.measurement.path.as_ref()))
        .collect()
}

/// The path shown: the page's, else the first that a run has.
fn path<'a>(page: &Page<'a>) -> Option<&'a PathReport> {
    paths(page).first().copied()
}
