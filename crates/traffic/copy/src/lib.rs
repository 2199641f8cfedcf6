//! `longhaul copy`: files over long fat networks, verified, resumed where they were
//! interrupted.
//!
//! | module | |
//! |---|---|
//! | `client` | a copy from the user's side: bootstrap, connections, the result |
//! | `request` | what is copied, and how |
//! | `protocol` | messages, their frames, names and hashes, without I/O |
//! | `hello` | the keys and ports that both ends tell each other over ssh or TLS |
//! | `server` | the far end: one session of an agent, or many behind a listener |
//! | `transport` | UDT or TCP with TLS, behind queues of messages |
//! | `sender`, `walk` | reads files |
//! | `receiver` | writes files |
//! | `budget`, `block_hashes` | what both of them hold at most |
//! | `in_memory` | both without a connection, for tests |
//! | `directory` | files below a directory, whatever is on the disk |
//!
//! Data flows from the reading threads through bounded queues to the network and from there
//! to the writing threads, so disks and network work at the same time, and which queue is
//! full shows which of them is the limit.

mod block_hashes;
mod budget;
mod client;
mod directory;
mod hello;
pub mod in_memory;
mod progress;
pub mod protocol;
mod queue;
mod receiver;
mod request;
mod sender;
mod server;
mod sockets;
mod transport;
mod walk;

pub use client::{Notice, PathMtu, Summary, copy};
pub use hello::{MAX_TARGET, MIN_TARGET};
pub use progress::{Figures, Progress};
pub use request::{Choice, CopyEnd, CopyRequest, PORT};
pub use server::{CopyServer, CopyServerConfig, Event, Root, RootDirectory, serve_one};
pub use transport::Transport;

use remote::RemoteError;

/// The reason a copy ended early.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CopyError {
    /// The connection failed; what arrived is kept, and the next copy continues there.
    #[error("the connection failed: {0}")]
    Connection(String),
    /// The peer does not follow the protocol.
    #[error("protocol error of the peer: {0}; use the same version at both ends")]
    Protocol(String),
    /// The peer does not have the expected key, or does not know ours.
    #[error("the peer has a different key: check that both ends use the same token")]
    Authentication,
    /// The peer refused or gave up, with its reason.
    #[error("the far end: {0}")]
    Refused(String),
    /// A path or file here.
    #[error("{0}")]
    Local(String),
    /// By the user.
    #[error("interrupted; the same command continues where it stopped")]
    Interrupted,
}

impl CopyError {
    #[expect(clippy::needless_pass_by_value, reason = "it is the argument of map_err")]
    fn socket(error: std::io::Error) -> Self {
        CopyError::Connection(error.to_string())
    }

    /// An error of the agent that is the far end.
    fn remote(error: &RemoteError) -> Self {
        match error {
            RemoteError::Interrupted => CopyError::Interrupted,
            RemoteError::Host { .. } | RemoteError::NoCommand | RemoteError::Start { .. } => {
                CopyError::Local(error.to_string())
            }
            RemoteError::Protocol { .. } => CopyError::Protocol(error.to_string()),
            RemoteError::Refused { .. } => CopyError::Refused(error.to_string()),
            RemoteError::Ended { .. } | RemoteError::Late { .. } => {
                CopyError::Connection(error.to_string())
            }
        }
    }

    /// An error at a path here.
    fn at(path: &[u8], error: impl std::fmt::Display) -> Self {
        CopyError::Local(format!("{}: {error}", String::from_utf8_lossy(path)))
    }
}
