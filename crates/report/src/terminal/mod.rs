//! Text for a terminal, as wide as it is and never wider.
//!
//! Functions that give one line ([`interval_row`], [`progress()`]) end without a
//! newline, so that a caller may overwrite them; blocks end with one. No line
//! has trailing spaces, and without colour there is no escape code in any.

mod canvas;
mod doctor;
mod find_rate;
mod finding;
mod follow;
mod graph;
mod ink;
mod intervals;
mod latency;
mod line;
mod plan;
mod plot;
mod progress;
mod repeats;
mod route;
mod shares;
mod sheet;
mod spark;
mod summary;
mod tuning;
mod under_load;
mod verified;
mod watch;
mod watched;
mod worksheet;

pub use doctor::{doctor, doctor_commands};
pub use find_rate::{find_rate, try_header, try_row};
pub use finding::{finding, notes};
pub use follow::follow;
pub use intervals::{Counted, Interval, RowId, Way, interval_header, interval_row, totals};
pub use latency::{Answer, Answered, answer, round_trips};
pub use plan::plan;
pub use plot::{Trace, plot};
pub use progress::progress;
pub use repeats::{comparison, repeats};
pub use route::route;
pub use sheet::sheet;
pub use summary::{path, summary};
pub use tuning::{tune_plan, tune_status, tuned, untuned};
pub use under_load::under_load;
pub use verified::{verified, verify_plan, verify_step};
pub use watch::{Room, watch};
pub use watched::{Watched, watched};
pub use worksheet::worksheet;

/// Running text is hard to read in longer lines, and tables fall apart.
const WIDEST: usize = 100;

/// What the terminal at hand can show.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Style {
    /// Whether to write escape codes.
    pub colour: bool,
    /// Columns; no line is longer.
    pub width: usize,
    /// Whether to draw with more than ASCII.
    pub unicode: bool,
}

impl Style {
    /// Columns that text and tables use.
    fn text_width(&self) -> usize {
        self.width.clamp(1, WIDEST)
    }
}
