//! Errors, each in one line.

use host::remedy;
use std::io;
use std::net::{IpAddr, SocketAddr};

/// What to do about errors without advice of their own.
const PORT: &str = "choose another port or address (-p, -L, -B)";

/// Why a test or a server failed.
#[derive(Debug, thiserror::Error)]
pub enum Iperf2Error {
    /// The host name has no suitable address.
    #[error(transparent)]
    Resolve(#[from] host::resolve::ResolveError),
    /// The connection failed.
    #[error("cannot connect to {peer}: {}", remedy::of_connect(source, "longhaul iperf2 -s"))]
    Connect {
        /// The server.
        peer: SocketAddr,
        /// The system's error.
        source: io::Error,
    },
    /// A local address or port is unavailable.
    #[error("cannot listen on {address}: {}", remedy::with_advice(source, PORT))]
    Bind {
        /// The local address.
        address: SocketAddr,
        /// The system's error.
        source: io::Error,
    },
    /// A multicast group could not be joined.
    #[error(
        "cannot join {group}: {source}; give this host a route to it, as in 'ip route add \
         {group} dev eth0'"
    )]
    Group {
        /// The group.
        group: IpAddr,
        /// The system's error.
        source: io::Error,
    },
    /// The system refused a socket option.
    #[error("cannot set {option}: {reason}")]
    Option {
        /// As on the command line.
        option: &'static str,
        /// The system's error.
        reason: String,
    },
    /// A setting is out of range.
    #[error("{0}")]
    Usage(String),
    /// The test was aborted.
    #[error("the test with {peer} was aborted: {}", remedy::with_advice(source, "repeat it"))]
    Aborted {
        /// The peer.
        peer: SocketAddr,
        /// The system's error.
        source: io::Error,
    },
    /// The reverse connection of `-d` or `-r` did not arrive.
    #[error(
        "no reverse connection from {peer} to port {port}; open that port, choose another with -L, or use -R"
    )]
    NoReverseConnection {
        /// The server.
        peer: SocketAddr,
        /// The local port.
        port: u16,
    },
    /// Another system call failed.
    #[error("cannot {what}: {}", remedy::with_advice(source, ""))]
    System {
        /// The operation.
        what: &'static str,
        /// The system's error.
        source: io::Error,
    },
    /// Stopped before the test began.
    #[error("interrupted")]
    Interrupted,
}

impl Iperf2Error {
    /// Whether the command line is at fault.
    #[must_use]
    pub fn is_usage(&self) -> bool {
        matches!(
            self,
            Iperf2Error::Usage(_)
                | Iperf2Error::Option { .. }
                | Iperf2Error::Group { .. }
                | Iperf2Error::Bind { .. }
        )
    }
}
