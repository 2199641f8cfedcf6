//! Pairs of Ethernet devices (veth(4)), and forwarding from one device to another.

use crate::netlink::{Change, Netlink, family, link, route};
use crate::netlink_message::{attribute, nest, text};
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::os::fd::{AsFd, AsRawFd};

// Attributes that the C library's headers lack (linux/if_link.h, linux/veth.h,
// linux/fib_rules.h).
const IFLA_GSO_MAX_SIZE: u16 = 41;
const VETH_INFO_PEER: u16 = 1;
const FRA_IIFNAME: u16 = 3;
const FRA_TABLE: u16 = 15;
const FR_ACT_TO_TBL: u8 = 1;

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
            vec![text(libc::IFLA_IFNAME, name), attribute(libc::IFLA_ADDRESS, &pair.address)]
        };
        let mut peer = end(pair.peer);
        let namespace = namespace.as_fd().as_raw_fd();
        peer.push(attribute(libc::IFLA_NET_NS_FD, &namespace.to_ne_bytes()));
        let peer = [link(0, libc::IFF_NOARP), peer.concat()].concat();
        let mut attributes = end(pair.name);
        let train = pair.longest_train.map(u32::to_ne_bytes);
        attributes.extend(train.map(|bytes| attribute(IFLA_GSO_MAX_SIZE, &bytes)));
        let data = nest(libc::IFLA_INFO_DATA, &[attribute(VETH_INFO_PEER, &peer)]);
        let kind = text(libc::IFLA_INFO_KIND, "veth");
        attributes.push(nest(libc::IFLA_LINKINFO, &[kind, data]));
        self.request(Change::new(libc::RTM_NEWLINK, link(0, libc::IFF_NOARP), attributes))
    }

    /// Sends what arrives at device `from` and is forwarded out of device number `to`, wherever
    /// it is going. `table` is a routing table of its own.
    ///
    /// # Errors
    /// The system error; the kernel may lack policy routing.
    pub fn forward(&self, from: &str, to: u32, table: u32, ipv6: bool) -> io::Result<()> {
        let families: [IpAddr; 2] = [Ipv4Addr::UNSPECIFIED.into(), Ipv6Addr::UNSPECIFIED.into()];
        for any in families.into_iter().filter(|any| any.is_ipv4() || ipv6) {
            let table = table.to_ne_bytes();
            let (out, number) = (to.to_ne_bytes(), attribute(libc::RTA_TABLE, &table));
            self.request(Change::new(
                libc::RTM_NEWROUTE,
                route(any, 0, libc::RT_TABLE_UNSPEC),
                vec![attribute(libc::RTA_OIF, &out), number],
            ))?;
            // struct fib_rule_hdr.
            let rule = vec![family(any), 0, 0, 0, 0, 0, 0, FR_ACT_TO_TBL, 0, 0, 0, 0];
            let attributes = vec![text(FRA_IIFNAME, from), attribute(FRA_TABLE, &table)];
            self.request(Change::new(libc::RTM_NEWRULE, rule, attributes))?;
        }
        Ok(())
    }
}
