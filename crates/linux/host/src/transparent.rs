//! Sockets for addresses that are not the host's: listeners that accept what is routed to them
//! (ip(7), `IP_TRANSPARENT`), and routes that make every address the host's own.

use crate::netlink::{Change, Netlink, family};
use crate::netlink_message::attribute;
use crate::sys;
use socket2::{Domain, Protocol, Socket, Type};
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener, UdpSocket};
use std::os::fd::AsFd;

/// Connections that wait to be accepted.
const BACKLOG: libc::c_int = 1024;

/// The connections that a transparent listener accepts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Accepting<'a> {
    /// To every address, IPv6 and IPv4 where the kernel has IPv6.
    Anywhere,
    /// The same, but only those that arrive at this device.
    At(&'a str),
    /// To one address.
    Address(IpAddr),
}

/// Listens at a port; port 0: one that the kernel chooses. Accepted sockets have the address that was
/// connected to, whosever it is.
///
/// # Errors
/// The system error; `PermissionDenied` without `CAP_NET_ADMIN`.
pub fn listen(accepting: Accepting<'_>, port: u16) -> io::Result<TcpListener> {
    let (socket, address) = match accepting {
        Accepting::Address(address) => (tcp(address)?, address),
        Accepting::Anywhere | Accepting::At(_) => any_address()?,
    };
    if let Accepting::At(device) = accepting {
        socket.bind_device(Some(device.as_bytes()))?;
    }
    set_transparent(&socket, address.is_ipv6())?;
    // Connections of an earlier listener may be in TIME-WAIT.
    socket.set_reuse_address(true)?;
    socket.bind(&SocketAddr::new(address, port).into())?;
    socket.listen(BACKLOG)?;
    Ok(socket.into())
}

fn tcp(address: IpAddr) -> io::Result<Socket> {
    let domain = Domain::for_address(SocketAddr::new(address, 0));
    Socket::new(domain, Type::STREAM, Some(Protocol::TCP))
}

/// A socket for all addresses, and their wildcard.
fn any_address() -> io::Result<(Socket, IpAddr)> {
    let v6 = Ipv6Addr::UNSPECIFIED.into();
    if let Ok(socket) = tcp(v6) {
        socket.set_only_v6(false)?;
        return Ok((socket, v6));
    }
    let v4 = Ipv4Addr::UNSPECIFIED.into();
    Ok((tcp(v4)?, v4))
}

/// Returns true if an address is one of this network namespace's own: the kernel gives it as the
/// source of what is sent to it. Sends nothing, and does not depend on
/// `net.ipv4.ip_nonlocal_bind`. True, too, if there is no socket to find out with.
#[must_use]
pub fn is_own(address: SocketAddr) -> bool {
    if address.ip().to_canonical().is_loopback() {
        return true;
    }
    let Ok(socket) = UdpSocket::bind(crate::address::any_like(address)) else { return true };
    socket.connect(address).is_ok()
        && socket.local_addr().is_ok_and(|source| source.ip() == address.ip())
}

/// Lets a socket have addresses that are not the host's; `ipv6` is the socket's family.
///
/// # Errors
/// The system error; `PermissionDenied` without `CAP_NET_ADMIN`.
pub fn set_transparent(socket: &impl AsFd, ipv6: bool) -> io::Result<()> {
    let on: libc::c_int = 1;
    if ipv6 {
        sys::set_option(socket, libc::IPPROTO_IPV6, libc::IPV6_TRANSPARENT, &on)
    } else {
        sys::set_option(socket, libc::IPPROTO_IP, libc::IP_TRANSPARENT, &on)
    }
}

impl Netlink {
    /// Makes every address of the family of `source` one of this namespace's own, which `source` is
    /// already: what programs send anywhere arrives at `device`, from `source`.
    ///
    /// # Errors
    /// The system error.
    pub fn own_all_addresses(&self, device: u32, source: IpAddr) -> io::Result<()> {
        // struct rtmsg.
        let (table, origin) = (libc::RT_TABLE_LOCAL, libc::RTPROT_STATIC);
        let (scope, kind) = (libc::RT_SCOPE_HOST, libc::RTN_LOCAL);
        let fixed = vec![family(source), 0, 0, 0, table, origin, scope, kind, 0, 0, 0, 0];
        let octets = match source {
            IpAddr::V4(address) => address.octets().to_vec(),
            IpAddr::V6(address) => address.octets().to_vec(),
        };
        let attributes = vec![
            attribute(libc::RTA_OIF, &device.to_ne_bytes()),
            attribute(libc::RTA_PREFSRC, &octets),
        ];
        self.request(Change::new(libc::RTM_NEWROUTE, fixed, attributes))
    }
}
