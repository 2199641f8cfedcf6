//! Result of measuring, tuning and measuring again: gain, path, before and after.

use super::{
    Style,
    line::{Line, block, columns, labelled},
    shares, style,
};
use crate::wording;
use record::{Finding, LoopReport, PathReport};

/// Column of the values.
const COLUMN: usize = 16;

/// The gain, the path, and both findings side by side.
#[must_use]
pub fn summary(report: &LoopReport, style: &Style) -> String {
    let mut lines = vec![headline(report, style), Line::new(style)];
    lines.extend(path_lines(&report.path, style));
    lines.push(Line::new(style));
    lines.extend(table(&report.before, &report.after, style));
    block(lines)
}

/// The path as configured and as measured, and whether it is valid.
#[must_use]
pub fn path(path: &PathReport, style: &Style) -> String {
    block(path_lines(path, style))
}

fn headline(report: &LoopReport, style: &Style) -> Line {
    let step = wording::step(report.before.throughput_bps, report.after.throughput_bps);
    let text_style = match (report.path.valid, report.gain >= 1.0) {
        (true, true) => style::GOOD,
        (true, false) => style::WARN,
        (false, _) => style::BAD,
    };
    let line = Line::new(style);
    let line = match wording::gain(report.gain) {
        Some(gain) => line.put(text_style, &format!("{gain}:")).put(style::PLAIN, " "),
        None => line,
    };
    let line = line.put(style::STRONG, &step);
    if report.path.valid { line } else { line.put(style::BAD, "  (not valid)") }
}

fn path_lines(path: &PathReport, style: &Style) -> Vec<Line> {
    let loss = if path.loss == units::LossRatio::NONE {
        "no random loss".to_owned()
    } else {
        format!("{} loss", path.loss)
    };
    let rate = wording::rate(path.rate_bps);
    let configured = format!("{rate}, {} RTT, {loss}, queue {}", path.rtt, path.queue);
    let mut measured = Vec::new();
    if let Some(rate) = path.achieved.rate_bps {
        measured.push(rate.to_string());
    }
    match wording::idle_rtt(&path.achieved, 1) {
        Some(idle) => measured.push(format!("idle RTT {idle}")),
        None => measured.push("idle RTT not measured".to_owned()),
    }
    measured.push(if path.valid { "valid" } else { "not valid" }.to_owned());
    let row = |label: &str, text_style, text: &str| {
        labelled(style, 0, (style::DIM, label), COLUMN, (text_style, text))
    };
    let mut lines = row("path configured", style::PLAIN, &configured);
    let text_style = if path.valid { style::PLAIN } else { style::BAD };
    lines.extend(row("path measured", text_style, &measured.join(", ")));
    for reason in &path.reasons {
        let mark = if path.valid { "  note" } else { "  reason" };
        lines.extend(row(mark, style::PLAIN, reason));
    }
    lines
}

fn table(before: &Finding, after: &Finding, style: &Style) -> Vec<Line> {
    let runs = [before, after];
    let rate = |f: &Finding| f.throughput_bps.to_string();
    let predicted = |f: &Finding| f.predicted_bps.map_or_else(|| "-".to_owned(), |p| p.to_string());
    let ratio = |f: &Finding| {
        wording::of_predicted(f).map_or_else(|| "-".to_owned(), wording::whole_percent)
    };
    let limit = |f: &Finding| wording::limit_name(f.limit).to_owned();
    let loaded_rtt = |f: &Finding| f.loaded_rtt.map_or_else(|| "-".to_owned(), |r| r.to_string());
    let rows: [(&str, [String; 2]); 5] = [
        ("throughput", runs.map(rate)),
        ("predicted", runs.map(predicted)),
        ("vs. predicted", runs.map(ratio)),
        ("limit", runs.map(limit)),
        ("RTT under load", runs.map(loaded_rtt)),
    ];
    // Both columns are as wide as the widest cell.
    let wide = rows.iter().flat_map(|(_, cells)| cells).map(|c| columns(c)).max().unwrap_or(0);
    let ends = [COLUMN + wide, COLUMN + 2 * wide + 3];
    let mut lines = vec![
        Line::new(style).right(style::run(0).bold(), "before", ends[0]).right(
            style::run(1).bold(),
            "after",
            ends[1],
        ),
        rule(style, ends[1]),
    ];
    for (label, cells) in rows {
        let text_style = |f: &Finding| match label {
            "throughput" => style::STRONG,
            "limit" => style::tone(wording::tone(f.limit)),
            _ => style::PLAIN,
        };
        lines.push(
            Line::new(style)
                .put(style::DIM, label)
                .right(text_style(before), &cells[0], ends[0])
                .right(text_style(after), &cells[1], ends[1]),
        );
    }
    lines.extend(time(before, after, style));
    lines
}

fn rule(style: &Style, width: usize) -> Line {
    let dash = if style.unicode { "─" } else { "-" };
    Line::new(style).put(style::DIM, &dash.repeat(width.min(style.text_width())))
}

/// The two stacked bars with one legend.
fn time(before: &Finding, after: &Finding, style: &Style) -> Vec<Line> {
    let mut lines = vec![Line::new(style)];
    let width = style.text_width().saturating_sub(COLUMN).max(1);
    for (label, finding) in [("time, before", before), ("time, after", after)] {
        let line = Line::new(style).put(style::DIM, label).to(COLUMN);
        lines.push(match &finding.shares {
            Some(shares) => shares::bar(line, shares, width, style),
            None => line.put(style::DIM, wording::NO_TIMERS),
        });
    }
    let both: Vec<_> = [before, after].into_iter().filter_map(|f| f.shares.as_ref()).collect();
    let say =
        |s: &[f64]| s.iter().map(|s| wording::whole_percent(*s)).collect::<Vec<_>>().join(" → ");
    if !both.is_empty() {
        lines.extend(shares::legend(style, COLUMN, &both, say));
    }
    lines
}
