//! Client and server over loopback: against each other, and against misbehaving peers.
//! No assertion depends on the speed of the host.

#![expect(clippy::unwrap_used, reason = "in a test an unwrap is an assertion")]

mod abuse;
mod bad_clients;
mod bad_servers;
mod datagrams;
mod files;
mod limits;
mod ours;
mod scripted_client;
mod test_server;
mod udt;
mod unsent;
