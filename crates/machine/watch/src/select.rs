//! Filtering and sorting of connections.

use serde::{Deserialize, Serialize};
use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::str::FromStr;

/// An address prefix, `192.0.2.0/24`, or one address.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Prefix {
    address: IpAddr,
    bits: u32,
}

/// The text is not a prefix.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "'{0}' is not an address or a prefix; give one such as 192.0.2.7, 192.0.2.0/24 or 2001:db8::/32"
)]
pub struct PrefixError(String);

impl Prefix {
    /// One address.
    #[must_use]
    pub fn of(address: IpAddr) -> Self {
        let address = address.to_canonical();
        Prefix { address, bits: if address.is_ipv4() { 32 } else { 128 } }
    }

    /// Whether the prefix contains an address.
    #[must_use]
    pub fn contains(&self, address: IpAddr) -> bool {
        // IPv4 addresses in the upper 32 of 128 bits.
        let bits = |address: IpAddr| match address {
            IpAddr::V4(v4) => u128::from(v4.to_bits()) << 96,
            IpAddr::V6(v6) => v6.to_bits(),
        };
        let rest = 128 - self.bits;
        let differ = bits(self.address) ^ bits(address);
        self.address.is_ipv4() == address.is_ipv4() && differ.checked_shr(rest).unwrap_or(0) == 0
    }
}

impl FromStr for Prefix {
    type Err = PrefixError;

    fn from_str(text: &str) -> Result<Self, PrefixError> {
        let wrong = || PrefixError(text.chars().filter(|c| !c.is_control()).take(60).collect());
        let (address, bits) = text.split_once('/').map_or((text, None), |(a, b)| (a, Some(b)));
        let address = address.trim_start_matches('[').trim_end_matches(']');
        let whole = Prefix::of(address.parse().map_err(|_| wrong())?);
        match bits.map(str::parse) {
            None => Ok(whole),
            Some(Ok(bits)) if bits <= whole.bits => Ok(Prefix { bits, ..whole }),
            Some(_) => Err(wrong()),
        }
    }
}

/// A filter. All conditions must hold; empty ones always do.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Selection {
    /// The process that has the connection open.
    pub pid: Option<u32>,
    /// The remote address is in one of these.
    pub to: Vec<Prefix>,
    /// The local or remote port is one of these.
    pub ports: Vec<u16>,
    /// Only connections that carried payload over the interval.
    pub busy: bool,
    /// Part of the program's name, or of the local or remote address and port.
    pub text: String,
}

impl Selection {
    /// Whether the addresses and ports match.
    pub(crate) fn matches_addresses(&self, local: SocketAddr, remote: SocketAddr) -> bool {
        let port = |port: u16| self.ports.contains(&port);
        (self.to.is_empty() || self.to.iter().any(|prefix| prefix.contains(remote.ip())))
            && (self.ports.is_empty() || port(local.port()) || port(remote.port()))
    }

    /// Whether the text matches.
    pub(crate) fn matches_text(&self, addresses: impl Fn() -> String, program: &str) -> bool {
        self.text.is_empty() || {
            let wanted = self.text.to_lowercase();
            program.to_lowercase().contains(&wanted) || addresses().contains(&wanted)
        }
    }
}

/// The order of connections.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Sort {
    /// Highest rate first.
    #[default]
    Rate,
    /// Longest RTT first.
    Rtt,
    /// Most retransmissions first.
    Retransmits,
    /// Longest limited by a window or a buffer first.
    Limit,
}

impl Sort {
    /// All orders, in the sequence of the `s` key.
    pub const ALL: [Sort; 4] = [Sort::Rate, Sort::Rtt, Sort::Retransmits, Sort::Limit];

    /// The next order.
    #[must_use]
    pub fn next(self) -> Self {
        let at = Self::ALL.iter().position(|sort| *sort == self).unwrap_or(0);
        Self::ALL[(at + 1) % Self::ALL.len()]
    }
}

impl fmt::Display for Sort {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Sort::Rate => "rate",
            Sort::Rtt => "rtt",
            Sort::Retransmits => "retransmits",
            Sort::Limit => "limit",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prefixes_contain_their_addresses() {
        for (prefix, inside, outside) in [
            ("192.0.2.0/24", "192.0.2.255", "192.0.3.0"),
            ("192.0.2.7", "192.0.2.7", "192.0.2.6"),
            ("0.0.0.0/0", "255.1.2.3", "2001:db8::1"),
            ("::/0", "2001:db8::1", "10.0.0.1"),
            ("2001:db8::/33", "2001:db8:7fff::1", "2001:db8:8000::"),
            ("[2001:db8::1]", "2001:db8::1", "2001:db8::2"),
            ("::ffff:10.0.0.1", "10.0.0.1", "10.0.0.2"),
        ] {
            let parsed: Prefix = prefix.parse().unwrap();
            assert!(parsed.contains(inside.parse().unwrap()), "{prefix} {inside}");
            assert!(!parsed.contains(outside.parse().unwrap()), "{prefix} {outside}");
        }
        for wrong in ["", "/", "host", "10.0.0.0/33", "10.0.0.0/-1", "10.0.0/8", "::/129", "1/1/1"]
        {
            let error = wrong.parse::<Prefix>().unwrap_err().to_string();
            assert!(error.contains("192.0.2.0/24"), "{error}");
        }
    }

    #[test]
    fn all_conditions_must_hold() {
        let (local, remote) = ("10.0.0.1:443".parse().unwrap(), "192.0.2.7:50000".parse().unwrap());
        let takes = |to: &[&str], ports: &[u16]| {
            let to = to.iter().map(|text| text.parse().unwrap()).collect();
            let selection = Selection { to, ports: ports.to_vec(), ..Selection::default() };
            selection.matches_addresses(local, remote)
        };
        assert!(takes(&[], &[]) && takes(&["10.9.9.9", "192.0.2.0/24"], &[443, 1]));
        assert!(takes(&[], &[50_000]) && !takes(&[], &[80]) && !takes(&["10.0.0.1"], &[]));
        let text = Selection { text: "IPerf".to_owned(), ..Selection::default() };
        assert!(text.matches_text(|| "10.0.0.1:443".to_owned(), "iperf3"));
        assert!(!text.matches_text(|| "10.0.0.1:443".to_owned(), "nginx"));
        assert_eq!(Sort::ALL.map(Sort::next).last(), Some(&Sort::Rate));
    }
}
