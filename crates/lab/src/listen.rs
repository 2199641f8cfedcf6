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
pub(crate) enum Listening {
    /// It listens (TCP), or has a socket bound to a port (UDP).
    Yes,
    /// It still runs, without a socket that would wait for anyone.
    NotYet,
    /// It has ended.
    Ended(ExitCode),
}

/// Sockets on a host that wait for peers.
pub(crate) fn waiting_sockets(host: &LabHost) -> Result<usize, LabError> {
    host.namespace.run(count).map_err(LabError::system("entering a network namespace"))
}

/// Waits until more than `before` sockets of `host` wait for peers, `program`
/// ends, or `limit` has passed.
pub(crate) fn wait_until_listening(
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
        if let Some(code) = program.wait_at_most(EVERY) {
            return Ok(Listening::Ended(code));
        }
        if start.elapsed() > limit {
            return Ok(Listening::NotYet);
        }
    }
}

/// How many sockets in the calling thread's namespace wait for peers. A lab
/// host has no sockets but those of its programs.
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
