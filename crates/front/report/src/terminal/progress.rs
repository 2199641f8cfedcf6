//! Progress of a running test in one line that is overwritten.

use super::{Style, line::Line, sparkline::sparkline, style};
use crate::wording;
use units::BitRate;

/// Most columns of the sparkline; it shows the latest rates.
const SPARKLINE_WIDTH: usize = 32;

/// Elapsed time, the rates so far (one per interval, oldest first) as a sparkline,
/// and the latest rate. Always the same width, so that it overwrites itself.
#[must_use]
pub fn progress(elapsed_s: f64, total_s: Option<f64>, rates: &[BitRate], style: &Style) -> String {
    let clock = match total_s {
        Some(total) => {
            format!("{:>6} / {:<6}", wording::seconds(elapsed_s), wording::seconds(total))
        }
        None => format!("{:>8}", wording::seconds(elapsed_s)),
    };
    // The clock, a rate of 11 columns, and a space on each side.
    let room = style.text_width().saturating_sub(clock.len() + 14).min(SPARKLINE_WIDTH);
    let most = rates.iter().copied().max().unwrap_or(BitRate::ZERO).as_f64().max(1.0);
    let curve = sparkline(rates.iter().map(|rate| Some(rate.as_f64())), most, room, style);
    let latest = rates.last().map_or_else(|| "-".to_owned(), ToString::to_string);
    let line = Line::new(style).put(style::DIM, &clock).put(style::PLAIN, " ");
    let start = line.used();
    line.put(style::run(1), &curve)
        .to(start + room)
        .right(style::STRONG, &latest, start + room + 12)
        .finish()
}
