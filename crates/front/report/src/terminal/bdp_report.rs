//! The BDP report of a path: one line and one equation per figure.

use super::{
    Style,
    line::{Line, block, labelled},
    style,
};
use model::BdpReport;

/// Column of the equations.
const COLUMN: usize = 18;

/// The BDP report of one path.
#[must_use]
pub fn bdp_report(result: &BdpReport, style: &Style) -> String {
    let row = |label: &str, text: &str| {
        labelled(style, 0, (style::STRONG, label), COLUMN, (style::PLAIN, text))
    };
    let mut lines = row("BDP", &result.bdp.equation);
    lines.extend(row("required window", &result.window.equation));
    if result.streams > 1 {
        lines.extend(row("window per stream", &result.window_per_stream.equation));
    }
    lines.extend(row("64 KiB window", &result.unscaled.equation));
    if let Some(given) = result.given.as_ref().filter(|given| **given != result.unscaled) {
        let label = format!("{} window", given.window_bytes);
        lines.extend(row(&label, &given.equation));
    }
    lines.extend(row("buffers", &result.buffers.equation));
    lines.push(Line::new(style));
    for case in &result.payload {
        lines.extend(row("payload", &format!("{}: {}", case.case, case.equation)));
    }
    lines.extend(row("slow start", &result.ramp.equation));
    lines.extend(row("tolerable loss", &result.loss.equation));
    block(lines)
}
