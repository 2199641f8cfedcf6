//! The parts of `bench truth` that can be checked without running cases by the hundred: a
//! benchmark has no test harness of its own.

#![expect(clippy::unwrap_used, reason = "in a test an unwrap is an assertion")]

#[path = "../../benches/truth"]
mod truth {
    pub(crate) mod calibration;
    pub(crate) mod case;
    pub(crate) mod diagram;
    pub(crate) mod draws;
    pub(crate) mod families;
    pub(crate) mod label;
    pub(crate) mod scored;
    pub(crate) mod table;
    pub(crate) mod twin_capture;
    pub(crate) mod twin_run;
}

mod calibrated;
mod captured;
mod cases;
mod labelled;
mod simulated;

// The benchmark's modules name each other from its root.
use truth::{
    calibration, case, diagram, draws, families, label, scored, table, twin_capture, twin_run,
};

type Fallible<T> = Result<T, Box<dyn std::error::Error + Send + Sync>>;
