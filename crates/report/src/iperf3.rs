//! Output as iperf3 3.21 writes it: its rows of text and its JSON document,
//! for the scripts and dashboards that read them.
//!
//! Formats are facts of interoperability; they were read off the program
//! itself. What that program gets wrong is not repeated: no key comes twice,
//! no number is NaN, and a failed test gives a whole document.
//!
//! | module | holds |
//! |---|---|
//! | [`facts`] | what is rendered: the head of a test, rows of an interval, both ends' totals |
//! | [`tally`] | from rows and results to totals |
//! | [`number`] | sizes and rates in three or four digits |
//! | [`text`] | the lines before, during and around a test |
//! | [`summary`] | the lines at its end |
//! | [`json`] | the document, and the same as a stream of lines |

pub mod facts;
pub mod json;
mod json_end;
mod json_rows;
pub mod number;
pub mod summary;
mod tabs;
pub mod tally;
pub mod text;

#[cfg(test)]
mod known;

/// The first word of every version of the program imitated; dashboards parse it.
pub const VERSION: &str = "iperf 3.21";
