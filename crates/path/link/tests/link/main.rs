//! The link in virtual time: each queue discipline against its model, each effect against
//! its specification, each distribution against its equation.

#![expect(clippy::unwrap_used, reason = "in a test an unwrap is an assertion")]

mod any;
mod arrange;
mod codel;
mod dualpi2;
mod effects;
mod fq_codel;
mod late_reads;
mod limits;
mod marks;
mod pie;
mod rate;
mod red;
mod schedule;
mod senders;
mod statistics;
mod xcp;
