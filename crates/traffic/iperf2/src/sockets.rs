//! Opens sockets and sets their options.

use crate::error::Iperf2Error;
use crate::event::ConnectionInfo;
use host::address::{canonical, with_port};
use host::tcp_info::{self, TcpInfo};
use socket2::{Domain, Protocol, SockRef, Socket, Type};
use std::io;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::os::fd::AsFd;
use std::time::Duration;

/// Timeout of a connection attempt.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

/// Socket options of either endpoint.
#[derive(Debug, Clone, Default)]
pub struct Options {
    /// Size of both socket buffers, bytes (`-w`).
    pub window: Option<u64>,
    /// Maximum segment size, bytes (`-M`).
    pub mss: Option<u32>,
    /// Disable Nagle's algorithm (`-N`).
    pub nodelay: bool,
    /// Congestion control algorithm (`-Z`).
    pub congestion: Option<String>,
    /// TOS byte (`-S`).
    pub tos: Option<u8>,
}

impl Options {
    pub(crate) fn apply(&self, socket: &Socket, v6: bool, tcp: bool) -> Result<(), Iperf2Error> {
        let set = |option, done: io::Result<()>| {
            done.map_err(|error| Iperf2Error::Option { option, reason: error.to_string() })
        };
        if let Some(window) = self.window {
            // The kernel doubles the value in a signed 32-bit integer.
            let bytes = usize::try_from(window).unwrap_or(usize::MAX).min(1 << 30);
            set("-w", socket.set_send_buffer_size(bytes))?;
            set("-w", socket.set_recv_buffer_size(bytes))?;
        }
        if let Some(tos) = self.tos {
            let tos = u32::from(tos);
            if v6 {
                set("-S", socket.set_tclass_v6(tos))?;
            }
            // A dual-stack socket needs it for IPv4; an IPv6-only one refuses it.
            let four = socket.set_tos_v4(tos);
            set("-S", if v6 { Ok(()) } else { four })?;
        }
        if tcp {
            if let Some(mss) = self.mss {
                set("-M", socket.set_tcp_mss(mss))?;
            }
            set("-N", socket.set_tcp_nodelay(self.nodelay))?;
            if let Some(name) = &self.congestion {
                tcp_info::set_congestion(socket, name).map_err(|error| Iperf2Error::Option {
                    option: "-Z",
                    reason: error.to_string(),
                })?;
            }
        }
        Ok(())
    }
}

/// Opens a TCP connection.
pub(crate) fn connect(
    peer: SocketAddr,
    bind: Option<SocketAddr>,
    options: &Options,
) -> Result<TcpStream, Iperf2Error> {
    let failed = |source| Iperf2Error::Connect { peer, source };
    let socket = Socket::new(Domain::for_address(peer), Type::STREAM, Some(Protocol::TCP))
        .map_err(failed)?;
    options.apply(&socket, peer.is_ipv6(), true)?;
    bind_to(&socket, bind)?;
    socket.connect_timeout(&peer.into(), CONNECT_TIMEOUT).map_err(failed)?;
    Ok(socket.into())
}

/// Opens a UDP socket that is connected to a peer.
pub(crate) fn connect_udp(
    peer: SocketAddr,
    bind: Option<SocketAddr>,
    options: &Options,
) -> Result<UdpSocket, Iperf2Error> {
    let failed = |source| Iperf2Error::Connect { peer, source };
    let socket =
        Socket::new(Domain::for_address(peer), Type::DGRAM, Some(Protocol::UDP)).map_err(failed)?;
    options.apply(&socket, peer.is_ipv6(), false)?;
    bind_to(&socket, bind)?;
    socket.connect(&peer.into()).map_err(failed)?;
    Ok(socket.into())
}

fn bind_to(socket: &Socket, bind: Option<SocketAddr>) -> Result<(), Iperf2Error> {
    let Some(address) = bind else { return Ok(()) };
    socket.bind(&address.into()).map_err(|source| Iperf2Error::Bind { address, source })
}

/// Binds a socket to `bind`, or to all addresses of both IP versions.
fn bind_port(
    bind: Option<SocketAddr>,
    port: u16,
    kind: Type,
    options: &Options,
) -> Result<(Socket, SocketAddr), Iperf2Error> {
    let open = |ip: SocketAddr, both: bool| {
        let address = with_port(ip, port);
        let failed = |source| Iperf2Error::Bind { address, source };
        let socket = Socket::new(Domain::for_address(address), kind, None).map_err(failed)?;
        if both {
            socket.set_only_v6(false).map_err(failed)?;
        }
        let tcp = kind == Type::STREAM;
        // Several programs may receive what a group gets.
        if tcp || address.ip().is_multicast() {
            socket.set_reuse_address(true).map_err(failed)?;
        }
        options.apply(&socket, ip.is_ipv6(), tcp)?;
        socket.bind(&address.into()).map_err(failed)?;
        Ok((socket, address))
    };
    match bind {
        Some(address) => open(address, false),
        // Without IPv6, IPv4 only.
        None => open((Ipv6Addr::UNSPECIFIED, 0).into(), true)
            .or_else(|_: Iperf2Error| open((Ipv4Addr::UNSPECIFIED, 0).into(), false)),
    }
}

pub(crate) fn listen(
    bind: Option<SocketAddr>,
    port: u16,
    options: &Options,
) -> Result<TcpListener, Iperf2Error> {
    if let Some(group) = bind.filter(|bind| bind.ip().is_multicast()) {
        return Err(Iperf2Error::Usage(format!("{} is a multicast group: add -u", group.ip())));
    }
    let (socket, address) = bind_port(bind, port, Type::STREAM, options)?;
    socket.listen(128).map_err(|source| Iperf2Error::Bind { address, source })?;
    Ok(socket.into())
}

pub(crate) fn listen_udp(
    bind: Option<SocketAddr>,
    port: u16,
    options: &Options,
) -> Result<UdpSocket, Iperf2Error> {
    let (socket, address) = bind_port(bind, port, Type::DGRAM, options)?;
    join(&socket, address).map_err(|source| Iperf2Error::Group { group: address.ip(), source })?;
    if options.window.is_none() {
        // The default of 208 KiB holds 140 datagrams: 1 to 2 ms at 1 Gbit/s. The kernel
        // caps the value silently.
        let _ = socket.set_recv_buffer_size(4 << 20);
    }
    Ok(socket.into())
}

/// Joins the group that a socket is bound to, if it is one.
fn join(socket: &Socket, address: SocketAddr) -> io::Result<()> {
    match address {
        SocketAddr::V4(v4) if v4.ip().is_multicast() => {
            socket.join_multicast_v4(v4.ip(), &Ipv4Addr::UNSPECIFIED)
        }
        SocketAddr::V6(v6) if v6.ip().is_multicast() => {
            socket.join_multicast_v6(v6.ip(), v6.scope_id())
        }
        _ => Ok(()),
    }
}

/// Local and remote address of a connection; IPv4-mapped ones as IPv4.
pub(crate) fn ends(stream: &TcpStream) -> io::Result<(SocketAddr, SocketAddr)> {
    Ok((canonical(stream.local_addr()?), canonical(stream.peer_addr()?)))
}

/// The source address of datagrams to `peer` from a wildcard socket: the kernel's choice.
/// Sends nothing.
pub(crate) fn local_towards(local: SocketAddr, peer: SocketAddr) -> SocketAddr {
    if !local.ip().is_unspecified() {
        return local;
    }
    let chosen = connect_udp(canonical(peer), None, &Options::default()).and_then(|socket| {
        socket.local_addr().map_err(|source| Iperf2Error::Connect { peer, source })
    });
    chosen.map_or(local, |chosen| with_port(chosen, local.port()))
}

/// The `TCP_INFO` of a new connection.
pub(crate) fn connection_info(stream: &TcpStream) -> Option<ConnectionInfo> {
    let info = TcpInfo::of(stream).ok()?;
    Some(ConnectionInfo {
        window_kib: u64::from(info.snd_cwnd) * u64::from(info.snd_mss) / 1024,
        mss: info.snd_mss,
        rtt_us: info.rtt_us,
    })
}

/// The buffer size of a socket, bytes, as the kernel counts it.
pub(crate) fn buffer(socket: &impl AsFd, sending: bool) -> Option<u64> {
    let socket = SockRef::from(socket);
    let size = if sending { socket.send_buffer_size() } else { socket.recv_buffer_size() };
    u64::try_from(size.ok()?).ok()
}
