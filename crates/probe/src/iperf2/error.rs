//! What can go wrong, in one line each.

use std::io;
use std::net::SocketAddr;

/// Why a test or a server could not do its work.
#[derive(Debug, thiserror::Error)]
pub enum Iperf2Error {
    /// A name without an address that fits.
    #[error("cannot resolve '{host}': {reason}; check the name, or give an address")]
    Resolve {
        /// The name.
        host: String,
        /// What the resolver said.
        reason: String,
    },
    /// Nobody answers.
    #[error("cannot connect to {peer}: {source}; is a server there? (longhaul iperf2 -s)")]
    Connect {
        /// Whom.
        peer: SocketAddr,
        /// What the system said.
        source: io::Error,
    },
    /// A local address or port that cannot be had.
    #[error("cannot listen on {address}: {source}; choose another port or address (-p, -L, -B)")]
    Bind {
        /// Which.
        address: SocketAddr,
        /// What the system said.
        source: io::Error,
    },
    /// An option of a socket that the system refuses.
    #[error("cannot set {option}: {reason}")]
    Option {
        /// As on the command line.
        option: &'static str,
        /// What the system said.
        reason: String,
    },
    /// A length or amount out of range.
    #[error("{0}")]
    Usage(String),
    /// The test broke off.
    #[error("the test with {peer} broke off: {source}")]
    Broken {
        /// With whom.
        peer: SocketAddr,
        /// What the system said.
        source: io::Error,
    },
    /// The other way of `-d` or `-r` never came.
    #[error(
        "{peer} did not send back to port {port}: open that port, choose one with -L, or use -R"
    )]
    NoWayBack {
        /// Who.
        peer: SocketAddr,
        /// Where we listened.
        port: u16,
    },
    /// The system refused something else.
    #[error("cannot {what}: {source}")]
    System {
        /// The operation.
        what: &'static str,
        /// What the system said.
        source: io::Error,
    },
    /// Stopped before there was anything to tell.
    #[error("interrupted")]
    Interrupted,
}

impl Iperf2Error {
    /// Whether what was asked is at fault, not the work.
    #[must_use]
    pub fn is_usage(&self) -> bool {
        matches!(
            self,
            Iperf2Error::Usage(_) | Iperf2Error::Option { .. } | Iperf2Error::Bind { .. }
        )
    }
}
