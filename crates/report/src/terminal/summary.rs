//! The loop's result: the gain, the path it was won on, before and after.

use super::{
    Style, ink,
    line::{Line, block, columns, labelled},
    shares,
};
use crate::words;
use record::{Finding, LoopReport, PathReport};

/// Where values stand beside their labels.
const COLUMN: usize = 16;

/// Measure, explain, tune, measure again: what came of it.
#[must_use]
pub fn summary(report: &LoopReport, style: &Style) -> String {
    let mut lines = vec![headline(report, style), Line::new(style)];
    lines.extend(path_lines(&report.path, style));
    lines.push(Line::new(style));
    lines.extend(table(&report.before, &report.after, style));
    block(lines)
}

/// The path: asked, achieved, and whether it can be trusted.
#[must_use]
pub fn path(path: &PathReport, style: &Style) -> String {
    block(path_lines(path, style))
}

fn headline(report: &LoopReport, style: &Style) -> Line {
    let step = words::step(report.before.throughput_bps, report.after.throughput_bps);
    let ink = match (report.path.valid, report.gain >= 1.0) {
        (true, true) => ink::GOOD,
        (true, false) => ink::WARN,
        (false, _) => ink::BAD,
    };
    let line = Line::new(style);
    let line = match words::gain(report.gain) {
        Some(gain) => line.put(ink, &format!("{gain}:")).put(ink::PLAIN, " "),
        None => line,
    };
    let line = line.put(ink::STRONG, &step);
    if report.path.valid { line } else { line.put(ink::BAD, "  (not valid)") }
}

fn path_lines(path: &PathReport, style: &Style) -> Vec<Line> {
    let loss = if path.loss == units::LossRatio::NONE {
        "no random loss".to_owned()
    } else {
        format!("{} loss", path.loss)
    };
    let rate = words::rate(path.rate_bps);
    let asked = format!("{rate}, {} round trip, {loss}, queue {}", path.rtt, path.queue);
    let mut achieved = Vec::new();
    if let Some(rate) = path.achieved.rate_bps {
        achieved.push(rate.to_string());
    }
    match path.achieved.idle_rtt_ms.filter(|ms| ms.is_finite()) {
        Some(ms) => achieved.push(format!("{ms:.1} ms idle round trip")),
        None => achieved.push("no idle round trip could be had".to_owned()),
    }
    achieved.push(if path.valid { "valid" } else { "NOT VALID" }.to_owned());
    let row =
        |label: &str, ink, text: &str| labelled(style, 0, (ink::DIM, label), COLUMN, (ink, text));
    let mut lines = row("path asked", ink::PLAIN, &asked);
    let ink = if path.valid { ink::PLAIN } else { ink::BAD };
    lines.extend(row("path achieved", ink, &achieved.join(", ")));
    for reason in &path.reasons {
        let mark = if path.valid { "  note" } else { "  because" };
        lines.extend(row(mark, ink::PLAIN, reason));
    }
    lines
}

fn table(before: &Finding, after: &Finding, style: &Style) -> Vec<Line> {
    let runs = [before, after];
    let rate = |f: &Finding| f.throughput_bps.to_string();
    let predicted = |f: &Finding| f.predicted_bps.map_or_else(|| "-".to_owned(), |p| p.to_string());
    let ratio = |f: &Finding| words::of_predicted(f).map_or_else(|| "-".to_owned(), words::percent);
    let limit = |f: &Finding| words::limit_name(f.limit).to_owned();
    let round = |f: &Finding| f.loaded_rtt.map_or_else(|| "-".to_owned(), |r| r.to_string());
    let rows: [(&str, [String; 2]); 5] = [
        ("throughput", runs.map(rate)),
        ("predicted", runs.map(predicted)),
        ("of predicted", runs.map(ratio)),
        ("limit", runs.map(limit)),
        ("loaded RTT", runs.map(round)),
    ];
    // Both columns as wide as their widest cell, and two spaces between.
    let wide = rows.iter().flat_map(|(_, cells)| cells).map(|c| columns(c)).max().unwrap_or(0);
    let ends = [COLUMN + wide, COLUMN + 2 * wide + 3];
    let mut lines = vec![
        Line::new(style).right(ink::run(0).bold(), "before", ends[0]).right(
            ink::run(1).bold(),
            "after",
            ends[1],
        ),
        rule(style, ends[1]),
    ];
    for (label, cells) in rows {
        let ink = |f: &Finding| match label {
            "throughput" => ink::STRONG,
            "limit" => ink::tone(words::tone(f.limit)),
            _ => ink::PLAIN,
        };
        lines.push(
            Line::new(style).put(ink::DIM, label).right(ink(before), &cells[0], ends[0]).right(
                ink(after),
                &cells[1],
                ends[1],
            ),
        );
    }
    lines.extend(time(before, after, style));
    lines
}

fn rule(style: &Style, width: usize) -> Line {
    let dash = if style.unicode { "─" } else { "-" };
    Line::new(style).put(ink::DIM, &dash.repeat(width.min(style.text_width())))
}

/// The two stacked bars, one above the other, with one legend.
fn time(before: &Finding, after: &Finding, style: &Style) -> Vec<Line> {
    let mut lines = vec![Line::new(style)];
    let width = style.text_width().saturating_sub(COLUMN).max(1);
    for (label, finding) in [("time, before", before), ("time, after", after)] {
        let line = Line::new(style).put(ink::DIM, label).to(COLUMN);
        lines.push(match &finding.shares {
            Some(shares) => shares::bar(line, shares, width, style),
            None => line.put(ink::DIM, words::NO_CLOCKS),
        });
    }
    let both: Vec<_> = [before, after].into_iter().filter_map(|f| f.shares.as_ref()).collect();
    let say = |s: &[f64]| s.iter().map(|s| words::percent(*s)).collect::<Vec<_>>().join(" → ");
    if !both.is_empty() {
        lines.extend(shares::legend(style, COLUMN, &both, say));
    }
    lines
}
