//! Complete output: terminal blocks at two widths, HTML pages, damaged records.
//!
//! `LONGHAUL_BLESS=1` rewrites the golden files instead of comparing.

mod assertions;
mod baseline;
mod calculators;
mod comparisons;
mod degenerate;
mod page;
mod study;
mod synthetic;
mod terminal;
mod watch;
