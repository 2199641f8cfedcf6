//! Where time went, as one stacked bar.

use super::{Style, ink, line::Line};
use crate::words::{Cause, causes};
use record::Shares;

/// Told apart by texture too, for whoever sees no colour.
fn texture(cause: Cause, style: &Style) -> char {
    match (cause, style.unicode) {
        (Cause::ReceiveWindow, true) => '█',
        (Cause::SendBuffer, true) => '▓',
        (Cause::Network, true) => '▒',
        (Cause::Application, true) => '░',
        (Cause::ReceiveWindow, false) => '#',
        (Cause::SendBuffer, false) => '=',
        (Cause::Network, false) => '+',
        (Cause::Application, false) => '.',
    }
}

/// Appends the bar, `width` columns long; what is there gets at least one.
pub(super) fn bar(mut line: Line, shares: &Shares, width: usize, style: &Style) -> Line {
    let parts = causes(shares);
    let mut cells: Vec<usize> =
        parts.iter().map(|(_, share)| (share * width as f64).round() as usize).collect();
    for (cell, (_, share)) in cells.iter_mut().zip(parts) {
        if *cell == 0 && share >= 0.005 {
            *cell = 1;
        }
    }
    // Rounding may leave the bar a cell or two long: the longest part gives.
    while cells.iter().sum::<usize>() > width {
        let Some(longest) = cells.iter_mut().max() else { break };
        *longest -= 1;
    }
    for (cells, (cause, _)) in cells.into_iter().zip(parts) {
        line = line.put(ink::cause(cause), &texture(cause, style).to_string().repeat(cells));
    }
    line
}

/// The causes that took time in any of the runs, each with its shares.
pub(super) fn legend(
    style: &Style,
    column: usize,
    runs: &[&Shares],
    say: impl Fn(&[f64]) -> String,
) -> Vec<Line> {
    let mut lines = vec![Line::new(style).to(column)];
    let runs: Vec<[(Cause, f64); 4]> = runs.iter().map(|s| causes(s)).collect();
    for index in 0..4 {
        let shares: Vec<f64> = runs.iter().map(|parts| parts[index].1).collect();
        let Some(cause) = runs.first().map(|parts| parts[index].0) else { continue };
        if shares.iter().all(|share| *share < 0.0005) {
            continue;
        }
        let text = format!("{} {}", cause.name(), say(&shares));
        let mut line = lines.pop().unwrap_or_else(|| Line::new(style).to(column));
        if line.used() > column {
            // Swatch, space, text, and three spaces before it.
            if line.used() + 5 + text.chars().count() > style.text_width() {
                lines.push(line);
                line = Line::new(style).to(column);
            } else {
                line = line.put(ink::PLAIN, "   ");
            }
        }
        line = line.put(ink::cause(cause), &texture(cause, style).to_string());
        lines.push(line.put(ink::PLAIN, " ").put(ink::PLAIN, &text));
    }
    lines
}
