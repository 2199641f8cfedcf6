//! The rules from both sides: what is just flagged, and what just is not.

#![expect(clippy::unwrap_used, reason = "in a test an unwrap is an assertion")]

mod any;
mod exchange;
mod iperf3;
mod kinds;
mod mptcp;
mod wireshark;
