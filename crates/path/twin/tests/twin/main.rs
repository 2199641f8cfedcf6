//! The twin against published figures, equations and what must always hold.

#![expect(clippy::unwrap_used, reason = "in a test an unwrap is an assertion")]

mod acknowledgements;
mod any;
mod arrange;
mod bbr;
mod bbr3;
mod controls;
mod determinism;
mod diagnosis;
mod hosts;
mod l4s;
mod limits;
mod own;
mod recovery;
mod response;
mod saturation;
mod truth;
mod xcp;
