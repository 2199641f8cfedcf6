//! UDP streams: which greeting belongs to which session.
//!
//! A greeting carries no cookie, only the address it came from. So at any time
//! one session of an address awaits its UDP streams, and a second one of the
//! same address waits for its turn before it is told to open them. A greeting
//! from an address that no session awaits is dropped without an answer: the
//! server sends to nobody whose TCP connection it does not have.

use super::accept::{Hall, lock};
use crate::{ProbeError, flow::unmapped};
use host::{clock, wait};
use iperf3::datagram;
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
    time::{Duration, Instant},
};

/// How often the stop flag is looked at.
const LOOK: Duration = Duration::from_millis(100);
/// Receive buffer for datagrams, where the system allows it.
const BUFFER: units::ByteCount = units::ByteCount::from_bytes(32 << 20);

/// Sessions that await UDP streams, by their client's address.
#[derive(Default)]
pub(super) struct Door {
    awaiting: Mutex<HashMap<IpAddr, SyncSender<SocketAddr>>>,
    /// One has left.
    left: Condvar,
}

/// A session's turn at the door; it ends when this goes.
pub(super) struct Turn<'a> {
    door: &'a Door,
    address: IpAddr,
    greetings: Receiver<SocketAddr>,
}

impl Door {
    /// Waits until no other session of this address awaits streams; `None`
    /// where that did not come before `until`.
    pub(super) fn turn(&self, address: IpAddr, streams: usize, until: Instant) -> Option<Turn<'_>> {
        let mut awaiting = lock(&self.awaiting);
        while awaiting.contains_key(&address) {
            let left = until.checked_duration_since(clock::now())?;
            let waited = self.left.wait_timeout(awaiting, left.min(LOOK));
            awaiting = waited.unwrap_or_else(std::sync::PoisonError::into_inner).0;
        }
        // Greetings may come again: room for some more than are needed.
        let (tell, greetings) = sync_channel(2 * streams.max(1));
        awaiting.insert(address, tell);
        Some(Turn { door: self, address, greetings })
    }

    /// Takes greetings until the server stops.
    pub(super) fn serve(&self, socket: &UdpSocket, hall: &Hall<'_>) {
        let mut greeting = [0; 64];
        while !hall.is_closed() {
            match wait::readable([socket.as_fd()], Some(LOOK)) {
                Ok([true]) => {}
                _ => continue,
            }
            let Ok((got, from)) = socket.recv_from(&mut greeting) else { continue };
            if !datagram::is_greeting(&greeting[..got]) {
                continue;
            }
            let from = unmapped(from);
            if let Some(session) = lock(&self.awaiting).get(&from.ip()) {
                // A session with all the greetings it has room for needs no more.
                let _ = session.try_send(from);
            }
        }
    }
}

impl Turn<'_> {
    pub(super) fn greetings(&self) -> &Receiver<SocketAddr> {
        &self.greetings
    }
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        lock(&self.door.awaiting).remove(&self.address);
        self.door.left.notify_all();
    }
}

/// The socket that greetings come to.
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

/// A stream's own socket: from the address the client reached, to the one that greeted.
pub(super) fn open(local: SocketAddr, peer: SocketAddr) -> Result<Socket, ProbeError> {
    let attempt = || -> io::Result<Socket> {
        let socket = Socket::new(Domain::for_address(peer), Type::DGRAM, None)?;
        socket.set_reuse_address(true)?;
        socket.bind(&local.into())?;
        socket.connect(&peer.into())?;
        let _ = host::socket::set_receive_buffer(&socket, BUFFER);
        Ok(socket)
    };
    attempt().map_err(|source| ProbeError::System {
        operation: "open a UDP stream",
        address: peer,
        source,
    })
}
