//! Output in the format of iperf3 3.21: its text and its JSON document, for scripts
//! and dashboards that parse them.
//!
//! The formats were taken from the program's output. Its defects are not copied: no
//! key is repeated, no number is NaN, and a failed test gives a complete document.
//!
//! | module | contents |
//! |---|---|
//! | [`facts`] | the input: test parameters, interval rows, totals of both ends |
//! | [`totals`] | computes totals from rows and results |
//! | [`number`] | sizes and rates in three or four digits |
//! | [`text`] | the lines before and during a test |
//! | [`summary`] | the lines at the end of a test |
//! | [`json`] | the JSON document, and the events of `--json-stream` |

mod date;
pub mod facts;
pub mod json;
mod json_end;
mod json_format;
mod json_rows;
pub mod number;
pub mod summary;
pub mod text;
pub mod totals;

#[cfg(test)]
mod conformance;

/// The version of iperf3 whose output this is; dashboards parse it.
pub const VERSION: &str = "iperf 3.21";
