//! Text styles: the 16 colours of every terminal theme, without red against green.

use crate::wording::{Cause, Tone};
use anstyle::{AnsiColor, Color, Style};

const fn fg(colour: AnsiColor) -> Style {
    Style::new().fg_color(Some(Color::Ansi(colour)))
}

pub(super) const PLAIN: Style = Style::new();
pub(super) const DIM: Style = Style::new().dimmed();
pub(super) const STRONG: Style = Style::new().bold();
/// The selected row.
pub(super) const SELECTED: Style = Style::new().invert();
pub(super) const GOOD: Style = fg(AnsiColor::Cyan).bold();
pub(super) const WARN: Style = fg(AnsiColor::Yellow).bold();
pub(super) const BAD: Style = fg(AnsiColor::Red).bold();
/// Colours of runs: before, after, and further ones.
pub(super) const RUNS: [Style; 4] =
    [fg(AnsiColor::Yellow), fg(AnsiColor::Cyan), fg(AnsiColor::Magenta), fg(AnsiColor::Blue)];

pub(super) fn run(index: usize) -> Style {
    RUNS[index % RUNS.len()]
}

/// Colours of limits on the time axis, by rank.
const BANDS: [Style; 5] = [
    fg(AnsiColor::Yellow),
    fg(AnsiColor::Cyan),
    fg(AnsiColor::Magenta),
    fg(AnsiColor::Blue),
    Style::new(),
];

pub(super) fn band(rank: usize) -> Style {
    BANDS[rank.min(BANDS.len() - 1)]
}

pub(super) fn tone(tone: Tone) -> Style {
    match tone {
        Tone::Good => GOOD,
        Tone::Fixable => WARN,
        Tone::Unknown => STRONG,
    }
}

pub(super) fn cause(cause: Cause) -> Style {
    match cause {
        Cause::ReceiveWindow => fg(AnsiColor::Yellow),
        Cause::SendBuffer => fg(AnsiColor::Magenta),
        Cause::Network => fg(AnsiColor::Cyan),
        Cause::Application => DIM,
    }
}
