//! Pairs of Ethernet devices (veth(4)), and forwarding from one device to another.

use crate::netlink::{Netlink, family};
use netlink_packet_core::{NLM_F_CREATE, NLM_F_EXCL};
use netlink_packet_route::RouteNetlinkMessage;
use netlink_packet_route::link::{
    InfoData, InfoKind, InfoVeth, LinkAttribute, LinkFlags, LinkInfo, LinkMessage,
};
use netlink_packet_route::route::{
    RouteAttribute, RouteHeader, RouteMessage, RouteProtocol, RouteScope, RouteType,
};
use netlink_packet_route::rule::{RuleAction, RuleAttribute, RuleMessage};
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::os::fd::{AsFd, AsRawFd};

/// A pair to create. Packets that are sent into one device are received from the other.
#[derive(Debug, Clone, Copy)]
pub struct Veth<'a> {
    /// Name of the device here.
    pub name: &'a str,
    /// Name of the other.
    pub peer: &'a str,
    /// Ethernet address of both devices. As they do without ARP and neighbour discovery, a frame
    /// is sent to the sender's own address.
    pub address: [u8; 6],
    /// The longest train that the host may put into the device here, bytes; `None`: the
    /// kernel's default of 64 KiB.
    pub longest_train: Option<u32>,
}

impl Netlink {
    /// Creates a pair, down; the other device in `namespace`.
    ///
    /// # Errors
    /// The system error: `Unsupported` if the kernel lacks veth.
    pub fn add_veth(&self, pair: Veth<'_>, namespace: &impl AsFd) -> io::Result<()> {
        let end = |name: &str| {
            let mut end = LinkMessage::default();
            end.header.flags = LinkFlags::Noarp;
            end.header.change_mask = LinkFlags::Noarp;
            end.attributes.push(LinkAttribute::IfName(name.to_owned()));
            end.attributes.push(LinkAttribute::Address(pair.address.to_vec()));
            end
        };
        let mut peer = end(pair.peer);
        peer.attributes.push(LinkAttribute::NetNsFd(namespace.as_fd().as_raw_fd()));
        let mut message = end(pair.name);
        message.attributes.extend(pair.longest_train.map(LinkAttribute::GsoMaxSize));
        message.attributes.push(LinkAttribute::LinkInfo(vec![
            LinkInfo::Kind(InfoKind::Veth),
            LinkInfo::Data(InfoData::Veth(InfoVeth::Peer(peer))),
        ]));
        self.request(RouteNetlinkMessage::NewLink(message), NLM_F_CREATE | NLM_F_EXCL)
    }

    /// Sends what arrives at device `from` and is forwarded out of device number `to`, wherever
    /// it is going. `table` is a routing table of its own.
    ///
    /// # Errors
    /// The system error; the kernel may lack policy routing.
    pub fn forward(&self, from: &str, to: u32, table: u32, ipv6: bool) -> io::Result<()> {
        let families: [IpAddr; 2] = [Ipv4Addr::UNSPECIFIED.into(), Ipv6Addr::UNSPECIFIED.into()];
        for any in families.into_iter().filter(|any| any.is_ipv4() || ipv6) {
            let mut route = RouteMessage::default();
            route.header.address_family = family(any);
            route.header.table = RouteHeader::RT_TABLE_UNSPEC;
            route.header.protocol = RouteProtocol::Static;
            route.header.scope =
                if any.is_ipv4() { RouteScope::Link } else { RouteScope::Universe };
            route.header.kind = RouteType::Unicast;
            route.attributes.push(RouteAttribute::Oif(to));
            route.attributes.push(RouteAttribute::Table(table));
            self.request(RouteNetlinkMessage::NewRoute(route), NLM_F_CREATE | NLM_F_EXCL)?;
            let mut rule = RuleMessage::default();
            rule.header.family = family(any);
            rule.header.action = RuleAction::ToTable;
            rule.attributes.push(RuleAttribute::Iifname(from.to_owned()));
            rule.attributes.push(RuleAttribute::Table(table));
            self.request(RouteNetlinkMessage::NewRule(rule), NLM_F_CREATE | NLM_F_EXCL)?;
        }
        Ok(())
    }
}
