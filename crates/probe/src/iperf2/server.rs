//! A server for many clients at the same time.

use super::desk::{Desk, TICK};
use super::error::Iperf2Error;
use super::event::Event;
use super::flows::Flows;
use super::open::{self, Options};
use super::serving::{Place, Serving};
use crate::StopFlag;
use host::{clock, wait};
use std::net::{IpAddr, SocketAddr, TcpListener, UdpSocket};
use std::os::fd::AsFd;
use std::sync::atomic::AtomicU32;
use std::thread;
use std::time::Duration;

/// What clients may take of a server.
#[derive(Debug, Clone)]
pub struct Limits {
    /// Streams at the same time, both ways counted.
    pub streams: u32,
    /// The longest that a client can have us send.
    pub duration: Duration,
    /// How long a stream may be silent, or take nothing.
    pub silence: Duration,
    /// How long a client may take to say what it wants.
    pub header: Duration,
    /// The highest rate that a client can have us send datagrams at.
    pub udp_rate_bps: u64,
    /// Who may have more datagrams sent than have come from there.
    pub trust: Trust,
}

/// Whose UDP addresses are believed. They can be forged: a server that answers
/// with more than has come is a weapon against whoever owns the address.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Trust {
    /// Nobody's.
    Nobody,
    /// The machine's own: the kernel lets none of them in from outside.
    #[default]
    Machine,
    /// Everybody's.
    Everybody,
}

impl Default for Limits {
    fn default() -> Self {
        Limits {
            streams: 128,
            duration: Duration::from_secs(3600),
            silence: Duration::from_secs(30),
            header: Duration::from_secs(4),
            udp_rate_bps: 10_000_000_000,
            trust: Trust::default(),
        }
    }
}

/// What a server is to be.
#[derive(Debug, Clone, Default)]
pub struct ServerConfig {
    /// Address to listen on; all of both IP versions where `None`.
    pub bind: Option<IpAddr>,
    /// Port; 0 for one that is free.
    pub port: u16,
    /// Datagrams instead of TCP.
    pub udp: bool,
    /// Bytes of a read.
    pub length: Option<u32>,
    /// Time between rows.
    pub interval: Option<Duration>,
    /// When to end.
    pub time: Option<Duration>,
    /// What sockets are given.
    pub options: Options,
    /// What clients may take.
    pub limits: Limits,
}

enum Door {
    Tcp(TcpListener),
    Udp(UdpSocket),
}

/// A server that listens.
pub struct Server {
    config: ServerConfig,
    door: Door,
    local: SocketAddr,
}

impl Server {
    /// Opens the port.
    ///
    /// # Errors
    /// The port or address cannot be had, or the system refuses an option.
    pub fn bind(config: &ServerConfig) -> Result<Self, Iperf2Error> {
        let system = |source| Iperf2Error::System { what: "listen", source };
        let (door, local) = if config.udp {
            let socket = open::listen_udp(config.bind, config.port, &config.options)?;
            let local = socket.local_addr().map_err(system)?;
            (Door::Udp(socket), local)
        } else {
            let listener = open::listen(config.bind, config.port, &config.options)?;
            listener.set_nonblocking(true).map_err(system)?;
            let local = listener.local_addr().map_err(system)?;
            (Door::Tcp(listener), local)
        };
        Ok(Server { config: config.clone(), door, local })
    }

    /// Where it listens.
    #[must_use]
    pub fn local_addr(&self) -> SocketAddr {
        self.local
    }

    /// The receive buffer of its socket, bytes, as the kernel counts it.
    #[must_use]
    pub fn buffer(&self) -> Option<u64> {
        match &self.door {
            Door::Tcp(listener) => open::buffer(listener, false),
            Door::Udp(socket) => open::buffer(socket, false),
        }
    }

    /// Serves until the stop or the time. `tell` is called from many threads.
    ///
    /// # Errors
    /// The system refuses to wait, or to take what comes.
    pub fn serve(&self, stop: &StopFlag, tell: &(dyn Fn(Event) + Sync)) -> Result<(), Iperf2Error> {
        let mut desk = Desk::new(tell, stop, self.config.interval);
        desk.until = self.config.time.map(|time| clock::now() + time);
        let taken = AtomicU32::new(0);
        let serving = Serving { desk: &desk, config: &self.config, taken: &taken };
        match &self.door {
            Door::Tcp(listener) => serve_tcp(listener, &serving),
            Door::Udp(socket) => serve_udp(socket, &serving),
        }
    }
}

fn serve_tcp(listener: &TcpListener, serving: &Serving<'_, '_>) -> Result<(), Iperf2Error> {
    let failed = |source| Iperf2Error::System { what: "wait for clients", source };
    thread::scope(|scope| {
        while !serving.desk.is_over() {
            if wait::readable([listener.as_fd()], Some(TICK)).map_err(failed)? == [false] {
                continue;
            }
            // One that left again is no reason to end; out of descriptors passes.
            let Ok((stream, peer)) = listener.accept() else {
                thread::sleep(Duration::from_millis(1));
                continue;
            };
            if stream.set_nonblocking(false).is_err() {
                continue;
            }
            match Place::take(serving.taken, serving.config.limits.streams) {
                Some(place) => {
                    scope.spawn(move || serving.tcp(scope, stream, place));
                }
                None => {
                    let why = "all streams are taken; wait, or raise --max-streams".to_owned();
                    (serving.desk.tell)(Event::Trouble { peer: open::plain(peer), why });
                }
            }
        }
        Ok(())
    })
}

fn serve_udp(socket: &UdpSocket, serving: &Serving<'_, '_>) -> Result<(), Iperf2Error> {
    let failed = |source| Iperf2Error::System { what: "receive datagrams", source };
    let limits = &serving.config.limits;
    let most = usize::try_from(limits.streams).unwrap_or(usize::MAX);
    thread::scope(|scope| {
        let mut flows = Flows::new(serving.desk, socket, most, limits.silence).map_err(failed)?;
        let mut asked = |asked| serving.udp(scope, socket, asked);
        while !serving.desk.is_over() {
            flows.step(&mut asked).map_err(failed)?;
        }
        flows.close();
        Ok(())
    })
}
