//! The plan, in the form of a diff: whose setting, what goes, what comes, why.

use super::{
    Style, ink,
    line::{Line, block, labelled},
};
use record::PlanItem;

/// The settings to change; one sentence where there are none.
#[must_use]
pub fn plan(items: &[PlanItem], style: &Style) -> String {
    block(lines(items, style))
}

pub(super) fn lines(items: &[PlanItem], style: &Style) -> Vec<Line> {
    if items.is_empty() {
        return vec![
            Line::new(style).put(ink::STRONG, "Plan").put(ink::PLAIN, "  nothing to change"),
        ];
    }
    let plural = if items.len() == 1 { "" } else { "s" };
    let mut lines = vec![
        Line::new(style)
            .put(ink::STRONG, "Plan")
            .put(ink::DIM, &format!("  {} setting{plural}", items.len())),
    ];
    for item in items {
        lines.push(
            Line::new(style)
                .to(2)
                .put(ink::DIM, &item.host)
                .put(ink::PLAIN, "  ")
                .put(ink::STRONG, &item.key),
        );
        lines.extend(labelled(style, 4, (ink::RUNS[0], "-"), 6, (ink::RUNS[0], &item.from)));
        lines.extend(labelled(style, 4, (ink::RUNS[1], "+"), 6, (ink::RUNS[1], &item.to)));
        lines.extend(labelled(style, 6, (ink::DIM, ""), 6, (ink::DIM, &item.why)));
    }
    lines
}
