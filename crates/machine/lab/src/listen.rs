//! Detects when a server program listens.

use crate::LabError;
use crate::hosts::LabHost;
use host::clock;
use host::program::{ExitCode, Program};
use std::time::Duration;

/// Poll interval.
const POLL_INTERVAL: Duration = Duration::from_millis(5);

/// State of a server program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Listening {
    /// It listens (TCP), or has a socket bound to a port (UDP).
    Yes,
    /// It runs, without a listening socket.
    NotYet,
    /// It has ended.
    Ended(ExitCode),
}

/// Number of listening sockets on a host.
///
/// # Errors
/// Its network namespace cannot be entered.
pub fn waiting_sockets(host: &LabHost) -> Result<usize, LabError> {
    host.namespace.run(count).map_err(LabError::system("entering a network namespace"))
}

/// Waits until `host` has more than `before` listening sockets, `program` ends, or
/// `limit` has passed.
///
/// # Errors
/// Its network namespace cannot be entered.
pub fn wait_until_listening(
    host: &LabHost,
    program: &Program,
    before: usize,
    limit: Duration,
) -> Result<Listening, LabError> {
    let start = clock::now();
    loop {
        if waiting_sockets(host)? > before {
            return Ok(Listening::Yes);
        }
        if let Some(code) = program.wait_at_most(POLL_INTERVAL) {
            return Ok(Listening::Ended(code));
        }
        if start.elapsed() > limit {
            return Ok(Listening::NotYet);
        }
    }
}

/// Number of listening sockets in the calling thread's namespace. A lab host has
/// only those of its programs.
fn count() -> usize {
    let waiting = |table: &str, state: &str| {
        // The first line is the heading; the fourth column is the state (proc(5)).
        std::fs::read_to_string(format!("/proc/thread-self/net/{table}")).map_or(0, |text| {
            let states = text.lines().skip(1).map(|line| line.split_whitespace().nth(3));
            states.filter(|other| *other == Some(state)).count()
        })
    };
    // 0A: TCP_LISTEN. 07: an unconnected UDP socket.
    [("tcp", "0A"), ("tcp6", "0A"), ("udp", "07"), ("udp6", "07")]
        .iter()
        .map(|(table, state)| waiting(table, state))
        .sum()
}
