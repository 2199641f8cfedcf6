//! The interface of all probe types, and the sockets that they share.

use crate::ProbeError;
use host::address::beside;
use host::recvmsg;
use socket2::{Domain, Protocol, Socket, Type};
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::time::{Duration, Instant};

/// The destination of probes and the fields of their IP headers.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Target {
    pub(crate) to: SocketAddr,
    pub(crate) bind: Option<IpAddr>,
    /// The whole byte: six bits of DSCP and two of ECN.
    pub(crate) tos: Option<u8>,
    pub(crate) ttl: Option<u8>,
}

/// The outcome of a probe.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// The host replied.
    Reply,
    /// The host replied that the port is closed.
    Closed,
    /// Its TTL or hop limit expired.
    Expired,
    /// It could not be delivered, with a description of the ICMP error.
    Unreachable(String),
}

/// A response to probe `seq`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Response {
    pub(crate) seq: u16,
    pub(crate) outcome: Outcome,
    /// The sender; `None` for this host.
    pub(crate) from: Option<IpAddr>,
    /// The remaining TTL or hop limit of the response.
    pub(crate) ttl: Option<u8>,
    /// Bytes of the response, without the headers of lower layers.
    pub(crate) bytes: usize,
    /// When the kernel received it.
    pub(crate) at: Instant,
}

/// Sends probes and receives responses.
pub(crate) trait Prober {
    /// Sends probe `seq` with the TTL `hops`. Returns the time just before.
    ///
    /// # Errors
    /// From the system: this probe was not sent.
    fn send(&mut self, seq: u16, hops: Option<u8>) -> io::Result<Instant>;

    /// Waits for a response, for at most `timeout`.
    ///
    /// # Errors
    /// From the system.
    fn wait(&mut self, timeout: Duration) -> io::Result<()>;

    /// Appends the received responses.
    ///
    /// # Errors
    /// From the system.
    fn receive(&mut self, responses: &mut Vec<Response>) -> io::Result<()>;
}

impl Target {
    pub(crate) fn is_v6(&self) -> bool {
        self.to.is_ipv6()
    }

    /// A socket that is bound and configured, but not connected.
    pub(crate) fn socket(&self, kind: Type, protocol: Protocol) -> io::Result<Socket> {
        let socket = Socket::new(Domain::for_address(self.to), kind, Some(protocol))?;
        socket.set_nonblocking(true)?;
        recvmsg::prepare(&socket, self.is_v6())?;
        if let Some(ttl) = self.ttl {
            self.set_hops(&socket, ttl)?;
        }
        match self.tos {
            Some(tos) if self.is_v6() => socket.set_tclass_v6(tos.into())?,
            Some(tos) => socket.set_tos_v4(tos.into())?,
            None => {}
        }
        if let Some(bind) = self.bind {
            socket.bind(&beside(bind, 0, self.to).into())?;
        }
        Ok(socket)
    }

    pub(crate) fn set_hops(&self, socket: &Socket, hops: u8) -> io::Result<()> {
        if self.is_v6() {
            socket.set_unicast_hops_v6(hops.into())
        } else {
            socket.set_ttl_v4(hops.into())
        }
    }

    /// Classifies an error at opening a socket.
    pub(crate) fn open_error(&self, error: io::Error) -> ProbeError {
        use io::ErrorKind::{AddrNotAvailable, HostUnreachable, NetworkUnreachable};
        let address = self.to.ip();
        match (error.kind(), self.bind) {
            (AddrNotAvailable, Some(bind)) => ProbeError::Bind { address: bind, source: error },
            (NetworkUnreachable | HostUnreachable | AddrNotAvailable, _) => {
                ProbeError::NoRoute { address, source: error }
            }
            _ => ProbeError::System { operation: "open a socket", address, source: error },
        }
    }
}

/// Sends again if the first attempt fails: it may report an ICMP error of an earlier
/// probe, which is in the error queue too.
pub(crate) fn send_with_retry<T>(mut send: impl FnMut() -> io::Result<T>) -> io::Result<T> {
    send().or_else(|_| send())
}

/// Whether a receive failed because of an ICMP error, whose details are in the error
/// queue.
pub(crate) fn is_icmp_error(error: &io::Error) -> bool {
    use io::ErrorKind::{ConnectionRefused, HostUnreachable, NetworkUnreachable, PermissionDenied};
    // EMSGSIZE, EPROTO, ENOPROTOOPT and EOPNOTSUPP: include/net/icmp.h,
    // icmp_err_convert, and net/ipv6/icmp.c, tab_unreach.
    let rare = [90, 71, 92, 95];
    matches!(
        error.kind(),
        ConnectionRefused | HostUnreachable | NetworkUnreachable | PermissionDenied
    ) || error.raw_os_error().is_some_and(|number| rare.contains(&number))
}
