//! Both boxes on loopback, between real sockets.

#![expect(clippy::unwrap_used, reason = "in a test an unwrap is an assertion")]

mod boxes;
mod hostile;
mod lanes;
mod reduction;
mod semantics;
mod sessions;
mod several_connections;
mod udt;
