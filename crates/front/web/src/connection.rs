//! An accepted TCP connection, for whoever serves requests on it.

use host::address_key::AddressKey;
use host::tcp_info::{self, CongestionError, MemInfo, TcpInfo};
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;
use tokio::net::TcpStream;
use units::{BitRate, ByteCount};

/// An accepted connection: an extension of each of its requests. Behind a reverse proxy it is the
/// proxy's. It holds a duplicate of the descriptor: the connection is not closed before the last
/// clone is dropped, so whoever ends a transfer shuts the stream down.
#[derive(Debug, Clone)]
pub struct Connection(Arc<Accepted>, Option<Forwarded>);

/// What a trusted proxy says of its client.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Forwarded {
    pub(crate) client: IpAddr,
    /// Whether the client's connection is.
    pub(crate) is_encrypted: bool,
}

#[derive(Debug)]
struct Accepted {
    peer: SocketAddr,
    local: SocketAddr,
    is_encrypted: bool,
    descriptor: OwnedFd,
}

impl Connection {
    /// The connection of a stream.
    ///
    /// # Errors
    /// The stream is closed, or descriptors have run out.
    pub(crate) fn of(stream: &TcpStream, is_encrypted: bool) -> io::Result<Self> {
        let accepted = Accepted {
            peer: host::address::canonical(stream.peer_addr()?),
            local: host::address::canonical(stream.local_addr()?),
            is_encrypted,
            descriptor: stream.as_fd().try_clone_to_owned()?,
        };
        Ok(Connection(Arc::new(accepted), None))
    }

    /// The connection with what a trusted proxy says of its client.
    pub(crate) fn forwarded(self, forwarded: Forwarded) -> Self {
        Connection(self.0, Some(forwarded))
    }

    /// The client: behind a trusted proxy the one that it names, with port 0.
    #[must_use]
    pub fn client(&self) -> SocketAddr {
        self.1.map_or(self.0.peer, |forwarded| SocketAddr::new(forwarded.client, 0))
    }

    /// The other end of the connection; an IPv4-mapped address as IPv4.
    #[must_use]
    pub fn peer(&self) -> SocketAddr {
        self.0.peer
    }

    /// The server's address on this connection.
    #[must_use]
    pub fn local(&self) -> SocketAddr {
        self.0.local
    }

    /// The address that limits count.
    #[must_use]
    pub fn key(&self) -> AddressKey {
        AddressKey::of(self.client().ip())
    }

    /// Whether TLS is used between the client and the server, or its proxy.
    #[must_use]
    pub fn is_encrypted(&self) -> bool {
        self.0.is_encrypted || self.1.is_some_and(|forwarded| forwarded.is_encrypted)
    }

    /// The kernel's state of it.
    ///
    /// # Errors
    /// The system error.
    pub fn tcp_info(&self) -> io::Result<TcpInfo> {
        TcpInfo::of(&self.0.descriptor)
    }

    /// Its buffers.
    ///
    /// # Errors
    /// The system error.
    pub fn memory(&self) -> io::Result<MemInfo> {
        MemInfo::of(&self.0.descriptor)
    }

    /// Sets the congestion control.
    ///
    /// # Errors
    /// The kernel does not have it, or reserves it for root.
    pub fn set_congestion(&self, name: &str) -> Result<(), CongestionError> {
        tcp_info::set_congestion(&self.0.descriptor, name)
    }

    /// The congestion control in use; `None` if unknown.
    #[must_use]
    pub fn congestion(&self) -> Option<String> {
        tcp_info::congestion(&self.0.descriptor).ok()
    }

    /// Sets how many bytes may wait in the socket unsent (tcp(7), `TCP_NOTSENT_LOWAT`).
    ///
    /// # Errors
    /// The system error.
    pub fn set_unsent_limit(&self, bytes: Option<ByteCount>) -> io::Result<()> {
        host::socket::set_unsent_limit(&self.0.descriptor, bytes)
    }

    /// Limits the rate of sending (socket(7), `SO_MAX_PACING_RATE`).
    ///
    /// # Errors
    /// The system error.
    pub fn set_max_pacing_rate(&self, rate: BitRate) -> io::Result<()> {
        host::socket::set_max_pacing_rate(&self.0.descriptor, rate)
    }

    /// The descriptor, for other options.
    #[must_use]
    pub fn descriptor(&self) -> &OwnedFd {
        &self.0.descriptor
    }
}
