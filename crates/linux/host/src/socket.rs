//! Socket options that common libraries lack.

use crate::sys;
use std::io;
use std::net::{Ipv6Addr, SocketAddrV6};
use std::os::fd::AsFd;
use units::{BitRate, ByteCount};

/// Largest buffer size to ask for: the kernel doubles the value in an `i32`.
const MAX_BUFFER: u64 = i32::MAX as u64 / 2;

/// Limits the sending rate: enforced by the `fq` queueing discipline if in use,
/// otherwise by TCP's own pacing; UDP is paced by `fq` only (socket(7),
/// `SO_MAX_PACING_RATE`).
///
/// # Errors
/// The system error.
pub fn set_max_pacing_rate(socket: &impl AsFd, rate: BitRate) -> io::Result<()> {
    sys::set_option(socket, libc::SOL_SOCKET, libc::SO_MAX_PACING_RATE, &(rate.bps() / 8))
}

/// Sets the receive buffer, with `CAP_NET_ADMIN` also above `net.core.rmem_max`
/// (socket(7), `SO_RCVBUFFORCE`).
///
/// # Errors
/// The system error.
pub fn set_receive_buffer(socket: &impl AsFd, bytes: ByteCount) -> io::Result<()> {
    let value = libc::c_int::try_from(bytes.bytes().min(MAX_BUFFER)).unwrap_or(libc::c_int::MAX);
    sys::set_option(socket, libc::SOL_SOCKET, libc::SO_RCVBUFFORCE, &value)
        .or_else(|_| sys::set_option(socket, libc::SOL_SOCKET, libc::SO_RCVBUF, &value))
}

/// Sets the send buffer, which ends the kernel's autotuning; with `CAP_NET_ADMIN` in the first user
/// namespace also above `net.core.wmem_max` (socket(7), `SO_SNDBUFFORCE`). Returns the bytes that the
/// kernel grants: it counts twice as many, for its overhead.
///
/// # Errors
/// The system error.
pub fn set_send_buffer(socket: &impl AsFd, bytes: ByteCount) -> io::Result<ByteCount> {
    let value = libc::c_int::try_from(bytes.bytes().min(MAX_BUFFER)).unwrap_or(libc::c_int::MAX);
    sys::set_option(socket, libc::SOL_SOCKET, libc::SO_SNDBUFFORCE, &value)
        .or_else(|_| sys::set_option(socket, libc::SOL_SOCKET, libc::SO_SNDBUF, &value))?;
    let counted = sys::int_option(socket, libc::SOL_SOCKET, libc::SO_SNDBUF)?;
    Ok(ByteCount::from_bytes(u64::try_from(counted).unwrap_or_default() / 2))
}

/// Bytes of the receive buffer without the kernel's overhead, which is counted twice as large.
///
/// # Errors
/// The system error.
pub fn receive_buffer(socket: &impl AsFd) -> io::Result<ByteCount> {
    let counted = sys::int_option(socket, libc::SOL_SOCKET, libc::SO_RCVBUF)?;
    Ok(ByteCount::from_bytes(u64::try_from(counted).unwrap_or_default() / 2))
}

/// Sets whether closing the socket aborts its connection (RST, unsent data discarded) instead of
/// ending it (FIN), also where the kernel closes it because its process was killed (socket(7),
/// `SO_LINGER` of zero seconds). A listener's connections inherit it.
///
/// # Errors
/// The system error.
pub fn set_reset_on_close(socket: &impl AsFd, resets: bool) -> io::Result<()> {
    let linger = libc::linger { l_onoff: libc::c_int::from(resets), l_linger: 0 };
    sys::set_option(socket, libc::SOL_SOCKET, libc::SO_LINGER, &linger)
}

/// Sets how many bytes make a socket readable (socket(7), `SO_RCVLOWAT`). TCP limits it to half
/// of the receive buffer, and wakes the reader earlier where no more can arrive.
///
/// # Errors
/// The system error.
pub fn set_receive_low_water_mark(socket: &impl AsFd, bytes: usize) -> io::Result<()> {
    let value = libc::c_int::try_from(bytes).unwrap_or(libc::c_int::MAX);
    sys::set_option(socket, libc::SOL_SOCKET, libc::SO_RCVLOWAT, &value)
}

/// Sets how many bytes a program may have written that are not sent yet (tcp(7),
/// `TCP_NOTSENT_LOWAT`); `None` for the system's default, usually no limit.
///
/// # Errors
/// The system error.
pub fn set_unsent_limit(socket: &impl AsFd, bytes: Option<ByteCount>) -> io::Result<()> {
    let bytes = bytes.map_or(0, ByteCount::bytes).min(MAX_BUFFER);
    let value = libc::c_int::try_from(bytes).unwrap_or(libc::c_int::MAX);
    sys::set_option(socket, libc::IPPROTO_TCP, libc::TCP_NOTSENT_LOWAT, &value)
}

/// Sets whether packets carry DF and are refused if larger than the path MTU
/// (ip(7), `IP_MTU_DISCOVER`; RFC 1191).
///
/// # Errors
/// The system error.
pub fn set_dont_fragment(socket: &impl AsFd, ipv6: bool, refuse: bool) -> io::Result<()> {
    if ipv6 {
        let how = if refuse { libc::IPV6_PMTUDISC_DO } else { libc::IPV6_PMTUDISC_DONT };
        sys::set_option(socket, libc::IPPROTO_IPV6, libc::IPV6_MTU_DISCOVER, &how)
    } else {
        let how = if refuse { libc::IP_PMTUDISC_DO } else { libc::IP_PMTUDISC_DONT };
        sys::set_option(socket, libc::IPPROTO_IP, libc::IP_MTU_DISCOVER, &how)
    }
}

/// The MTU of a connected socket's route in bytes: the device's, or a smaller one that a router has
/// reported (ip(7), `IP_MTU`).
///
/// # Errors
/// The system error; `ENOTCONN` if the socket is not connected.
pub fn route_mtu(socket: &impl AsFd, ipv6: bool) -> io::Result<u32> {
    let mtu = if ipv6 {
        sys::int_option(socket, libc::IPPROTO_IPV6, libc::IPV6_MTU)
    } else {
        sys::int_option(socket, libc::IPPROTO_IP, libc::IP_MTU)
    };
    u32::try_from(mtu?).map_err(|_| io::ErrorKind::InvalidData.into())
}

/// Sends packets up to the device's MTU unfragmented, regardless of the path MTU
/// known to the kernel (ip(7), `IP_PMTUDISC_PROBE`).
///
/// # Errors
/// The system error.
pub fn set_mtu_probing(socket: &impl AsFd, ipv6: bool) -> io::Result<()> {
    if ipv6 {
        let how = libc::IPV6_PMTUDISC_PROBE;
        sys::set_option(socket, libc::IPPROTO_IPV6, libc::IPV6_MTU_DISCOVER, &how)
    } else {
        let how = libc::IP_PMTUDISC_PROBE;
        sys::set_option(socket, libc::IPPROTO_IP, libc::IP_MTU_DISCOVER, &how)
    }
}

/// `struct in6_flowlabel_req` of `include/uapi/linux/in6.h`.
#[repr(C)]
#[derive(Clone, Copy)]
struct FlowLabelRequest {
    destination: [u8; 16],
    label: u32,
    action: u8,
    share: u8,
    flags: u16,
    expires: u16,
    linger: u16,
    pad: u32,
}

const IPV6_FLOWLABEL_MGR: libc::c_int = 32;
const IPV6_FLOWINFO_SEND: libc::c_int = 33;
const FL_A_GET: u8 = 0;
const FL_F_CREATE: u16 = 1;
const FL_S_EXCL: u8 = 1;

/// Sets the flow label of packets to `peer` (RFC 6437). Returns the address to
/// connect to, which carries the label.
///
/// # Errors
/// The system error; `InvalidInput` for a label of more than 20 bits.
pub fn set_flow_label(
    socket: &impl AsFd,
    peer: SocketAddrV6,
    label: u32,
) -> io::Result<SocketAddrV6> {
    if label == 0 || label > 0xf_ffff {
        return Err(io::Error::from(io::ErrorKind::InvalidInput));
    }
    let destination: Ipv6Addr = *peer.ip();
    let request = FlowLabelRequest {
        destination: destination.octets(),
        label: label.to_be(),
        action: FL_A_GET,
        share: FL_S_EXCL,
        flags: FL_F_CREATE,
        expires: 0,
        linger: 0,
        pad: 0,
    };
    sys::set_option(socket, libc::IPPROTO_IPV6, IPV6_FLOWLABEL_MGR, &request)?;
    let on: libc::c_int = 1;
    sys::set_option(socket, libc::IPPROTO_IPV6, IPV6_FLOWINFO_SEND, &on)?;
    Ok(SocketAddrV6::new(destination, peer.port(), label.to_be(), peer.scope_id()))
}

/// Whether a socket lacks an option, as those of MPTCP do some of TCP's.
#[must_use]
pub fn is_not_offered(error: &io::Error) -> bool {
    matches!(error.raw_os_error(), Some(libc::ENOPROTOOPT | libc::EOPNOTSUPP))
}

/// Whether a call failed because descriptors or memory have run out (accept(2)):
/// an immediate retry would fail too.
#[must_use]
pub fn is_exhausted(error: &io::Error) -> bool {
    matches!(error.raw_os_error(), Some(libc::EMFILE | libc::ENFILE | libc::ENOBUFS | libc::ENOMEM))
}

#[cfg(test)]
mod tests {
    use super::*;
    use socket2::{Domain, Socket, Type};
    use std::net::UdpSocket;

    #[test]
    fn options_can_be_set() {
        let tcp = Socket::new(Domain::IPV4, Type::STREAM, None).unwrap();
        set_max_pacing_rate(&tcp, BitRate::from_bps(8_000_000)).unwrap();
        set_unsent_limit(&tcp, Some(ByteCount::from_bytes(131_072))).unwrap();
        set_unsent_limit(&tcp, None).unwrap();
        let size = ByteCount::from_bytes(65_536);
        assert_eq!(set_send_buffer(&tcp, size).unwrap(), size);
        set_receive_buffer(&tcp, size).unwrap();
        assert_eq!(receive_buffer(&tcp).unwrap(), size);
        set_reset_on_close(&tcp, true).unwrap();
        set_reset_on_close(&tcp, false).unwrap();
        let udp = UdpSocket::bind("127.0.0.1:0").unwrap();
        set_receive_buffer(&udp, ByteCount::from_bytes(300_000)).unwrap();
        set_receive_buffer(&udp, ByteCount::from_bytes(u64::MAX)).unwrap();
        set_dont_fragment(&udp, false, true).unwrap();
        set_mtu_probing(&udp, false).unwrap();
    }

    #[test]
    fn labels_have_twenty_bits() {
        let socket = Socket::new(Domain::IPV6, Type::STREAM, None).unwrap();
        let peer = SocketAddrV6::new(Ipv6Addr::LOCALHOST, 1, 0, 0);
        for label in [0, 0x10_0000] {
            let error = set_flow_label(&socket, peer, label).unwrap_err();
            assert_eq!(error.kind(), io::ErrorKind::InvalidInput);
        }
        let labelled = set_flow_label(&socket, peer, 0x12345).unwrap();
        assert_eq!(labelled.flowinfo(), 0x12345u32.to_be());
    }
}
