//! What sends probes and hears of them, whatever it sends.

use crate::ReachError;
use host::stamps;
use socket2::{Domain, Protocol, Socket, Type};
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::time::{Duration, Instant};

/// Where probes go, and what they look like on the way.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Aim {
    pub(crate) to: SocketAddr,
    pub(crate) bind: Option<IpAddr>,
    /// The whole byte: six bits of DSCP and two of ECN.
    pub(crate) tos: Option<u8>,
    pub(crate) ttl: Option<u8>,
}

/// What came of a probe.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum What {
    /// The host answered.
    Reply,
    /// The host answered that nobody listens there.
    Closed,
    /// Its hops were used up on the way.
    Expired,
    /// It could not be delivered, in ICMP's words.
    Unreached(String),
}

/// Something that was heard of probe `seq`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Heard {
    pub(crate) seq: u16,
    pub(crate) what: What,
    /// Who said so; `None` where it was this host.
    pub(crate) from: Option<IpAddr>,
    /// Hops that the answer had left.
    pub(crate) ttl: Option<u8>,
    /// Bytes of the answer, without headers below its own.
    pub(crate) bytes: usize,
    /// When the kernel had it.
    pub(crate) at: Instant,
}

/// Sends probes and hears of them.
pub(crate) trait Prober {
    /// Sends probe `seq`, with as many hops to go as told. Gives the moment
    /// just before.
    ///
    /// # Errors
    /// The system's own: this probe was not sent.
    fn send(&mut self, seq: u16, hops: Option<u8>) -> io::Result<Instant>;

    /// Waits until there is something to hear, for at most `timeout`.
    ///
    /// # Errors
    /// The system's own.
    fn wait(&mut self, timeout: Duration) -> io::Result<()>;

    /// Adds what has come to `heard`.
    ///
    /// # Errors
    /// The system's own.
    fn hear(&mut self, heard: &mut Vec<Heard>) -> io::Result<()>;
}

impl Aim {
    pub(crate) fn is_v6(&self) -> bool {
        self.to.is_ipv6()
    }

    /// A socket that is bound and dressed as asked, but not connected.
    pub(crate) fn socket(&self, kind: Type, protocol: Protocol) -> io::Result<Socket> {
        let socket = Socket::new(Domain::for_address(self.to), kind, Some(protocol))?;
        socket.set_nonblocking(true)?;
        stamps::prepare(&socket, self.is_v6())?;
        if let Some(ttl) = self.ttl {
            self.set_hops(&socket, ttl)?;
        }
        match self.tos {
            Some(tos) if self.is_v6() => socket.set_tclass_v6(tos.into())?,
            Some(tos) => socket.set_tos_v4(tos.into())?,
            None => {}
        }
        if let Some(bind) = self.bind {
            socket.bind(&SocketAddr::new(bind, 0).into())?;
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

    /// What an error at opening a socket means.
    pub(crate) fn refusal(&self, error: io::Error) -> ReachError {
        use io::ErrorKind::{AddrNotAvailable, HostUnreachable, NetworkUnreachable};
        let address = self.to.ip();
        match (error.kind(), self.bind) {
            (AddrNotAvailable, Some(bind)) => ReachError::Bind { address: bind, source: error },
            (NetworkUnreachable | HostUnreachable | AddrNotAvailable, _) => {
                ReachError::NoRoute { address, source: error }
            }
            _ => ReachError::System { operation: "open a socket", address, source: error },
        }
    }
}

/// Sends once more where the first try was told an older probe's error, which
/// lies in the error queue too.
pub(crate) fn twice<T>(mut send: impl FnMut() -> io::Result<T>) -> io::Result<T> {
    send().or_else(|_| send())
}

/// Whether an error of a receive is the news of an ICMP error, whose details
/// are in the error queue.
pub(crate) fn is_news(error: &io::Error) -> bool {
    use io::ErrorKind::{ConnectionRefused, HostUnreachable, NetworkUnreachable, PermissionDenied};
    // EMSGSIZE, EPROTO, ENOPROTOOPT and EOPNOTSUPP: include/net/icmp.h,
    // icmp_err_convert, and net/ipv6/icmp.c, tab_unreach.
    let rare = [90, 71, 92, 95];
    matches!(
        error.kind(),
        ConnectionRefused | HostUnreachable | NetworkUnreachable | PermissionDenied
    ) || error.raw_os_error().is_some_and(|number| rare.contains(&number))
}
