//! Devices, addresses and routes of the calling thread's network namespace
//! (rtnetlink(7)).

use crate::clock;
use crate::netlink_message::{
    Message, attribute, find, message, messages, nest, open, text, text_of, u16_at, u32_at,
};
use netlink_sys::{Socket, protocols::NETLINK_ROUTE};
use std::fmt;
use std::io;
use std::net::{IpAddr, UdpSocket};
use std::time::Duration;

// Attributes that the C library's headers lack (linux/if_link.h, linux/rtnetlink.h).
const IFLA_STATS64: u16 = 23;
pub(crate) const RTAX_CC_ALGO: u16 = 16;

/// Length of `struct ifinfomsg`, bytes.
pub(crate) const LINK: usize = 16;

/// An rtnetlink socket in one network namespace.
pub struct Netlink {
    pub(crate) socket: Socket,
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
        Ok(Netlink { socket: open(NETLINK_ROUTE)? })
    }

    /// Interface index of a device.
    ///
    /// # Errors
    /// The system error; `NotFound` if there is no such device.
    pub fn index(&self, device: &str) -> io::Result<u32> {
        Ok(self.device(device)?.index)
    }

    /// Root queueing discipline of a device (tc(8)).
    ///
    /// # Errors
    /// The system error; `NotFound` if there is no such device, `Unsupported` if
    /// the kernel does not report it.
    pub fn queue_discipline(&self, device: &str) -> io::Result<String> {
        let device = self.device(device)?;
        let discipline = find(&device.attributes, libc::IFLA_QDISC).and_then(text_of);
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
        let settings: Vec<_> = [(libc::IFLA_MTU, mtu), (libc::IFLA_TXQLEN, ring)]
            .into_iter()
            .filter_map(|(kind, value)| Some(attribute(kind, &value?.to_ne_bytes())))
            .collect();
        if !settings.is_empty() {
            self.request(Change::new(libc::RTM_SETLINK, link(device, 0), settings))?;
        }
        self.request(Change::new(libc::RTM_SETLINK, link(device, libc::IFF_UP), Vec::new()))
    }

    /// Assigns an address, without the prefix route that the kernel would add.
    ///
    /// # Errors
    /// The system error.
    pub fn add_address(&self, device: u32, address: IpAddr) -> io::Result<()> {
        // No duplicate address detection: until it has finished, an IPv6 address cannot
        // be the source of a route.
        let flags = (libc::IFA_F_PERMANENT | libc::IFA_F_NODAD) as u8;
        let length = if address.is_ipv4() { 32 } else { 128 };
        // struct ifaddrmsg.
        let fixed = [&[family(address), length, flags, 0][..], &device.to_ne_bytes()].concat();
        let bytes = octets(address);
        let mut attributes = vec![attribute(libc::IFA_ADDRESS, &bytes)];
        attributes.extend(address.is_ipv4().then(|| attribute(libc::IFA_LOCAL, &bytes)));
        self.request(Change::new(libc::RTM_NEWADDR, fixed, attributes))
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
            self.request_all(batch.iter().map(Route::change)).map_err(
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

    fn device(&self, name: &str) -> io::Result<Device> {
        let name_attribute = text(libc::IFLA_IFNAME, name);
        let question = message(
            libc::RTM_GETLINK,
            libc::NLM_F_REQUEST,
            0,
            &link(0, 0),
            std::slice::from_ref(&name_attribute),
        );
        self.socket.send(&question, 0)?;
        let missing = || io::Error::new(io::ErrorKind::NotFound, format!("no device {name}"));
        loop {
            let (bytes, _) = self.socket.recv_from_full()?;
            for message in messages(&bytes) {
                let message = message?;
                if let Some(device) = Device::of(&message) {
                    return Ok(device);
                }
                if let Some(Err(error)) = message.acknowledgement() {
                    let absent = error.raw_os_error() == Some(libc::ENODEV);
                    return Err(if absent { missing() } else { error });
                }
            }
        }
    }

    /// Calls `visit` with every object of the kind that the request `kind` asks for.
    pub(crate) fn dump(&self, kind: u16, mut visit: impl FnMut(&Message<'_>)) -> io::Result<()> {
        let flags = libc::NLM_F_REQUEST | libc::NLM_F_DUMP;
        self.socket.send(&message(kind, flags, 0, &link(0, 0), &[]), 0)?;
        loop {
            let (bytes, _) = self.socket.recv_from_full()?;
            for message in messages(&bytes) {
                let message = message?;
                match message.acknowledgement() {
                    _ if message.is_done() => return Ok(()),
                    Some(Err(error)) => return Err(error),
                    Some(Ok(())) => {}
                    None => visit(&message),
                }
            }
        }
    }

    /// Sends a change and waits for its acknowledgement.
    pub(crate) fn request(&self, change: Change) -> io::Result<()> {
        self.request_all(std::iter::once(change)).map_err(|refused| refused.source)
    }

    /// Sends up to [`BATCH`] changes in one datagram. The kernel applies them in
    /// order and acknowledges the failed ones and the last one.
    fn request_all(
        &self,
        changes: impl ExactSizeIterator<Item = Change>,
    ) -> Result<(), RejectedChange> {
        let last = changes.len().saturating_sub(1);
        let mut datagram = Vec::new();
        for (at, Change { kind, flags, fixed, attributes }) in changes.enumerate() {
            let flags = libc::NLM_F_REQUEST | flags | if at == last { libc::NLM_F_ACK } else { 0 };
            datagram.extend(message(kind, flags, at, &fixed, &attributes));
        }
        self.socket.send(&datagram, 0)?;
        let mut refused = None;
        loop {
            let (bytes, _) = self.socket.recv_from_full()?;
            for message in messages(&bytes) {
                let message = message?;
                let Some(answer) = message.acknowledgement() else { continue };
                let at = usize::try_from(message.number).ok();
                if let (Err(source), None) = (answer, &refused) {
                    refused = Some(RejectedChange { at, source });
                }
                if at == Some(last) {
                    return refused.map_or(Ok(()), Err);
                }
            }
        }
    }
}

/// A request that changes something.
pub(crate) struct Change {
    kind: u16,
    /// `NLM_F_*` besides those of every request.
    flags: libc::c_int,
    /// The structure of its type.
    fixed: Vec<u8>,
    attributes: Vec<Vec<u8>>,
}

impl Change {
    /// Creates an object, and fails if there is one, or deletes one. What sets an existing device
    /// creates nothing: the kernel ignores these flags.
    pub(crate) fn new(kind: u16, fixed: Vec<u8>, attributes: Vec<Vec<u8>>) -> Self {
        let creates = libc::NLM_F_CREATE | libc::NLM_F_EXCL;
        let flags = if is_deletion(kind) { 0 } else { creates };
        Change { kind, flags, fixed, attributes }
    }

    /// The same with these flags.
    pub(crate) fn with_flags(self, flags: libc::c_int) -> Self {
        Change { flags, ..self }
    }
}

/// A device as the kernel describes it.
pub(crate) struct Device {
    pub(crate) index: u32,
    /// `ARPHRD_*`.
    pub(crate) layer: u16,
    /// `IFF_*`.
    pub(crate) flags: i32,
    /// `IFLA_*`.
    pub(crate) attributes: Vec<u8>,
}

impl Device {
    pub(crate) fn of(message: &Message<'_>) -> Option<Self> {
        let (fixed, attributes) = message.body.split_at_checked(LINK)?;
        (message.kind == libc::RTM_NEWLINK).then_some(())?;
        Some(Device {
            index: u32_at(fixed, 4)?,
            layer: u16_at(fixed, 2)?,
            flags: u32_at(fixed, 8)?.cast_signed(),
            attributes: attributes.to_vec(),
        })
    }

    /// Counter number `at` of `struct rtnl_link_stats64`; 0 if the kernel does not report it.
    pub(crate) fn counter(&self, at: usize) -> u64 {
        let counters = find(&self.attributes, IFLA_STATS64).unwrap_or_default();
        let bytes = counters.get(at * 8..).and_then(|rest| rest.first_chunk());
        bytes.copied().map_or(0, u64::from_ne_bytes)
    }
}

/// Changes per datagram. Even if all fail, their acknowledgements (1 KiB each in
/// the kernel's accounting) fit the socket's default buffer of 208 KiB.
const BATCH: usize = 64;

/// True for `RTM_DEL…`, where the flag `NLM_F_EXCL` means a deletion in bulk. Types come in groups of
/// four: new, delete, get, set (linux/rtnetlink.h).
const fn is_deletion(kind: u16) -> bool {
    kind % 4 == 1
}

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
    fn change(&self) -> Change {
        let mut attributes = vec![attribute(libc::RTA_OIF, &self.device.to_ne_bytes())];
        // A default route has no destination attribute.
        let destination = (self.length > 0).then(|| octets(self.prefix));
        attributes.extend(destination.map(|bytes| attribute(libc::RTA_DST, &bytes)));
        attributes.extend(self.source.map(|from| attribute(libc::RTA_PREFSRC, &octets(from))));
        let congestion = self.congestion.map(|name| [text(RTAX_CC_ALGO, name)]);
        attributes.extend(congestion.map(|metric| nest(libc::RTA_METRICS, &metric)));
        let fixed = route(self.prefix, self.length, libc::RT_TABLE_MAIN);
        Change::new(libc::RTM_NEWROUTE, fixed, attributes)
    }
}

impl fmt::Display for Route<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the route to {}/{}", self.prefix, self.length)
    }
}

/// `struct ifinfomsg` of a device, with flags to set.
pub(crate) fn link(device: u32, flags: libc::c_int) -> Vec<u8> {
    let flags = flags.to_ne_bytes();
    [&[0; 4][..], &device.to_ne_bytes(), &flags, &flags].concat()
}

/// `struct rtmsg` of a unicast route of an administrator in a table below 256.
pub(crate) fn route(prefix: IpAddr, length: u8, table: u8) -> Vec<u8> {
    let scope = if prefix.is_ipv4() { libc::RT_SCOPE_LINK } else { libc::RT_SCOPE_UNIVERSE };
    let origin = libc::RTPROT_STATIC;
    let head = [family(prefix), length, 0, 0, table, origin, scope, libc::RTN_UNICAST];
    [&head[..], &[0; 4]].concat()
}

pub(crate) const fn family(address: IpAddr) -> u8 {
    match address {
        IpAddr::V4(_) => libc::AF_INET as u8,
        IpAddr::V6(_) => libc::AF_INET6 as u8,
    }
}

pub(crate) fn octets(address: IpAddr) -> Vec<u8> {
    match address {
        IpAddr::V4(v4) => v4.octets().to_vec(),
        IpAddr::V6(v6) => v6.octets().to_vec(),
    }
}

/// Places of the drops in `struct rtnl_link_stats64`.
const RX_DROPPED: usize = 6;
const TX_DROPPED: usize = 7;

fn drops_of(device: &Device) -> DeviceDrops {
    DeviceDrops { transmit: device.counter(TX_DROPPED), receive: device.counter(RX_DROPPED) }
}
