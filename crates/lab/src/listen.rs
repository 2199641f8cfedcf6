//! Knowing when a server program is ready.

use crate::LabError;
use crate::hosts::LabHost;
use host::clock;
use host::program::{ExitCode, Program};
use std::time::Duration;

/// How often the sockets are looked at.
const EVERY: Duration = Duration::from_millis(5);

/// What a server program came to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Listening {
    /// It listens (TCP), or has a socket bound to a port (UDP).
    Yes,
    /// It still runs, without a socket that would wait for anyone.
    NotYet,
    /// It has ended.
    Ended(ExitCode),
}

/// Waits until `program` on `host` listens, but not longer than `limit`.
///
/// # Errors
/// Where the host's sockets cannot be read.
pub fn wait_until_listening(
    host: &LabHost,
    program: &Program,
    limit: Duration,
) -> Result<Listening, LabError> {
    let start = clock::now();
    loop {
        let listens = host
            .namespace
            .run(any_socket_waits)
            .map_err(LabError::system("entering a network namespace"))?;
        if listens {
            return Ok(Listening::Yes);
        }
        if let Some(code) = program.wait_at_most(EVERY) {
            return Ok(Listening::Ended(code));
        }
        if start.elapsed() > limit {
            return Ok(Listening::NotYet);
        }
    }
}

/// Whether any socket in the calling thread's namespace waits for peers. A lab
/// host has no sockets but those of its programs.
fn any_socket_waits() -> bool {
    let waits = |table: &str, state: &str| {
        // The first line is the heading; the fourth column is the state (proc(5)).
        std::fs::read_to_string(format!("/proc/thread-self/net/{table}")).is_ok_and(|text| {
            text.lines().skip(1).any(|line| line.split_whitespace().nth(3) == Some(state))
        })
    };
    // 0A: TCP_LISTEN. 07: an unconnected UDP socket.
    ["tcp", "tcp6"].iter().any(|table| waits(table, "0A"))
        || ["udp", "udp6"].iter().any(|table| waits(table, "07"))
}
