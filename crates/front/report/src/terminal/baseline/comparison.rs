//! A baseline against an earlier one.

use crate::terminal::{
    Style,
    line::{Line, labelled},
    style,
};
use crate::{calendar, wording};
use record::{BaselineComparison, ComparedCondition};

/// Right ends of the figures: before, now, the change.
const FIGURES: [usize; 3] = [40, 53, 66];

pub(super) fn comparison(found: &BaselineComparison, style: &Style) -> Vec<Line> {
    let title =
        format!("Compared with {} of {}", found.target, calendar::utc(found.started_unix_s));
    let mut lines = super::heading(style, &title).to_vec();
    let tone = style::STRONG;
    lines.extend(labelled(style, 2, (tone, ""), 2, (tone, &found.sentence)));
    let mut head = Line::new(style).to(2).put(style::DIM, "mean goodput");
    for (name, column) in ["before", "now", "change"].into_iter().zip(FIGURES) {
        head = head.right(style::DIM, name, column);
    }
    lines.push(head.to(FIGURES[2] + 2).put(style::DIM, "significant"));
    lines.extend(found.conditions.iter().map(|one| row(one, style)));
    if found.unmatched > 0 {
        let conditions = if found.unmatched == 1 { "condition" } else { "conditions" };
        let text = format!("{} {conditions} in only one baseline", found.unmatched);
        lines.push(Line::new(style).to(2).put(style::DIM, &text));
    }
    for warning in &found.warnings {
        lines.extend(labelled(style, 2, (style::WARN, "!"), 4, (style::PLAIN, warning)));
    }
    lines
}

fn row(one: &ComparedCondition, style: &Style) -> Line {
    let found = &one.comparison;
    let (tone, verdict) = match (one.significant, found.difference_bps < 0.0) {
        (Some(true), true) => (style::BAD, "yes"),
        (Some(true), false) => (style::GOOD, "yes"),
        (Some(false), _) => (style::DIM, "no"),
        (None, _) => (style::DIM, "too few"),
    };
    Line::new(style)
        .to(2)
        .put(style::PLAIN, &one.condition.to_string())
        .right(style::PLAIN, &wording::bps(found.baseline_bps), FIGURES[0])
        .right(style::PLAIN, &wording::bps(found.now_bps), FIGURES[1])
        .right(tone, &wording::relative(found.difference_share), FIGURES[2])
        .to(FIGURES[2] + 2)
        .put(tone, verdict)
}
