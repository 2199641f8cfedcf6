//! Opens connections and sets socket options: local address, buffers, traffic class.

use crate::{PerfError, Role, StopFlag};
use host::resolve::{Family, ResolveError, resolve};
use host::{address, clock};
use socket2::{Domain, Protocol, Socket, Type};
use std::{
    io,
    net::{IpAddr, SocketAddr, TcpStream},
    sync::mpsc,
    thread,
    time::Duration,
};
use units::ByteCount;

/// The largest socket buffer that can be requested: TCP cannot express a larger
/// window (RFC 7323 section 2.3: scale at most 14, so 2^30 bytes).
pub(crate) const MAX_WINDOW: ByteCount = ByteCount::from_bytes(1 << 30);

/// Local end of a connection.
#[derive(Debug, Clone, Default)]
pub(crate) struct LocalEnd {
    /// Local address.
    pub(crate) bind: Option<IpAddr>,
    /// Local port; zero lets the kernel choose.
    pub(crate) port: u16,
    /// Interface.
    pub(crate) device: Option<String>,
    /// Whether it is Multipath TCP.
    pub(crate) mptcp: bool,
}

/// Resolves a name and connects to the first address that answers, in a thread of its
/// own, as `connect` cannot be interrupted.
pub(crate) fn connect_by_name(
    host: &str,
    port: u16,
    family: Family,
    local_end: &LocalEnd,
    timeout: Duration,
    stop: &StopFlag,
) -> Result<(TcpStream, SocketAddr), PerfError> {
    let stopped = || stop.is_raised();
    let zoned = local_end.device.as_ref().map_or(host.into(), |name| address::in_zone(host, name));
    let addresses =
        resolve(&zoned, port, family, local_end.bind, &stopped)?.ok_or(PerfError::Interrupted)?;
    let (sender, receiver) = mpsc::channel();
    let local_end = local_end.clone();
    let work = move || {
        let _ = sender.send(try_all(&addresses, &local_end, timeout));
    };
    thread::Builder::new()
        .name("connect".to_owned())
        .spawn(work)
        .map_err(|error| ResolveError { host: host.to_owned(), reason: error.to_string() })?;
    loop {
        match receiver.recv_timeout(Duration::from_millis(50)) {
            Ok(result) => return result,
            Err(mpsc::RecvTimeoutError::Timeout) if stop.is_raised() => {
                return Err(PerfError::Interrupted);
            }
            Err(mpsc::RecvTimeoutError::Timeout) => {}
            Err(mpsc::RecvTimeoutError::Disconnected) => return Err(PerfError::Interrupted),
        }
    }
}

fn try_all(
    addresses: &[SocketAddr],
    local_end: &LocalEnd,
    timeout: Duration,
) -> Result<(TcpStream, SocketAddr), PerfError> {
    let until = clock::now() + timeout;
    let mut first_error = None;
    for (at, &address) in addresses.iter().enumerate() {
        let left = until.saturating_duration_since(clock::now());
        // Each address gets half of the remaining time, the last one all of it.
        let share = if at + 1 == addresses.len() { left } else { left / 2 };
        match connect(address, local_end, share.max(Duration::from_millis(10)), |_| Ok(address)) {
            Ok(socket) => return Ok((socket.into(), address)),
            Err(error) => first_error = first_error.or(Some(error)),
        }
    }
    Err(first_error.unwrap_or(PerfError::Interrupted))
}

/// Connects to one address; `prepare` sets socket options before and returns
/// the address, which may carry a flow label.
pub(crate) fn connect(
    address: SocketAddr,
    local_end: &LocalEnd,
    timeout: Duration,
    prepare: impl FnOnce(&Socket) -> Result<SocketAddr, PerfError>,
) -> Result<Socket, PerfError> {
    let failed = |source: io::Error| PerfError::Connect { address, source };
    let protocol = if local_end.mptcp { Protocol::MPTCP } else { Protocol::TCP };
    let socket = Socket::new(Domain::for_address(address), Type::STREAM, Some(protocol))
        .map_err(|error| failed(if local_end.mptcp { without_mptcp(&error) } else { error }))?;
    bind_to(&socket, address, local_end)?;
    let address = prepare(&socket)?;
    socket.connect_timeout(&address.into(), timeout).map_err(failed)?;
    Ok(socket)
}

/// What is missing where a socket of Multipath TCP is refused.
fn without_mptcp(error: &io::Error) -> io::Error {
    io::Error::other(format!(
        "{error}: Multipath TCP needs Linux 5.6 and net.mptcp.enabled=1; a test without it uses plain TCP"
    ))
}

/// Binds a socket to its local end.
pub(crate) fn bind_to(
    socket: &Socket,
    peer: SocketAddr,
    local_end: &LocalEnd,
) -> Result<(), PerfError> {
    if let Some(device) = &local_end.device {
        socket
            .bind_device(Some(device.as_bytes()))
            .map_err(|source| PerfError::Bind { address: device.clone(), source })?;
    }
    if local_end.bind.is_some() || local_end.port != 0 {
        let ip = local_end.bind.unwrap_or(address::any_like(peer).ip());
        let local = address::beside(ip, local_end.port, peer);
        if local_end.port != 0 {
            // The next test reuses a fixed port.
            let _ = socket.set_reuse_address(true);
        }
        socket
            .bind(&local.into())
            .map_err(|source| PerfError::Bind { address: local.to_string(), source })?;
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

/// Sets both socket buffers, as `-w` does.
pub(crate) fn set_window(socket: &Socket, window: ByteCount) -> io::Result<()> {
    let bytes = usize::try_from(window.bytes()).unwrap_or(usize::MAX);
    socket.set_send_buffer_size(bytes)?;
    socket.set_recv_buffer_size(bytes)
}

/// A note if the kernel set a smaller buffer than requested: it silently clamps
/// the value to `net.core.wmem_max` or `rmem_max`, then doubles it for its own
/// overhead.
pub(crate) fn clamp_note(
    socket: &Socket,
    requested: ByteCount,
    sending: bool,
    end: Role,
) -> Option<String> {
    let (given, kind, sysctl) = if sending {
        (socket.send_buffer_size().ok()?, "send", "net.core.wmem_max")
    } else {
        (socket.recv_buffer_size().ok()?, "receive", "net.core.rmem_max")
    };
    let given = u64::try_from(given).ok()?;
    // The kernel's maximum is half of a 32-bit integer.
    let wanted = requested.bytes().min(i32::MAX as u64 / 2).saturating_mul(2);
    (given < wanted).then(|| {
        format!(
            "the {end}'s kernel clamped the {kind} buffer to {} instead of {requested}; \
             set {sysctl} to {} or more there",
            ByteCount::from_bytes(given / 2),
            requested.bytes()
        )
    })
}
