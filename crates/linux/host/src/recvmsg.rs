//! Datagrams with their metadata: arrival time, hop limit, and ICMP errors.

use crate::{clock, sys};
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::os::fd::{AsFd, AsRawFd};
use std::time::Duration;

/// `struct icmp_filter` of linux/icmp.h: a set bit blocks that type.
const ICMP_FILTER: libc::c_int = 1;
/// `ICMPV6_FILTER` of linux/icmpv6.h.
const ICMPV6_FILTER: libc::c_int = 1;

/// A received datagram, or one of ours returned by an ICMP error.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Received {
    /// Its length in the buffer, bytes.
    pub length: usize,
    /// Hop limit on arrival (TTL of IPv4).
    pub ttl: Option<u8>,
    /// Time since its arrival in the kernel (`SO_TIMESTAMPNS`); zero if it has no
    /// timestamp.
    pub waited: Duration,
    /// The error; `None` for a received datagram.
    pub error: Option<ExtendedError>,
}

/// Why a datagram did not arrive (ip(7), `IP_RECVERR`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ExtendedError {
    /// Source of the ICMP error; `None` if it came from our own kernel.
    pub by: Option<IpAddr>,
    /// ICMP or ICMPv6 type; zero if from our own kernel.
    pub kind: u8,
    /// ICMP or ICMPv6 code.
    pub code: u8,
    /// The corresponding errno.
    pub errno: i32,
    /// Additional information: the MTU if the packet was too big.
    pub info: u32,
}

/// Enables arrival timestamps, hop limits and the error queue of a socket. If no
/// other socket uses timestamps, the kernel starts them a moment later.
///
/// # Errors
/// The system error if there is no error queue; timestamps and hop limits are optional.
pub fn prepare(socket: &impl AsFd, is_v6: bool) -> io::Result<()> {
    let _ = sys::set_option(socket, libc::SOL_SOCKET, libc::SO_TIMESTAMPNS, &1i32);
    if is_v6 {
        let _ = sys::set_option(socket, libc::IPPROTO_IPV6, libc::IPV6_RECVHOPLIMIT, &1i32);
        sys::set_option(socket, libc::IPPROTO_IPV6, libc::IPV6_RECVERR, &1i32)
    } else {
        let _ = sys::set_option(socket, libc::IPPROTO_IP, libc::IP_RECVTTL, &1i32);
        sys::set_option(socket, libc::IPPROTO_IP, libc::IP_RECVERR, &1i32)
    }
}

/// Makes a raw ICMP socket receive echo replies only (raw(7), RFC 3542 section 3.2).
///
/// # Errors
/// The system error: the socket is not raw.
pub fn only_echo_replies(socket: &impl AsFd, is_v6: bool) -> io::Result<()> {
    if is_v6 {
        // A set bit blocks that type; 129 is the echo reply.
        let mut filter = [u32::MAX; 8];
        filter[129 / 32] &= !(1 << (129 % 32));
        sys::set_option(socket, libc::IPPROTO_ICMPV6, ICMPV6_FILTER, &filter)
    } else {
        // Type 0 is the echo reply.
        sys::set_option(socket, libc::SOL_RAW, ICMP_FILTER, &!1u32)
    }
}

/// Makes a raw ICMP socket receive "time exceeded" only (RFC 792; RFC 4443 section 3.3).
///
/// # Errors
/// The system error: the socket is not raw.
pub fn only_time_exceeded(socket: &impl AsFd, is_v6: bool) -> io::Result<()> {
    if is_v6 {
        let mut filter = [u32::MAX; 8];
        filter[0] &= !(1 << 3);
        sys::set_option(socket, libc::IPPROTO_ICMPV6, ICMPV6_FILTER, &filter)
    } else {
        sys::set_option(socket, libc::SOL_RAW, ICMP_FILTER, &!(1u32 << 11))
    }
}

/// Receives the next datagram; `None` if there is none.
///
/// # Errors
/// The system error. An ICMP error may be reported here once, too; its details
/// are in [`take_error`].
pub fn take(socket: &impl AsFd, buffer: &mut [u8]) -> io::Result<Option<Received>> {
    receive(socket, buffer, 0)
}

/// Takes the next error off the socket's error queue, with the payload of our
/// datagram that it quotes (for ICMP sockets including the ICMP header); `None`
/// if there is none.
///
/// # Errors
/// The system error.
pub fn take_error(socket: &impl AsFd, buffer: &mut [u8]) -> io::Result<Option<Received>> {
    let received = receive(socket, buffer, libc::MSG_ERRQUEUE)?;
    Ok(received.filter(|received| received.error.is_some()))
}

/// Starts connecting; the socket becomes writable when that has succeeded or failed.
///
/// # Errors
/// The system error; `EINPROGRESS` is not an error.
pub fn begin_connect(socket: &socket2::Socket, to: SocketAddr) -> io::Result<()> {
    socket.set_nonblocking(true)?;
    match socket.connect(&to.into()) {
        Err(error) if error.raw_os_error() == Some(libc::EINPROGRESS) => Ok(()),
        result => result,
    }
}

/// Buffer for the control messages of one datagram: timestamp, hop limit and an
/// error with its source address take 200 bytes. Aligned as the headers require.
#[repr(C, align(8))]
struct Control([u8; 512]);

fn receive(
    socket: &impl AsFd,
    buffer: &mut [u8],
    flags: libc::c_int,
) -> io::Result<Option<Received>> {
    let mut control = Control([0; 512]);
    let mut piece = libc::iovec { iov_base: buffer.as_mut_ptr().cast(), iov_len: buffer.len() };
    // No name, no pieces, no control.
    let mut message: libc::msghdr = sys::zeroed();
    message.msg_iov = &raw mut piece;
    message.msg_iovlen = 1;
    message.msg_control = control.0.as_mut_ptr().cast();
    message.msg_controllen = control.0.len();
    let flags = flags | libc::MSG_DONTWAIT;
    let fd = socket.as_fd().as_raw_fd();
    // SAFETY: the message points to a buffer and a control block that live
    // across the call, with their lengths.
    let length = match sys::retry(|| unsafe { libc::recvmsg(fd, &raw mut message, flags) }) {
        Ok(length) => length,
        Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(None),
        Err(error) => return Err(error),
    };
    let mut received = Received { length, ttl: None, waited: Duration::ZERO, error: None };
    // SAFETY: the kernel filled the control block and set its length; the macros
    // stay within it. Payloads are read unaligned after their length was checked.
    unsafe {
        let mut header = libc::CMSG_FIRSTHDR(&raw const message);
        while !header.is_null() {
            let data = libc::CMSG_DATA(header);
            let room = (*header).cmsg_len.saturating_sub(data.addr() - header.addr());
            received.parse_control((*header).cmsg_level, (*header).cmsg_type, data, room);
            header = libc::CMSG_NXTHDR(&raw const message, header);
        }
    }
    Ok(Some(received))
}

impl Received {
    /// # Safety
    /// `data` points to `room` readable bytes.
    pub(crate) unsafe fn parse_control(
        &mut self,
        level: libc::c_int,
        kind: libc::c_int,
        data: *const u8,
        room: usize,
    ) {
        let holds = |wanted: usize| room >= wanted;
        match (level, kind) {
            (libc::SOL_SOCKET, libc::SCM_TIMESTAMPNS) if holds(size_of::<libc::timespec>()) => {
                // SAFETY: there is room for one; any bits are a valid timespec.
                let stamp: libc::timespec =
                    unsafe { data.cast::<libc::timespec>().read_unaligned() };
                self.waited = waited(&stamp);
            }
            (libc::IPPROTO_IP, libc::IP_TTL) | (libc::IPPROTO_IPV6, libc::IPV6_HOPLIMIT)
                if holds(size_of::<libc::c_int>()) =>
            {
                // SAFETY: there is room for one int.
                let ttl = unsafe { data.cast::<libc::c_int>().read_unaligned() };
                self.ttl = u8::try_from(ttl).ok();
            }
            (libc::IPPROTO_IP, libc::IP_RECVERR) | (libc::IPPROTO_IPV6, libc::IPV6_RECVERR)
                if holds(size_of::<libc::sock_extended_err>()) =>
            {
                // SAFETY: there is room for one; any bits are valid in it.
                let error: libc::sock_extended_err =
                    unsafe { data.cast::<libc::sock_extended_err>().read_unaligned() };
                let after = size_of::<libc::sock_extended_err>();
                let from_network =
                    matches!(error.ee_origin, libc::SO_EE_ORIGIN_ICMP | libc::SO_EE_ORIGIN_ICMP6);
                self.error = Some(ExtendedError {
                    // SAFETY: the kernel puts the source's address behind the
                    // error; the remaining length is passed along.
                    by: if from_network {
                        unsafe { address(data.add(after), room - after) }
                    } else {
                        None
                    },
                    kind: if from_network { error.ee_type } else { 0 },
                    code: if from_network { error.ee_code } else { 0 },
                    errno: error.ee_errno.cast_signed(),
                    info: error.ee_info,
                });
            }
            _ => {}
        }
    }
}

/// The IP address of a `sockaddr_in` or `sockaddr_in6`.
///
/// # Safety
/// `data` points to `room` readable bytes.
unsafe fn address(data: *const u8, room: usize) -> Option<IpAddr> {
    if room < size_of::<libc::sa_family_t>() {
        return None;
    }
    // SAFETY: each read is of a plain structure for which there is room.
    unsafe {
        match libc::c_int::from(data.cast::<libc::sa_family_t>().read_unaligned()) {
            libc::AF_INET if room >= size_of::<libc::sockaddr_in>() => {
                let name = data.cast::<libc::sockaddr_in>().read_unaligned();
                Some(IpAddr::from(name.sin_addr.s_addr.to_ne_bytes()))
            }
            libc::AF_INET6 if room >= size_of::<libc::sockaddr_in6>() => {
                let name = data.cast::<libc::sockaddr_in6>().read_unaligned();
                Some(IpAddr::from(name.sin6_addr.s6_addr))
            }
            _ => None,
        }
    }
}

/// Time since a timestamp; zero if the clock was set back in between, or if the
/// result is longer than any timeout, as then the clock was set forward.
fn waited(stamp: &libc::timespec) -> Duration {
    const MAX: Duration = Duration::from_secs(60);
    let seconds = u64::try_from(stamp.tv_sec).unwrap_or_default();
    let nanos = u32::try_from(stamp.tv_nsec).unwrap_or_default().min(999_999_999);
    let since = clock::unix_time().checked_sub(Duration::new(seconds, nanos));
    since.filter(|since| *since < MAX).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wait;
    use std::net::UdpSocket;

    const LONG: Option<Duration> = Some(Duration::from_secs(10));

    fn each_family(test: impl Fn(&str, bool)) {
        test("127.0.0.1:0", false);
        // The host may have no IPv6.
        if UdpSocket::bind("[::1]:0").is_ok() {
            test("[::1]:0", true);
        }
    }

    #[test]
    fn a_datagram_has_its_hop_limit_and_age() {
        each_family(|address, is_v6| {
            let here = UdpSocket::bind(address).unwrap();
            prepare(&here, is_v6).unwrap();
            let there = UdpSocket::bind(address).unwrap();
            let mut buffer = [0; 64];
            assert_eq!(take(&here, &mut buffer).unwrap(), None);
            // The kernel enables timestamps asynchronously, and until then returns the
            // time of reading.
            let late = (0..100).find(|_| {
                there.send_to(b"abc", here.local_addr().unwrap()).unwrap();
                std::thread::sleep(Duration::from_millis(20));
                let received = take(&here, &mut buffer).unwrap().unwrap();
                assert_eq!((received.length, &buffer[..3]), (3, &b"abc"[..]));
                assert_eq!((received.ttl, received.error), (Some(64), None));
                received.waited >= Duration::from_millis(19)
            });
            assert!(late.is_some(), "never stamped");
        });
    }

    #[test]
    fn a_closed_port_is_reported_with_the_datagram() {
        each_family(|address, is_v6| {
            let closed = UdpSocket::bind(address).unwrap().local_addr().unwrap();
            let here = UdpSocket::bind(address).unwrap();
            prepare(&here, is_v6).unwrap();
            here.connect(closed).unwrap();
            here.send(b"token").unwrap();
            wait::readable([here.as_fd()], LONG).unwrap();
            let mut buffer = [0; 64];
            let received = take_error(&here, &mut buffer).unwrap().unwrap();
            let error = received.error.unwrap();
            assert_eq!(&buffer[..received.length], b"token");
            assert_eq!(error.by, Some(closed.ip()));
            // Port unreachable: RFC 792, and RFC 4443 section 3.1.
            assert_eq!((error.kind, error.code), if is_v6 { (1, 4) } else { (3, 3) });
            assert_eq!(error.errno, libc::ECONNREFUSED);
            assert_eq!(take_error(&here, &mut buffer).unwrap(), None);
        });
    }

    #[test]
    fn a_clock_change_is_no_age() {
        let at = |seconds: u64| libc::timespec {
            tv_sec: libc::time_t::try_from(seconds).unwrap(),
            tv_nsec: 0,
        };
        let now = clock::unix_seconds();
        assert_eq!(waited(&at(now + 100)), Duration::ZERO);
        assert_eq!(waited(&at(now - 100)), Duration::ZERO);
        let wait = waited(&at(now - 2));
        assert!((Duration::from_secs(2)..Duration::from_secs(20)).contains(&wait), "{wait:?}");
    }
}
