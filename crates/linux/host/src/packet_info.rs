//! The local address of datagrams on a socket of all addresses: which one was asked, so that the
//! answer comes from it (ip(7), `IP_PKTINFO`; ipv6(7), `IPV6_RECVPKTINFO`). Without it the kernel
//! chooses, and a host with several addresses may answer from another one.

use crate::{sys, udp};
use std::io;
use std::mem::MaybeUninit;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::os::fd::{AsFd, AsRawFd};
use std::ptr;

/// Room for either structure behind its header.
#[repr(C)]
union Control {
    space: [u8; 64],
    align: libc::cmsghdr,
}

/// From now on the socket's datagrams arrive with the address that they were sent to; `ipv6` is the
/// socket's own family. An IPv6 socket gives that of IPv4 datagrams, too.
///
/// # Errors
/// The system error.
pub fn record(socket: &impl AsFd, ipv6: bool) -> io::Result<()> {
    let on: libc::c_int = 1;
    if ipv6 {
        sys::set_option(socket, libc::IPPROTO_IPV6, libc::IPV6_RECVPKTINFO, &on)
    } else {
        sys::set_option(socket, libc::IPPROTO_IP, libc::IP_PKTINFO, &on)
    }
}

/// The address that a datagram was sent to, if a control message has it. One of a group is none
/// that an answer can come from.
///
/// # Safety
/// `control` points to a control message from the kernel, which still lives.
pub(crate) unsafe fn of_control(control: *const libc::cmsghdr) -> Option<IpAddr> {
    // SAFETY: by the contract; the kernel puts such a structure behind such a header, and it need
    // not be aligned.
    let address = unsafe {
        match ((*control).cmsg_level, (*control).cmsg_type) {
            (libc::IPPROTO_IP, libc::IP_PKTINFO) => {
                let info = libc::CMSG_DATA(control).cast::<libc::in_pktinfo>().read_unaligned();
                IpAddr::V4(Ipv4Addr::from(u32::from_be(info.ipi_spec_dst.s_addr)))
            }
            (libc::IPPROTO_IPV6, libc::IPV6_PKTINFO) => {
                let info = libc::CMSG_DATA(control).cast::<libc::in6_pktinfo>().read_unaligned();
                IpAddr::V6(Ipv6Addr::from(info.ipi6_addr.s6_addr))
            }
            _ => return None,
        }
    };
    let plain = address.to_canonical();
    (!plain.is_multicast() && !plain.is_unspecified()).then_some(plain)
}

/// Receives one datagram: its length, where it comes from, and with [`record()`] the address that it
/// was sent to.
///
/// # Errors
/// The system error: `WouldBlock` at the socket's timeout.
pub fn receive(
    socket: &impl AsFd,
    buffer: &mut [u8],
) -> io::Result<(usize, SocketAddr, Option<IpAddr>)> {
    let mut control = Control { space: [0; 64] };
    let mut name = MaybeUninit::<libc::sockaddr_storage>::zeroed();
    let mut vector = libc::iovec { iov_base: buffer.as_mut_ptr().cast(), iov_len: buffer.len() };
    let mut header: libc::msghdr = sys::zeroed();
    header.msg_name = name.as_mut_ptr().cast();
    header.msg_namelen = size_of::<libc::sockaddr_storage>() as _;
    header.msg_iov = &raw mut vector;
    header.msg_iovlen = 1;
    header.msg_control = ptr::from_mut(&mut control).cast();
    header.msg_controllen = size_of::<Control>() as _;
    let fd = socket.as_fd().as_raw_fd();
    // SAFETY: the header points to a name, a buffer and a control with their lengths, all of which
    // outlive the call.
    let bytes = sys::retry(|| unsafe { libc::recvmsg(fd, &raw mut header, 0) })?;
    // SAFETY: zeros are a value of it, and the kernel has written an address.
    let from = udp::socket_address(unsafe { name.assume_init_ref() })
        .ok_or_else(|| io::Error::from(io::ErrorKind::InvalidData))?;
    let mut local = None;
    // SAFETY: the kernel filled the header and its control, which still live; CMSG_FIRSTHDR and
    // CMSG_NXTHDR give headers that lie whole within the control.
    unsafe {
        let mut found = libc::CMSG_FIRSTHDR(&raw const header);
        while !found.is_null() {
            local = local.or(of_control(found));
            found = libc::CMSG_NXTHDR(&raw const header, found);
        }
    }
    Ok((bytes, from, local))
}

/// Sends a datagram, or a train of them, from one of this host's addresses; `None`: from that which
/// the kernel chooses. `to` is of the socket's family.
///
/// # Errors
/// The system error.
pub fn send(
    socket: &impl AsFd,
    bytes: &[u8],
    to: SocketAddr,
    from: Option<IpAddr>,
) -> io::Result<usize> {
    let to_name = socket2::SockAddr::from(to);
    let mut control = Control { space: [0; 64] };
    let mut vector =
        libc::iovec { iov_base: bytes.as_ptr().cast_mut().cast(), iov_len: bytes.len() };
    let mut header: libc::msghdr = sys::zeroed();
    header.msg_name = to_name.as_ptr().cast_mut().cast();
    header.msg_namelen = to_name.len();
    header.msg_iov = &raw mut vector;
    header.msg_iovlen = 1;
    if let Some(from) = from {
        header.msg_control = ptr::from_mut(&mut control).cast();
        header.msg_controllen = size_of::<Control>() as _;
        // SAFETY: the control has room for a header and either structure, and outlives the call.
        header.msg_controllen = unsafe { write_control(&raw const header, to, from) } as _;
    }
    let fd = socket.as_fd().as_raw_fd();
    // SAFETY: the header points to a name, a buffer and a control with their lengths, all of which
    // outlive the call; sending does not write to them.
    sys::retry(|| unsafe { libc::sendmsg(fd, &raw const header, 0) })
}

/// Writes the control message for the source address, and gives its length.
///
/// # Safety
/// The header's control has room for it.
unsafe fn write_control(header: *const libc::msghdr, to: SocketAddr, from: IpAddr) -> u32 {
    // SAFETY: zeros are a value of both structures; CMSG_FIRSTHDR gives the start of the control,
    // which has room by the contract; what is behind the header need not be aligned.
    unsafe {
        let control = libc::CMSG_FIRSTHDR(header);
        let put = |level, kind, bytes: usize| {
            let bytes = bytes as u32;
            (*control).cmsg_level = level;
            (*control).cmsg_type = kind;
            (*control).cmsg_len = libc::CMSG_LEN(bytes) as _;
            libc::CMSG_SPACE(bytes)
        };
        match (to, from) {
            (SocketAddr::V4(_), IpAddr::V4(from)) => {
                let mut info: libc::in_pktinfo = MaybeUninit::zeroed().assume_init();
                info.ipi_spec_dst.s_addr = u32::from(from).to_be();
                libc::CMSG_DATA(control).cast::<libc::in_pktinfo>().write_unaligned(info);
                put(libc::IPPROTO_IP, libc::IP_PKTINFO, size_of::<libc::in_pktinfo>())
            }
            (SocketAddr::V6(to), from) => {
                let mut info: libc::in6_pktinfo = MaybeUninit::zeroed().assume_init();
                info.ipi6_addr.s6_addr = match from {
                    IpAddr::V4(from) => from.to_ipv6_mapped().octets(),
                    IpAddr::V6(from) => from.octets(),
                };
                info.ipi6_ifindex = to.scope_id() as _;
                libc::CMSG_DATA(control).cast::<libc::in6_pktinfo>().write_unaligned(info);
                put(libc::IPPROTO_IPV6, libc::IPV6_PKTINFO, size_of::<libc::in6_pktinfo>())
            }
            // An IPv4 socket has no IPv6 address.
            (SocketAddr::V4(_), IpAddr::V6(_)) => 0,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::UdpSocket;
    use std::time::Duration;

    #[test]
    fn answers_come_from_the_address_that_was_asked() {
        for (any, asked, ipv6) in [
            ("0.0.0.0:0", "127.0.0.9", false),
            ("[::]:0", "127.0.0.9", true),
            ("[::]:0", "::1", true),
        ] {
            let server = UdpSocket::bind(any).unwrap();
            record(&server, ipv6).unwrap();
            let asked: IpAddr = asked.parse().unwrap();
            let client = match asked {
                IpAddr::V4(_) => UdpSocket::bind("127.0.0.1:0"),
                IpAddr::V6(_) => UdpSocket::bind("[::1]:0"),
            };
            let client = client.unwrap();
            for socket in [&server, &client] {
                socket.set_read_timeout(Some(Duration::from_secs(5))).unwrap();
            }
            let port = server.local_addr().unwrap().port();
            client.send_to(b"ask", (asked, port)).unwrap();
            let mut buffer = [0; 10];
            let (length, from, local) = receive(&server, &mut buffer).unwrap();
            assert_eq!((&buffer[..length], local), (&b"ask"[..], Some(asked)));
            assert_eq!(from.port(), client.local_addr().unwrap().port());
            for (from_address, expected) in [(local, Some(asked)), (None, None)] {
                assert_eq!(send(&server, b"answer", from, from_address).unwrap(), 6);
                let (length, answered_by) = client.recv_from(&mut buffer).unwrap();
                assert_eq!(&buffer[..length], b"answer");
                assert!(expected.is_none_or(|expected| answered_by.ip() == expected));
            }
        }
    }
}
