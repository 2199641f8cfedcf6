//! Keys of limits per address.
//!
//! An IPv6 host usually has a whole /64 and may use a new address for each
//! connection (RFC 8981), so limits count /64 prefixes (RFC 6177 section 2).

use std::{
    fmt,
    net::{IpAddr, Ipv4Addr, Ipv6Addr},
};

/// An IPv4 address, or the /64 prefix of an IPv6 address.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum AddressKey {
    /// A whole address; IPv4-mapped IPv6 addresses count as IPv4.
    V4(Ipv4Addr),
    /// The upper 64 bits, the lower ones zero.
    V6(Ipv6Addr),
}

impl AddressKey {
    /// The key of an address.
    #[must_use]
    pub fn of(address: IpAddr) -> Self {
        match address.to_canonical() {
            IpAddr::V4(address) => AddressKey::V4(address),
            IpAddr::V6(address) => {
                AddressKey::V6(Ipv6Addr::from_bits(address.to_bits() >> 64 << 64))
            }
        }
    }
}

impl fmt::Display for AddressKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            AddressKey::V4(address) => address.fmt(f),
            AddressKey::V6(prefix) => write!(f, "{prefix}/64"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_ipv6_prefix_is_one_key() {
        let key = |text: &str| AddressKey::of(text.parse().unwrap());
        assert_eq!(key("2001:db8::1"), key("2001:db8::ffff:1:2:3"));
        assert_ne!(key("2001:db8::1"), key("2001:db8:0:1::1"));
        assert_eq!(key("::ffff:192.0.2.1"), key("192.0.2.1"));
        assert_ne!(key("192.0.2.1"), key("192.0.2.2"));
        assert_eq!(key("2001:db8::1").to_string(), "2001:db8::/64");
        assert_eq!(key("::ffff:192.0.2.1").to_string(), "192.0.2.1");
    }
}
