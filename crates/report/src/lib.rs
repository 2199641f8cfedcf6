//! Measurements and verdicts as text: terminal blocks and HTML pages.
//!
//! Record types in, `String` out. No I/O, no clock, and no opinion on how a
//! figure was measured: what is drawn here was decided on a lower floor.
//!
//! | module | gives |
//! |---|---|
//! | [`series`] | curves over time out of a measurement's samples |
//! | [`terminal`] | interval rows, verdicts, the loop's summary, plots, progress, calculators |
//! | [`html`] | one self-contained page |
//! | [`iperf3`] | iperf3's rows and its JSON document |
//!
//! Names, notes and sentences come from peers and from files, so they are
//! hostile until cleaned: `untrusted` takes out what a terminal would obey,
//! `html::markup` escapes what a browser would.

mod axis;
pub mod html;
pub mod iperf3;
pub mod series;
pub mod terminal;
mod untrusted;
mod words;
