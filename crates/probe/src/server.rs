//! The server: many clients at a time, each apart from the others.

mod accept;
mod session;
mod terms;

use crate::{ProbeError, ServerEvent, StopFlag, traffic::unmapped};
use socket2::{Domain, Protocol, Socket, Type};
use std::{
    io,
    net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener},
    time::Duration,
};

/// What a server allows. All of it is on unless changed: a server on the open
/// network must not be anyone's way to fill its memory or its path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Tests at the same time; further clients are told that it is busy.
    pub sessions: u32,
    /// Streams of one test, at most 128.
    pub streams: u32,
    /// Longest test, the warm-up included.
    pub duration: Duration,
    /// How long a connection may take to say who it is, and a client to bring
    /// its next stream.
    pub handshake: Duration,
    /// Connections that have not yet said who they are; beyond it the oldest is closed.
    pub half_open: usize,
    /// How long a client may be silent where it owes a message.
    pub idle: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Limits {
            sessions: 8,
            streams: 128,
            duration: Duration::from_secs(3600),
            handshake: Duration::from_secs(10),
            half_open: 64,
            idle: Duration::from_secs(30),
        }
    }
}

/// How a server is set up.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServerConfig {
    /// Address to listen on; `None` for every address of both IP versions.
    pub bind: Option<IpAddr>,
    /// Port; 0 lets the kernel choose, see [`Server::local_addr`].
    pub port: u16,
    /// Whether to serve one test and return (`-1`).
    pub one_off: bool,
    /// What it allows.
    pub limits: Limits,
    /// Time between report rows told to the observer.
    pub report_every: Duration,
}

impl Default for ServerConfig {
    fn default() -> Self {
        ServerConfig {
            bind: None,
            port: iperf3::DEFAULT_PORT,
            one_off: false,
            limits: Limits::default(),
            report_every: Duration::from_secs(1),
        }
    }
}

/// A server that listens.
#[derive(Debug)]
pub struct Server {
    listener: TcpListener,
    address: SocketAddr,
    config: ServerConfig,
}

impl Server {
    /// Takes the port.
    ///
    /// # Errors
    /// [`ProbeError::Listen`] where it is taken or reserved,
    /// [`ProbeError::Bind`] where the address is not this host's.
    pub fn bind(config: &ServerConfig) -> Result<Self, ProbeError> {
        let listener = match config.bind {
            Some(ip) => listen(SocketAddr::new(ip, config.port))?,
            // A host without IPv6 has no [::].
            None => match listen(SocketAddr::new(Ipv6Addr::UNSPECIFIED.into(), config.port)) {
                Ok(listener) => listener,
                Err(taken @ ProbeError::Listen { .. }) if is_taken(&taken) => return Err(taken),
                Err(_) => listen(SocketAddr::new(Ipv4Addr::UNSPECIFIED.into(), config.port))?,
            },
        };
        let address = listener.local_addr().map_err(|source| ProbeError::Listen {
            address: SocketAddr::new(Ipv4Addr::UNSPECIFIED.into(), config.port),
            source,
            remedy: "try again",
        })?;
        Ok(Server { listener, address, config: config.clone() })
    }

    /// The address it listens on, with the port the kernel chose.
    #[must_use]
    pub fn local_addr(&self) -> SocketAddr {
        unmapped(self.address)
    }

    /// Serves until `stop` is raised, or one test is done in one-off mode. No
    /// thread and no connection is left when it returns.
    ///
    /// `observer` is called from the sessions' threads.
    ///
    /// # Errors
    /// The listening socket itself failed; a client's faults never end it.
    pub fn serve(
        &self,
        stop: &StopFlag,
        observer: &(dyn Fn(ServerEvent) + Sync),
    ) -> Result<(), ProbeError> {
        accept::serve(&self.listener, self.address, &self.config, stop, observer)
    }
}

fn listen(address: SocketAddr) -> Result<TcpListener, ProbeError> {
    let attempt = || -> io::Result<TcpListener> {
        let socket = Socket::new(Domain::for_address(address), Type::STREAM, Some(Protocol::TCP))?;
        if address.is_ipv6() && address.ip().is_unspecified() {
            socket.set_only_v6(false)?;
        }
        // A server restarted at once must not wait for its old connections to time out.
        socket.set_reuse_address(true)?;
        socket.bind(&address.into())?;
        socket.listen(256)?;
        socket.set_nonblocking(true)?;
        Ok(socket.into())
    };
    attempt().map_err(|source| match source.kind() {
        io::ErrorKind::AddrNotAvailable => {
            ProbeError::Bind { address: address.to_string(), source }
        }
        io::ErrorKind::AddrInUse => ProbeError::Listen {
            address,
            source,
            remedy: "another server runs there; stop it, or choose another port",
        },
        io::ErrorKind::PermissionDenied => ProbeError::Listen {
            address,
            source,
            remedy: "ports below 1024 need root; choose a higher one",
        },
        _ => ProbeError::Listen { address, source, remedy: "choose another address or port" },
    })
}

fn is_taken(error: &ProbeError) -> bool {
    matches!(error, ProbeError::Listen { source, .. }
        if matches!(source.kind(), io::ErrorKind::AddrInUse | io::ErrorKind::PermissionDenied))
}
