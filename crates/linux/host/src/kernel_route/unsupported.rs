//! Routes that cannot be written again without losing something.

use super::{KernelRoute, RTA_PREF, RTA_VIA};
use crate::netlink_message::{attributes, u32_at};

// What the C library's headers lack (linux/rtnetlink.h).
const RTA_ENCAP_TYPE: u16 = 21;
const RTA_ENCAP: u16 = 22;
const RTA_NH_ID: u16 = 30;
const RTPROT_RA: u8 = 9;

/// A route that cannot be written again as it is.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Unsupported {
    /// Not to a next hop.
    #[error("it is of type {0}, so no connection uses it")]
    Type(&'static str),
    /// For one type of service only.
    #[error("it is for packets of one TOS or from one source only")]
    Selective,
    /// The next hop is an object of its own.
    #[error("its next hop is an object of its own (nhid)")]
    NextHopObject,
    /// IPv6 keeps metrics and protocol of each next hop apart, and a dump has those of the first.
    #[error("it is an IPv6 route with several next hops, whose metrics could not be restored")]
    SeveralNextHops,
    /// Packets are encapsulated.
    #[error("it encapsulates packets (encap)")]
    Encapsulated,
    /// The kernel removes it after a time.
    #[error("it expires, and whoever renews it would discard the metrics")]
    Expires,
    /// The kernel maintains it.
    #[error("the kernel maintains it (proto {0}), and would discard the metrics")]
    Maintained(&'static str),
    /// An attribute of a later kernel.
    #[error("it has attribute {0} of rtnetlink, which Longhaul does not know")]
    Attribute(u16),
}

impl KernelRoute {
    /// Why it cannot be written again with other metrics.
    #[must_use]
    pub fn unsupported(&self) -> Option<Unsupported> {
        let expires = self.value(libc::RTA_CACHEINFO).and_then(|info| u32_at(info, 8));
        let maintained = match (self.prefix.is_ipv4(), self.head[5]) {
            (_, libc::RTPROT_REDIRECT) => Some("redirect"),
            // IPv6 keeps flags of these, which no request sets.
            (false, libc::RTPROT_KERNEL) => Some("kernel"),
            (false, RTPROT_RA) => Some("ra"),
            _ => None,
        };
        self.not_copyable()
            .or_else(|| expires.is_some_and(|at| at != 0).then_some(Unsupported::Expires))
            .or_else(|| maintained.map(Unsupported::Maintained))
    }

    /// Why no copy of it can be added.
    #[must_use]
    pub fn not_copyable(&self) -> Option<Unsupported> {
        let unknown = |kind: u16| !KNOWN.contains(&kind);
        let hops = self.next_hops();
        let in_hops = hops.iter().flat_map(|hop| attributes(hop.attributes));
        let all = || self.attributes.iter().map(|(kind, _)| *kind);
        let mut kinds = all().chain(in_hops.map(|(kind, _)| kind));
        let type_name = match self.head[7] {
            libc::RTN_UNICAST => None,
            libc::RTN_BLACKHOLE => Some("blackhole"),
            libc::RTN_UNREACHABLE => Some("unreachable"),
            libc::RTN_PROHIBIT => Some("prohibit"),
            libc::RTN_THROW => Some("throw"),
            _ => Some("other than unicast"),
        };
        if let Some(name) = type_name {
            return Some(Unsupported::Type(name));
        }
        // Source prefix, TOS.
        if self.head[2] != 0 || self.head[3] != 0 {
            return Some(Unsupported::Selective);
        }
        if all().any(|kind| kind == RTA_NH_ID) {
            return Some(Unsupported::NextHopObject);
        }
        if !self.prefix.is_ipv4() && all().any(|kind| kind == libc::RTA_MULTIPATH) {
            return Some(Unsupported::SeveralNextHops);
        }
        let kind = kinds.find(|kind| unknown(*kind))?;
        Some(match kind {
            RTA_ENCAP | RTA_ENCAP_TYPE => Unsupported::Encapsulated,
            other => Unsupported::Attribute(other),
        })
    }
}

/// The attributes that a route keeps when it is written again.
const KNOWN: [u16; 12] = [
    libc::RTA_DST,
    libc::RTA_OIF,
    libc::RTA_GATEWAY,
    libc::RTA_PRIORITY,
    libc::RTA_PREFSRC,
    libc::RTA_METRICS,
    libc::RTA_MULTIPATH,
    libc::RTA_FLOW,
    libc::RTA_CACHEINFO,
    libc::RTA_TABLE,
    RTA_VIA,
    RTA_PREF,
];
