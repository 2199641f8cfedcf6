//! The server: many clients at a time, each apart from the others.

mod accept;
mod door;
mod session;
mod streams;
mod terms;
mod watch;

pub use crate::auth::{Padding, Tokens, Users};

use crate::{Observer, ProbeError, StopFlag, flow::unmapped, socket::Family};
use socket2::{Domain, Protocol, Socket, Type};
use std::{
    io,
    net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener, UdpSocket},
    path::PathBuf,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};
use units::{BitRate, ByteCount};

/// What a server allows. All of it is on unless changed: a server on the open
/// network must not be anyone's way to fill its memory or its path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Tests at the same time; further clients are told that it is busy.
    pub sessions: u32,
    /// Tests at the same time from one address.
    pub sessions_per_address: u32,
    /// Streams of one test in each direction, at most 128.
    pub streams: u32,
    /// Rate of one test, all streams of both directions together, over
    /// [`Limits::RATE_SPAN`]; what this end sends is held to it.
    pub rate: Option<BitRate>,
    /// Bytes of one test, both directions together.
    pub bytes: Option<ByteCount>,
    /// Longest test, the warm-up included.
    pub duration: Duration,
    /// How long a connection may take to say who it is, and a client to bring
    /// its next stream.
    pub handshake: Duration,
    /// Connections that have not yet said who they are; beyond it the oldest is closed.
    pub half_open: usize,
    /// How long a client may be silent where it owes a message.
    pub idle: Duration,
    /// How long a client that is to send may send nothing.
    pub receive: Duration,
}

impl Limits {
    /// The time a test's rate is averaged over before it is judged, as with iperf3.
    pub const RATE_SPAN: Duration = Duration::from_secs(5);
}

impl Default for Limits {
    fn default() -> Self {
        Limits {
            sessions: 128,
            sessions_per_address: 128,
            streams: 128,
            rate: None,
            bytes: None,
            duration: Duration::from_secs(3600),
            handshake: Duration::from_secs(10),
            half_open: 64,
            idle: Duration::from_secs(30),
            receive: Duration::from_secs(120),
        }
    }
}

/// How a server is set up.
#[derive(Debug, Clone)]
pub struct ServerConfig {
    /// Address to listen on; `None` for every address of both IP versions.
    pub bind: Option<IpAddr>,
    /// Interface to listen on (`--bind-dev`).
    pub device: Option<String>,
    /// Which IP versions to listen on, where no address is given.
    pub family: Family,
    /// Port; 0 lets the kernel choose, see [`Server::local_addr`].
    pub port: u16,
    /// Whether to serve one test and return (`-1`).
    pub one_off: bool,
    /// How long a one-off server waits for its client.
    pub idle_timeout: Option<Duration>,
    /// What it allows.
    pub limits: Limits,
    /// Time between report rows told to the observer.
    pub report_every: Duration,
    /// Who may run tests; `None` for everyone.
    pub users: Option<Arc<Users>>,
    /// Words of which longhaul clients must know one; other clients are then
    /// turned away. `None` for everyone.
    pub tokens: Option<Arc<Tokens>>,
    /// File that what arrives is written to (`-F`).
    pub file: Option<PathBuf>,
    /// The core of the threads that carry data, where the client does not say.
    pub core: Option<u32>,
    /// When raised, new clients are turned away; [`Server::serve`] returns once
    /// those that are there have finished.
    pub drain: StopFlag,
}

impl Default for ServerConfig {
    fn default() -> Self {
        ServerConfig {
            bind: None,
            device: None,
            family: Family::Any,
            port: iperf3::DEFAULT_PORT,
            one_off: false,
            idle_timeout: None,
            limits: Limits::default(),
            report_every: Duration::from_secs(1),
            users: None,
            tokens: None,
            file: None,
            core: None,
            drain: StopFlag::new(),
        }
    }
}

/// A server that listens.
#[derive(Debug)]
pub struct Server {
    listener: TcpListener,
    /// Where UDP greetings come to; `None` where that port is taken.
    greetings: Option<UdpSocket>,
    address: SocketAddr,
    config: ServerConfig,
    /// Connections that have not said who they are.
    half_open: AtomicUsize,
}

impl Server {
    /// Takes the port.
    ///
    /// # Errors
    /// [`ProbeError::Listen`] where it is taken or reserved,
    /// [`ProbeError::Bind`] where the address is not this host's.
    pub fn bind(config: &ServerConfig) -> Result<Self, ProbeError> {
        let device = config.device.as_deref();
        let at = |ip: IpAddr| listen(SocketAddr::new(ip, config.port), device);
        let listener = match (config.bind, config.family) {
            (Some(ip), _) => at(ip)?,
            (None, Family::V4) => at(Ipv4Addr::UNSPECIFIED.into())?,
            (None, family) => match at(Ipv6Addr::UNSPECIFIED.into()) {
                Ok(listener) => listener,
                Err(error) if family == Family::V6 || is_taken(&error) => return Err(error),
                // A host without IPv6 has no [::].
                Err(_) => at(Ipv4Addr::UNSPECIFIED.into())?,
            },
        };
        let address = listener.local_addr().map_err(|source| ProbeError::Listen {
            address: SocketAddr::new(Ipv4Addr::UNSPECIFIED.into(), config.port),
            source,
            remedy: "try again",
        })?;
        // A server without UDP is one all the same; it says so to who asks.
        let greetings = door::listen(address).ok();
        let half_open = AtomicUsize::new(0);
        Ok(Server { listener, greetings, address, config: config.clone(), half_open })
    }

    /// The address it listens on, with the port the kernel chose.
    #[must_use]
    pub fn local_addr(&self) -> SocketAddr {
        unmapped(self.address)
    }

    /// Whether UDP tests can be served: another program may have the UDP port.
    #[must_use]
    pub fn has_udp(&self) -> bool {
        self.greetings.is_some()
    }

    /// Connections that have not said who they are, at most [`Limits::half_open`].
    #[must_use]
    pub fn half_open(&self) -> usize {
        self.half_open.load(Ordering::Relaxed)
    }

    /// Serves until `stop` is raised, [`ServerConfig::drain`] is and the last
    /// client has gone, or one test is done in one-off mode. No thread and no
    /// connection is left when it returns.
    ///
    /// # Errors
    /// The listening socket itself failed; a client's faults never end it.
    pub fn serve(&self, stop: &StopFlag, observer: &dyn Observer) -> Result<(), ProbeError> {
        accept::serve(self, stop, observer)
    }
}

fn listen(address: SocketAddr, device: Option<&str>) -> Result<TcpListener, ProbeError> {
    let attempt = || -> io::Result<TcpListener> {
        // A listener for Multipath TCP takes plain connections as well (RFC 8684 section 3.7).
        let domain = Domain::for_address(address);
        let socket = Socket::new(domain, Type::STREAM, Some(Protocol::MPTCP))
            .or_else(|_| Socket::new(domain, Type::STREAM, Some(Protocol::TCP)))?;
        if let Some(device) = device {
            socket.bind_device(Some(device.as_bytes()))?;
        }
        if address.is_ipv6() && address.ip().is_unspecified() {
            socket.set_only_v6(false)?;
        }
        // A server restarted at once must not wait for its old connections to time out.
        socket.set_reuse_address(true)?;
        socket.bind(&address.into())?;
        // A hundred clients with their streams may come at once; what finds no room
        // comes again after a second at best. The system caps it (net.core.somaxconn).
        socket.listen(4096)?;
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
