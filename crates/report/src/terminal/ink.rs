//! The terminal's colours: the 16 that every theme has, told apart without green against red.

use crate::words::{Cause, Tone};
use anstyle::{AnsiColor, Color, Style};

const fn fg(colour: AnsiColor) -> Style {
    Style::new().fg_color(Some(Color::Ansi(colour)))
}

pub(super) const PLAIN: Style = Style::new();
pub(super) const DIM: Style = Style::new().dimmed();
pub(super) const STRONG: Style = Style::new().bold();
/// The row at hand.
pub(super) const MARKED: Style = Style::new().invert();
pub(super) const GOOD: Style = fg(AnsiColor::Cyan).bold();
pub(super) const WARN: Style = fg(AnsiColor::Yellow).bold();
pub(super) const BAD: Style = fg(AnsiColor::Red).bold();
/// Before and after, and whatever comes after that.
pub(super) const RUNS: [Style; 4] =
    [fg(AnsiColor::Yellow), fg(AnsiColor::Cyan), fg(AnsiColor::Magenta), fg(AnsiColor::Blue)];

pub(super) fn run(index: usize) -> Style {
    RUNS[index % RUNS.len()]
}

pub(super) fn tone(tone: Tone) -> Style {
    match tone {
        Tone::Good => GOOD,
        Tone::Mend => WARN,
        Tone::Open => STRONG,
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
