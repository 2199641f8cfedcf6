//! Devices, addresses and routes of the calling thread's network namespace
//! (rtnetlink(7)).

use crate::clock;
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
use std::fmt;
use std::io;
use std::net::{IpAddr, UdpSocket};
use std::time::Duration;

/// An rtnetlink socket in one network namespace.
pub struct Netlink {
    socket: Socket,
}

/// Drop counters of a device, in buffers as the kernel counts them (a buffer may hold a train).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct DeviceDrops {
    /// Transmit drops: a TUN device's ring was full.
    pub transmit: u64,
    /// Receive drops.
    pub receive: u64,
}

impl DeviceDrops {
    /// Of both directions.
    #[must_use]
    pub const fn total(&self) -> u64 {
        self.transmit + self.receive
    }
}

/// A route through a device.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Route<'a> {
    /// Interface index.
    pub device: u32,
    /// Destination: with `length` 32 or 128 one host, with 0 the default route.
    pub prefix: IpAddr,
    /// Prefix length, bits.
    pub length: u8,
    /// Preferred source address; if `None` the kernel chooses one.
    pub source: Option<IpAddr>,
    /// Congestion control of connections over this route. This also works for one
    /// that the namespace's `tcp_allowed_congestion_control` does not list.
    pub congestion: Option<&'a str>,
}

/// Waits until packets to one of our own IPv6 addresses are delivered, at most
/// `timeout`: the kernel adds the local route of an address in the background, and
/// until then connect(2) fails with ENETUNREACH and datagrams are lost.
///
/// # Errors
/// The error of bind(2), or `TimedOut`.
pub fn await_local_route(address: IpAddr, timeout: Duration) -> io::Result<()> {
    let socket = UdpSocket::bind((address, 0))?;
    let own = socket.local_addr()?;
    socket.set_read_timeout(Some(Duration::from_millis(1)))?;
    let until = clock::now() + timeout;
    while clock::now() < until {
        let sent = socket.send_to(&[0], own);
        if sent.is_ok() && socket.recv(&mut [0]).is_ok() {
            return Ok(());
        }
    }
    Err(io::Error::new(io::ErrorKind::TimedOut, format!("no local route to {address}")))
}

impl Netlink {
    /// Opens a socket in the calling thread's namespace.
    ///
    /// # Errors
    /// The system error.
    pub fn open() -> io::Result<Self> {
        let mut socket = Socket::new(NETLINK_ROUTE)?;
        socket.bind_auto()?;
        socket.connect(&SocketAddr::new(0, 0))?;
        Ok(Netlink { socket })
    }

    /// Interface index of a device.
    ///
    /// # Errors
    /// The system error; `NotFound` if there is no such device.
    pub fn index(&self, device: &str) -> io::Result<u32> {
        Ok(self.device(device)?.header.index)
    }

    /// Root queueing discipline of a device (tc(8)).
    ///
    /// # Errors
    /// The system error; `NotFound` if there is no such device, `Unsupported` if
    /// the kernel does not report it.
    pub fn queue_discipline(&self, device: &str) -> io::Result<String> {
        let attributes = self.device(device)?.attributes;
        let discipline = attributes.into_iter().find_map(|one| match one {
            LinkAttribute::Qdisc(name) => Some(name),
            _ => None,
        });
        discipline.ok_or_else(|| io::ErrorKind::Unsupported.into())
    }

    /// Brings a device up, with this MTU and transmit queue length (packets) where
    /// given.
    ///
    /// # Errors
    /// The system error.
    pub fn bring_up(&self, device: u32, mtu: Option<u32>, ring: Option<u32>) -> io::Result<()> {
        // A TUN device's ring is resized by NETDEV_CHANGE_TX_QUEUE_LEN, which needs a
        // message of its own before the device is up.
        let mut message = LinkMessage::default();
        message.header.index = device;
        message.attributes.extend(mtu.map(LinkAttribute::Mtu));
        message.attributes.extend(ring.map(LinkAttribute::TxQueueLen));
        if !message.attributes.is_empty() {
            self.request(RouteNetlinkMessage::SetLink(message), 0)?;
        }
        let mut message = LinkMessage::default();
        message.header.index = device;
        message.header.flags = LinkFlags::Up;
        message.header.change_mask = LinkFlags::Up;
        self.request(RouteNetlinkMessage::SetLink(message), 0)
    }

    /// Assigns an address, without the prefix route that the kernel would add.
    ///
    /// # Errors
    /// The system error.
    pub fn add_address(&self, device: u32, address: IpAddr) -> io::Result<()> {
        let mut message = AddressMessage::default();
        message.header.family = family(address);
        message.header.prefix_len = if address.is_ipv4() { 32 } else { 128 };
        message.header.index = device;
        // No duplicate address detection: until it has finished, an IPv6 address cannot
        // be the source of a route.
        message.header.flags = AddressHeaderFlags::Permanent | AddressHeaderFlags::Nodad;
        message.attributes.push(AddressAttribute::Address(address));
        if address.is_ipv4() {
            message.attributes.push(AddressAttribute::Local(address));
        }
        self.request(RouteNetlinkMessage::NewAddress(message), NLM_F_CREATE | NLM_F_EXCL)
    }

    /// Adds any number of routes, sent to the kernel in batches.
    ///
    /// # Errors
    /// The system error, naming the first route that failed; those before it are
    /// set, and some after it may be. `AlreadyExists` if there is a route to that
    /// prefix, `InvalidInput` if the source is not an address of the host or the
    /// kernel lacks the congestion control.
    pub fn add_routes<'a>(&self, routes: impl IntoIterator<Item = Route<'a>>) -> io::Result<()> {
        let mut routes = routes.into_iter();
        loop {
            let batch: Vec<Route<'a>> = routes.by_ref().take(BATCH).collect();
            if batch.is_empty() {
                return Ok(());
            }
            let orders = batch.iter().map(Route::message);
            self.request_all(orders, NLM_F_CREATE | NLM_F_EXCL).map_err(
                |RejectedChange { at, source }| {
                    let route = at.and_then(|at| batch.get(at));
                    match route {
                        Some(route) => io::Error::new(source.kind(), format!("{route}: {source}")),
                        None => source,
                    }
                },
            )?;
        }
    }

    /// Drop counters of devices, in the order given.
    ///
    /// # Errors
    /// The system error; `NotFound` if one of the devices does not exist.
    pub fn drops(&self, devices: &[impl AsRef<str>]) -> io::Result<Vec<DeviceDrops>> {
        devices.iter().map(|name| Ok(drops_of(&self.device(name.as_ref())?))).collect()
    }

    fn device(&self, name: &str) -> io::Result<LinkMessage> {
        let mut question = LinkMessage::default();
        question.attributes.push(LinkAttribute::IfName(name.to_owned()));
        self.socket.send(&serialized(RouteNetlinkMessage::GetLink(question), 0, 0), 0)?;
        let missing = || io::Error::new(io::ErrorKind::NotFound, format!("no device {name}"));
        loop {
            let (bytes, _) = self.socket.recv_from_full()?;
            for message in messages(&bytes) {
                match message?.payload {
                    NetlinkPayload::InnerMessage(RouteNetlinkMessage::NewLink(link)) => {
                        return Ok(link);
                    }
                    NetlinkPayload::Error(error) => {
                        let error = error.to_io();
                        let absent = error.raw_os_error() == Some(libc::ENODEV);
                        return Err(if absent { missing() } else { error });
                    }
                    _ => {}
                }
            }
        }
    }

    /// Every object of a kind.
    pub(crate) fn dump(
        &self,
        question: RouteNetlinkMessage,
    ) -> io::Result<Vec<RouteNetlinkMessage>> {
        self.socket.send(&serialized(question, NLM_F_DUMP, 0), 0)?;
        let mut all = Vec::new();
        loop {
            let (bytes, _) = self.socket.recv_from_full()?;
            for message in messages(&bytes) {
                match message?.payload {
                    NetlinkPayload::InnerMessage(object) => all.push(object),
                    NetlinkPayload::Done(_) => return Ok(all),
                    NetlinkPayload::Error(error) => return Err(error.to_io()),
                    _ => {}
                }
            }
        }
    }

    /// Sends a change and waits for its acknowledgement.
    pub(crate) fn request(&self, message: RouteNetlinkMessage, flags: u16) -> io::Result<()> {
        self.request_all(std::iter::once(message), flags).map_err(|refused| refused.source)
    }

    /// Sends up to [`BATCH`] changes in one datagram. The kernel applies them in
    /// order and acknowledges the failed ones and the last one.
    fn request_all(
        &self,
        orders: impl ExactSizeIterator<Item = RouteNetlinkMessage>,
        flags: u16,
    ) -> Result<(), RejectedChange> {
        let last = orders.len().saturating_sub(1);
        let mut datagram = Vec::new();
        for (at, request) in orders.enumerate() {
            let flags = flags | if at == last { NLM_F_ACK } else { 0 };
            datagram.extend(serialized(request, flags, at));
        }
        self.socket.send(&datagram, 0)?;
        let mut refused = None;
        loop {
            let (bytes, _) = self.socket.recv_from_full()?;
            for message in messages(&bytes) {
                let Message { header, payload, .. } = message?;
                let NetlinkPayload::Error(error) = payload else { continue };
                let at = usize::try_from(header.sequence_number).ok();
                if error.code.is_some() && refused.is_none() {
                    refused = Some(RejectedChange { at, source: error.to_io() });
                }
                if at == Some(last) {
                    return refused.map_or(Ok(()), Err);
                }
            }
        }
    }
}

/// Changes per datagram. Even if all fail, their acknowledgements (1 KiB each in
/// the kernel's accounting) fit the socket's default buffer of 208 KiB.
const BATCH: usize = 64;

/// A change rejected by the kernel.
struct RejectedChange {
    /// Index in the datagram, if known.
    at: Option<usize>,
    source: io::Error,
}

impl From<io::Error> for RejectedChange {
    fn from(source: io::Error) -> Self {
        RejectedChange { at: None, source }
    }
}

impl Route<'_> {
    fn message(&self) -> RouteNetlinkMessage {
        let mut message = RouteMessage::default();
        message.header.address_family = family(self.prefix);
        message.header.destination_prefix_length = self.length;
        message.header.table = RouteHeader::RT_TABLE_MAIN;
        message.header.protocol = RouteProtocol::Static;
        message.header.scope =
            if self.prefix.is_ipv4() { RouteScope::Link } else { RouteScope::Universe };
        message.header.kind = RouteType::Unicast;
        message.attributes.push(RouteAttribute::Oif(self.device));
        // A default route has no destination attribute.
        if self.length > 0 {
            message.attributes.push(RouteAttribute::Destination(route_address(self.prefix)));
        }
        let source = self.source.map(route_address).map(RouteAttribute::PrefSource);
        message.attributes.extend(source);
        let congestion = self.congestion.map(|name| RouteMetric::CcAlgo(name.to_owned()));
        message.attributes.extend(congestion.map(|metric| RouteAttribute::Metrics(vec![metric])));
        RouteNetlinkMessage::NewRoute(message)
    }
}

impl fmt::Display for Route<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the route to {}/{}", self.prefix, self.length)
    }
}

fn serialized(message: RouteNetlinkMessage, flags: u16, number: usize) -> Vec<u8> {
    let mut message = NetlinkMessage::from(message);
    message.header.flags = NLM_F_REQUEST | flags;
    message.header.sequence_number = u32::try_from(number).unwrap_or(u32::MAX);
    message.finalize();
    // Messages are aligned to four bytes.
    let mut bytes = vec![0; message.buffer_len().next_multiple_of(4)];
    message.serialize(&mut bytes);
    bytes
}

fn drops_of(device: &LinkMessage) -> DeviceDrops {
    let stats = device.attributes.iter().find_map(|attribute| match attribute {
        LinkAttribute::Stats64(stats) => Some(*stats),
        _ => None,
    });
    let Stats64 { tx_dropped, rx_dropped, .. } = stats.unwrap_or_default();
    DeviceDrops { transmit: tx_dropped, receive: rx_dropped }
}

type Message = NetlinkMessage<RouteNetlinkMessage>;

/// The messages of one datagram.
pub(crate) fn messages(mut bytes: &[u8]) -> impl Iterator<Item = io::Result<Message>> {
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

pub(crate) const fn family(address: IpAddr) -> AddressFamily {
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
