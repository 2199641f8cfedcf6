//! Attacks on the iperf 2 server.

#![expect(clippy::unwrap_used, reason = "in a test an unwrap is an assertion")]

mod log;
mod network;
mod tcp;
mod udp;
