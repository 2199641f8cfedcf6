//! Devices, addresses and routes of the calling thread's network namespace
//! (rtnetlink(7)).

use netlink_packet_core::{
    NLM_F_ACK, NLM_F_CREATE, NLM_F_DUMP, NLM_F_EXCL, NLM_F_REQUEST, NetlinkMessage, NetlinkPayload,
};
use netlink_packet_route::address::{AddressAttribute, AddressHeaderFlags, AddressMessage};
use netlink_packet_route::link::{LinkAttribute, LinkFlags, LinkMessage, Stats64};
use netlink_packet_route::route::{
    RouteAddress, RouteAttribute, RouteHeader, RouteMessage, RouteMetric, RouteProtocol,
    RouteScope, RouteType,
};
use netlink_packet_route::{AddressFamily, RouteNetlinkMessage};
use netlink_sys::{Socket, SocketAddr, protocols::NETLINK_ROUTE};
use std::io;
use std::net::IpAddr;

/// A conversation with the kernel about one namespace.
pub struct Netlink {
    socket: Socket,
}

/// What a device has dropped, in trains as the kernel counts them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct DeviceDrops {
    /// Dropped on the way out: a TUN device's ring was full.
    pub transmit: u64,
    /// Dropped on the way in.
    pub receive: u64,
}

impl Netlink {
    /// Opens one in the calling thread's namespace.
    ///
    /// # Errors
    /// The system's own.
    pub fn open() -> io::Result<Self> {
        let mut socket = Socket::new(NETLINK_ROUTE)?;
        socket.bind_auto()?;
        socket.connect(&SocketAddr::new(0, 0))?;
        Ok(Netlink { socket })
    }

    /// Number of a device.
    ///
    /// # Errors
    /// The system's own; `NotFound` where there is none of that name.
    pub fn index(&self, device: &str) -> io::Result<u32> {
        Ok(self.device(device)?.header.index)
    }

    /// Brings a device up, with an MTU and a length of its transmit ring
    /// (packets) where given.
    ///
    /// # Errors
    /// The system's own.
    pub fn bring_up(&self, device: u32, mtu: Option<u32>, ring: Option<u32>) -> io::Result<()> {
        // The ring of a TUN device is resized by NETDEV_CHANGE_TX_QUEUE_LEN,
        // so it comes in a message before the one that sets the device up.
        let mut message = LinkMessage::default();
        message.header.index = device;
        message.attributes.extend(mtu.map(LinkAttribute::Mtu));
        message.attributes.extend(ring.map(LinkAttribute::TxQueueLen));
        if !message.attributes.is_empty() {
            self.order(RouteNetlinkMessage::SetLink(message), 0)?;
        }
        let mut message = LinkMessage::default();
        message.header.index = device;
        message.header.flags = LinkFlags::Up;
        message.header.change_mask = LinkFlags::Up;
        self.order(RouteNetlinkMessage::SetLink(message), 0)
    }

    /// Gives a device an address, without the route the kernel would add.
    ///
    /// # Errors
    /// The system's own.
    pub fn add_address(&self, device: u32, address: IpAddr) -> io::Result<()> {
        let mut message = AddressMessage::default();
        message.header.family = family(address);
        message.header.prefix_len = if address.is_ipv4() { 32 } else { 128 };
        message.header.index = device;
        // No duplicate-address detection: until it is over (in the background)
        // an IPv6 address can be no route's source.
        message.header.flags = AddressHeaderFlags::Permanent | AddressHeaderFlags::Nodad;
        message.attributes.push(AddressAttribute::Address(address));
        if address.is_ipv4() {
            message.attributes.push(AddressAttribute::Local(address));
        }
        self.order(RouteNetlinkMessage::NewAddress(message), NLM_F_CREATE | NLM_F_EXCL)
    }

    /// Routes `prefix`/`length` through a device, from `source`, with a
    /// congestion control for all connections that use it.
    ///
    /// A route is how a namespace gets a congestion control that its
    /// `tcp_allowed_congestion_control` does not list.
    ///
    /// # Errors
    /// The system's own; `InvalidInput` for a congestion control it does not have.
    pub fn add_route(
        &self,
        device: u32,
        (prefix, length): (IpAddr, u8),
        source: IpAddr,
        congestion: &str,
    ) -> io::Result<()> {
        let mut message = RouteMessage::default();
        message.header.address_family = family(prefix);
        message.header.destination_prefix_length = length;
        message.header.table = RouteHeader::RT_TABLE_MAIN;
        message.header.protocol = RouteProtocol::Static;
        message.header.scope =
            if prefix.is_ipv4() { RouteScope::Link } else { RouteScope::Universe };
        message.header.kind = RouteType::Unicast;
        message.attributes = vec![
            RouteAttribute::Destination(route_address(prefix)),
            RouteAttribute::Oif(device),
            RouteAttribute::PrefSource(route_address(source)),
            RouteAttribute::Metrics(vec![RouteMetric::CcAlgo(congestion.to_owned())]),
        ];
        self.order(RouteNetlinkMessage::NewRoute(message), NLM_F_CREATE | NLM_F_EXCL)
    }

    /// What a device has dropped so far.
    ///
    /// # Errors
    /// The system's own.
    pub fn drops(&self, device: &str) -> io::Result<DeviceDrops> {
        let message = self.device(device)?;
        let stats = message.attributes.iter().find_map(|attribute| match attribute {
            LinkAttribute::Stats64(stats) => Some(*stats),
            _ => None,
        });
        let Stats64 { tx_dropped, rx_dropped, .. } = stats.unwrap_or_default();
        Ok(DeviceDrops { transmit: tx_dropped, receive: rx_dropped })
    }

    fn device(&self, name: &str) -> io::Result<LinkMessage> {
        self.send(RouteNetlinkMessage::GetLink(LinkMessage::default()), NLM_F_DUMP)?;
        let mut found = None;
        loop {
            let (bytes, _) = self.socket.recv_from_full()?;
            for message in messages(&bytes) {
                match message?.payload {
                    NetlinkPayload::InnerMessage(RouteNetlinkMessage::NewLink(link)) => {
                        let named =
                            |a: &LinkAttribute| matches!(a, LinkAttribute::IfName(n) if n == name);
                        if link.attributes.iter().any(named) {
                            found = Some(link);
                        }
                    }
                    NetlinkPayload::Done(_) => {
                        let missing =
                            || io::Error::new(io::ErrorKind::NotFound, format!("no device {name}"));
                        return found.ok_or_else(missing);
                    }
                    NetlinkPayload::Error(error) => return Err(error.to_io()),
                    _ => {}
                }
            }
        }
    }

    /// Sends a change and waits for the kernel's word on it.
    fn order(&self, message: RouteNetlinkMessage, flags: u16) -> io::Result<()> {
        self.send(message, NLM_F_ACK | flags)?;
        loop {
            let (bytes, _) = self.socket.recv_from_full()?;
            for message in messages(&bytes) {
                if let NetlinkPayload::Error(error) = message?.payload {
                    return if error.code.is_none() { Ok(()) } else { Err(error.to_io()) };
                }
            }
        }
    }

    fn send(&self, message: RouteNetlinkMessage, flags: u16) -> io::Result<()> {
        let mut message = NetlinkMessage::from(message);
        message.header.flags = NLM_F_REQUEST | flags;
        message.finalize();
        let mut bytes = vec![0; message.buffer_len()];
        message.serialize(&mut bytes);
        self.socket.send(&bytes, 0).map(drop)
    }
}

type Message = NetlinkMessage<RouteNetlinkMessage>;

/// The messages of one datagram.
fn messages(mut bytes: &[u8]) -> impl Iterator<Item = io::Result<Message>> {
    std::iter::from_fn(move || {
        if bytes.is_empty() {
            return None;
        }
        let parsed = Message::deserialize(bytes);
        // Messages are aligned to four bytes; a length of zero would repeat for ever.
        let length = parsed.as_ref().map_or(0, |m| (m.header.length as usize).next_multiple_of(4));
        bytes = bytes.get(length..).filter(|_| length > 0).unwrap_or_default();
        Some(parsed.map_err(|e| io::Error::new(io::ErrorKind::InvalidData, e.to_string())))
    })
}

const fn family(address: IpAddr) -> AddressFamily {
    match address {
        IpAddr::V4(_) => AddressFamily::Inet,
        IpAddr::V6(_) => AddressFamily::Inet6,
    }
}

const fn route_address(address: IpAddr) -> RouteAddress {
    match address {
        IpAddr::V4(v4) => RouteAddress::Inet(v4),
        IpAddr::V6(v6) => RouteAddress::Inet6(v6),
    }
}
