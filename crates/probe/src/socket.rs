//! Opening connections and giving them what was asked: window, congestion
//! control, local address.

use crate::{ProbeError, StopFlag, extra::Who};
use host::clock;
use socket2::{Domain, Protocol, Socket, Type};
use std::{
    io,
    net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpStream, ToSocketAddrs},
    sync::mpsc,
    thread,
    time::Duration,
};
use units::ByteCount;

/// Which IP version to use.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Family {
    /// Whatever the name resolves to, in the resolver's order.
    #[default]
    Any,
    /// IPv4 only (`-4`).
    V4,
    /// IPv6 only (`-6`).
    V6,
}

/// The largest socket buffer that can be asked: TCP cannot express a larger
/// window (RFC 7323 section 2.3: scale at most 14, so 2^30 bytes).
pub(crate) const MAX_WINDOW: ByteCount = ByteCount::from_bytes(1 << 30);

/// Where a connection is made from, and as what.
#[derive(Debug, Clone, Default)]
pub(crate) struct Way {
    /// Local address.
    pub(crate) bind: Option<IpAddr>,
    /// Local port; zero lets the kernel choose.
    pub(crate) port: u16,
    /// Interface.
    pub(crate) device: Option<String>,
    /// Whether it is Multipath TCP.
    pub(crate) mptcp: bool,
}

/// Resolves a name and connects to the first address that answers. Runs in a
/// thread of its own: neither the resolver nor `connect` can be interrupted.
pub(crate) fn connect_by_name(
    host: &str,
    port: u16,
    family: Family,
    way: &Way,
    patience: Duration,
    stop: &StopFlag,
) -> Result<(TcpStream, SocketAddr), ProbeError> {
    let (tell, told) = mpsc::channel();
    let (name, way) = (host.to_owned(), way.clone());
    let work = move || {
        let list = resolve(&name, port, family, way.bind);
        let _ = tell.send(list.and_then(|list| try_all(&list, &way, patience)));
    };
    thread::Builder::new().name("connect".to_owned()).spawn(work).map_err(|error| {
        ProbeError::Resolve { host: host.to_owned(), reason: error.to_string() }
    })?;
    loop {
        match told.recv_timeout(Duration::from_millis(50)) {
            Ok(result) => return result,
            Err(mpsc::RecvTimeoutError::Timeout) if stop.is_raised() => {
                return Err(ProbeError::Interrupted);
            }
            Err(mpsc::RecvTimeoutError::Timeout) => {}
            Err(mpsc::RecvTimeoutError::Disconnected) => return Err(ProbeError::Interrupted),
        }
    }
}

fn resolve(
    host: &str,
    port: u16,
    family: Family,
    bind: Option<IpAddr>,
) -> Result<Vec<SocketAddr>, ProbeError> {
    let failed = |reason: String| ProbeError::Resolve { host: host.to_owned(), reason };
    let wanted = |address: &SocketAddr| {
        let family = match family {
            Family::Any => true,
            Family::V4 => address.is_ipv4(),
            Family::V6 => address.is_ipv6(),
        };
        family && bind.is_none_or(|bind| bind.is_ipv4() == address.is_ipv4())
    };
    // Brackets are how an IPv6 address is written beside a port.
    let name = host.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')).unwrap_or(host);
    let found = (name, port).to_socket_addrs().map_err(|error| failed(error.to_string()))?;
    let mut addresses: Vec<SocketAddr> = found.filter(wanted).collect();
    addresses.dedup();
    if addresses.is_empty() {
        let kind = match (family, bind) {
            (Family::V4, _) | (_, Some(IpAddr::V4(_))) => "it has no IPv4 address",
            (Family::V6, _) | (_, Some(IpAddr::V6(_))) => "it has no IPv6 address",
            _ => "it has no address",
        };
        return Err(failed(kind.to_owned()));
    }
    Ok(addresses)
}

fn try_all(
    addresses: &[SocketAddr],
    way: &Way,
    patience: Duration,
) -> Result<(TcpStream, SocketAddr), ProbeError> {
    let until = clock::now() + patience;
    let mut first_error = None;
    for (at, &address) in addresses.iter().enumerate() {
        let left = until.saturating_duration_since(clock::now());
        // A dead address gets half of the time that is left, the last one all of it.
        let share = if at + 1 == addresses.len() { left } else { left / 2 };
        match connect(address, way, share.max(Duration::from_millis(10)), |_| Ok(address)) {
            Ok(socket) => return Ok((socket.into(), address)),
            Err(error) => first_error = first_error.or(Some(error)),
        }
    }
    Err(first_error.unwrap_or(ProbeError::Interrupted))
}

/// Connects to one address; `prepare` sets options that must stand before, and
/// gives the address, which may carry a flow label.
pub(crate) fn connect(
    address: SocketAddr,
    way: &Way,
    patience: Duration,
    prepare: impl FnOnce(&Socket) -> Result<SocketAddr, ProbeError>,
) -> Result<Socket, ProbeError> {
    let failed =
        |source: io::Error| ProbeError::Connect { address, remedy: remedy_for(&source), source };
    let protocol = if way.mptcp { Protocol::MPTCP } else { Protocol::TCP };
    let socket =
        Socket::new(Domain::for_address(address), Type::STREAM, Some(protocol)).map_err(failed)?;
    bind_to(&socket, address, way)?;
    let address = prepare(&socket)?;
    socket.connect_timeout(&address.into(), patience).map_err(failed)?;
    Ok(socket)
}

/// Gives a socket its local end.
pub(crate) fn bind_to(socket: &Socket, peer: SocketAddr, way: &Way) -> Result<(), ProbeError> {
    if let Some(device) = &way.device {
        socket
            .bind_device(Some(device.as_bytes()))
            .map_err(|source| ProbeError::Bind { address: device.clone(), source })?;
    }
    if way.bind.is_some() || way.port != 0 {
        let any = if peer.is_ipv4() {
            IpAddr::from(Ipv4Addr::UNSPECIFIED)
        } else {
            IpAddr::from(Ipv6Addr::UNSPECIFIED)
        };
        let local = SocketAddr::new(way.bind.unwrap_or(any), way.port);
        if way.port != 0 {
            // A port given by number is used again by the next test.
            let _ = socket.set_reuse_address(true);
        }
        socket
            .bind(&local.into())
            .map_err(|source| ProbeError::Bind { address: local.to_string(), source })?;
    }
    Ok(())
}

/// Sets the traffic class of what a socket sends.
pub(crate) fn set_tos(socket: &Socket, peer: SocketAddr, tos: u8) -> io::Result<()> {
    if peer.is_ipv4() || peer.ip().to_canonical().is_ipv4() {
        socket.set_tos_v4(tos.into())
    } else {
        socket.set_tclass_v6(tos.into())
    }
}

fn remedy_for(error: &io::Error) -> &'static str {
    match error.kind() {
        io::ErrorKind::ConnectionRefused => {
            "start a server there: longhaul server, or iperf3 -s, on that port"
        }
        io::ErrorKind::TimedOut | io::ErrorKind::WouldBlock => {
            "nothing answers: check the address, and firewalls for that port"
        }
        io::ErrorKind::NetworkUnreachable | io::ErrorKind::HostUnreachable => {
            "there is no route: check the address and 'ip route'"
        }
        _ => "check the address and the port",
    }
}

/// Sets both socket buffers, as `-w` does.
pub(crate) fn set_window(socket: &Socket, window: ByteCount) -> io::Result<()> {
    let bytes = usize::try_from(window.bytes()).unwrap_or(usize::MAX);
    socket.set_send_buffer_size(bytes)?;
    socket.set_recv_buffer_size(bytes)
}

/// What the kernel made of a window, where that is less than was asked: it
/// doubles the value for its own overhead, and silently cuts it at
/// `net.core.wmem_max` or `rmem_max` first.
pub(crate) fn clamp_note(
    socket: &Socket,
    asked: ByteCount,
    sending: bool,
    end: Who,
) -> Option<String> {
    let (given, kind, sysctl) = if sending {
        (socket.send_buffer_size().ok()?, "send", "net.core.wmem_max")
    } else {
        (socket.recv_buffer_size().ok()?, "receive", "net.core.rmem_max")
    };
    let given = u64::try_from(given).ok()?;
    // The kernel's own ceiling is half of a 32-bit integer.
    let wanted = asked.bytes().min(i32::MAX as u64 / 2).saturating_mul(2);
    (given < wanted).then(|| {
        format!(
            "the {end}'s kernel cut the {kind} buffer to {} where {asked} was asked; \
             set {sysctl} to {} or more there",
            ByteCount::from_bytes(given / 2),
            asked.bytes()
        )
    })
}
