//! The main routing table of the calling thread's network namespace: routes that cover a prefix,
//! read and changed one at a time (rtnetlink(7)).

use crate::kernel_route::{KernelRoute, RTMSG};
use crate::netlink::{Change, Netlink};
use crate::netlink_message::{attribute, message, messages};
use record::RoutePrefix;
use std::io;
use std::net::IpAddr;

// What the C library's headers lack (linux/rtnetlink.h).
const RTM_F_LOOKUP_TABLE: u32 = 0x1000;
const RTM_F_FIB_MATCH: u32 = 0x2000;

/// Most routes that can cover one prefix before the table counts as unusual: 129 prefix lengths
/// with two routes each are fewer.
const MAX_COVERING: usize = 512;

/// Attempts to read the table while others change it.
const MAX_READS: u32 = 5;

/// The routes around a prefix.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Surroundings {
    /// The main table's routes to the prefix itself and to prefixes that contain it, in the
    /// kernel's order.
    pub covering: Vec<KernelRoute>,
    /// Number of the main table's routes to parts of the prefix.
    pub within: usize,
}

/// Reads the routes around a prefix.
///
/// # Errors
/// The system error; `Interrupted` if others keep changing the table.
pub fn around(prefix: RoutePrefix) -> io::Result<Surroundings> {
    let netlink = Netlink::open()?;
    for _ in 0..MAX_READS {
        if let Some(all) = netlink.routes_around(prefix)? {
            return Ok(all);
        }
    }
    let text = "other programs keep changing the routing table; try again";
    Err(io::Error::new(io::ErrorKind::Interrupted, text))
}

/// The route that packets to an address take, by the rules of policy routing (ip-rule(8)).
///
/// # Errors
/// The system error: `NetworkUnreachable` or `HostUnreachable` if there is none.
pub fn lookup(address: IpAddr) -> io::Result<KernelRoute> {
    let netlink = Netlink::open()?;
    let (family, bytes) = match address {
        IpAddr::V4(v4) => (libc::AF_INET, v4.octets().to_vec()),
        IpAddr::V6(v6) => (libc::AF_INET6, v6.octets().to_vec()),
    };
    let length = u8::try_from(bytes.len() * 8).unwrap_or(u8::MAX);
    let mut fixed = [0; RTMSG];
    (fixed[0], fixed[1]) = (family as u8, length);
    if let Some(flags) = fixed.last_chunk_mut::<4>() {
        *flags = (RTM_F_LOOKUP_TABLE | RTM_F_FIB_MATCH).to_ne_bytes();
    }
    let question = [attribute(libc::RTA_DST, &bytes)];
    let question = message(libc::RTM_GETROUTE, libc::NLM_F_REQUEST, 0, &fixed, &question);
    netlink.socket.send(&question, 0)?;
    let (answer, _) = netlink.socket.recv_from_full()?;
    for message in messages(&answer) {
        let message = message?;
        if let Some(Err(error)) = message.acknowledgement() {
            return Err(error);
        }
        if let Some(route) = KernelRoute::parse(message.body) {
            return Ok(route);
        }
    }
    Err(io::Error::new(io::ErrorKind::InvalidData, "the kernel's answer is no route"))
}

/// Checks whether routes may be changed, with a request that the kernel refuses as too short once
/// it has checked the privilege.
///
/// # Errors
/// `PermissionDenied` without `CAP_NET_ADMIN` in the network namespace's user namespace.
pub fn may_change() -> io::Result<()> {
    let fixed = vec![libc::AF_INET as u8, 0, 0, 0];
    let change = Change::new(libc::RTM_DELROUTE, fixed, Vec::new()).with_flags(0);
    match Netlink::open()?.request(change) {
        Err(error) if error.raw_os_error() == Some(libc::EINVAL) => Ok(()),
        checked => checked,
    }
}

/// Adds a route.
///
/// # Errors
/// The system error; `AlreadyExists` if there is a route to that prefix with that priority,
/// `InvalidInput` if the kernel lacks the congestion control.
pub fn add(route: &KernelRoute) -> io::Result<()> {
    let (fixed, attributes) = route.request();
    Netlink::open()?.request(Change::new(libc::RTM_NEWROUTE, fixed, attributes))
}

/// Replaces the route to the same prefix with the same priority.
///
/// # Errors
/// The system error; `NotFound` if there is no such route.
pub fn replace(route: &KernelRoute) -> io::Result<()> {
    let (fixed, attributes) = route.request();
    let change = Change::new(libc::RTM_NEWROUTE, fixed, attributes);
    Netlink::open()?.request(change.with_flags(libc::NLM_F_REPLACE))
}

/// Deletes a route that Longhaul added; the kernel checks that it did.
///
/// # Errors
/// The system error; `NotFound` if there is no such route of Longhaul's.
pub fn delete(route: &KernelRoute) -> io::Result<()> {
    let (fixed, attributes) = route.deletion();
    let change = Change::new(libc::RTM_DELROUTE, fixed, attributes);
    Netlink::open()?.request(change.with_flags(0)).map_err(|error| {
        match error.raw_os_error() == Some(libc::ESRCH) {
            true => io::Error::new(io::ErrorKind::NotFound, error),
            false => error,
        }
    })
}

impl Netlink {
    /// One reading of the table; `None` if it changed meanwhile.
    fn routes_around(&self, prefix: RoutePrefix) -> io::Result<Option<Surroundings>> {
        let family = if prefix.is_ipv4() { libc::AF_INET } else { libc::AF_INET6 };
        let mut fixed = [0; RTMSG];
        fixed[0] = family as u8;
        let flags = libc::NLM_F_REQUEST | libc::NLM_F_DUMP;
        self.socket.send(&message(libc::RTM_GETROUTE, flags, 0, &fixed, &[]), 0)?;
        let (mut all, mut consistent) = (Surroundings::default(), true);
        loop {
            let (bytes, _) = self.socket.recv_from_full()?;
            for message in messages(&bytes) {
                let message = message?;
                consistent &= i32::from(message.flags) & libc::NLM_F_DUMP_INTR == 0;
                match message.acknowledgement() {
                    _ if message.is_done() => return Ok(consistent.then_some(all)),
                    Some(Err(error)) => return Err(error),
                    Some(Ok(())) => {}
                    None => all.take(prefix, message.body)?,
                }
            }
        }
    }
}

impl Surroundings {
    fn take(&mut self, prefix: RoutePrefix, body: &[u8]) -> io::Result<()> {
        let Some(route) = KernelRoute::parse(body) else { return Ok(()) };
        if route.table() != u32::from(libc::RT_TABLE_MAIN) || route.is_cached() {
            return Ok(());
        }
        if route.prefix().contains(&prefix) {
            if self.covering.len() == MAX_COVERING {
                let text = format!("more than {MAX_COVERING} routes cover {prefix}");
                return Err(io::Error::new(io::ErrorKind::InvalidData, text));
            }
            self.covering.push(route);
        } else if prefix.contains(&route.prefix()) {
            self.within += 1;
        }
        Ok(())
    }
}
