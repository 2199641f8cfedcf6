//! A tuning plan as a diff: host, setting, old value, new value, reason.

use super::{
    Style,
    line::{Line, block},
    settings, style,
};
use record::PlanItem;

/// The settings to change, or that there are none.
#[must_use]
pub fn plan(items: &[PlanItem], style: &Style) -> String {
    block(lines(items, style))
}

pub(super) fn lines(items: &[PlanItem], style: &Style) -> Vec<Line> {
    if items.is_empty() {
        return vec![
            Line::new(style).put(style::STRONG, "Plan").put(style::PLAIN, "  nothing to change"),
        ];
    }
    let plural = if items.len() == 1 { "" } else { "s" };
    let mut lines = vec![
        Line::new(style)
            .put(style::STRONG, "Plan")
            .put(style::DIM, &format!("  {} setting{plural}", items.len())),
    ];
    for item in items {
        lines.push(
            Line::new(style)
                .to(2)
                .put(style::DIM, &item.host)
                .put(style::PLAIN, "  ")
                .put(style::STRONG, &item.key),
        );
        lines.extend(settings::diff(&item.from, &item.to, &item.why, style));
    }
    lines
}
