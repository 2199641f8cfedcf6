//! Settings tuned and put back, on a machine made of files: killed anywhere,
//! changed by others meanwhile, without privileges, after a boot.

#![expect(clippy::unwrap_used, reason = "in a test an unwrap is an assertion")]

mod fake;
mod killed;
mod others;
mod plans;
