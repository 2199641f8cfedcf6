//! The TCP metrics of a route that Longhaul changes on a host (ip-route(8)), and the prefix
//! whose route they belong to: a journal with anything else was not written by it.

use core::net::IpAddr;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;

/// Longest name of a congestion control: the kernel's `TCP_CA_NAME_MAX` is 16, including the
/// terminating byte.
const MAX_NAME: usize = 15;

/// The largest window that is set or restored, in segments.
const MAX_SEGMENTS: u32 = 65_535;

/// Metrics of a route; `None` where the route has none, and the kernel's default applies.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct RouteMetrics {
    /// `congctl`: the congestion control of connections over the route, by the kernel's name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub congctl: Option<String>,
    /// `initcwnd`: the initial congestion window, in segments.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub initcwnd: Option<u32>,
    /// `initrwnd`: the initial receive window, in segments.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub initrwnd: Option<u32>,
}

impl RouteMetrics {
    /// Returns true if Longhaul writes such values: a plain name, windows of 1 to 65,535 segments.
    #[must_use]
    pub fn is_valid(&self) -> bool {
        let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"_-.".contains(&byte);
        let is_name =
            |name: &String| !name.is_empty() && name.len() <= MAX_NAME && name.bytes().all(plain);
        let is_window = |segments: u32| (1..=MAX_SEGMENTS).contains(&segments);
        self.congctl.as_ref().is_none_or(is_name)
            && self.initcwnd.is_none_or(is_window)
            && self.initrwnd.is_none_or(is_window)
    }

    /// Returns true if there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        *self == RouteMetrics::default()
    }

    /// These metrics, with those of `other` in their place where it has any.
    #[must_use]
    pub fn overridden_by(&self, other: &RouteMetrics) -> Self {
        RouteMetrics {
            congctl: other.congctl.clone().or_else(|| self.congctl.clone()),
            initcwnd: other.initcwnd.or(self.initcwnd),
            initrwnd: other.initrwnd.or(self.initrwnd),
        }
    }
}

impl fmt::Display for RouteMetrics {
    /// As ip-route(8) takes them; `no metrics` if there is none.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let words = [
            self.congctl.as_ref().map(|name| format!("congctl {name}")),
            self.initcwnd.map(|segments| format!("initcwnd {segments}")),
            self.initrwnd.map(|segments| format!("initrwnd {segments}")),
        ];
        let words: Vec<String> = words.into_iter().flatten().collect();
        f.write_str(if words.is_empty() { "no metrics" } else { "" })?;
        f.write_str(&words.join(" "))
    }
}

/// The destination of a route: a network address without host bits, and a prefix length.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "schema", schemars(with = "String"))]
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct RoutePrefix {
    address: IpAddr,
    length: u8,
}

/// The reason why a text is not a [`RoutePrefix`] whose route can be changed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RoutePrefixError {
    /// Not an address with a prefix length.
    Form(String),
    /// An IPv4 address within IPv6.
    Mapped {
        /// The IPv4 prefix that is meant.
        instead: String,
    },
    /// Bits beyond the prefix length are set.
    HostBits {
        /// The prefix without them.
        instead: RoutePrefix,
    },
    /// Addresses that no TCP connection beyond this host has.
    Scope {
        /// The prefix.
        prefix: RoutePrefix,
        /// What its addresses are.
        addresses: &'static str,
    },
}

impl std::error::Error for RoutePrefixError {}

impl fmt::Display for RoutePrefixError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            RoutePrefixError::Form(text) => write!(
                f,
                "'{text}' is not a prefix; give one such as 192.0.2.0/24 or 2001:db8::/32, or \
                 0.0.0.0/0 or ::/0 for the default route"
            ),
            RoutePrefixError::Mapped { instead } => {
                write!(f, "an IPv4 prefix is meant; give {instead}")
            }
            RoutePrefixError::HostBits { instead } => {
                write!(f, "bits beyond the prefix length are set; give {instead}")
            }
            RoutePrefixError::Scope { prefix, addresses } => {
                write!(f, "{prefix} has {addresses}; give a prefix of far hosts")
            }
        }
    }
}

impl RoutePrefix {
    /// The prefix of an address: host bits must be zero, and the length within the family's.
    #[must_use]
    pub fn new(address: IpAddr, length: u8) -> Option<Self> {
        let prefix = RoutePrefix { address, length };
        (length <= prefix.bits() && prefix.masked() == address).then_some(prefix)
    }

    /// The network address.
    #[must_use]
    pub const fn address(&self) -> IpAddr {
        self.address
    }

    /// The prefix length in bits.
    #[must_use]
    pub const fn length(&self) -> u8 {
        self.length
    }

    /// Returns true for `0.0.0.0/0` and `::/0`.
    #[must_use]
    pub const fn is_default(&self) -> bool {
        self.length == 0
    }

    /// Returns true for IPv4.
    #[must_use]
    pub const fn is_ipv4(&self) -> bool {
        self.address.is_ipv4()
    }

    /// Returns true if all addresses of `other` are in this prefix.
    #[must_use]
    pub fn contains(&self, other: &RoutePrefix) -> bool {
        let shortened = RoutePrefix { length: self.length, ..*other };
        self.is_ipv4() == other.is_ipv4()
            && self.length <= other.length
            && shortened.masked() == self.address
    }

    /// The first address that a host can have: the network address itself in a prefix of one or
    /// two addresses.
    #[must_use]
    pub fn first_host(&self) -> IpAddr {
        let step = u8::from(self.bits() - self.length > 1);
        match self.address {
            IpAddr::V4(v4) => IpAddr::V4((v4.to_bits() | u32::from(step)).into()),
            IpAddr::V6(v6) => IpAddr::V6((v6.to_bits() | u128::from(step)).into()),
        }
    }

    const fn bits(&self) -> u8 {
        if self.address.is_ipv4() { 32 } else { 128 }
    }

    /// The address without host bits.
    fn masked(&self) -> IpAddr {
        let host_bits = u32::from(self.bits().saturating_sub(self.length));
        match self.address {
            IpAddr::V4(v4) => {
                let mask = u32::MAX.checked_shl(host_bits).unwrap_or(0);
                IpAddr::V4((v4.to_bits() & mask).into())
            }
            IpAddr::V6(v6) => {
                let mask = u128::MAX.checked_shl(host_bits).unwrap_or(0);
                IpAddr::V6((v6.to_bits() & mask).into())
            }
        }
    }

    /// What the addresses are, if none of them is a far host's.
    fn scope(&self) -> Option<&'static str> {
        match self.address {
            IpAddr::V4(_) if self.is_default() => None,
            IpAddr::V4(v4) if v4.is_loopback() => Some("loopback addresses"),
            IpAddr::V4(v4) if v4.is_multicast() || v4.is_broadcast() => {
                Some("multicast or broadcast addresses")
            }
            IpAddr::V4(v4) if v4.is_link_local() => Some("link-local addresses"),
            IpAddr::V6(v6) if v6.is_multicast() => Some("multicast addresses"),
            IpAddr::V6(v6) if v6.is_loopback() => Some("the loopback address"),
            IpAddr::V6(v6) if v6.is_unicast_link_local() => Some("link-local addresses"),
            // "This network" (RFC 1122, section 3.2.1.3) and the unspecified address.
            IpAddr::V4(v4) if v4.to_bits() >> 24 == 0 && self.length >= 8 => {
                Some("no host's addresses")
            }
            IpAddr::V6(v6) if v6.is_unspecified() && self.length >= 96 => {
                Some("no host's addresses")
            }
            _ => None,
        }
    }
}

impl FromStr for RoutePrefix {
    type Err = RoutePrefixError;

    /// Reads `ADDRESS/LENGTH`; an address alone is one host.
    fn from_str(text: &str) -> Result<Self, RoutePrefixError> {
        let form = || {
            let shown: String = text.chars().filter(|c| !c.is_control()).take(60).collect();
            RoutePrefixError::Form(shown)
        };
        let (address, length) = match text.split_once('/') {
            Some((address, length)) => (address, Some(length)),
            None => (text, None),
        };
        let address: IpAddr = address.parse().map_err(|_| form())?;
        let most = if address.is_ipv4() { 32 } else { 128 };
        let length: u8 = match length {
            None => most,
            // `parse` accepts a sign and leading zeros.
            Some(digits) if digits.len() <= 3 && digits.bytes().all(|b| b.is_ascii_digit()) => {
                digits.parse().ok().filter(|length| *length <= most).ok_or_else(form)?
            }
            Some(_) => return Err(form()),
        };
        if let IpAddr::V6(v6) = address
            && let Some(v4) = v6.to_ipv4_mapped()
            && let Some(length) = length.checked_sub(96)
        {
            let within = RoutePrefix { address: v4.into(), length };
            let instead = RoutePrefix { address: within.masked(), ..within }.to_string();
            return Err(RoutePrefixError::Mapped { instead });
        }
        let prefix = RoutePrefix { address, length };
        let instead = RoutePrefix { address: prefix.masked(), length };
        if instead != prefix {
            return Err(RoutePrefixError::HostBits { instead });
        }
        match prefix.scope() {
            Some(addresses) => Err(RoutePrefixError::Scope { prefix, addresses }),
            None => Ok(prefix),
        }
    }
}

impl fmt::Display for RoutePrefix {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.address, self.length)
    }
}

impl From<RoutePrefix> for String {
    fn from(prefix: RoutePrefix) -> String {
        prefix.to_string()
    }
}

impl TryFrom<String> for RoutePrefix {
    type Error = RoutePrefixError;

    fn try_from(text: String) -> Result<Self, RoutePrefixError> {
        text.parse()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn prefix(text: &str) -> RoutePrefix {
        text.parse().unwrap()
    }

    #[test]
    fn prefixes_are_read_as_they_are_printed() {
        for text in ["192.0.2.0/24", "192.0.2.1/32", "0.0.0.0/0", "::/0", "2001:db8::/32"] {
            assert_eq!(prefix(text).to_string(), text);
        }
        assert_eq!(prefix("192.0.2.1").to_string(), "192.0.2.1/32");
        assert_eq!(prefix("2001:db8::1").to_string(), "2001:db8::1/128");
        assert!(prefix("0.0.0.0/0").is_default() && prefix("::/0").is_default());
    }

    #[test]
    fn what_is_no_prefix_of_far_hosts_is_refused_with_its_remedy() {
        for (text, says) in [
            ("default", "0.0.0.0/0 or ::/0"),
            ("", "is not a prefix"),
            ("192.0.2.0/33", "is not a prefix"),
            ("192.0.2.0/+4", "is not a prefix"),
            ("192.0.2.0/0024", "is not a prefix"),
            ("192.0.2.0/", "is not a prefix"),
            ("192.0.2.0/24/8", "is not a prefix"),
            ("192.0.2/24", "is not a prefix"),
            ("010.0.0.0/8", "is not a prefix"),
            ("2001:db8::/129", "is not a prefix"),
            ("fe80::1%eth0", "is not a prefix"),
            ("192.0.2.0/24 via 10.0.0.1\u{1b}[2J", "'192.0.2.0/24 via 10.0.0.1[2J'"),
            ("192.0.2.1/24", "give 192.0.2.0/24"),
            ("2001:db8::1/64", "give 2001:db8::/64"),
            ("0.0.0.1/0", "give 0.0.0.0/0"),
            ("::ffff:192.0.2.0/120", "give 192.0.2.0/24"),
            ("::ffff:192.0.2.1", "give 192.0.2.1/32"),
            ("::ffff:0:0/96", "give 0.0.0.0/0"),
            ("127.0.0.0/8", "loopback"),
            ("::1", "loopback"),
            ("224.0.0.0/4", "multicast"),
            ("ff02::/16", "multicast"),
            ("255.255.255.255", "broadcast"),
            ("169.254.0.0/16", "link-local"),
            ("fe80::/64", "link-local"),
            ("0.0.0.0/8", "no host's"),
            ("::/128", "no host's"),
        ] {
            let error = text.parse::<RoutePrefix>().unwrap_err().to_string();
            assert!(error.contains(says) && !error.contains('\u{1b}'), "{text}: {error}");
        }
    }

    #[test]
    fn a_prefix_contains_longer_ones_of_its_family() {
        let contains = |a: &str, b: &str| prefix(a).contains(&prefix(b));
        assert!(contains("0.0.0.0/0", "192.0.2.0/24") && contains("10.0.0.0/8", "10.0.0.0/8"));
        assert!(contains("2001:db8::/32", "2001:db8:1::/48") && contains("::/0", "2001:db8::1"));
        assert!(!contains("10.0.0.0/8", "11.0.0.0/8") && !contains("10.1.0.0/16", "10.0.0.0/8"));
        assert!(!contains("0.0.0.0/0", "2001:db8::/32"));
        assert_eq!(prefix("192.0.2.0/24").first_host().to_string(), "192.0.2.1");
        assert_eq!(prefix("192.0.2.6/31").first_host().to_string(), "192.0.2.6");
        assert_eq!(prefix("::/0").first_host().to_string(), "::1");
        let host_bits = IpAddr::from([10, 0, 0, 1]);
        assert_eq!(RoutePrefix::new(host_bits, 24), None);
        assert_eq!(RoutePrefix::new(host_bits, 33), None);
    }

    #[test]
    fn metrics_are_those_of_ip_route() {
        let metrics = RouteMetrics {
            congctl: Some("bbr".to_owned()),
            initcwnd: Some(44),
            ..RouteMetrics::default()
        };
        assert_eq!(metrics.to_string(), "congctl bbr initcwnd 44");
        assert_eq!(RouteMetrics::default().to_string(), "no metrics");
        let json = serde_json::to_string(&metrics).unwrap();
        assert_eq!(json, r#"{"congctl":"bbr","initcwnd":44}"#);
        assert_eq!(serde_json::from_str::<RouteMetrics>(&json).unwrap(), metrics);
        for gateway in [r#"{"gateway":"10.0.0.1"}"#, r#"{"dev":"tun0"}"#, r#"{"initcwnd":-1}"#] {
            assert!(serde_json::from_str::<RouteMetrics>(gateway).is_err(), "{gateway}");
        }
        let with = |congctl: &str, initcwnd| RouteMetrics {
            congctl: Some(congctl.to_owned()),
            initcwnd: Some(initcwnd),
            initrwnd: None,
        };
        assert!(with("bbr", 1).is_valid() && with("tcp-x_1", 65_535).is_valid());
        for bad in [with("", 1), with("bbr via 10.0.0.1", 1), with("bbr", 0), with("bbr", 65_536)] {
            assert!(!bad.is_valid(), "{bad}");
        }
        let base = with("cubic", 10);
        assert_eq!(base.overridden_by(&metrics), metrics);
        assert_eq!(base.overridden_by(&RouteMetrics::default()), base);
    }
}
