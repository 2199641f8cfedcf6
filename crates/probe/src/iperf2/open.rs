//! Opening sockets and giving them what was asked.

use super::error::Iperf2Error;
use super::event::TcpFacts;
use crate::StopFlag;
use host::tcp_info::{self, TcpInfo};
use socket2::{Domain, Protocol, SockRef, Socket, Type};
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener, TcpStream};
use std::net::{ToSocketAddrs, UdpSocket};
use std::os::fd::AsFd;
use std::{sync::mpsc, thread, time::Duration};

/// How long a connection may take.
const PATIENCE: Duration = Duration::from_secs(10);

/// What sockets are given, at either end.
#[derive(Debug, Clone, Default)]
pub struct Options {
    /// Socket buffers in bytes, both (`-w`).
    pub window: Option<u64>,
    /// Largest segment, bytes (`-M`).
    pub mss: Option<u32>,
    /// No Nagle's algorithm (`-N`).
    pub nodelay: bool,
    /// Congestion control by its name in the kernel (`-Z`).
    pub congestion: Option<String>,
    /// The byte of the IP header (`-S`).
    pub tos: Option<u8>,
}

impl Options {
    pub(crate) fn give(&self, socket: &Socket, v6: bool, tcp: bool) -> Result<(), Iperf2Error> {
        let set = |option, done: io::Result<()>| {
            done.map_err(|error| Iperf2Error::Option { option, reason: error.to_string() })
        };
        if let Some(window) = self.window {
            // The kernel's own ceiling is half of a 32-bit integer.
            let bytes = usize::try_from(window).unwrap_or(usize::MAX).min(1 << 30);
            set("-w", socket.set_send_buffer_size(bytes))?;
            set("-w", socket.set_recv_buffer_size(bytes))?;
        }
        if let Some(tos) = self.tos {
            let tos = u32::from(tos);
            if v6 {
                set("-S", socket.set_tclass_v6(tos))?;
            }
            // A socket for both versions carries IPv4 too; one for IPv6 alone refuses.
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

/// Looks a name up; the addresses that fit, at least one. In a thread of its
/// own: the resolver cannot be interrupted.
pub(crate) fn resolve(
    host: &str,
    port: u16,
    v6: Option<bool>,
    stop: &StopFlag,
) -> Result<Vec<SocketAddr>, Iperf2Error> {
    let failed = |reason: String| Iperf2Error::Resolve { host: host.to_owned(), reason };
    let name = host.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')).unwrap_or(host);
    let name = name.to_owned();
    let (tell, told) = mpsc::channel();
    let work = move || {
        let found = (name.as_str(), port).to_socket_addrs().map(Iterator::collect::<Vec<_>>);
        let _ = tell.send(found);
    };
    let started = thread::Builder::new().name("resolve".to_owned()).spawn(work);
    started.map_err(|error| failed(error.to_string()))?;
    let found = loop {
        match told.recv_timeout(Duration::from_millis(50)) {
            Ok(found) => break found.map_err(|error| failed(error.to_string()))?,
            Err(mpsc::RecvTimeoutError::Timeout) if !stop.is_raised() => {}
            Err(_) => return Err(Iperf2Error::Interrupted),
        }
    };
    let fits = |address: &SocketAddr| v6.is_none_or(|v6| address.is_ipv6() == v6);
    let fitting: Vec<_> = found.into_iter().filter(fits).collect();
    if fitting.is_empty() {
        let version = if v6 == Some(true) { "IPv6" } else { "IPv4" };
        return Err(failed(format!("it has no {version} address")));
    }
    Ok(fitting)
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
    options.give(&socket, peer.is_ipv6(), true)?;
    bind_to(&socket, bind)?;
    socket.connect_timeout(&peer.into(), PATIENCE).map_err(failed)?;
    Ok(socket.into())
}

/// Opens a UDP socket that speaks with one peer.
pub(crate) fn dial(
    peer: SocketAddr,
    bind: Option<SocketAddr>,
    options: &Options,
) -> Result<UdpSocket, Iperf2Error> {
    let failed = |source| Iperf2Error::Connect { peer, source };
    let socket =
        Socket::new(Domain::for_address(peer), Type::DGRAM, Some(Protocol::UDP)).map_err(failed)?;
    options.give(&socket, peer.is_ipv6(), false)?;
    bind_to(&socket, bind)?;
    socket.connect(&peer.into()).map_err(failed)?;
    Ok(socket.into())
}

fn bind_to(socket: &Socket, bind: Option<SocketAddr>) -> Result<(), Iperf2Error> {
    let Some(address) = bind else { return Ok(()) };
    socket.bind(&address.into()).map_err(|source| Iperf2Error::Bind { address, source })
}

/// A socket on a port: on `bind`, or on all addresses of both versions.
fn on_port(
    bind: Option<IpAddr>,
    port: u16,
    kind: Type,
    options: &Options,
) -> Result<(Socket, SocketAddr), Iperf2Error> {
    let open = |ip: IpAddr, both: bool| {
        let address = SocketAddr::new(ip, port);
        let failed = |source| Iperf2Error::Bind { address, source };
        let socket = Socket::new(Domain::for_address(address), kind, None).map_err(failed)?;
        if both {
            socket.set_only_v6(false).map_err(failed)?;
        }
        let tcp = kind == Type::STREAM;
        if tcp {
            socket.set_reuse_address(true).map_err(failed)?;
        }
        options.give(&socket, ip.is_ipv6(), tcp)?;
        socket.bind(&address.into()).map_err(failed)?;
        Ok((socket, address))
    };
    match bind {
        Some(ip) => open(ip, false),
        // Where IPv6 is switched off, IPv4 alone.
        None => open(Ipv6Addr::UNSPECIFIED.into(), true)
            .or_else(|_: Iperf2Error| open(Ipv4Addr::UNSPECIFIED.into(), false)),
    }
}

pub(crate) fn listen(
    bind: Option<IpAddr>,
    port: u16,
    options: &Options,
) -> Result<TcpListener, Iperf2Error> {
    let (socket, address) = on_port(bind, port, Type::STREAM, options)?;
    socket.listen(128).map_err(|source| Iperf2Error::Bind { address, source })?;
    Ok(socket.into())
}

pub(crate) fn listen_udp(
    bind: Option<IpAddr>,
    port: u16,
    options: &Options,
) -> Result<UdpSocket, Iperf2Error> {
    let (socket, _) = on_port(bind, port, Type::DGRAM, options)?;
    if options.window.is_none() {
        // The default of 208 KiB is 140 datagrams: a millisecond or two of a
        // gigabit. What the system does not allow it cuts without a word.
        let _ = socket.set_recv_buffer_size(4 << 20);
    }
    Ok(socket.into())
}

/// Both ends of a connection, IPv4 as IPv4 whatever the socket.
pub(crate) fn ends(stream: &TcpStream) -> io::Result<(SocketAddr, SocketAddr)> {
    Ok((plain(stream.local_addr()?), plain(stream.peer_addr()?)))
}

/// The address that datagrams of a socket on all addresses come from: the
/// kernel's choice on the route to `peer`. Nothing is sent.
pub(crate) fn local_towards(local: SocketAddr, peer: SocketAddr) -> SocketAddr {
    if !local.ip().is_unspecified() {
        return local;
    }
    let chosen = dial(plain(peer), None, &Options::default()).and_then(|socket| {
        socket.local_addr().map_err(|source| Iperf2Error::Connect { peer, source })
    });
    chosen.map_or(local, |chosen| SocketAddr::new(chosen.ip(), local.port()))
}

/// IPv4 as IPv4, whatever the socket.
pub(crate) fn plain(address: SocketAddr) -> SocketAddr {
    SocketAddr::new(address.ip().to_canonical(), address.port())
}

/// What the kernel says of a connection that was just made.
pub(crate) fn facts(stream: &TcpStream) -> Option<TcpFacts> {
    let info = TcpInfo::of(stream).ok()?;
    Some(TcpFacts {
        window_kib: u64::from(info.snd_cwnd) * u64::from(info.snd_mss) / 1024,
        mss: info.snd_mss,
        rtt_us: info.rtt_us,
    })
}

/// The buffer a socket got, bytes, as the kernel counts it.
pub(crate) fn buffer(socket: &impl AsFd, sending: bool) -> Option<u64> {
    let socket = SockRef::from(socket);
    let size = if sending { socket.send_buffer_size() } else { socket.recv_buffer_size() };
    u64::try_from(size.ok()?).ok()
}
