//! What there is to compute about a path, one line and one equation each.

use super::{
    Style, ink,
    line::{Line, block, labelled},
};
use model::Worksheet;

/// Where the equations stand beside their labels.
const COLUMN: usize = 18;

/// The worksheet of one path.
#[must_use]
pub fn worksheet(sheet: &Worksheet, style: &Style) -> String {
    let row = |label: &str, text: &str| {
        labelled(style, 0, (ink::STRONG, label), COLUMN, (ink::PLAIN, text))
    };
    let mut lines = row("BDP", &sheet.bdp.equation);
    lines.extend(row("window needed", &sheet.window.equation));
    if sheet.streams > 1 {
        lines.extend(row("each stream", &sheet.window_per_stream.equation));
    }
    lines.extend(row("64 KiB gives", &sheet.unscaled.equation));
    if let Some(given) = &sheet.given {
        let label = format!("{} gives", given.window_bytes);
        lines.extend(row(&label, &given.equation));
    }
    lines.extend(row("buffers", &sheet.buffers.equation));
    lines.push(Line::new(style));
    for case in &sheet.payload {
        lines.extend(row("payload", &format!("{}: {}", case.case, case.equation)));
    }
    lines.extend(row("slow start", &sheet.ramp.equation));
    lines.extend(row("loss it bears", &sheet.loss.equation));
    block(lines)
}
