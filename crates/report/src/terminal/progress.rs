//! A running test in one line that may be written over and over.

use super::{Style, ink, line::Line, spark::sparks};
use crate::words;
use units::BitRate;

/// The sparkline's room; older rates leave at the left.
const SPARKS: usize = 32;

/// How far the test is, its rates so far (one for each interval, oldest
/// first) and the latest. As wide each time, so that it overwrites itself.
#[must_use]
pub fn progress(elapsed_s: f64, total_s: Option<f64>, rates: &[BitRate], style: &Style) -> String {
    let clock = match total_s {
        Some(total) => format!("{:>6} / {:<6}", words::seconds(elapsed_s), words::seconds(total)),
        None => format!("{:>8}", words::seconds(elapsed_s)),
    };
    // Clock, rate of 11 columns, and a space beside each.
    let room = style.text_width().saturating_sub(clock.len() + 14).min(SPARKS);
    let most = rates.iter().copied().max().unwrap_or(BitRate::ZERO).as_f64().max(1.0);
    let sparks = sparks(rates.iter().map(|rate| Some(rate.as_f64())), most, room, style);
    let latest = rates.last().map_or_else(|| "-".to_owned(), ToString::to_string);
    let line = Line::new(style).put(ink::DIM, &clock).put(ink::PLAIN, " ");
    let start = line.used();
    line.put(ink::run(1), &sparks)
        .to(start + room)
        .right(ink::STRONG, &latest, start + room + 12)
        .finish()
}
