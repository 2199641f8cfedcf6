//! Sockets of both ends.

use crate::CopyError;
use host::address::with_port;
use socket2::{Domain, Protocol, SockAddr, Socket, Type};
use std::io;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::time::Duration;

/// Connections that may wait to be accepted.
const BACKLOG: i32 = 128;

/// A UDP socket on any free port, on all addresses unless one is given.
pub(crate) fn udp_any(address: Option<SocketAddr>) -> io::Result<UdpSocket> {
    if let Some(address) = address {
        return UdpSocket::bind(with_port(address, 0));
    }
    UdpSocket::bind((Ipv6Addr::UNSPECIFIED, 0))
        .or_else(|_| UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0)))
}

/// A listener, on all addresses unless one is given.
pub(crate) fn listener(address: Option<SocketAddr>, port: u16) -> io::Result<TcpListener> {
    let listen = |address: SocketAddr| -> io::Result<TcpListener> {
        let socket = Socket::new(Domain::for_address(address), Type::STREAM, Some(Protocol::TCP))?;
        socket.set_reuse_address(true)?;
        if address.is_ipv6() {
            let _ = socket.set_only_v6(false);
        }
        socket.bind(&SockAddr::from(address))?;
        socket.listen(BACKLOG)?;
        Ok(socket.into())
    };
    match address {
        Some(address) => listen(with_port(address, port)),
        None => listen((Ipv6Addr::UNSPECIFIED, port).into())
            .or_else(|_| listen((Ipv4Addr::UNSPECIFIED, port).into())),
    }
}

/// Connects over TCP; `segment` is the largest segment of either end, bytes.
pub(crate) fn connect(
    server: SocketAddr,
    segment: Option<u32>,
    timeout: Duration,
) -> Result<TcpStream, CopyError> {
    let open = || -> io::Result<TcpStream> {
        let socket = Socket::new(Domain::for_address(server), Type::STREAM, Some(Protocol::TCP))?;
        if let Some(segment) = segment {
            // It is in the SYN: the server keeps to it, too.
            socket.set_tcp_mss(segment)?;
        }
        socket.connect_timeout(&SockAddr::from(server), timeout)?;
        Ok(socket.into())
    };
    open().map_err(|error| {
        let why = host::remedy::with_advice(&error, "check the address and the port");
        CopyError::Connection(format!("TCP to {server}: {why}"))
    })
}
