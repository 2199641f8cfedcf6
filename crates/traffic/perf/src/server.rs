//! The server: runs tests of many clients concurrently.

mod accept;
mod admission;
mod check;
mod drain;
mod session;
mod state;
mod streams;
mod udp_accept;

pub use crate::auth::{Padding, TokenName, TokenNameError, Tokens, Users};

use crate::{Observer, PerfError, StopFlag};
use connection_limits::HandshakeCounts;
use host::address::canonical;
use host::{listener_congestion, resolve::Family};
use serde::{Deserialize, Serialize};
use socket2::{Domain, Protocol, Socket, Type};
use std::{
    io,
    net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener, UdpSocket},
    path::PathBuf,
    sync::Arc,
    time::Duration,
};
use units::{BitRate, ByteCount};

/// A server's limits. All but `rate` and `bytes` are on by default: no client may
/// exhaust the memory or the path of a server on the open network. An address is an IPv4 address or the /64 prefix of an IPv6 address.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Limits {
    /// Concurrent tests; further clients get "server busy".
    pub sessions: u32,
    /// Concurrent tests of one address; `None` for half of all, at least one.
    pub sessions_per_address: Option<u32>,
    /// Streams of one test in each direction, at most 128.
    pub streams: u32,
    /// Streams of all tests, both directions counted: each takes a thread and a socket.
    /// For those of one address see [`Limits::share_of_address`].
    pub total_streams: u32,
    /// Buffers of all tests; the kernel limits socket buffers. For those of one address
    /// see [`Limits::share_of_address`].
    pub memory: ByteCount,
    /// Rate of one test, all streams of both directions together, from the
    /// first byte to the last.
    pub rate: Option<BitRate>,
    /// Bytes of one test, both directions together.
    pub bytes: Option<ByteCount>,
    /// Longest test, the warm-up included.
    #[serde(with = "units::seconds")]
    pub duration: Duration,
    /// Timeout for a connection's handshake (cookie and parameters), and for each
    /// stream that a client opens.
    #[serde(with = "units::seconds")]
    pub handshake: Duration,
    /// Connections whose handshake is incomplete; beyond it, the oldest one of the
    /// address with the most of them is closed.
    pub half_open: usize,
    /// The same for one address, beyond a grace period; `None` for a tenth of
    /// all, at least four.
    pub half_open_per_address: Option<usize>,
    /// Timeout for a message that a client has to send.
    #[serde(with = "units::seconds")]
    pub idle: Duration,
    /// Timeout without data from a sending client.
    #[serde(with = "units::seconds")]
    pub receive: Duration,
    /// Memory of all sessions together for parameters and results that are
    /// being read, parsed or written; a session over it waits, then is refused.
    pub message_memory: ByteCount,
}

impl Limits {
    /// Concurrent tests of one address.
    #[must_use]
    pub fn sessions_per_address(&self) -> u32 {
        self.sessions_per_address.unwrap_or(self.sessions / 2).max(1)
    }

    /// The part of a resource of all tests that the tests of one address may take: in
    /// proportion to [`Limits::sessions_per_address`], so half of it by default.
    #[must_use]
    pub fn share_of_address(&self, all: u64) -> u64 {
        let (share, whole) = (u128::from(self.sessions_per_address()), self.sessions.max(1).into());
        u64::try_from(u128::from(all) * share.min(whole) / whole).unwrap_or(all)
    }

    /// Connections of one address whose handshake is incomplete.
    #[must_use]
    pub fn half_open_per_address(&self) -> usize {
        self.half_open_per_address.unwrap_or((self.half_open / 10).max(4)).max(1)
    }
}

impl Default for Limits {
    fn default() -> Self {
        Limits {
            sessions: 128,
            sessions_per_address: None,
            streams: 128,
            total_streams: 2048,
            memory: ByteCount::from_bytes(640 << 20),
            rate: None,
            bytes: None,
            duration: Duration::from_secs(3600),
            handshake: Duration::from_secs(10),
            half_open: 256,
            half_open_per_address: None,
            idle: Duration::from_secs(30),
            receive: Duration::from_secs(120),
            message_memory: ByteCount::from_bytes(64 << 20),
        }
    }
}

/// Configuration of a server.
#[derive(Debug, Clone)]
pub struct ServerConfig {
    /// Address to listen on; `None` for every address of both IP versions.
    pub bind: Option<IpAddr>,
    /// Interface to listen on (`--bind-dev`).
    pub device: Option<String>,
    /// IP versions to listen on if no address is given.
    pub family: Family,
    /// Port; 0 lets the kernel choose, see [`Server::local_addr`].
    pub port: u16,
    /// Whether to serve one test and return (`-1`).
    pub one_off: bool,
    /// How long a one-off server waits for its client.
    pub idle_timeout: Option<Duration>,
    /// Its limits.
    pub limits: Limits,
    /// Interval between interval reports.
    pub report_every: Duration,
    /// Users that may run tests; `None` for everyone.
    pub users: Option<Arc<Users>>,
    /// Tokens, one of which a longhaul client must have; other clients are
    /// refused. `None` for everyone.
    pub tokens: Option<Arc<Tokens>>,
    /// File that received data is written to (`-F`).
    pub file: Option<PathBuf>,
    /// CPU core of the streams' threads, unless the client requests one.
    pub core: Option<u32>,
    /// When raised, new clients are refused; [`Server::serve`] returns once running
    /// tests have finished.
    pub drain: StopFlag,
}

impl Default for ServerConfig {
    fn default() -> Self {
        ServerConfig {
            bind: None,
            device: None,
            family: Family::Any,
            port: iperf3_proto::DEFAULT_PORT,
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
    /// Receives connect datagrams of UDP streams; `None` if the UDP port is in use.
    udp_listener: Option<UdpSocket>,
    address: SocketAddr,
    config: ServerConfig,
    /// Connections whose handshake is incomplete.
    half_open: HandshakeCounts,
}

impl Server {
    /// Listens on the port.
    ///
    /// # Errors
    /// [`PerfError::Listen`] if it is in use or reserved,
    /// [`PerfError::Bind`] if the address is not this host's, and
    /// [`PerfError::NoRandomNumbers`].
    pub fn bind(config: &ServerConfig) -> Result<Self, PerfError> {
        host::random::check().map_err(PerfError::NoRandomNumbers)?;
        let device = config.device.as_deref();
        let at = |ip: IpAddr| listen((ip, config.port).into(), device);
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
        let address = listener.local_addr().map_err(|source| PerfError::Listen {
            address: (Ipv4Addr::UNSPECIFIED, config.port).into(),
            source,
            remedy: "try again",
        })?;
        // Without the UDP port the server offers TCP only.
        let udp_listener = udp_accept::listen(address).ok();
        let half_open = HandshakeCounts::default();
        Ok(Server { listener, udp_listener, address, config: config.clone(), half_open })
    }

    /// The address it listens on, with the port the kernel chose.
    #[must_use]
    pub fn local_addr(&self) -> SocketAddr {
        canonical(self.address)
    }

    /// Whether UDP tests can be served: another program may have the UDP port.
    #[must_use]
    pub fn has_udp(&self) -> bool {
        self.udp_listener.is_some()
    }

    /// Connections whose handshake is incomplete, at most [`Limits::half_open`].
    #[must_use]
    pub fn half_open(&self) -> usize {
        self.half_open.total()
    }

    /// Serves until `stop` is raised, [`ServerConfig::drain`] is and the last
    /// client has gone, or one test is done in one-off mode. No thread and no
    /// connection is left when it returns.
    ///
    /// # Errors
    /// The listening socket failed; a client's errors never end the server.
    pub fn serve(&self, stop: &StopFlag, observer: &dyn Observer) -> Result<(), PerfError> {
        accept::serve(self, stop, observer)
    }
}

fn listen(address: SocketAddr, device: Option<&str>) -> Result<TcpListener, PerfError> {
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
        listener_congestion::accept_unpaced(&socket);
        // Hundreds of connections may arrive at once, and a dropped SYN costs a second.
        // The kernel limits the backlog (net.core.somaxconn).
        socket.listen(4096)?;
        socket.set_nonblocking(true)?;
        Ok(socket.into())
    };
    attempt().map_err(|source| match source.kind() {
        io::ErrorKind::AddrNotAvailable => PerfError::Bind { address: address.to_string(), source },
        io::ErrorKind::AddrInUse => PerfError::Listen {
            address,
            source,
            remedy: "another server uses it; stop that server, or choose another port",
        },
        io::ErrorKind::PermissionDenied => PerfError::Listen {
            address,
            source,
            remedy: "ports below 1024 need root; choose a higher one",
        },
        _ => PerfError::Listen { address, source, remedy: "choose another address or port" },
    })
}

fn is_taken(error: &PerfError) -> bool {
    matches!(error, PerfError::Listen { source, .. }
        if matches!(source.kind(), io::ErrorKind::AddrInUse | io::ErrorKind::PermissionDenied))
}
