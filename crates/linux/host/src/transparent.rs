//! Sockets for addresses that are not the host's: listeners that accept what is routed to them
//! (ip(7), `IP_TRANSPARENT`), and routes that make every address the host's own.

use crate::netlink::{Change, Netlink, family};
use crate::netlink_message::attribute;
use crate::sys;
use socket2::{Domain, Protocol, Socket, Type};
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener};
use std::os::fd::AsFd;

/// Connections that wait to be accepted.
const BACKLOG: libc::c_int = 1024;

/// Listens at a port of all addresses, IPv6 and IPv4 where the kernel has IPv6; port 0: one that the
/// kernel chooses. Accepted sockets have the address that was connected to, whosever it is.
///
/// # Errors
/// The system error; `PermissionDenied` without `CAP_NET_ADMIN`.
pub fn listen(port: u16) -> io::Result<TcpListener> {
    let (socket, any): (_, IpAddr) =
        match Socket::new(Domain::IPV6, Type::STREAM, Some(Protocol::TCP)) {
            Ok(socket) => {
                socket.set_only_v6(false)?;
                (socket, Ipv6Addr::UNSPECIFIED.into())
            }
            Err(_) => {
                let socket = Socket::new(Domain::IPV4, Type::STREAM, Some(Protocol::TCP))?;
                (socket, Ipv4Addr::UNSPECIFIED.into())
            }
        };
    set_transparent(&socket, any.is_ipv6())?;
    // Connections of an earlier listener may be in TIME-WAIT.
    socket.set_reuse_address(true)?;
    socket.bind(&SocketAddr::new(any, port).into())?;
    socket.listen(BACKLOG)?;
    Ok(socket.into())
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
