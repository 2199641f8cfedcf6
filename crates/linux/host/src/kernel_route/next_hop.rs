//! The next hops of a multipath route (`RTA_MULTIPATH`).

use super::REQUEST_FLAGS;
use crate::netlink_message::{u16_at, u32_at};

/// Length of `struct rtnexthop`, bytes.
const NEXT_HOP: usize = 8;

/// One of several next hops (`struct rtnexthop`).
pub(super) struct NextHop<'a> {
    /// `RTNH_F_*`.
    pub(super) flags: u8,
    /// One less than `ip route` shows.
    pub(super) weight: u8,
    pub(super) device: u32,
    pub(super) attributes: &'a [u8],
}

/// The next hops as far as they are well-formed.
pub(super) fn next_hops(mut bytes: &[u8]) -> Vec<NextHop<'_>> {
    let mut hops = Vec::new();
    while let Some(hop) = first_hop(bytes) {
        bytes = bytes.get((NEXT_HOP + hop.attributes.len()).next_multiple_of(4)..).unwrap_or(&[]);
        hops.push(hop);
    }
    hops
}

fn first_hop(bytes: &[u8]) -> Option<NextHop<'_>> {
    let length = usize::from(u16_at(bytes, 0)?);
    let (flags, weight) = (*bytes.get(2)?, *bytes.get(3)?);
    Some(NextHop {
        flags,
        weight,
        device: u32_at(bytes, 4)?,
        attributes: bytes.get(NEXT_HOP..length)?,
    })
}

/// The same next hops without their status.
pub(super) fn without_status(value: &[u8]) -> Vec<u8> {
    let hop = |hop: NextHop<'_>| {
        let length = u16::try_from(NEXT_HOP + hop.attributes.len()).unwrap_or(u16::MAX);
        let flags = hop.flags & REQUEST_FLAGS;
        let head = [&length.to_ne_bytes()[..], &[flags, hop.weight], &hop.device.to_ne_bytes()];
        let mut bytes = [&head.concat(), hop.attributes].concat();
        bytes.resize(bytes.len().next_multiple_of(4), 0);
        bytes
    };
    next_hops(value).into_iter().flat_map(hop).collect()
}
