//! The server: serves many clients concurrently.

use crate::context::{self, Context, TICK};
use crate::error::Iperf2Error;
use crate::event::Event;
use crate::flows::Bounds;
use crate::session::ServerState;
use crate::slots::StreamSlots;
use crate::sockets::{self, Options};
use crate::udp_receiver::UdpReceiver;
use host::stop::StopFlag;
use host::{clock, wait};
use std::net::{SocketAddr, TcpListener, UdpSocket};
use std::os::fd::AsFd;
use std::thread;
use std::time::Duration;

/// The limits of a server.
#[derive(Debug, Clone)]
pub struct Limits {
    /// Maximum number of concurrent streams, in both directions.
    pub streams: u32,
    /// Maximum number of streams per address or IPv6 /64; half of all if `None`.
    pub streams_per_address: Option<u32>,
    /// Maximum duration of a test.
    pub duration: Duration,
    /// How much longer than announced a client may send over TCP, to drain its buffers.
    pub grace: Duration,
    /// Timeout of a stream without progress. Over TCP, progress is `min_progress` bytes.
    pub idle_timeout: Duration,
    /// Bytes that a TCP stream must transfer within `idle_timeout`.
    pub min_progress: u64,
    /// Timeout for receiving the header of a client.
    pub header_timeout: Duration,
    /// Maximum rate at which the server sends UDP, bit/s.
    pub udp_rate_bps: u64,
    /// Which UDP addresses may be sent more than was received from them.
    pub trust: Trust,
}

/// Which UDP source addresses are trusted. Addresses can be forged: a server that sends
/// more than it received can be used for reflection attacks.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Trust {
    /// None.
    None,
    /// Loopback: the kernel drops such packets from outside.
    #[default]
    Loopback,
    /// All.
    All,
}

impl Limits {
    /// Maximum number of streams per address.
    #[must_use]
    pub fn max_per_address(&self) -> u32 {
        self.streams_per_address.unwrap_or(self.streams / 2).clamp(1, self.streams.max(1))
    }
}

impl Default for Limits {
    fn default() -> Self {
        Limits {
            // Twice the maximum of a client's `-P`.
            streams: 256,
            streams_per_address: None,
            duration: Duration::from_secs(3600),
            grace: Duration::from_secs(60),
            idle_timeout: Duration::from_secs(30),
            min_progress: 1024,
            header_timeout: Duration::from_secs(4),
            udp_rate_bps: 10_000_000_000,
            trust: Trust::default(),
        }
    }
}

/// The configuration of a server.
#[derive(Debug, Clone, Default)]
pub struct ServerConfig {
    /// Address to listen on, whose port is not used; all addresses of both IP versions if `None`.
    pub bind: Option<SocketAddr>,
    /// Port; 0 for any.
    pub port: u16,
    /// UDP instead of TCP.
    pub udp: bool,
    /// Bytes per read.
    pub length: Option<u32>,
    /// Report interval.
    pub interval: Option<Duration>,
    /// How long to serve; no limit if `None`.
    pub time: Option<Duration>,
    /// Socket options.
    pub options: Options,
    /// Limits for clients.
    pub limits: Limits,
}

enum Listener {
    Tcp(TcpListener),
    Udp(UdpSocket),
}

/// A listening server.
pub struct Server {
    config: ServerConfig,
    listener: Listener,
    local: SocketAddr,
}

impl Server {
    /// Opens the port.
    ///
    /// # Errors
    /// The port or address is unavailable, or the system refuses an option.
    pub fn bind(config: &ServerConfig) -> Result<Self, Iperf2Error> {
        let system = |source| Iperf2Error::System { what: "listen", source };
        let (listener, local) = if config.udp {
            let socket = sockets::listen_udp(config.bind, config.port, &config.options)?;
            let local = socket.local_addr().map_err(system)?;
            (Listener::Udp(socket), local)
        } else {
            let listener = sockets::listen(config.bind, config.port, &config.options)?;
            listener.set_nonblocking(true).map_err(system)?;
            let local = listener.local_addr().map_err(system)?;
            (Listener::Tcp(listener), local)
        };
        Ok(Server { config: config.clone(), listener, local })
    }

    /// The local address.
    #[must_use]
    pub fn local_addr(&self) -> SocketAddr {
        self.local
    }

    /// The receive buffer of the socket, bytes, as the kernel counts it.
    #[must_use]
    pub fn buffer(&self) -> Option<u64> {
        match &self.listener {
            Listener::Tcp(listener) => sockets::buffer(listener, false),
            Listener::Udp(socket) => sockets::buffer(socket, false),
        }
    }

    /// Serves until stopped or the configured time. `on_event` is called from several
    /// threads.
    ///
    /// # Errors
    /// From the system, on waiting or receiving.
    pub fn serve(
        &self,
        stop: &StopFlag,
        on_event: &(dyn Fn(Event) + Sync),
    ) -> Result<(), Iperf2Error> {
        let mut context = Context::new(on_event, stop, self.config.interval).limited();
        context.until = self.config.time.map(|time| clock::now() + time);
        let limits = &self.config.limits;
        let slots = StreamSlots::new(limits.streams, limits.max_per_address());
        let state = ServerState { context: &context, config: &self.config, slots: &slots };
        let served = match &self.listener {
            Listener::Tcp(listener) => serve_tcp(listener, &state),
            Listener::Udp(socket) => serve_udp(socket, &state),
        };
        context.report_suppressed(clock::now(), true);
        served
    }
}

fn serve_tcp(listener: &TcpListener, state: &ServerState<'_, '_>) -> Result<(), Iperf2Error> {
    let failed = |source| Iperf2Error::System { what: "wait for clients", source };
    thread::scope(|scope| {
        while !state.context.is_over() {
            state.context.report_suppressed(clock::now(), false);
            if wait::readable([listener.as_fd()], Some(TICK)).map_err(failed)? == [false] {
                continue;
            }
            // An aborted connection or a lack of descriptors is temporary.
            let Ok((stream, peer)) = listener.accept() else {
                thread::sleep(Duration::from_millis(1));
                continue;
            };
            if stream.set_nonblocking(false).is_err() {
                continue;
            }
            let slot = match state.slots.take(peer.ip()) {
                Ok(slot) => slot,
                Err(full) => {
                    state.context.peer_error(peer, &full);
                    continue;
                }
            };
            let work = move || state.tcp(scope, stream, slot);
            if let Err(error) = context::spawn(scope, work) {
                state.context.peer_error(peer, &format!("cannot start a thread: {error}"));
            }
        }
        Ok(())
    })
}

fn serve_udp(socket: &UdpSocket, state: &ServerState<'_, '_>) -> Result<(), Iperf2Error> {
    let failed = |source| Iperf2Error::System { what: "receive datagrams", source };
    let bounds = Bounds::of(&state.config.limits);
    thread::scope(|scope| {
        let mut receiver = UdpReceiver::new(state.context, socket, bounds).map_err(failed)?;
        let mut on_request = |request| state.reverse_udp(scope, socket, request);
        while !state.context.is_over() {
            receiver.step(&mut on_request).map_err(failed)?;
        }
        receiver.flows.close(clock::now());
        Ok(())
    })
}
