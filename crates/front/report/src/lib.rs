//! Measurements and findings as text: terminal output and HTML pages.
//!
//! Takes record types, returns `String`. No I/O, no clock, no measurement or
//! diagnosis: those belong to lower layers.
//!
//! | module | contents |
//! |---|---|
//! | [`series`] | time series computed from a measurement's samples |
//! | [`terminal`] | interval reports, findings, tables, plots, progress, calculators |
//! | [`html`] | one self-contained page |
//! | [`iperf3`] | iperf3's text output and JSON document |
//! | [`kml()`], [`geojson()`] | a route for maps |
//! | [`untrusted`] | sanitizes text from peers and files |
//!
//! Names, notes and sentences come from peers and files and are untrusted:
//! [`untrusted`] removes terminal control sequences, `html::markup` escapes HTML.

mod axis;
mod bdp_rows;
mod calendar;
mod foremost;
pub mod html;
pub mod iperf3;
mod route_files;
pub mod series;
mod span;
mod study_sources;
pub mod terminal;
mod timeline;
pub mod untrusted;
mod wording;

pub use calendar::utc;
pub use route_files::{geojson, kml};
pub use wording::{entries, idle_rtt, long_time};
