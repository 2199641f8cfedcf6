//! The page of two studies compared: the overall ratio, what the plans fix differently, and the
//! cells of both.

use super::{CSS, compared::signed, document, footer, markup::Markup, study::STYLE};
use crate::wording;
use record::{ComparedCell, StudyComparison};
use units::{change, significant};

/// Cells that are listed; JSON has all.
const MAX_CELLS: usize = 1_000;

/// The page as one HTML document.
#[must_use]
pub fn study_comparison_page(comparison: &StudyComparison) -> String {
    let mut m = Markup::new();
    let [first, second] = &comparison.names;
    let title = format!("{second} compared with {first}");
    document(&mut m, &title, &[CSS, STYLE], "", |m| {
        m.element("main", &[], |m| {
            m.element("header", &[], |m| {
                m.leaf("p", &[("class", &"eyebrow")], &"Longhaul study comparison");
                m.leaf("h1", &[], &title);
                m.leaf("p", &[("class", &"lead")], &comparison.sentence);
            });
            ratio(m, comparison);
            differing(m, comparison);
            cells(m, comparison);
        });
        footer(m, &comparison.version);
    });
    m.finish()
}

fn ratio(m: &mut Markup, comparison: &StudyComparison) {
    let Some(gain) = comparison.ratio.and_then(wording::gain) else { return };
    m.element("section", &[("class", &"result")], |m| {
        m.leaf("p", &[("class", &"figure-big")], &gain);
        m.element("div", &[], |m| {
            let step = "the goodput of the second study over that of the first";
            m.leaf("p", &[("class", &"figure-step")], &step);
            let interval = comparison.ratio_low.zip(comparison.ratio_high).map(|(low, high)| {
                format!("95 %: {} to {}", significant(low, 3), significant(high, 3))
            });
            let interval = interval.unwrap_or_else(|| "one cell: no interval".to_owned());
            m.leaf("p", &[("class", &"figure-note")], &interval);
        });
    });
}

fn differing(m: &mut Markup, comparison: &StudyComparison) {
    if comparison.differing.is_empty() {
        return;
    }
    let [first, second] = &comparison.names;
    m.element("section", &[], |m| {
        m.leaf("h2", &[], &"Fixed settings that differ");
        m.element("table", &[("class", &"plan")], |m| {
            m.thead(["Setting", first, second]);
            m.element("tbody", &[], |m| {
                for one in &comparison.differing {
                    let part = if one.part.is_empty() { "" } else { &format!("{}: ", one.part) };
                    m.element("tr", &[], |m| {
                        m.element("td", &[("data-label", &"Setting")], |m| {
                            let name = format!("{part}{}", one.name);
                            m.leaf("code", &[("class", &"setting")], &name);
                        });
                        for (label, value) in ["First", "Second"].into_iter().zip(&one.values) {
                            let value = if value.is_empty() { "not set" } else { value };
                            m.leaf("td", &[("data-label", &label)], &value);
                        }
                    });
                }
            });
        });
    });
}

fn cells(m: &mut Markup, comparison: &StudyComparison) {
    m.element("section", &[], |m| {
        m.leaf("h2", &[], &"Cells of both studies");
        let note = "Mean goodput of each cell's valid runs. Significant: Welch's t-test with \
                    Holm's correction for the number of cells, at 95 %.";
        m.leaf("p", &[("class", &"note")], &note);
        m.element("div", &[("class", &"runs-table")], |m| {
            m.element("table", &[], |m| {
                m.thead(HEADS);
                m.element("tbody", &[], |m| {
                    for cell in comparison.cells.iter().take(MAX_CELLS) {
                        m.element("tr", &[], |m| row(m, cell));
                    }
                });
            });
        });
        if comparison.cells.len() > MAX_CELLS {
            let more = comparison.cells.len() - MAX_CELLS;
            let note = format!("{} in the JSON (--json).", wording::counted(more, "more cell"));
            m.leaf("p", &[("class", &"note")], &note);
        }
        if comparison.unmatched > 0 {
            let cells = if comparison.unmatched == 1 { "cell" } else { "cells" };
            let note =
                format!("Skipped: {} {cells} measured in only one study.", comparison.unmatched);
            m.leaf("p", &[("class", &"note")], &note);
        }
    });
}

const HEADS: [&str; 8] = [
    "Cell",
    "Valid runs",
    "First",
    "Second",
    "Change",
    "Difference, 95 %",
    "Ratio, 95 %",
    "Result",
];

fn row(m: &mut Markup, cell: &ComparedCell) {
    let part = if cell.part.is_empty() { "" } else { &format!("{} ", cell.part) };
    m.leaf("td", &[], &format!("{part}{}", cell.label));
    m.leaf("td", &[], &format!("{} / {}", cell.runs[0], cell.runs[1]));
    let [first, second] = cell.goodput_bps;
    m.leaf("td", &[], &wording::bps(first));
    m.leaf("td", &[], &wording::bps(second));
    let share = (first > 0.0).then(|| change(cell.difference_bps / first));
    m.leaf("td", &[], &share.unwrap_or_else(|| "–".to_owned()));
    let interval = cell.low_bps.zip(cell.high_bps);
    let interval = interval.map(|(low, high)| format!("{} to {}", signed(low), signed(high)));
    m.leaf("td", &[], &interval.unwrap_or_else(|| "–".to_owned()));
    let ratio = cell.ratio_low.zip(cell.ratio_high);
    let ratio =
        ratio.map(|(low, high)| format!("{} to {}", significant(low, 3), significant(high, 3)));
    m.leaf("td", &[], &ratio.unwrap_or_else(|| "–".to_owned()));
    let result = match cell.significant {
        None => "too few runs",
        other => wording::significance(other),
    };
    m.leaf("td", &[], &result);
}
