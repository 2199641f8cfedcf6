//! Two studies: what differs, cell by cell.

use super::{
    Style,
    line::{Line, block, labelled},
    style,
};
use crate::{untrusted::clean, wording};
use record::{ComparedCell, StudyComparison};
use units::{BitRate, change};

/// Column of the texts.
const COLUMN: usize = 12;

/// Cells that are listed.
const MAX_CELLS: usize = 60;

/// Columns of a cell's values.
const MAX_LABEL: usize = 22;

/// Right ends of the figures, after the values: both goodputs, the difference, its interval.
const COLUMNS: [usize; 4] = [12, 24, 33, 46];

/// The statistics of the difference between two studies.
#[must_use]
pub fn study_comparison(comparison: &StudyComparison, style: &Style) -> String {
    let mut lines = Vec::new();
    let mut row = |label: &str, text: &str| {
        lines.extend(labelled(style, 0, (style::STRONG, label), COLUMN, (style::PLAIN, text)));
    };
    let [first, second] = &comparison.names;
    row("first", &clean(first));
    row("second", &clean(second));
    for setting in &comparison.differing {
        let part = if setting.part.is_empty() { "" } else { &format!("{}: ", setting.part) };
        let values = setting.values.each_ref().map(|value| match value.as_str() {
            "" => "not set",
            value => value,
        });
        let text = format!(
            "{part}{} = {} in the first, {} in the second",
            setting.name, values[0], values[1]
        );
        row("differs", &clean(&text));
    }
    row("answer", &clean(&comparison.sentence));
    if comparison.unmatched > 0 {
        let cells = if comparison.unmatched == 1 { "cell" } else { "cells" };
        let text = format!("{} {cells} measured in only one study", comparison.unmatched);
        row("skipped", &text);
    }
    lines.push(Line::new(style));
    lines.extend(cells(comparison, style));
    block(lines)
}

fn cells(comparison: &StudyComparison, style: &Style) -> Vec<Line> {
    let label = |cell: &ComparedCell| {
        let part = if cell.part.is_empty() { "" } else { &format!("{} ", cell.part) };
        clean(&format!("{part}{}", cell.label))
    };
    let shown = || comparison.cells.iter().take(MAX_CELLS);
    let longest = shown().map(|cell| label(cell).chars().count()).max().unwrap_or(0);
    let width = longest.min(MAX_LABEL.max(style.text_width().saturating_sub(COLUMNS[3] + 16)));
    let mut head = Line::new(style);
    for (name, column) in ["first", "second", "change", "±95 %"].into_iter().zip(COLUMNS) {
        head = head.right(style::DIM, name, width + column);
    }
    let caption = "mean goodput of each cell's valid runs";
    let mut lines = vec![
        Line::new(style).put(style::DIM, caption),
        head.to(width + COLUMNS[3] + 2).put(style::DIM, "differs"),
    ];
    for cell in shown() {
        let text: String = label(cell).chars().take(width).collect();
        lines.push(figures(cell, width, Line::new(style).put(style::PLAIN, &text)));
    }
    if comparison.cells.len() > MAX_CELLS {
        let more = format!(
            "{}: --json",
            wording::counted(comparison.cells.len() - MAX_CELLS, "more cell")
        );
        lines.push(Line::new(style).put(style::DIM, &more));
    }
    lines
}

fn figures(cell: &ComparedCell, width: usize, line: Line) -> Line {
    let [first, second] = cell.goodput_bps.map(|rate| BitRate::from_bps_f64(rate).to_string());
    let share = match cell.goodput_bps[0] {
        first if first > 0.0 => change(cell.difference_bps / first),
        _ => "-".to_owned(),
    };
    let half = cell.low_bps.zip(cell.high_bps).map(|(low, high)| (high - low) / 2.0);
    let half = half.map_or("-".to_owned(), |half| BitRate::from_bps_f64(half).to_string());
    let (tone, mark) = match (cell.significant, cell.difference_bps >= 0.0) {
        (Some(true), true) => (style::GOOD, "yes"),
        (Some(true), false) => (style::BAD, "yes"),
        (Some(false), _) => (style::DIM, "no"),
        (None, _) => (style::DIM, "one run"),
    };
    line.right(style::PLAIN, &first, width + COLUMNS[0])
        .right(style::PLAIN, &second, width + COLUMNS[1])
        .right(style::STRONG, &share, width + COLUMNS[2])
        .right(style::PLAIN, &half, width + COLUMNS[3])
        .to(width + COLUMNS[3] + 2)
        .put(tone, mark)
}

#[cfg(test)]
mod tests {
    use super::*;
    use record::{DifferingSetting, STUDY_COMPARISON_SCHEMA};

    #[test]
    fn each_cell_has_both_goodputs_and_the_difference() {
        let cell = |label: &str, significant| ComparedCell {
            part: "windows".to_owned(),
            label: label.to_owned(),
            runs: [3, 3],
            goodput_bps: [10e6, 12e6],
            difference_bps: 2e6,
            low_bps: Some(1.5e6),
            high_bps: Some(2.5e6),
            ratio: Some(1.2),
            ratio_low: Some(0.9),
            ratio_high: Some(1.6),
            p: Some(0.001),
            significant,
        };
        let comparison = StudyComparison {
            schema: STUDY_COMPARISON_SCHEMA.to_owned(),
            version: "0".to_owned(),
            names: ["before\u{1b}[31m".to_owned(), "after".to_owned()],
            differing: vec![DifferingSetting {
                part: "windows".to_owned(),
                name: "congestion".to_owned(),
                values: ["cubic".to_owned(), String::new()],
            }],
            confidence: 0.95,
            cells: vec![cell("window=64KiB", Some(true)), cell(&"x".repeat(200), Some(false))],
            unmatched: 2,
            significant: 1,
            ratio: Some(1.2),
            ratio_low: None,
            ratio_high: None,
            no_ratio: None,
            sentence: "It is faster.".to_owned(),
        };
        let text =
            study_comparison(&comparison, &Style { colour: false, width: 80, unicode: true });
        for part in [
            "congestion = cubic in the first, not set in the second",
            "2 cells measured",
            "mean goodput of each cell",
            "10 Mbit/s",
            "12 Mbit/s",
            "+20 %",
            "500 kbit/s",
            "differs",
            "yes",
        ] {
            assert!(text.contains(part), "{part}: {text}");
        }
        assert!(!text.contains('\u{1b}'), "{text}");
        assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
    }
}
