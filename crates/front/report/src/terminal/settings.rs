//! Settings as a diff before they are written, and the outcome after.

use super::{
    Style,
    line::{Line, labelled},
    style,
};
use record::{Outcome, PlannedSetting, Written};

/// The old value, the new value and the reason.
pub(super) fn diff(from: &str, to: &str, reason: &str, style: &Style) -> Vec<Line> {
    let mut lines = labelled(style, 4, (style::RUNS[0], "-"), 6, (style::RUNS[0], from));
    lines.extend(labelled(style, 4, (style::RUNS[1], "+"), 6, (style::RUNS[1], to)));
    lines.extend(labelled(style, 6, (style::DIM, ""), 6, (style::DIM, reason)));
    lines
}

/// A planned change, with its reason and risk.
pub(super) fn planned(setting: &PlannedSetting, style: &Style) -> Vec<Line> {
    let mut lines = vec![Line::new(style).to(2).put(style::STRONG, &setting.key)];
    lines.extend(diff(&setting.now, &setting.planned, &setting.why, style));
    let risk = format!("Risk: {}", setting.risk);
    lines.extend(labelled(style, 6, (style::DIM, ""), 6, (style::DIM, &risk)));
    lines
}

/// The outcome of writing a setting.
pub(super) fn written(one: &Written, style: &Style) -> Vec<Line> {
    let (mark, colour) = match one.outcome {
        Outcome::Set => ("+", style::RUNS[1]),
        Outcome::Bounded => ("~", style::WARN),
        Outcome::Skipped => ("x", style::WARN),
    };
    let text = match one.outcome {
        Outcome::Set => format!("{} = {}", one.key, one.now),
        Outcome::Bounded => format!("{} = {}: {}", one.key, one.now, one.note),
        Outcome::Skipped => format!("{} skipped: {}", one.key, one.note),
    };
    labelled(style, 2, (colour, mark), 4, (style::PLAIN, &text))
}
