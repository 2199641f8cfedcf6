//! Hosts of many kinds, made of files, held against targets.

#![expect(clippy::unwrap_used, reason = "in a test an unwrap is an assertion")]

mod devices;
mod fake;
mod odd;
mod path;
mod servers;
