//! Which host has which address.

use super::error::{PlanError, Problem};
use super::source::Source;
use crate::toml_text::{Spanned, short};
use core::net::{Ipv4Addr, Ipv6Addr};
use std::collections::HashMap;
use std::hash::Hash;
use std::str::FromStr;

/// IPv4 or IPv6.
pub(super) trait Family: Copy + Eq + Hash + FromStr {
    /// `IPv4 address, such as 10.0.0.7`.
    const WANTED: &'static str;

    /// The address that is given to the host of that number, where it is free.
    fn numbered(number: u8) -> Self;

    /// Whether one host, and no other and no loopback, can have it.
    fn is_host_address(self) -> bool;
}

impl Family for Ipv4Addr {
    const WANTED: &'static str = "IPv4 address for a host, such as 10.0.0.7";

    fn numbered(number: u8) -> Self {
        Ipv4Addr::new(10, 0, 0, number)
    }

    fn is_host_address(self) -> bool {
        // 0/8 is "this network" and 240/4 reserved (RFC 6890): Linux takes
        // neither for a host on a wire.
        let first = self.octets()[0];
        (1..224).contains(&first) && first != 127 && !self.is_link_local()
    }
}

impl Family for Ipv6Addr {
    const WANTED: &'static str = "IPv6 address for a host, such as fd00::7";

    fn numbered(number: u8) -> Self {
        Ipv6Addr::new(0xfd00, 0, 0, 0, 0, 0, 0, number.into())
    }

    fn is_host_address(self) -> bool {
        // fe80::/10 needs the device beside it, and ::/16 holds the loopback,
        // the unspecified address and IPv4 in other clothes.
        self.segments()[0] != 0 && !self.is_multicast() && !self.is_unicast_link_local()
    }
}

/// Gives each host what it asked for, and the others the lowest number that
/// is left, in order. There are at most [`super::MAX_HOSTS`] hosts.
pub(super) fn give<A: Family>(
    hosts: &[(String, Option<Spanned<String>>)],
    source: &Source<'_>,
) -> Result<Vec<A>, PlanError> {
    let mut taken: HashMap<A, &str> = HashMap::new();
    let mut given = Vec::with_capacity(hosts.len());
    for (host, asked) in hosts {
        let Some(asked) = asked else {
            given.push(None);
            continue;
        };
        let text = || short(asked.get_ref(), 50);
        let address = asked.get_ref().parse().ok().filter(|address: &A| address.is_host_address());
        let address = address.ok_or_else(|| {
            let host = host.clone();
            source.error_at(asked, Problem::Address { host, text: text(), wanted: A::WANTED })
        })?;
        if let Some(other) = taken.insert(address, host) {
            let hosts = [other, host].map(str::to_owned);
            return Err(source.error_at(asked, Problem::SameAddress { hosts, address: text() }));
        }
        given.push(Some(address));
    }
    let mut free = (1..=254).map(A::numbered).filter(|address| !taken.contains_key(address));
    let all: Option<Vec<A>> =
        given.into_iter().map(|address| address.or_else(|| free.next())).collect();
    all.ok_or_else(|| source.plan_error(Problem::TooManyHosts))
}

#[cfg(test)]
mod tests {
    use super::super::source::unplaced;
    use super::*;

    fn given<A: Family + ToString>(asked: &[&str]) -> Result<Vec<String>, PlanError> {
        let asked: Vec<_> = asked.iter().map(|text| unplaced((*text).to_owned())).collect();
        let asked = asked.into_iter().map(|text| (!text.get_ref().is_empty()).then_some(text));
        let hosts: Vec<_> = ["a", "b", "c"].map(str::to_owned).into_iter().zip(asked).collect();
        let given = give::<A>(&hosts, &Source::default())?;
        Ok(given.iter().map(ToString::to_string).collect())
    }

    #[test]
    fn what_is_asked_for_is_not_given_out() {
        let ipv4 = given::<Ipv4Addr>(&["", "10.0.0.1", ""]).unwrap();
        assert_eq!(ipv4, ["10.0.0.2", "10.0.0.1", "10.0.0.3"]);
        let ipv6 = given::<Ipv6Addr>(&["", "", "fd00::1"]).unwrap();
        assert_eq!(ipv6, ["fd00::2", "fd00::3", "fd00::1"]);
    }

    #[test]
    fn two_hosts_never_share() {
        let error = given::<Ipv6Addr>(&["fd00::9", "fd00:0:0::9"]).unwrap_err();
        assert!(error.to_string().contains("hosts a and b"), "{error}");
    }

    #[test]
    fn addresses_that_are_no_hosts() {
        for text in ["0.0.0.0", "127.0.0.1", "224.0.0.1", "255.255.255.255", "169.254.1.1"] {
            assert!(!text.parse::<Ipv4Addr>().unwrap().is_host_address(), "{text}");
        }
        for text in ["::", "::1", "ff02::1", "fe80::1", "::ffff:10.0.0.1"] {
            assert!(!text.parse::<Ipv6Addr>().unwrap().is_host_address(), "{text}");
        }
        for text in ["10.0.0.1", "192.168.0.1", "8.8.8.8"] {
            assert!(text.parse::<Ipv4Addr>().unwrap().is_host_address(), "{text}");
        }
    }
}
