//! Socket addresses that keep the zone of a link-local one (RFC 4007): the number of the
//! interface, without which the kernel refuses them.

use crate::interfaces;
use std::borrow::Cow;
use std::ffi::CString;
use std::net::{IpAddr, Ipv6Addr, SocketAddr};

/// The address, an IPv4-mapped one (`::ffff:192.0.2.1`, of a dual-stack socket) as IPv4. Any
/// other keeps its zone.
#[must_use]
pub fn canonical(address: SocketAddr) -> SocketAddr {
    match address.ip().to_canonical() {
        IpAddr::V4(ip) => (ip, address.port()).into(),
        IpAddr::V6(_) => address,
    }
}

/// The address with another port.
#[must_use]
pub const fn with_port(mut address: SocketAddr, port: u16) -> SocketAddr {
    address.set_port(port);
    address
}

/// An address of this host or its peer, in the zone of `other` if it is link-local.
#[must_use]
pub fn beside(ip: IpAddr, port: u16, other: SocketAddr) -> SocketAddr {
    let mut address = SocketAddr::from((ip, port));
    if let (SocketAddr::V6(address), SocketAddr::V6(other)) = (&mut address, other)
        && address.ip().is_unicast_link_local()
    {
        address.set_scope_id(other.scope_id());
    }
    address
}

/// The wildcard address of the peer's IP version, any port.
#[must_use]
pub fn any_like(peer: SocketAddr) -> SocketAddr {
    match peer {
        SocketAddr::V4(_) => ([0, 0, 0, 0], 0).into(),
        SocketAddr::V6(_) => (Ipv6Addr::UNSPECIFIED, 0).into(),
    }
}

/// Whether it is link-local and has no zone.
#[must_use]
pub const fn lacks_zone(address: &SocketAddr) -> bool {
    matches!(address, SocketAddr::V6(v6) if v6.ip().is_unicast_link_local() && v6.scope_id() == 0)
}

/// What a link-local address without a zone needs, with one of this host's interfaces as the
/// example.
#[must_use]
pub fn zone_advice(ip: IpAddr) -> String {
    let all = interfaces::list().unwrap_or_default();
    let has_link_local = |addresses: &[(IpAddr, u8)]| {
        addresses.iter().any(|(ip, _)| matches!(ip, IpAddr::V6(v6) if v6.is_unicast_link_local()))
    };
    let mut names = all
        .iter()
        .filter(|one| one.up && !one.loopback && has_link_local(&one.addresses))
        .map(|one| one.name.as_str());
    let first = names.next().unwrap_or("eth0");
    let others: Vec<&str> = names.take(4).collect();
    let or =
        if others.is_empty() { String::new() } else { format!(" (or %{})", others.join(", %")) };
    format!("link-local: add the interface: {ip}%{first}{or}")
}

/// A text that is not an address of this host, in one line for the user.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[expect(missing_docs, reason = "each message says what its fields are")]
pub enum AddressError {
    #[error("'{0}' is not an address; give one such as 10.0.0.1 or fe80::1%eth0")]
    NotAnAddress(String),
    #[error("there is no interface '{0}'; ip link lists them")]
    NoInterface(String),
    #[error("'{0}': only link-local addresses and groups have a zone")]
    HasNoZone(String),
    #[error("{advice}")]
    LacksZone { advice: String },
}

/// Parses a port of the loopback address, or an address with its port.
///
/// # Errors
/// The forms that it has.
pub fn parse_listen(text: &str) -> Result<SocketAddr, String> {
    if let Ok(port) = text.parse::<u16>() {
        return Ok(SocketAddr::from(([127, 0, 0, 1], port)));
    }
    text.parse().map_err(|_| "give a port, such as 9201, or ADDRESS:PORT, such as [::]:9201".into())
}

/// Parses an address of this host with any zone: `192.0.2.1`, `fe80::1%eth0`,
/// `[fe80::1%eth0]`. Its port is zero.
///
/// # Errors
/// [`AddressError`].
pub fn parse(text: &str) -> Result<SocketAddr, AddressError> {
    let bare = text.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')).unwrap_or(text);
    let (ip, zone) = bare.split_once('%').map_or((bare, None), |(ip, zone)| (ip, Some(zone)));
    let ip: IpAddr = ip.parse().map_err(|_| AddressError::NotAnAddress(text.to_owned()))?;
    let mut address = SocketAddr::from((ip, 0));
    let lacks_zone = lacks_zone(&address);
    match (&mut address, zone) {
        (SocketAddr::V6(v6), Some(zone))
            if v6.ip().is_unicast_link_local() || v6.ip().is_multicast() =>
        {
            let number =
                number_of(zone).ok_or_else(|| AddressError::NoInterface(zone.to_owned()))?;
            v6.set_scope_id(number);
        }
        (_, Some(_)) => return Err(AddressError::HasNoZone(text.to_owned())),
        (_, None) if lacks_zone => {
            return Err(AddressError::LacksZone { advice: zone_advice(ip) });
        }
        (_, None) => {}
    }
    Ok(address)
}

/// A host as the user typed it, a link-local address without a zone in that of `device`.
#[must_use]
pub fn in_zone<'a>(host: &'a str, device: &str) -> Cow<'a, str> {
    let bare = host.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')).unwrap_or(host);
    match bare.parse() {
        Ok(IpAddr::V6(ip)) if ip.is_unicast_link_local() => format!("{bare}%{device}").into(),
        _ => host.into(),
    }
}

/// The number of a zone: that of an interface, or a number.
fn number_of(zone: &str) -> Option<u32> {
    let name = CString::new(zone).ok()?;
    // SAFETY: the name lives across the call and ends with zero.
    let index = unsafe { libc::if_nametoindex(name.as_ptr()) };
    (index != 0).then_some(index).or_else(|| zone.parse().ok().filter(|number| *number != 0))
}

/// The name of the interface of a link-local address.
#[must_use]
pub fn zone_name(address: SocketAddr) -> Option<String> {
    let SocketAddr::V6(v6) = address else { return None };
    let mut name = [0u8; libc::IF_NAMESIZE];
    // SAFETY: the buffer has the length that if_indextoname(3) asks for.
    let found = unsafe { libc::if_indextoname(v6.scope_id(), name.as_mut_ptr().cast()) };
    let end = name.iter().position(|byte| *byte == 0).filter(|_| !found.is_null())?;
    String::from_utf8(name[..end].to_vec()).ok()
}

/// The address without its port, as resolvers and ssh take it: `fe80::1%eth0`.
#[must_use]
pub fn host_text(address: SocketAddr) -> String {
    let zone = match address {
        SocketAddr::V6(v6) if v6.scope_id() != 0 => {
            format!("%{}", zone_name(address).unwrap_or_else(|| v6.scope_id().to_string()))
        }
        _ => String::new(),
    };
    format!("{}{zone}", address.ip())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn servers_listen_on_loopback_by_default() {
        let read = |text| parse_listen(text).map(|address| address.to_string());
        assert_eq!(read("9201").unwrap(), "127.0.0.1:9201");
        assert_eq!(read("0.0.0.0:1").unwrap(), "0.0.0.0:1");
        assert_eq!(read("[::1]:1").unwrap(), "[::1]:1");
        for wrong in ["", "x", "70000", "::1", "host:1", "-1"] {
            assert!(read(wrong).is_err(), "{wrong}");
        }
    }

    fn scope(address: SocketAddr) -> u32 {
        match address {
            SocketAddr::V6(v6) => v6.scope_id(),
            SocketAddr::V4(_) => 0,
        }
    }

    #[test]
    fn a_zone_is_kept_and_a_mapped_address_is_ipv4() {
        let zoned: SocketAddr = "[fe80::1%7]:9".parse().unwrap();
        assert_eq!(canonical(zoned), zoned);
        assert_eq!(with_port(zoned, 5), "[fe80::1%7]:5".parse().unwrap());
        assert_eq!(
            canonical("[::ffff:192.0.2.1]:9".parse().unwrap()),
            "192.0.2.1:9".parse().unwrap()
        );
        let other = beside("fe80::2".parse().unwrap(), 0, zoned);
        assert_eq!((scope(other), other.port()), (7, 0));
        // Only a link-local one has a zone.
        assert_eq!(scope(beside("2001:db8::1".parse().unwrap(), 0, zoned)), 0);
        assert!(beside("192.0.2.1".parse().unwrap(), 3, zoned).is_ipv4());
    }

    #[test]
    fn local_addresses_have_a_zone_or_the_error_asks_for_it() {
        for text in ["fe80::1%lo", "[fe80::1%lo]", "fe80::1%1"] {
            let address = parse(text).unwrap();
            assert_eq!(scope(address), 1, "{text}");
            assert_eq!(host_text(address), "fe80::1%lo");
        }
        assert_eq!(parse("192.0.2.1").unwrap(), "192.0.2.1:0".parse().unwrap());
        assert!(parse("fe80::1").unwrap_err().to_string().contains("add the interface: fe80::1%"));
        for wrong in ["fe80::1%", "fe80::1%nothing", "2001:db8::1%lo", "192.0.2.1%lo", "x"] {
            assert!(parse(wrong).is_err(), "{wrong}");
        }
        assert_eq!(in_zone("[fe80::1]", "lo"), "fe80::1%lo");
        for host in ["fe80::1%eth0", "fd00::1", "192.0.2.1", "name"] {
            assert_eq!(in_zone(host, "lo"), host);
        }
        assert!(lacks_zone(&"[fe80::1]:1".parse().unwrap()));
        for has in ["[fe80::1%1]:1", "[fd00::1]:1", "169.254.0.1:1"] {
            assert!(!lacks_zone(&has.parse().unwrap()), "{has}");
        }
    }
}
