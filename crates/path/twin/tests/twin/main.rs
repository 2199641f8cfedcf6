//! The twin against published figures, equations and what must always hold.

#![expect(clippy::unwrap_used, reason = "in a test an unwrap is an assertion")]

mod any;
mod arrange;
mod bbr;
mod bbr3;
mod determinism;
mod diagnosis;
mod hosts;
mod limits;
mod recovery;
mod response;
mod saturation;
mod truth;
