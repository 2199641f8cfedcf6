//! UDP streams: assigns connect datagrams to sessions.
//!
//! A connect datagram has no cookie, only a source address. So at any time one
//! session of an address opens its UDP streams, and others of the same address
//! wait before they request theirs. A connect datagram from any other address is
//! silently dropped: the server replies only to addresses that have a control
//! connection.

use super::state::ServerState;
use crate::PerfError;
use host::address::canonical;
use host::{
    lock::{lock, wait_timeout},
    wait,
};
use iperf3_proto::datagram;
use socket2::{Domain, Socket, Type};
use std::{
    collections::HashMap,
    io,
    net::{IpAddr, SocketAddr, UdpSocket},
    os::fd::AsFd,
    sync::{
        Condvar, Mutex,
        mpsc::{Receiver, SyncSender, sync_channel},
    },
    time::Duration,
};

/// Interval between checks of the stop flag.
const POLL_INTERVAL: Duration = Duration::from_millis(100);
/// Receive buffer for datagrams, bytes; the system caps it (`net.core.rmem_max`),
/// also where the server runs as root.
const RECEIVE_BUFFER: usize = 32 << 20;

/// Most datagrams that are dropped before a stream begins: more than the default
/// receive buffer (`net.core.rmem_default`) holds, so that a client that floods its
/// stream early keeps no thread here.
const DRAIN_LIMIT: usize = 1024;

/// Sessions that open UDP streams, by their client's address.
#[derive(Default)]
pub(super) struct UdpAccept {
    awaiting: Mutex<HashMap<IpAddr, SyncSender<SocketAddr>>>,
    /// Notified when a session has its streams.
    released: Condvar,
}

/// A session's exclusive claim on UDP streams from its client's address, until dropped.
pub(super) struct UdpClaim<'a> {
    accept: &'a UdpAccept,
    address: IpAddr,
    connects: Receiver<SocketAddr>,
}

impl UdpAccept {
    /// Waits until no other session of this address opens streams; `None` once `is_over`.
    pub(super) fn claim(
        &self,
        address: IpAddr,
        streams: usize,
        is_over: impl Fn() -> bool,
    ) -> Option<UdpClaim<'_>> {
        let mut awaiting = lock(&self.awaiting);
        while awaiting.contains_key(&address) {
            if is_over() {
                return None;
            }
            awaiting = wait_timeout(&self.released, awaiting, POLL_INTERVAL);
        }
        // Connect datagrams may be repeated: room for more than are needed.
        let (sender, connects) = sync_channel(2 * streams.max(1));
        awaiting.insert(address, sender);
        Some(UdpClaim { accept: self, address, connects })
    }

    /// Receives connect datagrams until the server stops.
    pub(super) fn serve(&self, socket: &UdpSocket, state: &ServerState<'_>) {
        let mut buffer = [0; 64];
        while !state.is_closed() {
            match wait::readable([socket.as_fd()], Some(POLL_INTERVAL)) {
                Ok([true]) => {}
                _ => continue,
            }
            let Ok((got, from)) = socket.recv_from(&mut buffer) else { continue };
            self.assign(&buffer[..got], from);
        }
    }

    /// Passes a connect datagram to the session that awaits it; drops any other.
    fn assign(&self, received: &[u8], from: SocketAddr) {
        if !datagram::is_connect(received) {
            return;
        }
        let from = canonical(from);
        if let Some(session) = lock(&self.awaiting).get(&from.ip()) {
            // A full channel holds more connects than the session needs.
            let _ = session.try_send(from);
        }
    }

    /// A stream's socket: from the address the client reached to the client's.
    /// Nothing that was received before this returns belongs to the stream, since the
    /// client sends nothing but its connect datagram until that is answered.
    pub(super) fn open(&self, local: SocketAddr, peer: SocketAddr) -> Result<Socket, PerfError> {
        let attempt = || -> io::Result<Socket> {
            let socket = Socket::new(Domain::for_address(peer), Type::DGRAM, None)?;
            socket.set_reuse_address(true)?;
            socket.bind(&local.into())?;
            socket.connect(&peer.into())?;
            let socket = UdpSocket::from(socket);
            socket.set_nonblocking(true)?;
            self.drain(&socket);
            socket.set_nonblocking(false)?;
            let socket = Socket::from(socket);
            let _ = socket.set_recv_buffer_size(RECEIVE_BUFFER);
            Ok(socket)
        };
        attempt().map_err(|source| PerfError::System {
            operation: "open a UDP stream",
            address: peer,
            source,
        })
    }

    /// Empties the queue of a non-blocking socket that was connected just now: between
    /// bind(2) and connect(2) it received from any source, and among that may be other
    /// clients' connect datagrams.
    fn drain(&self, socket: &UdpSocket) {
        let mut buffer = [0; 64];
        for _ in 0..DRAIN_LIMIT {
            match socket.recv_from(&mut buffer) {
                Ok((got, from)) => self.assign(&buffer[..got], from),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return,
                // The ICMP error of a datagram, reported once.
                Err(_) => {}
            }
        }
    }
}

impl UdpClaim<'_> {
    /// Source addresses of connect datagrams.
    pub(super) fn connects(&self) -> &Receiver<SocketAddr> {
        &self.connects
    }
}

impl Drop for UdpClaim<'_> {
    fn drop(&mut self) {
        lock(&self.accept.awaiting).remove(&self.address);
        self.accept.released.notify_all();
    }
}

/// The socket that receives connect datagrams.
pub(super) fn listen(address: SocketAddr) -> io::Result<UdpSocket> {
    let socket = Socket::new(Domain::for_address(address), Type::DGRAM, None)?;
    if address.is_ipv6() && address.ip().is_unspecified() {
        socket.set_only_v6(false)?;
    }
    // Each stream has a socket on the same port, which must allow that as well.
    socket.set_reuse_address(true)?;
    socket.bind(&address.into())?;
    socket.set_nonblocking(true)?;
    Ok(socket.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn datagrams_before_the_connect_are_not_counted() {
        let accept = UdpAccept::default();
        let stream = UdpSocket::bind("127.0.0.1:0").unwrap();
        let at = stream.local_addr().unwrap();
        let [peer, other, stranger] =
            ["127.0.0.2:0", "127.0.0.3:0", "127.0.0.4:0"].map(|own| UdpSocket::bind(own).unwrap());
        let claim = accept.claim([127, 0, 0, 3].into(), 1, || false).unwrap();
        stranger.send_to(&[0x5a; 1400], at).unwrap();
        other.send_to(&datagram::CONNECT, at).unwrap();
        stranger.send_to(&datagram::CONNECT, at).unwrap();
        stream.connect(peer.local_addr().unwrap()).unwrap();
        stream.set_nonblocking(true).unwrap();
        accept.drain(&stream);
        assert_eq!(stream.recv(&mut [0; 64]).unwrap_err().kind(), io::ErrorKind::WouldBlock);
        // Another client's connect datagram is not lost.
        assert_eq!(claim.connects().try_recv(), Ok(other.local_addr().unwrap()));
        claim.connects().try_recv().unwrap_err();
    }
}
