//! The network interfaces of the calling thread's network namespace: addresses and counters.

use crate::netlink::{Device, Netlink};
use crate::netlink_message::{Message, find, text_of, u32_at};
use std::io;
use std::net::IpAddr;

/// A network interface.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Interface {
    /// Its number.
    pub index: u32,
    /// Its name.
    pub name: String,
    /// What its packets begin with.
    pub framing: Framing,
    /// Whether it is up.
    pub up: bool,
    /// Whether it is the loopback.
    pub loopback: bool,
    /// Its addresses, with their prefix lengths.
    pub addresses: Vec<(IpAddr, u8)>,
    /// Its counters.
    pub counters: Counters,
}

/// What the packets of an interface begin with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Framing {
    /// An Ethernet header.
    Ethernet,
    /// An IP header: TUN devices and tunnels.
    Ip,
    /// Something else.
    Other,
}

/// Counters since the interface was created. A packet that segmentation offload has yet to cut
/// counts once.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counters {
    /// Received bytes.
    pub received_bytes: u64,
    /// Received packets.
    pub received_packets: u64,
    /// Sent bytes.
    pub sent_bytes: u64,
    /// Sent packets.
    pub sent_packets: u64,
}

/// Every interface, in the kernel's order.
///
/// # Errors
/// The system error.
pub fn list() -> io::Result<Vec<Interface>> {
    let netlink = Netlink::open()?;
    let mut interfaces = Vec::new();
    let push =
        |link: &Message<'_>| interfaces.extend(Device::of(link).as_ref().and_then(interface));
    netlink.dump(libc::RTM_GETLINK, push)?;
    netlink.dump(libc::RTM_GETADDR, |message| {
        let Some((index, address, length)) = address(message) else { return };
        if let Some(interface) = interfaces.iter_mut().find(|it| it.index == index) {
            interface.addresses.push((address, length));
        }
    })?;
    Ok(interfaces)
}

/// The name of an interface, or `ifN` for number N if there is none.
#[must_use]
pub fn name(index: u32) -> String {
    use rustix::net::{AddressFamily, SocketType, netdevice, socket};
    let any = || socket(AddressFamily::INET, SocketType::DGRAM, None);
    any()
        .and_then(|socket| netdevice::index_to_name(socket, index))
        .unwrap_or_else(|_| format!("if{index}"))
}

/// `struct rtnl_link_stats64` begins with packets and bytes of each direction.
fn counters(device: &Device) -> Counters {
    Counters {
        received_packets: device.counter(0),
        sent_packets: device.counter(1),
        received_bytes: device.counter(2),
        sent_bytes: device.counter(3),
    }
}

fn interface(device: &Device) -> Option<Interface> {
    let has = |flag| device.flags & flag != 0;
    Some(Interface {
        index: device.index,
        name: find(&device.attributes, libc::IFLA_IFNAME).and_then(text_of)?,
        framing: match device.layer {
            libc::ARPHRD_ETHER | libc::ARPHRD_LOOPBACK => Framing::Ethernet,
            libc::ARPHRD_NONE => Framing::Ip,
            _ => Framing::Other,
        },
        up: has(libc::IFF_UP),
        loopback: has(libc::IFF_LOOPBACK),
        addresses: Vec::new(),
        counters: counters(device),
    })
}

/// The interface of an address, the address and its prefix length. Of a point-to-point link, the
/// interface's own address is the local one, the other attribute is the peer's.
fn address(message: &Message<'_>) -> Option<(u32, IpAddr, u8)> {
    // struct ifaddrmsg.
    let (fixed, attributes) = message.body.split_at_checked(8)?;
    (message.kind == libc::RTM_NEWADDR).then_some(())?;
    let value =
        find(attributes, libc::IFA_LOCAL).or_else(|| find(attributes, libc::IFA_ADDRESS))?;
    let address = match value.len() {
        4 => IpAddr::from(<[u8; 4]>::try_from(value).ok()?),
        _ => IpAddr::from(<[u8; 16]>::try_from(value).ok()?),
    };
    Some((u32_at(fixed, 4)?, address, *fixed.get(1)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_loopback_is_listed() {
        let all = list().unwrap();
        let loopback = all.iter().find(|it| it.loopback).unwrap();
        assert_eq!((loopback.name.as_str(), loopback.framing), ("lo", Framing::Ethernet));
        assert_eq!((name(loopback.index).as_str(), name(0).as_str()), ("lo", "if0"));
        assert!(!loopback.up || loopback.addresses.iter().any(|it| it.0.is_loopback()));
    }
}
