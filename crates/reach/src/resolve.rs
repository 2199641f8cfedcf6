//! From a host's name to the address that is asked.

use crate::ReachError;
use std::net::{IpAddr, SocketAddr, ToSocketAddrs};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::Duration;

/// Which IP version to use.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Family {
    /// The first that the name resolves to.
    #[default]
    Any,
    /// IPv4 only (`-4`).
    V4,
    /// IPv6 only (`-6`).
    V6,
}

/// The first address of `host` that fits: of that family, and of the one that
/// `bind` has. In a thread of its own, as the resolver cannot be interrupted;
/// `stop` ends the wait.
///
/// # Errors
/// [`ReachError::Resolve`] where there is none; [`ReachError::Interrupted`].
pub fn resolve(
    host: &str,
    port: u16,
    family: Family,
    bind: Option<IpAddr>,
    stop: &dyn Fn() -> bool,
) -> Result<SocketAddr, ReachError> {
    let failed = |reason: String| ReachError::Resolve { host: host.to_owned(), reason };
    // Brackets are how an IPv6 address is written beside a port.
    let name = host.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')).unwrap_or(host);
    let name = name.to_owned();
    let (tell, told) = mpsc::channel();
    let work = move || {
        let found = (name.as_str(), port).to_socket_addrs();
        let _ = tell.send(found.map(Iterator::collect::<Vec<_>>));
    };
    let thread = thread::Builder::new().name("resolve".to_owned());
    thread.spawn(work).map_err(|error| failed(error.to_string()))?;
    let found = loop {
        match told.recv_timeout(Duration::from_millis(50)) {
            Ok(found) => break found.map_err(|error| failed(error.to_string()))?,
            Err(RecvTimeoutError::Timeout) if !stop() => {}
            Err(_) => return Err(ReachError::Interrupted),
        }
    };
    let wanted = |address: &&SocketAddr| {
        let family = match family {
            Family::Any => true,
            Family::V4 => address.is_ipv4(),
            Family::V6 => address.is_ipv6(),
        };
        family && bind.is_none_or(|bind| bind.is_ipv4() == address.is_ipv4())
    };
    found.iter().find(wanted).copied().ok_or_else(|| {
        let kind = match (family, bind) {
            (Family::V4, _) | (_, Some(IpAddr::V4(_))) => "it has no IPv4 address",
            (Family::V6, _) | (_, Some(IpAddr::V6(_))) => "it has no IPv6 address",
            _ => "it has no address",
        };
        failed(kind.to_owned())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_family_asked_is_the_family_given() {
        let ask = |host, family| resolve(host, 7, family, None, &|| false);
        assert_eq!(ask("192.0.2.1", Family::Any).unwrap(), "192.0.2.1:7".parse().unwrap());
        assert_eq!(ask("[2001:db8::1]", Family::V6).unwrap(), "[2001:db8::1]:7".parse().unwrap());
        assert!(ask("192.0.2.1", Family::V6).unwrap_err().to_string().contains("no IPv6"));
        assert!(ask("2001:db8::1", Family::V4).unwrap_err().is_usage());
        let bind = Some("::1".parse().unwrap());
        assert!(resolve("192.0.2.1", 7, Family::Any, bind, &|| false).is_err());
    }
}
