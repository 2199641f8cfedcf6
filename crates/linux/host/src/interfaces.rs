//! The network interfaces of the calling thread's network namespace: addresses and counters.

use crate::netlink::Netlink;
use netlink_packet_route::RouteNetlinkMessage;
use netlink_packet_route::address::{AddressAttribute, AddressMessage};
use netlink_packet_route::link::{LinkAttribute, LinkFlags, LinkLayerType, LinkMessage};
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
    let links = netlink.dump(RouteNetlinkMessage::GetLink(LinkMessage::default()))?;
    let addresses = netlink.dump(RouteNetlinkMessage::GetAddress(AddressMessage::default()))?;
    let mut interfaces: Vec<Interface> = links.iter().filter_map(interface).collect();
    for message in &addresses {
        let RouteNetlinkMessage::NewAddress(message) = message else { continue };
        let interface = interfaces.iter_mut().find(|it| it.index == message.header.index);
        if let (Some(interface), Some(address)) = (interface, address(message)) {
            interface.addresses.push((address, message.header.prefix_len));
        }
    }
    Ok(interfaces)
}

fn interface(message: &RouteNetlinkMessage) -> Option<Interface> {
    let RouteNetlinkMessage::NewLink(link) = message else { return None };
    let mut counters = Counters::default();
    let mut name = None;
    for attribute in &link.attributes {
        match attribute {
            LinkAttribute::IfName(text) => name = Some(text.clone()),
            LinkAttribute::Stats64(stats) => {
                counters = Counters {
                    received_bytes: stats.rx_bytes,
                    received_packets: stats.rx_packets,
                    sent_bytes: stats.tx_bytes,
                    sent_packets: stats.tx_packets,
                }
            }
            _ => {}
        }
    }
    Some(Interface {
        index: link.header.index,
        name: name?,
        framing: match link.header.link_layer_type {
            LinkLayerType::Ether | LinkLayerType::Loopback => Framing::Ethernet,
            LinkLayerType::None => Framing::Ip,
            _ => Framing::Other,
        },
        up: link.header.flags.contains(LinkFlags::Up),
        loopback: link.header.flags.contains(LinkFlags::Loopback),
        addresses: Vec::new(),
        counters,
    })
}

/// The interface's own address: of a point-to-point link, the other attribute is the peer's.
fn address(message: &AddressMessage) -> Option<IpAddr> {
    let of = |is_local: bool| {
        message.attributes.iter().find_map(move |attribute| match attribute {
            AddressAttribute::Local(address) if is_local => Some(*address),
            AddressAttribute::Address(address) if !is_local => Some(*address),
            _ => None,
        })
    };
    of(true).or_else(|| of(false))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_loopback_is_listed() {
        let all = list().unwrap();
        let loopback = all.iter().find(|it| it.loopback).unwrap();
        assert_eq!((loopback.name.as_str(), loopback.framing), ("lo", Framing::Ethernet));
        assert!(!loopback.up || loopback.addresses.iter().any(|it| it.0.is_loopback()));
    }
}
