//! Attacks on server and client: each test sends what an attacker would send, and asserts
//! that others are served and that limits hold.

#![expect(clippy::unwrap_used, reason = "in a test an unwrap is an assertion")]

#[path = "../endpoints/scripted_client.rs"]
mod scripted_client;
#[path = "../endpoints/test_server.rs"]
#[expect(dead_code, reason = "shared with the tests of both ends, which use all of it")]
mod test_server;

mod admission;
mod files;
mod logins;
mod messages;
mod one_address;
mod quota;
mod tokens;
