//! A value over time in one row of cells.

use super::Style;

/// The cells, lowest first.
pub(super) fn steps(style: &Style) -> &'static [char; 8] {
    if style.unicode {
        &['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█']
    } else {
        &['_', '.', ':', '-', '=', '+', '*', '#']
    }
}

/// The last `room` values, from nothing up to `most`; what is not known is blank.
pub(super) fn sparks(
    values: impl IntoIterator<Item = Option<f64>>,
    most: f64,
    room: usize,
    style: &Style,
) -> String {
    let values: Vec<Option<f64>> = values.into_iter().collect();
    let recent = values.iter().skip(values.len().saturating_sub(room));
    let cell = |value: f64| {
        let level = (value / most.max(f64::MIN_POSITIVE) * 7.0).round().clamp(0.0, 7.0) as usize;
        steps(style).get(level).copied().unwrap_or(' ')
    };
    recent.map(|value| value.map_or(' ', cell)).collect()
}
