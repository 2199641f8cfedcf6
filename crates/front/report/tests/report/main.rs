//! Complete output: terminal blocks at two widths, HTML pages, damaged records.
//!
//! `LONGHAUL_BLESS=1` rewrites the golden files instead of comparing.

mod access;
mod assertions;
mod baseline;
mod calculators;
mod colours;
mod comparisons;
mod controls;
mod degenerate;
mod elements;
mod page;
mod pages;
mod simulation;
mod study;
mod style_rules;
mod synthetic;
mod terminal;
mod watch;
