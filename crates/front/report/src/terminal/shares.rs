//! Time per limit as a stacked bar.

use super::{Style, line::Line, style};
use crate::wording::{Cause, causes};
use record::Shares;

/// A fill character per cause, for terminals without colour.
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

/// Appends the bar, `width` columns long; a share above 0.5 % gets at least one.
pub(super) fn bar(mut line: Line, shares: &Shares, width: usize, style: &Style) -> Line {
    let parts = causes(shares);
    let mut cells: Vec<usize> =
        parts.iter().map(|(_, share)| (share * width as f64).round() as usize).collect();
    for (cell, (_, share)) in cells.iter_mut().zip(parts) {
        if *cell == 0 && share >= 0.005 {
            *cell = 1;
        }
    }
    // Rounding may make the bar too long: shorten the longest part.
    while cells.iter().sum::<usize>() > width {
        let Some(longest) = cells.iter_mut().max() else { break };
        *longest -= 1;
    }
    for (cells, (cause, _)) in cells.into_iter().zip(parts) {
        line = line.put(style::cause(cause), &texture(cause, style).to_string().repeat(cells));
    }
    line
}

/// Legend: the causes with a share in any of the runs, and their shares.
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
                line = line.put(style::PLAIN, "   ");
            }
        }
        line = line.put(style::cause(cause), &texture(cause, style).to_string());
        lines.push(line.put(style::PLAIN, " ").put(style::PLAIN, &text));
    }
    lines
}
