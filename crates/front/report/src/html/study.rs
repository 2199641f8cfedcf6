//! The page of a study: the question and its answer, trends, plots, cells, conditions, and the
//! command that repeats it.

mod cells;
mod comparisons;
mod disk;
mod distribution;
mod figure;
mod harm;
mod heatmap;
mod lines;
mod part_plot;
mod response;
mod rows;
mod stacked;
mod surface;

use super::{
    CSS,
    markup::Markup,
    plot::{self, Chart},
};
use crate::{study_sources, wording};
use part_plot::{PartPlot, Plotted};
use record::{
    PlotKind, StudyPart, StudyPlot, StudyReport, StudyRun, StudyTestbed, StudyTrend, places,
};

pub(super) const STYLE: &str = include_str!("study/study.css");

/// The note of a plot without points of single runs.
const MEANS: &str = "The mean of each cell's valid runs.";

/// The contents of a study's page.
#[derive(Debug, Clone, Copy)]
pub struct StudyPage<'a> {
    /// The results.
    pub report: &'a StudyReport,
    /// The runs of each part; those with several flows are drawn over time.
    pub runs: &'a [Vec<StudyRun>],
    /// The plan of each part as text.
    pub plans: &'a [String],
    /// The command that runs it again.
    pub command: &'a str,
    /// Kernel and cores of the host.
    pub host: &'a str,
    /// Cells of each part that have a page `cells/PART-NUMBER.html`.
    pub pages: &'a [Vec<usize>],
}

/// The page as one HTML document.
#[must_use]
pub fn study(page: &StudyPage<'_>) -> String {
    let report = page.report;
    let mut m = Markup::new();
    let styles = [CSS, plot::STYLE, &plot::control_styles(), STYLE];
    super::document(&mut m, &report.question, &styles, "", |m| {
        m.element("main", &[], |m| {
            header(m, report);
            comparisons::write(m, &report.parts);
            trends(m, &report.trends);
            settings(m, report);
            for (index, part) in report.parts.iter().enumerate() {
                let charts = charts(report, page.runs, index);
                plots(m, part, &charts, report.parts.len() > 1);
            }
            for (index, part) in report.parts.iter().enumerate() {
                let pages = page.pages.get(index).map_or(&[][..], Vec::as_slice);
                cells::table(m, part, pages);
            }
            invalid(m, report);
            conditions(m, page);
        });
        super::footer(m, &report.version);
    });
    m.finish()
}

/// A plot as a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SvgFile {
    /// The name of the file, from the plot's caption: lower-case letters, digits and hyphens.
    pub name: String,
    /// The SVG document: complete by itself, in light colours, without scripts.
    pub svg: String,
}

/// The plots of a study's page as SVG files with different names; `runs` of each part.
#[must_use]
pub fn study_plots(report: &StudyReport, runs: &[Vec<StudyRun>]) -> Vec<SvgFile> {
    let mut files: Vec<SvgFile> = Vec::new();
    for (index, part) in report.parts.iter().enumerate() {
        for chart in charts(report, runs, index) {
            let stem = file_stem(&format!("{} {}", part.name, chart.caption));
            let taken = |name: &String| files.iter().any(|file| file.name == *name);
            let numbered = (2..).map(|number| format!("{stem}-{number}.svg"));
            let name = std::iter::once(format!("{stem}.svg")).chain(numbered).find(|n| !taken(n));
            files.extend(name.map(|name| SvgFile { name, svg: chart.document() }));
        }
    }
    files
}

/// A text as the name of a file: any text is safe in it.
fn file_stem(text: &str) -> String {
    const MAX: usize = 100;
    let plain = text.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { ' ' });
    let plain: String = plain.take(MAX).collect::<String>().to_ascii_lowercase();
    let words: Vec<&str> = plain.split_whitespace().collect();
    if words.is_empty() { "plot".to_owned() } else { words.join("-") }
}

/// The file of a cell's page within the study's directory.
#[must_use]
pub fn cell_page(part: &str, cell: usize) -> String {
    let prefix = if part.is_empty() { String::new() } else { format!("{part}-") };
    format!("cells/{prefix}{cell}.html")
}

fn header(m: &mut Markup, report: &StudyReport) {
    m.element("header", &[], |m| {
        let form = if report.quick { ", short form" } else { "" };
        m.leaf("p", &[("class", &"eyebrow")], &format!("Study {}{form}", report.name));
        m.leaf("h1", &[], &report.question);
        m.element("ul", &[("class", &"answer")], |m| {
            for sentence in &report.answer {
                m.leaf("li", &[], sentence);
            }
        });
        for citation in study_sources::citations(&report.parts) {
            m.leaf("p", &[("class", &"note")], &format!("Source: {citation}."));
        }
        let took = wording::long_time(report.took_s);
        let text = format!(
            "{} of {} runs done, {} valid, {} not valid, {} failed. They took {took} in all, the \
             tests themselves {}.",
            report.done,
            report.runs,
            report.valid,
            report.invalid,
            report.failed,
            wording::long_time(report.test_s)
        );
        m.leaf("p", &[("class", &"note")], &text);
    });
}

fn trends(m: &mut Markup, trends: &[StudyTrend]) {
    if trends.is_empty() {
        return;
    }
    m.element("section", &[], |m| {
        m.leaf("h2", &[], &"Published and measured");
        m.table("plan trends", |m| {
            m.thead(["Trend", "Published", "Expected", "Measured", "Verdict"]);
            m.element("tbody", &[], |m| trends.iter().for_each(|one| trend(m, one)));
        });
    });
}

fn trend(m: &mut Markup, trend: &StudyTrend) {
    let reason = trend.not_reproduced.as_deref();
    let (class, verdict) = match (trend.holds, reason) {
        (Some(true), _) => ("chip good", "holds"),
        (Some(false), Some(_)) => ("chip unknown", "not reproduced"),
        (Some(false), None) => ("chip fixable", "fails"),
        (None, _) => ("chip unknown", "not measured"),
    };
    let measured = trend.measured.as_deref().unwrap_or("no valid run of the cells that it needs");
    m.element("tr", &[], |m| {
        m.element("td", &[("data-label", &"Trend")], |m| {
            m.leaf("code", &[("class", &"setting")], &trend.name);
        });
        m.element("td", &[("data-label", &"Published")], |m| {
            m.text(&trend.published.as_deref().unwrap_or("Not stated."));
            if !trend.cited.is_empty() {
                m.leaf("p", &[("class", &"place")], &places(&trend.cited));
            }
        });
        m.element("td", &[("data-label", &"Expected")], |m| {
            m.text(&trend.expected.as_deref().unwrap_or("As published."));
            if let Some(source) = &trend.expected_by {
                m.leaf("p", &[("class", &"place")], source);
            }
        });
        m.element("td", &[("data-label", &"Measured")], |m| {
            m.text(&measured);
            if let Some(reason) = reason {
                m.leaf("p", &[("class", &"note")], &reason);
            }
        });
        m.element("td", &[("data-label", &"Verdict")], |m| {
            m.leaf("span", &[("class", &class)], &verdict);
        });
    });
}

/// The settings of all plans: as the document states them, and where, or assumed, and why.
fn settings(m: &mut Markup, report: &StudyReport) {
    let rows = study_sources::rows(&report.parts);
    if rows.is_empty() {
        return;
    }
    m.element("details", &[("class", &"sources")], |m| {
        let form = if report.quick { " (of the full form)" } else { "" };
        m.leaf("summary", &[], &format!("Settings: published and assumed{form}"));
        m.table("plan", |m| {
            m.element("thead", &[], |m| {
                m.element("tr", &[], |m| {
                    for head in ["Setting", "Origin", "Value or reason", "Place", "Plans"] {
                        m.leaf("th", &[("scope", &"col")], &head);
                    }
                });
            });
            m.element("tbody", &[], |m| {
                for row in &rows {
                    m.element("tr", &[], |m| {
                        let (place, plans) = (row.place.as_deref(), row.parts.join(", "));
                        m.element("td", &[("data-label", &"Setting")], |m| {
                            m.leaf("code", &[("class", &"setting")], &row.settings);
                        });
                        m.leaf("td", &[("data-label", &"Origin")], &row.kind());
                        m.leaf("td", &[("data-label", &"Value or reason")], &row.text);
                        m.leaf("td", &[("data-label", &"Place")], &place.unwrap_or_default());
                        m.leaf("td", &[("data-label", &"Plans")], &plans);
                    });
                }
            });
        });
    });
}

fn plots(m: &mut Markup, part: &StudyPart, charts: &[Chart], named: bool) {
    if charts.is_empty() {
        return;
    }
    m.element("section", &[], |m| {
        let title = match (named, part.plan.plots.is_empty()) {
            (true, _) => part.name.as_str(),
            (false, true) => "Goodput by factor",
            (false, false) => "Plots",
        };
        m.leaf("h2", &[], &title);
        if named {
            m.leaf("p", &[("class", &"note")], &part.plan.question);
        }
        charts.iter().for_each(|chart| chart.figure(m));
    });
}

/// The plots that the plan names, or those that its factors suggest; of two flows that each have
/// every control their harm instead, and of controls under loss their response functions; disk and
/// network of cells that send a file; and the flows over time of cells with several, and of UDT with
/// NAKs.
fn charts(report: &StudyReport, all: &[Vec<StudyRun>], index: usize) -> Vec<Chart> {
    let Some(part) = report.parts.get(index) else { return Vec::new() };
    let runs = all.get(index).map_or(&[][..], Vec::as_slice);
    let measured = part.cells.iter().any(|cell| cell.throughput_bps.is_some());
    let harm = harm::draw(report, all, part, runs);
    let plots: Vec<Chart> = if part.plan.plots.is_empty() {
        let suggested = PartPlot::all(part);
        // Rows of all pairs would say what the matrix says.
        let suggested = suggested.iter().filter(|_| harm.is_none());
        suggested.filter_map(|plot| chart(part, plot)).collect()
    } else if measured {
        part.plan.plots.iter().flat_map(|plot| named(part, runs, plot)).collect()
    } else {
        Vec::new()
    };
    let of_controls = harm.into_iter().chain(response::draw(part, runs));
    let over_time = stacked::cells(part, runs);
    let stacked = over_time.iter().filter_map(|run| stacked::draw(part, run));
    plots.into_iter().chain(of_controls).chain(disk::draw(part, runs)).chain(stacked).collect()
}

/// A plot that the plan names.
fn named(part: &StudyPart, runs: &[StudyRun], named: &StudyPlot) -> Vec<Chart> {
    match named.kind {
        PlotKind::Box => vec![distribution::boxes(part, runs, named)],
        PlotKind::Cdf => vec![distribution::cumulative(part, runs, named)],
        PlotKind::Lines | PlotKind::Surface | PlotKind::Heatmap | PlotKind::Rows => {
            let part = figure::part_of(part, runs, named);
            let plots = PartPlot::named(&part, named);
            plots.iter().filter_map(|plot| chart(&part, plot)).collect()
        }
    }
}

fn chart(part: &StudyPart, plot: &PartPlot) -> Option<Chart> {
    match plot.plotted {
        Plotted::Lines { .. } => lines::draw(part, plot),
        Plotted::Heatmap { .. } => {
            heatmap::draw(part, plot).map(|chart| chart.with_note(plot.shown.note(MEANS)))
        }
        Plotted::Surface { .. } => {
            surface::draw(part, plot).map(|chart| chart.with_note(plot.shown.note(MEANS)))
        }
        Plotted::Rows => Some(rows::draw(part, plot).with_note(plot.shown.note(MEANS))),
    }
}

/// Cells without a valid run, and why.
fn invalid(m: &mut Markup, report: &StudyReport) {
    let bad = || {
        report.parts.iter().flat_map(|part| {
            part.cells
                .iter()
                .filter(|cell| !cell.reasons.is_empty())
                .map(move |cell| (part_plot::label(part, cell), cell))
        })
    };
    let count = bad().count();
    if count == 0 {
        return;
    }
    m.element("section", &[], |m| {
        m.leaf("h2", &[], &"Invalid runs");
        let note = "They are excluded from all figures. A run is repeated before it is given up.";
        m.leaf("p", &[("class", &"note")], &note);
        m.element("ul", &[], |m| {
            for (label, cell) in bad().take(cells::MAX) {
                let text = format!("{label}: {}", cell.reasons.join("; "));
                m.leaf("li", &[], &text);
            }
        });
        if count > cells::MAX {
            m.leaf("p", &[("class", &"note")], &format!("{} more", count - cells::MAX));
        }
    });
}

fn conditions(m: &mut Markup, page: &StudyPage<'_>) {
    m.element("section", &[], |m| {
        m.leaf("h2", &[], &"Conditions");
        m.table("conditions", |m| {
            m.element("tbody", &[], |m| {
                let not_set = page.report.not_set.join(", ");
                let not_set =
                    (!not_set.is_empty()).then(|| format!("{not_set}: {}", wording::NOT_SET));
                let rows = [
                    ("Command", page.command),
                    ("Host", page.host),
                    ("Longhaul version", page.report.version.as_str()),
                ];
                let not_set = not_set.iter().map(|text| ("Not set", text.as_str()));
                let hosts: Vec<String> =
                    page.report.hosts.iter().map(wording::study_host).collect();
                let of_hosts = hosts.iter().map(|text| ("Real host", text.as_str()));
                let skew = page.report.start_skew.as_ref().map(wording::start_skew);
                let skew = skew.iter().map(|text| ("Start skew", text.as_str()));
                let real = (!hosts.is_empty()).then_some(("Validity", wording::REAL_HOSTS));
                let simulated = (page.report.testbed == StudyTestbed::Simulator)
                    .then_some(("Testbed", wording::SIMULATED));
                let more = not_set.chain(of_hosts).chain(skew).chain(real).chain(simulated);
                for (name, text) in rows.into_iter().chain(more) {
                    m.row(&name, [&text]);
                }
            });
        });
        for (part, plan) in page.report.parts.iter().zip(page.plans) {
            m.element("details", &[], |m| {
                let name = if part.name.is_empty() { "Plan" } else { part.name.as_str() };
                m.leaf("summary", &[], &format!("{name}: the plan"));
                m.leaf("pre", &[("class", &"equation")], plan);
            });
        }
    });
}
