//! The endpoints over loopback: ours against ours, and against peers that
//! misbehave. No assertion depends on how fast the machine is.

#![expect(clippy::unwrap_used, reason = "in a test an unwrap is an assertion")]

mod abuse;
mod bad_clients;
mod bad_servers;
mod datagrams;
mod ground;
mod ours;
mod puppet;
