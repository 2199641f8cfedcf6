//! Errors, each with a remedy.

use host::remedy;
use problem::{Fault, Field, Problem};
use std::{io, net::IpAddr, path::PathBuf, time::Duration};

/// Why a probe failed. Every message is one line: the operation, the object, the
/// remedy.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ProbeError {
    /// A setting is out of range.
    #[error("{what}; give {}, {accepted}", field.name())]
    Setting {
        /// The field of the configuration.
        field: Field,
        /// The setting and its value.
        what: String,
        /// The valid values.
        accepted: &'static str,
    },
    /// The host name has no address of the requested family.
    #[error(transparent)]
    Resolve(#[from] host::resolve::ResolveError),
    /// The requested local address is not this host's.
    #[error(
        "cannot bind to {address}: {}",
        remedy::with_advice(source, "'ip address' lists this host's addresses")
    )]
    Bind {
        /// The address.
        address: IpAddr,
        /// The kernel's error.
        source: io::Error,
    },
    /// This user may not send ICMP.
    #[error(
        "cannot send ICMP echo requests: not permitted; probe by UDP or TCP, run as root, \
         setcap cap_net_raw+ep on the program, or add the user's group to \
         net.ipv4.ping_group_range"
    )]
    Privileges,
    /// This process may not open raw sockets.
    #[error("raw sockets are not permitted: give the program CAP_NET_RAW")]
    RawSockets,
    /// The peer of the connection sent nothing in time.
    #[error("the connection to {address} was silent: nothing tells its sequence numbers")]
    SilentConnection {
        /// The peer.
        address: IpAddr,
    },
    /// There is no route to the host.
    #[error("cannot send to {address}: {}", remedy::with_advice(source, "check the address"))]
    NoRoute {
        /// The host.
        address: IpAddr,
        /// The kernel's error.
        source: io::Error,
    },
    /// Another system call failed.
    #[error("cannot {operation} ({address}): {}", remedy::with_advice(source, ""))]
    System {
        /// The operation.
        operation: &'static str,
        /// The host.
        address: IpAddr,
        /// The kernel's error.
        source: io::Error,
    },
    /// An address database could not be read.
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

impl From<ProbeError> for Problem {
    fn from(error: ProbeError) -> Self {
        match error {
            ProbeError::Setting { field, what, accepted } => Problem::field(field, what, accepted),
            ProbeError::Interrupted => Problem::new(Fault::Interrupted, error),
            ProbeError::Privileges => Problem::new(Fault::Host, error),
            _ if error.is_usage() => Problem::new(Fault::Request, error),
            _ => Problem::new(Fault::Peer, error),
        }
    }
}

impl ProbeError {
    /// Whether the command line or a privilege is at fault: exit code 2 rather than 1.
    #[must_use]
    pub const fn is_usage(&self) -> bool {
        matches!(
            self,
            ProbeError::Setting { .. }
                | ProbeError::Resolve(_)
                | ProbeError::Bind { .. }
                | ProbeError::Privileges
                | ProbeError::Database { .. }
        )
    }
}

/// Checks what every kind of probes has: a host, an interval of at least so many milliseconds, and
/// a timeout.
pub(crate) fn check_pace(
    host: &str,
    interval: Duration,
    (least_ms, accepted): (u64, &'static str),
    timeout: Duration,
) -> Result<(), ProbeError> {
    let wrong = |field, what: String, accepted| Err(ProbeError::Setting { field, what, accepted });
    if host.is_empty() {
        let what = "cannot resolve an empty name".to_owned();
        return wrong(Field::Host, what, "a name or an address");
    }
    if interval < Duration::from_millis(least_ms) {
        return wrong(Field::Interval, format!("interval {interval:?}"), accepted);
    }
    if timeout.is_zero() {
        return wrong(Field::Timeout, "timeout 0".to_owned(), "a time above 0, such as 1s");
    }
    Ok(())
}
