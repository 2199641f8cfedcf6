//! What can go wrong, with the remedy in the same line.

use std::{io, net::IpAddr, path::PathBuf};

/// Why nothing could be asked. Every message is one line: the operation, the
/// object, the remedy.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ReachError {
    /// A setting that cannot be.
    #[error("{what}: {remedy}")]
    Setting {
        /// The setting and its value.
        what: String,
        /// What would be right.
        remedy: &'static str,
    },
    /// The host's name has no address of the family asked.
    #[error("cannot resolve '{host}': {reason}; check the name, or give an address")]
    Resolve {
        /// The name.
        host: String,
        /// What the resolver answered.
        reason: String,
    },
    /// The local address asked for is not this host's.
    #[error("cannot bind to {address}: {source}; 'ip address' lists this host's addresses")]
    Bind {
        /// The address.
        address: IpAddr,
        /// The kernel's answer.
        source: io::Error,
    },
    /// The system lets this user send no ICMP.
    #[error(
        "cannot send ICMP echoes: not permitted; use --udp or --tcp, run it with sudo, \
         or allow it: setcap cap_net_raw+ep on the program, or the user's group in \
         net.ipv4.ping_group_range"
    )]
    Privileges,
    /// No way leads there.
    #[error("cannot send to {address}: {source}; check the address and 'ip route'")]
    NoRoute {
        /// The host.
        address: IpAddr,
        /// The kernel's answer.
        source: io::Error,
    },
    /// The system refused something it rarely refuses.
    #[error("cannot {operation} ({address}): {source}")]
    System {
        /// What was tried.
        operation: &'static str,
        /// With whom.
        address: IpAddr,
        /// The kernel's answer.
        source: io::Error,
    },
    /// A database of addresses that cannot be read.
    #[error(
        "cannot read the address database {}: {reason}; give a MaxMind file (.mmdb)", file.display()
    )]
    Database {
        /// The file.
        file: PathBuf,
        /// What is wrong with it.
        reason: String,
    },
    /// Stopped by the user before there was anything to report.
    #[error("interrupted before the first probe")]
    Interrupted,
}

impl ReachError {
    /// Whether the command or a privilege was wrong, as against the work having
    /// failed: exit code 2 rather than 1.
    #[must_use]
    pub const fn is_usage(&self) -> bool {
        matches!(
            self,
            ReachError::Setting { .. }
                | ReachError::Resolve { .. }
                | ReachError::Bind { .. }
                | ReachError::Privileges
                | ReachError::Database { .. }
        )
    }
}
