//! A route as the kernel describes it (rtnetlink(7)): read, and written again with nothing but
//! its TCP metrics or its destination changed.
//!
//! What Longhaul does not know is never dropped: a route with an attribute beyond the table below
//! is refused ([`Unsupported`]), because the kernel would lose it in the replaced route.
//!
//! | attribute | what becomes of it |
//! |---|---|
//! | `RTA_DST` | replaced in a copy |
//! | `RTA_METRICS` | `congctl`, `initcwnd`, `initrwnd` change; all others and the lock bits stay |
//! | `RTA_OIF`, `_GATEWAY`, `_VIA`, `_PREFSRC`, `_FLOW`, `_PRIORITY`, `_TABLE`, `_PREF` | stay |
//! | `RTA_MULTIPATH` | stays, without the next hops' status flags |
//! | `RTA_CACHEINFO` (IPv6) | left out: the kernel's own; one with an expiry time is refused |

mod next_hop;
mod unsupported;

pub use unsupported::Unsupported;

use crate::netlink::{RTAX_CC_ALGO, octets};
use crate::netlink_message::{attribute, attributes, nest, text, text_of, u32_at};
use next_hop::{NextHop, next_hops, without_status};
use record::{RouteMetrics, RoutePrefix};
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::net::IpAddr;

/// `rtm_protocol` of routes that Longhaul adds (linux/rtnetlink.h leaves numbers from 5 on to
/// programs). It marks them in the kernel: only such a route is ever deleted.
pub const ROUTE_PROTOCOL: u8 = 76;

/// Length of `struct rtmsg`, bytes.
pub(crate) const RTMSG: usize = 12;

// Attributes and metrics that the C library's headers lack (linux/rtnetlink.h).
const RTA_VIA: u16 = 18;
const RTA_PREF: u16 = 20;
const RTAX_MTU: u16 = 2;
const RTAX_INITCWND: u16 = 11;
const RTAX_INITRWND: u16 = 14;

/// `RTNH_F_PERVASIVE` and `RTNH_F_ONLINK`: the flags that a request may have. The others are the
/// next hop's present status.
const REQUEST_FLAGS: u8 = 2 | ONLINK;

/// `RTNH_F_ONLINK`: the gateway is taken to be on the link.
const ONLINK: u8 = 4;

/// `RTM_F_CLONED`: an entry that the kernel has made of a route, for a path MTU or a redirect.
const CLONED: u32 = 0x200;

/// `RTNH_F_DEAD` and `RTNH_F_LINKDOWN`.
const UNUSABLE: u8 = 1 | 16;

/// A route of the kernel's.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KernelRoute {
    prefix: RoutePrefix,
    /// `struct rtmsg`.
    head: [u8; RTMSG],
    /// In the kernel's order, without flags in their types.
    attributes: Vec<(u16, Vec<u8>)>,
}

impl KernelRoute {
    /// Reads the body of an `RTM_NEWROUTE`. `None` if it is malformed, or of another family.
    #[must_use]
    pub fn parse(body: &[u8]) -> Option<Self> {
        let (head, rest) = body.split_first_chunk::<RTMSG>()?;
        let attributes: Vec<(u16, Vec<u8>)> =
            attributes(rest).map(|(kind, value)| (kind, value.to_vec())).collect();
        let written: usize =
            attributes.iter().map(|(_, v)| (4 + v.len()).next_multiple_of(4)).sum();
        if written != rest.len().next_multiple_of(4) {
            return None;
        }
        let destination = attributes.iter().find(|(kind, _)| *kind == libc::RTA_DST);
        let address = match (i32::from(head[0]), destination) {
            (libc::AF_INET, None) if head[1] == 0 => IpAddr::from([0; 4]),
            (libc::AF_INET6, None) if head[1] == 0 => IpAddr::from([0u16; 8]),
            (libc::AF_INET | libc::AF_INET6, Some((_, value))) => address(value)?,
            _ => return None,
        };
        let prefix = RoutePrefix::new(address, head[1])?;
        let is_right = prefix.is_ipv4() == (i32::from(head[0]) == libc::AF_INET);
        is_right.then_some(KernelRoute { prefix, head: *head, attributes })
    }

    /// The body that [`KernelRoute::parse`] reads.
    #[must_use]
    pub fn body(&self) -> Vec<u8> {
        let attributes = self.attributes.iter().map(|(kind, value)| attribute(*kind, value));
        self.head.iter().copied().chain(attributes.flatten()).collect()
    }

    /// The destination.
    #[must_use]
    pub const fn prefix(&self) -> RoutePrefix {
        self.prefix
    }

    /// The routing table.
    #[must_use]
    pub fn table(&self) -> u32 {
        self.number(libc::RTA_TABLE).unwrap_or_else(|| u32::from(self.head[4]))
    }

    /// The route's own metric: of several routes to a prefix, the kernel takes that with the
    /// smallest one.
    #[must_use]
    pub fn priority(&self) -> u32 {
        self.number(libc::RTA_PRIORITY).unwrap_or(0)
    }

    /// Returns true if Longhaul added it.
    #[must_use]
    pub const fn is_own(&self) -> bool {
        self.head[5] == ROUTE_PROTOCOL
    }

    /// Returns true if the kernel keeps it for one destination's path MTU or redirect: a dump has
    /// these among the routes.
    #[must_use]
    pub fn is_cached(&self) -> bool {
        self.flags() & CLONED != 0
    }

    /// Returns true if it leads to this host itself, or to everybody on a link.
    #[must_use]
    pub fn is_local(&self) -> bool {
        matches!(self.head[7], libc::RTN_LOCAL | libc::RTN_BROADCAST | libc::RTN_ANYCAST)
    }

    /// Returns true if a next hop is up.
    #[must_use]
    pub fn is_usable(&self) -> bool {
        let hops = self.next_hops();
        match hops.is_empty() {
            true => self.flags() & u32::from(UNUSABLE) == 0,
            false => hops.iter().any(|hop| hop.flags & UNUSABLE == 0),
        }
    }

    /// The metrics that Longhaul changes.
    #[must_use]
    pub fn tcp_metrics(&self) -> RouteMetrics {
        let number = |kind| self.metric(kind).and_then(|value| u32_at(value, 0));
        RouteMetrics {
            congctl: self.metric(RTAX_CC_ALGO).and_then(text_of),
            initcwnd: number(RTAX_INITCWND),
            initrwnd: number(RTAX_INITRWND),
        }
    }

    /// Returns true if it has metrics that Longhaul does not change, such as an MTU.
    #[must_use]
    pub fn has_other_metrics(&self) -> bool {
        let ours = [RTAX_CC_ALGO, RTAX_INITCWND, RTAX_INITRWND];
        let metrics = self.value(libc::RTA_METRICS).unwrap_or_default();
        attributes(metrics).any(|(kind, _)| !ours.contains(&kind))
    }

    /// The MTU among its metrics, bytes.
    #[must_use]
    pub fn mtu(&self) -> Option<u32> {
        self.metric(RTAX_MTU).and_then(|value| u32_at(value, 0))
    }

    /// The same route with these metrics: a `None` removes the metric.
    #[must_use]
    pub fn with_tcp_metrics(&self, metrics: &RouteMetrics) -> Self {
        let present = self.value(libc::RTA_METRICS).unwrap_or_default();
        let mut all: BTreeMap<u16, Vec<u8>> =
            attributes(present).map(|(kind, value)| (kind, attribute(kind, value))).collect();
        let number = |kind, value: Option<u32>| {
            (kind, value.map(|value| attribute(kind, &value.to_ne_bytes())))
        };
        for (kind, value) in [
            number(RTAX_INITCWND, metrics.initcwnd),
            number(RTAX_INITRWND, metrics.initrwnd),
            (RTAX_CC_ALGO, metrics.congctl.as_ref().map(|name| text(RTAX_CC_ALGO, name))),
        ] {
            match value {
                Some(bytes) => drop(all.insert(kind, bytes)),
                None => drop(all.remove(&kind)),
            }
        }
        let value: Vec<u8> = all.into_values().flatten().collect();
        let mut route = self.clone();
        let place = route.attributes.iter().position(|(kind, _)| *kind == libc::RTA_METRICS);
        match (place.and_then(|at| route.attributes.get_mut(at)), value.is_empty()) {
            (Some(metrics), false) => metrics.1 = value,
            (Some(_), true) => route.attributes.retain(|(kind, _)| *kind != libc::RTA_METRICS),
            (None, false) => route.attributes.push((libc::RTA_METRICS, value)),
            (None, true) => {}
        }
        route
    }

    /// A route of Longhaul's to `prefix` over the same next hop, with the same metrics.
    #[must_use]
    pub fn copied_to(&self, prefix: RoutePrefix) -> Self {
        let mut route = self.clone();
        let is_own =
            |(kind, _): &(u16, Vec<u8>)| !matches!(*kind, libc::RTA_DST | libc::RTA_CACHEINFO);
        route.attributes.retain(is_own);
        if !prefix.is_default() {
            route.attributes.insert(0, (libc::RTA_DST, octets(prefix.address())));
        }
        (route.head[1], route.head[5], route.prefix) = (prefix.length(), ROUTE_PROTOCOL, prefix);
        route
    }

    /// Returns true if packets take the same way: device, gateway, source address, next hops.
    #[must_use]
    pub fn is_same_path(&self, other: &KernelRoute) -> bool {
        let path = |route: &KernelRoute| {
            let is_path = |kind: u16| {
                matches!(kind, libc::RTA_OIF | libc::RTA_GATEWAY | libc::RTA_PREFSRC | RTA_VIA)
                    || matches!(kind, libc::RTA_MULTIPATH | libc::RTA_FLOW)
            };
            let mut all = route.requested().into_iter().collect::<Vec<_>>();
            all.retain(|(kind, _)| is_path(*kind));
            all.sort_unstable();
            (route.head[7], all)
        };
        path(self) == path(other)
    }

    /// Returns true if the routes differ in nothing that a request can set.
    #[must_use]
    pub fn is_same_request(&self, other: &KernelRoute) -> bool {
        let request = |route: &KernelRoute| {
            let mut all = route.requested();
            all.sort_unstable();
            (route.request_head(), all)
        };
        request(self) == request(other)
    }

    /// The body of a request that adds or replaces it.
    pub(crate) fn request(&self) -> (Vec<u8>, Vec<Vec<u8>>) {
        let attributes = self.requested().into_iter().map(|(kind, value)| match kind {
            libc::RTA_METRICS => nest(kind, &[value]),
            _ => attribute(kind, &value),
        });
        (self.request_head().to_vec(), attributes.collect())
    }

    /// The body of a request that deletes it, if Longhaul added it: the kernel compares the
    /// protocol (`fib_table_delete`, `ip6_route_del`). For IPv6 it names the next hop as well, or
    /// those that another program has joined to it would be deleted, too.
    pub(crate) fn deletion(&self) -> (Vec<u8>, Vec<Vec<u8>>) {
        let mut head = self.request_head();
        head[5] = ROUTE_PROTOCOL;
        let is_next_hop = |kind: u16| matches!(kind, libc::RTA_OIF | libc::RTA_GATEWAY);
        let is_key = |kind: u16| {
            matches!(kind, libc::RTA_DST | libc::RTA_PRIORITY | libc::RTA_TABLE)
                || (!self.prefix.is_ipv4() && is_next_hop(kind))
        };
        let keys = self.attributes.iter().filter(|(kind, _)| is_key(*kind));
        (head.to_vec(), keys.map(|(kind, value)| attribute(*kind, value)).collect())
    }

    /// Its next hop or next hops in the words of ip-route(8).
    #[must_use]
    pub fn path_words(&self) -> String {
        let mut words = String::new();
        let of = |kind| self.value(kind);
        let hops = self.next_hops();
        if hops.is_empty() {
            next_hop_words(
                &mut words,
                of(libc::RTA_GATEWAY),
                of(RTA_VIA),
                self.number(libc::RTA_OIF),
            );
            if self.flags() & u32::from(ONLINK) != 0 {
                words += " onlink";
            }
        }
        if let Some(source) = of(libc::RTA_PREFSRC).and_then(address) {
            let _ = write!(words, " src {source}");
        }
        if self.number(libc::RTA_PRIORITY).is_some() {
            let _ = write!(words, " metric {}", self.priority());
        }
        for hop in hops {
            words += " nexthop";
            let of = |wanted| attributes(hop.attributes).find(|(kind, _)| *kind == wanted);
            let of = |wanted| of(wanted).map(|(_, value)| value);
            next_hop_words(&mut words, of(libc::RTA_GATEWAY), of(RTA_VIA), Some(hop.device));
            let _ = write!(words, " weight {}", u32::from(hop.weight) + 1);
            if hop.flags & ONLINK != 0 {
                words += " onlink";
            }
        }
        words.trim_start().to_owned()
    }

    fn value(&self, wanted: u16) -> Option<&[u8]> {
        self.attributes.iter().find_map(|(kind, value)| (*kind == wanted).then_some(&**value))
    }

    fn number(&self, kind: u16) -> Option<u32> {
        u32_at(self.value(kind)?, 0)
    }

    fn metric(&self, wanted: u16) -> Option<&[u8]> {
        let mut metrics = attributes(self.value(libc::RTA_METRICS)?);
        metrics.find_map(|(kind, value)| (kind == wanted).then_some(value))
    }

    fn flags(&self) -> u32 {
        u32_at(&self.head, 8).unwrap_or(0)
    }

    fn next_hops(&self) -> Vec<NextHop<'_>> {
        next_hops(self.value(libc::RTA_MULTIPATH).unwrap_or_default())
    }

    /// The header without status flags.
    fn request_head(&self) -> [u8; RTMSG] {
        let mut head = self.head;
        if let Some(flags) = head.last_chunk_mut::<4>() {
            *flags = (self.flags() & u32::from(REQUEST_FLAGS)).to_ne_bytes();
        }
        head
    }

    /// The attributes that a request has.
    fn requested(&self) -> Vec<(u16, Vec<u8>)> {
        let kept = self.attributes.iter().filter(|(kind, _)| *kind != libc::RTA_CACHEINFO);
        kept.map(|(kind, value)| match *kind {
            libc::RTA_MULTIPATH => (*kind, without_status(value)),
            kind => (kind, value.clone()),
        })
        .collect()
    }
}

fn next_hop_words(
    words: &mut String,
    gateway: Option<&[u8]>,
    via: Option<&[u8]>,
    device: Option<u32>,
) {
    if let Some(gateway) = gateway.and_then(address) {
        let _ = write!(words, " via {gateway}");
    }
    // struct rtvia: the family, then the address.
    if let Some(gateway) = via.and_then(|via| address(via.get(2..)?)) {
        let _ = write!(words, " via inet6 {gateway}");
    }
    if let Some(device) = device {
        let _ = write!(words, " dev {}", record::shell_word(&crate::interfaces::name(device)));
    }
}

/// An address of 4 or 16 bytes.
pub(crate) fn address(bytes: &[u8]) -> Option<IpAddr> {
    let v4 = || <[u8; 4]>::try_from(bytes).map(IpAddr::from).ok();
    v4().or_else(|| <[u8; 16]>::try_from(bytes).map(IpAddr::from).ok())
}

#[cfg(test)]
mod tests;
