//! Scenarios, their simulation, the truth of their runs, and scores.

#![expect(clippy::unwrap_used, reason = "in a test an unwrap is an assertion")]

mod calibrated;
mod captured;
mod families;
mod labelled;
mod removal;
mod simulated;
