//! Sparklines: a value over time in one line of block characters.

use super::Style;

/// The characters, lowest first.
pub(super) fn steps(style: &Style) -> &'static [char; 8] {
    if style.unicode {
        &['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█']
    } else {
        &['_', '.', ':', '-', '=', '+', '*', '#']
    }
}

/// The last `width` values on a scale from 0 to `max`; unknown values are blank.
pub(super) fn sparkline(
    values: impl IntoIterator<Item = Option<f64>>,
    max: f64,
    width: usize,
    style: &Style,
) -> String {
    let values: Vec<Option<f64>> = values.into_iter().collect();
    let recent = values.iter().skip(values.len().saturating_sub(width));
    let cell = |value: f64| {
        let level = (value / max.max(f64::MIN_POSITIVE) * 7.0).round().clamp(0.0, 7.0) as usize;
        steps(style).get(level).copied().unwrap_or(' ')
    };
    recent.map(|value| value.map_or(' ', cell)).collect()
}
