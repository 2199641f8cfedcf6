//! A baseline while it runs.

use crate::terminal::{Style, line::Line, style};
use crate::wording;
use record::{RunFigures, TestCondition};
use serde::Serialize;
use std::time::Duration;
use units::BitRate;

/// Column of the state of a test.
const COLUMN: usize = 35;

/// The test that runs, and what remains.
#[derive(Debug, Clone, Copy, Serialize)]
pub struct BaselineProgress {
    /// Its number, from 1.
    pub number: u32,
    /// The tests that are expected in all.
    pub tests: u32,
    /// The measured condition.
    pub condition: TestCondition,
    /// The time that it and the rest are expected to take, s.
    pub left_s: f64,
    /// Its seconds so far, and its latest rate.
    pub latest: Option<(f64, BitRate)>,
    /// How long it waits for a busy server, s.
    pub waiting_s: Option<f64>,
}

/// The plan in one line.
#[must_use]
pub fn baseline_start(tests: u32, time: Duration, seed: u64) -> String {
    let time = wording::long_time(time.as_secs_f64());
    format!("{tests} tests in random order (seed {seed}), about {time}; Ctrl-C keeps the results")
}

/// `[ 7/24] IPv6 download, 4 streams`.
fn begin(progress: &BaselineProgress, style: &Style) -> Line {
    let tests = progress.tests.to_string();
    let number = format!("[{:>wide$}/{tests}]", progress.number, wide = tests.len());
    Line::new(style)
        .put(style::DIM, &number)
        .put(style::PLAIN, &format!(" {}", progress.condition))
        .to(COLUMN)
}

/// The line that is overwritten while a test runs.
#[must_use]
pub fn baseline_progress(progress: &BaselineProgress, style: &Style) -> String {
    let state = match (progress.waiting_s, progress.latest) {
        (Some(wait), _) => format!("server busy, retrying in {}", wording::seconds(wait)),
        (None, Some((at, rate))) => format!("{:>6}  {rate:<12}", wording::seconds(at)),
        (None, None) => "connecting".to_owned(),
    };
    let left = format!("{} left", wording::long_time(progress.left_s.max(0.0).ceil()));
    begin(progress, style)
        .put(style::STRONG, &state)
        .to(COLUMN + 24)
        .put(style::DIM, &left)
        .finish()
}

/// The line of a test that ended.
#[must_use]
pub fn baseline_test(progress: &BaselineProgress, figures: &RunFigures, style: &Style) -> String {
    let limit = wording::limit_name(figures.limit);
    let rise = figures.latency.as_ref().and_then(|latency| latency.rise_ms);
    let rise = rise.map_or(String::new(), |rise| format!("  {rise:+.0} ms"));
    begin(progress, style)
        .right(style::STRONG, &figures.throughput_bps.to_string(), COLUMN + 12)
        .to(COLUMN + 14)
        .put(style::DIM, &format!("{limit}{rise}"))
        .finish()
}
