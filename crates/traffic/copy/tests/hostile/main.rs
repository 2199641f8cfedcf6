//! Attacks on the server of copies: each test sends what an attacker would send, and asserts
//! that a client with a token is served.

#![expect(clippy::unwrap_used, reason = "in a test an unwrap is an assertion")]

mod admission;
