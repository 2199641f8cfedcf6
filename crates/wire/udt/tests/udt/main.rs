//! Connections over emulated paths, in virtual time.

#![expect(clippy::unwrap_used, reason = "in a test an unwrap is an assertion")]

mod path;

mod closing;
mod handshakes;
mod hostile;
mod messages;
mod native;
mod native_path;
mod rates;
mod sharing;
mod transfers;
