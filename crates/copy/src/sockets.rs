//! Sockets of both ends.

use crate::CopyError;
use socket2::{Domain, Protocol, SockAddr, Socket, Type};
use std::io;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::time::Duration;

/// Connections that may wait to be accepted.
const BACKLOG: i32 = 128;

/// A socket connected to a UDP server.
pub(crate) fn udp_for(server: SocketAddr) -> Result<UdpSocket, CopyError> {
    let any: SocketAddr = match server {
        SocketAddr::V4(_) => (Ipv4Addr::UNSPECIFIED, 0).into(),
        SocketAddr::V6(_) => (Ipv6Addr::UNSPECIFIED, 0).into(),
    };
    let open = || -> io::Result<UdpSocket> {
        let socket = UdpSocket::bind(any)?;
        socket.connect(server)?;
        Ok(socket)
    };
    open().map_err(CopyError::socket)
}

/// A UDP socket on any free port, on all addresses unless one is given.
pub(crate) fn udp_any(address: Option<std::net::IpAddr>) -> io::Result<UdpSocket> {
    if let Some(address) = address {
        return UdpSocket::bind((address, 0));
    }
    UdpSocket::bind((Ipv6Addr::UNSPECIFIED, 0))
        .or_else(|_| UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0)))
}

/// A listener, on all addresses unless one is given.
pub(crate) fn listener(address: Option<std::net::IpAddr>, port: u16) -> io::Result<TcpListener> {
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
        Some(address) => listen((address, port).into()),
        None => listen((Ipv6Addr::UNSPECIFIED, port).into())
            .or_else(|_| listen((Ipv4Addr::UNSPECIFIED, port).into())),
    }
}

pub(crate) fn connect(server: SocketAddr, timeout: Duration) -> Result<TcpStream, CopyError> {
    TcpStream::connect_timeout(&server, timeout)
        .map_err(|error| CopyError::Connection(format!("TCP to {server}: {error}")))
}
