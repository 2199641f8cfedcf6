//! Resolves host names to addresses.

use crate::address;
use serde::{Deserialize, Serialize};
use std::fs::File;
use std::io::Read;
use std::net::{IpAddr, Ipv4Addr, SocketAddr, ToSocketAddrs};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::Duration;

/// Interval between checks whether to stop.
const POLL_INTERVAL: Duration = Duration::from_millis(50);

/// Most bytes of resolv.conf that are read.
const MAX_CONFIGURATION: u64 = 64 << 10;

/// Which IP version to use.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Family {
    /// Any address the name resolves to, in the resolver's order.
    #[default]
    Any,
    /// IPv4 only (`-4`).
    V4,
    /// IPv6 only (`-6`).
    V6,
}

impl Family {
    /// As the flags `-4` and `-6` select it, of which at most one is given.
    #[must_use]
    pub const fn from_flags(v4: bool, v6: bool) -> Self {
        match (v4, v6) {
            (true, _) => Family::V4,
            (_, true) => Family::V6,
            _ => Family::Any,
        }
    }

    const fn admits(self, address: IpAddr) -> bool {
        match self {
            Family::Any => true,
            Family::V4 => address.is_ipv4(),
            Family::V6 => address.is_ipv6(),
        }
    }
}

/// A name without an address of the requested family.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("cannot resolve '{host}': {reason}")]
pub struct ResolveError {
    /// The name.
    pub host: String,
    /// The resolver's error, and what to do.
    pub reason: String,
}

/// The addresses of `host` in the family of the arguments and of `bind`, at least one,
/// in the resolver's order; `None` if `stop` ended the wait. Runs the resolver in a
/// thread, as it cannot be interrupted. An IPv6 address may be in brackets and have a zone; link-local
/// ones without are left out.
///
/// # Errors
/// There is none.
pub fn resolve(
    host: &str,
    port: u16,
    family: Family,
    bind: Option<IpAddr>,
    stop: &dyn Fn() -> bool,
) -> Result<Option<Vec<SocketAddr>>, ResolveError> {
    let failed = |reason: String| ResolveError { host: host.to_owned(), reason };
    let unknown = |reason: &str| failed(format!("{reason}; check the name, or give an address"));
    let name = host.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')).unwrap_or(host);
    let name = name.to_owned();
    let (sender, receiver) = mpsc::channel();
    let work = move || {
        let found = (name.as_str(), port).to_socket_addrs();
        let _ = sender.send(found.map(Iterator::collect::<Vec<_>>));
    };
    let thread = thread::Builder::new().name("resolve".to_owned());
    thread.spawn(work).map_err(|error| unknown(&error.to_string()))?;
    let mut addresses = loop {
        match receiver.recv_timeout(POLL_INTERVAL) {
            Ok(found) => break found.map_err(|error| unknown(&error.to_string()))?,
            Err(RecvTimeoutError::Timeout) if !stop() => {}
            Err(_) => return Ok(None),
        }
    };
    addresses.retain(|address| {
        family.admits(address.ip()) && bind.is_none_or(|bind| bind.is_ipv4() == address.is_ipv4())
    });
    addresses.dedup();
    // The kernel refuses them.
    let unzoned = addresses.iter().find(|address| address::lacks_zone(address)).copied();
    addresses.retain(|address| !address::lacks_zone(address));
    if let Some(unzoned) = unzoned.filter(|_| addresses.is_empty()) {
        return Err(failed(address::zone_advice(unzoned.ip())));
    }
    if addresses.is_empty() {
        let kind = match (family, bind) {
            (Family::V4, _) | (_, Some(IpAddr::V4(_))) => "it has no IPv4 address",
            (Family::V6, _) | (_, Some(IpAddr::V6(_))) => "it has no IPv6 address",
            _ => "it has no address",
        };
        return Err(unknown(kind));
    }
    Ok(Some(addresses))
}

/// The name servers of this host, in their order, at most three as in the C library; without any,
/// one on this host (resolv.conf(5)).
#[must_use]
pub fn name_servers() -> Vec<IpAddr> {
    let mut text = String::new();
    // An unreadable one is as none.
    let _ = File::open("/etc/resolv.conf")
        .and_then(|file| file.take(MAX_CONFIGURATION).read_to_string(&mut text));
    name_servers_of(&text)
}

fn name_servers_of(text: &str) -> Vec<IpAddr> {
    let servers = text.lines().filter_map(|line| {
        let mut words = line.split_ascii_whitespace();
        (words.next() == Some("nameserver")).then(|| words.next()?.parse().ok()).flatten()
    });
    let servers: Vec<IpAddr> = servers.take(3).collect();
    if servers.is_empty() { vec![Ipv4Addr::LOCALHOST.into()] } else { servers }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_addresses_of_the_requested_family_are_returned() {
        let ask = |host, family| resolve(host, 7, family, None, &|| false);
        let one = |text: &str| Ok(Some(vec![text.parse().unwrap()]));
        assert_eq!(ask("192.0.2.1", Family::Any), one("192.0.2.1:7"));
        assert_eq!(ask("[2001:db8::1]", Family::V6), one("[2001:db8::1]:7"));
        assert!(ask("192.0.2.1", Family::V6).unwrap_err().to_string().contains("no IPv6"));
        assert!(ask("2001:db8::1", Family::V4).is_err());
        assert_eq!(ask("fe80::1%lo", Family::Any), one("[fe80::1%1]:7"));
        for unzoned in ["fe80::1", "[fe80::1]"] {
            let error = ask(unzoned, Family::Any).unwrap_err().to_string();
            assert!(error.contains("link-local: add the interface: fe80::1%"), "{error}");
        }
        let bind = Some("::1".parse().unwrap());
        assert!(resolve("192.0.2.1", 7, Family::Any, bind, &|| false).is_err());
    }

    #[test]
    fn name_servers_are_those_of_the_file() {
        let servers = |text: &str| name_servers_of(text);
        let address = |text: &str| text.parse::<IpAddr>().unwrap();
        let text = "# nameserver 192.0.2.9\nsearch example\nnameserver 192.0.2.1\n\
            nameserver\t2001:db8::1 # ours\nnameserver x\nnameserver 192.0.2.2\nnameserver 192.0.2.3\n";
        assert_eq!(servers(text), ["192.0.2.1", "2001:db8::1", "192.0.2.2"].map(address));
        assert_eq!(servers("options edns0"), [address("127.0.0.1")]);
    }

    #[test]
    fn flags_select_the_family() {
        let families = [(false, false), (true, false), (false, true)];
        assert_eq!(
            families.map(|(v4, v6)| Family::from_flags(v4, v6)),
            [Family::Any, Family::V4, Family::V6]
        );
    }
}
