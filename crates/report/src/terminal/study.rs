//! A study: its answer, its trends beside the published results, and its cells.

use super::{
    Style,
    line::{Line, block, labelled},
    style,
};
use crate::{untrusted::clean, wording};
use record::{StudyCell, StudyPart, StudyReport, StudyTrend};
use units::{BitRate, percent};

/// Column of the texts.
const COLUMN: usize = 12;

/// Cells of a part that are listed; the others are in the export.
const MOST_CELLS: usize = 60;

/// Columns of the longest bar.
const BAR: usize = 24;

/// Names and questions of studies, a line each.
#[must_use]
pub fn studies<'a>(known: impl Iterator<Item = (&'a str, &'a str)>, style: &Style) -> String {
    let row = |(name, question): (&str, &str)| {
        labelled(style, 0, (style::STRONG, name), 16, (style::PLAIN, question))
    };
    block(known.flat_map(row).collect())
}

/// The results of a study.
#[must_use]
pub fn study(report: &StudyReport, style: &Style) -> String {
    let mut lines = Vec::new();
    let mut row = |label: &str, text: &str| {
        lines.extend(labelled(style, 0, (style::STRONG, label), COLUMN, (style::PLAIN, text)));
    };
    row("question", &clean(&report.question));
    for (index, sentence) in report.answer.iter().enumerate() {
        row(if index == 0 { "answer" } else { "" }, &clean(sentence));
    }
    row("runs", &runs(report));
    for trend in &report.trends {
        lines.push(Line::new(style));
        lines.extend(self::trend(trend, style));
    }
    for part in &report.parts {
        lines.push(Line::new(style));
        lines.extend(cells(part, style));
    }
    block(lines)
}

fn runs(report: &StudyReport) -> String {
    let mut text = format!("{} of {} done, {} valid", report.done, report.runs, report.valid);
    for (count, what) in [(report.invalid, "not valid"), (report.failed, "failed")] {
        if count > 0 {
            text += &format!(", {count} {what}");
        }
    }
    text + &format!("; {} in all", wording::long_time(report.took_s))
}

fn trend(trend: &StudyTrend, style: &Style) -> Vec<Line> {
    let (mark, tone) = match trend.holds {
        Some(true) => ("holds", style::GOOD),
        Some(false) => ("fails", style::BAD),
        None => ("not measured", style::WARN),
    };
    let mut lines = vec![
        Line::new(style)
            .put(style::STRONG, &clean(&trend.name))
            .put(style::PLAIN, "  ")
            .put(tone, mark),
    ];
    let measured = trend.measured.as_deref().unwrap_or("no valid run of what it needs");
    for (label, text) in [("published", trend.published.as_str()), ("measured", measured)] {
        lines.extend(labelled(style, 2, (style::DIM, label), COLUMN, (style::PLAIN, &clean(text))));
    }
    lines
}

/// A line for each cell: its values, its goodput as a bar, and what was predicted.
fn cells(part: &StudyPart, style: &Style) -> Vec<Line> {
    let values: Vec<String> =
        part.cells.iter().take(MOST_CELLS).map(|cell| label(part, cell)).collect();
    let width = values.iter().map(|text| text.chars().count()).max().unwrap_or(0).min(36);
    let most = part.cells.iter().filter_map(|cell| cell.throughput_bps).fold(0.0, f64::max);
    let mut lines = Vec::new();
    if !part.name.is_empty() {
        lines.push(Line::new(style).put(style::STRONG, &clean(&part.name)));
    }
    for (cell, text) in part.cells.iter().zip(&values) {
        let text: String = text.chars().take(width).collect();
        let line = Line::new(style).put(style::PLAIN, &text).to(width + 2);
        lines.push(figures(cell, most, line));
    }
    if part.cells.len() > MOST_CELLS {
        let more = format!("{} more cells: longhaul study export", part.cells.len() - MOST_CELLS);
        lines.push(Line::new(style).put(style::DIM, &more));
    }
    lines
}

fn figures(cell: &StudyCell, most: f64, line: Line) -> Line {
    let begin = line.used();
    let Some(rate) = cell.throughput_bps else {
        let why = cell.reasons.first().map_or("not run yet", String::as_str);
        return line.put(style::WARN, &clean(why));
    };
    let mark = if line.style().unicode { "█" } else { "#" };
    let length = ((rate / most.max(1.0) * BAR as f64).round() as usize).max(1);
    let mut line = line
        .right(style::STRONG, &BitRate::from_bps_f64(rate).to_string(), begin + 12)
        .to(begin + 14)
        .put(style::run(1), &mark.repeat(length))
        .to(begin + 14 + BAR + 1);
    if let (Some(low), Some(high)) = (cell.low_bps, cell.high_bps) {
        line = line.put(style::DIM, &format!(" ±{}", percent((high - low) / 2.0 / rate.max(1.0))));
    }
    if let Some(predicted) = cell.predicted_bps {
        let predicted = format!(" predicted {}", BitRate::from_bps_f64(predicted));
        line = line.put(style::DIM, &predicted);
    }
    if let Some(limit) = cell.limit {
        line = line.put(style::PLAIN, &format!(" {}", limit.name()));
    }
    line
}

fn label(part: &StudyPart, cell: &StudyCell) -> String {
    let pairs = part.plan.factors.iter().zip(&cell.values);
    let pairs: Vec<String> = pairs.map(|(f, value)| format!("{}={value}", f.name)).collect();
    clean(&pairs.join(" "))
}
