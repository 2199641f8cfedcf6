//! The client: runs one test.

mod config;

pub use config::{ClientConfig, MAX_STREAMS};

use crate::context::{Context, TICK};
use crate::credit::Budget;
use crate::error::Iperf2Error;
use crate::event::{Event, Label};
use crate::flows::{Bounds, UdpFlows};
use crate::meter::Meter;
use crate::sockets;
use crate::tcp::{self, Idle, Plan};
use crate::udp::{self, UdpPath};
use crate::udp_receiver::UdpReceiver;
use host::address::{self, with_port};
use host::resolve::resolve;
use host::stop::StopFlag;
use host::{clock, wait};
use iperf2_proto::{ClientHeader, Mode};
use std::io::{self, Write};
use std::net::{SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::os::fd::AsFd;
use std::thread;
use std::time::{Duration, Instant};

/// How much longer than requested the server may send.
const END_GRACE: Duration = Duration::from_secs(2);

/// Timeout for the server's reverse connection.
const REVERSE_TIMEOUT: Duration = Duration::from_secs(5);

/// Timeout without traffic.
const IDLE_TIMEOUT: Duration = Duration::from_secs(30);

/// The same over TCP: any byte counts.
const IDLE: Idle = Idle { timeout: IDLE_TIMEOUT, bytes: 1 };

/// Maximum duration of a test that ends by bytes: a day.
const MAX_DURATION: Duration = Duration::from_secs(86_400);

/// The state that the threads of a test share.
struct Session<'c, 'd> {
    config: &'c ClientConfig,
    context: &'c Context<'d>,
    peer: SocketAddr,
    plan: Plan,
    header: ClientHeader,
}

/// The socket for the server's reverse connection.
enum ReverseListener {
    Tcp(TcpListener),
    Udp(UdpSocket),
}

/// Runs one test. `on_event` is called from several threads.
///
/// # Errors
/// The configuration is invalid, the connection fails, or the test is aborted; earlier
/// reports remain valid.
pub fn run(
    config: &ClientConfig,
    on_event: &(dyn Fn(Event) + Sync),
    stop: &StopFlag,
) -> Result<(), Iperf2Error> {
    config.check()?;
    let context = Context::new(on_event, stop, config.interval);
    let peers = resolve(&config.host, config.port, config.family, None, &|| stop.is_raised())?
        .ok_or(Iperf2Error::Interrupted)?;
    let fits = |peer: &&SocketAddr| config.bind.is_none_or(|b| b.is_ipv4() == peer.is_ipv4());
    let Some(&first) = peers.iter().find(fits) else {
        return Err(Iperf2Error::Usage(
            "the address of -B and the server have different IP versions".into(),
        ));
    };
    let listener = listener(config, first, &context)?;
    let mut connections = Vec::new();
    let peer = if config.udp {
        first
    } else {
        let (peer, stream) = connect_any(config, &peers, on_event)?;
        connections.push(stream);
        peer
    };
    let length = config.block(peer.is_ipv6());
    let rate = config.pace.map(|pace| pace.bits_per_second(length));
    let default = if config.udp { iperf2_proto::DEFAULT_RATE } else { 0 };
    let header = ClientHeader {
        mode: config.mode,
        streams: config.streams,
        port: config.listen_port.unwrap_or(config.port).into(),
        length: config.length.unwrap_or(0),
        amount: config.amount,
        rate_bps: rate.unwrap_or(default),
        tos: config.options.tos.unwrap_or(0),
        acknowledged: false,
        no_report: config.udp && config.mode == Mode::FullDuplex,
    };
    let plan =
        Plan { length, pace: config.pace, amount: config.amount, max_duration: MAX_DURATION };
    let session = Session { config, context: &context, peer, plan, header };
    if config.udp {
        session.udp(listener.as_ref())
    } else {
        session.tcp(connections, listener.as_ref())
    }
}

/// Opens the port for the reverse connection before the server learns of it.
fn listener(
    config: &ClientConfig,
    peer: SocketAddr,
    context: &Context<'_>,
) -> Result<Option<ReverseListener>, Iperf2Error> {
    if !matches!(config.mode, Mode::Dual | Mode::TradeOff) {
        return Ok(None);
    }
    let port = config.listen_port.unwrap_or(config.port);
    let bind = Some(config.bind.unwrap_or(address::any_like(peer)));
    let reverse = if config.udp {
        ReverseListener::Udp(sockets::listen_udp(bind, port, &config.options)?)
    } else {
        let listener = sockets::listen(bind, port, &config.options)?;
        listener
            .set_nonblocking(true)
            .map_err(|source| Iperf2Error::System { what: "listen", source })?;
        ReverseListener::Tcp(listener)
    };
    (context.on_event)(Event::Listening { port });
    Ok(Some(reverse))
}

/// Connects to the first address that accepts.
fn connect_any(
    config: &ClientConfig,
    peers: &[SocketAddr],
    on_event: &(dyn Fn(Event) + Sync),
) -> Result<(SocketAddr, TcpStream), Iperf2Error> {
    let mut first = None;
    for &peer in peers {
        if config.bind.is_some_and(|bind| bind.is_ipv4() != peer.is_ipv4()) {
            continue;
        }
        match sockets::connect(peer, config.bind, &config.options) {
            Ok(stream) => {
                on_event(Event::Connecting { peer, buffer: sockets::buffer(&stream, true) });
                return Ok((peer, stream));
            }
            Err(error) => first = first.or(Some(error)),
        }
    }
    Err(first.unwrap_or(Iperf2Error::Interrupted))
}

/// The first error, if any.
fn first_error(
    results: impl IntoIterator<Item = Result<(), Iperf2Error>>,
) -> Result<(), Iperf2Error> {
    results.into_iter().fold(Ok(()), Result::and)
}

impl<'d> Session<'_, 'd> {
    fn aborted(&self, source: io::Error) -> Iperf2Error {
        Iperf2Error::Aborted { peer: self.peer, source }
    }

    /// The local address, a link-local one in the zone of the server.
    fn local_end(&self) -> Option<SocketAddr> {
        self.config.bind.map(|bind| address::beside(bind.ip(), bind.port(), self.peer))
    }

    /// The local address of a stream: a fixed port is incremented per stream.
    fn bind(&self, index: u32) -> Option<SocketAddr> {
        self.local_end().map(|bind| match bind.port() {
            0 => bind,
            port => with_port(bind, port.saturating_add(index.try_into().unwrap_or(0))),
        })
    }

    /// When the server must have finished.
    fn deadline(&self) -> Instant {
        self.plan.until(clock::now()) + END_GRACE
    }

    fn tcp(
        &self,
        mut streams: Vec<TcpStream>,
        listener: Option<&ReverseListener>,
    ) -> Result<(), Iperf2Error> {
        let (context, config) = (self.context, self.config);
        for index in 1..config.streams {
            streams.push(sockets::connect(self.peer, self.bind(index), &config.options)?);
        }
        let mut named = Vec::new();
        for stream in streams {
            let ends = sockets::ends(&stream).map_err(|error| self.aborted(error))?;
            let label = context.label(config.mode == Mode::Reverse);
            let tcp = sockets::connection_info(&stream);
            let (local, peer) = ends;
            (context.on_event)(Event::Connected { label, local, peer, mode: config.mode, tcp });
            // All streams join the group before the first one ends.
            let meter = Meter::new(context, label, ends, clock::now());
            let reverse = (config.mode == Mode::FullDuplex)
                .then(|| Meter::new(context, Label { reverse: true, ..label }, ends, clock::now()));
            named.push((stream, meter, reverse));
        }
        thread::scope(|scope| {
            let reverse = match (listener, config.mode) {
                (Some(ReverseListener::Tcp(listener)), Mode::Dual) => {
                    Some(scope.spawn(|| self.tcp_reverse(listener)))
                }
                _ => None,
            };
            let threads: Vec<_> = named
                .into_iter()
                .map(|(stream, meter, reverse)| {
                    scope.spawn(move || self.tcp_stream(&stream, meter, reverse))
                })
                .collect();
            let sent =
                first_error(threads.into_iter().map(|thread| thread.join().unwrap_or(Ok(()))));
            let reverse = match (listener, config.mode, reverse) {
                (.., Some(thread)) => thread.join().unwrap_or(Ok(())),
                (Some(ReverseListener::Tcp(listener)), Mode::TradeOff, None) if sent.is_ok() => {
                    self.tcp_reverse(listener)
                }
                _ => Ok(()),
            };
            sent.and(reverse)
        })
    }

    fn tcp_stream(
        &self,
        mut stream: &TcpStream,
        mut meter: Meter<'d>,
        reverse: Option<Meter<'d>>,
    ) -> Result<(), Iperf2Error> {
        let context = self.context;
        let head = self.header.encode();
        let result = stream.write_all(&head).and_then(|()| match (self.config.mode, reverse) {
            (Mode::Reverse, _) => {
                let until = Some(self.deadline());
                tcp::receive(context, stream, self.plan.length, until, meter, IDLE)
            }
            (_, reverse) => {
                meter.add(head.len());
                thread::scope(|both| {
                    let receiving = reverse.map(|reverse| {
                        let until = Some(self.deadline());
                        let length = self.plan.length;
                        both.spawn(move || {
                            tcp::receive(context, stream, length, until, reverse, IDLE)
                        })
                    });
                    let sent = tcp::send(context, stream, &self.plan, meter, IDLE);
                    match receiving {
                        Some(thread) => sent.and(thread.join().unwrap_or(Ok(()))),
                        None => {
                            tcp::drain(context, stream);
                            sent
                        }
                    }
                })
            }
        });
        result.map_err(|error| self.aborted(error))
    }

    /// Accepts as many connections from the server as there are streams.
    fn tcp_reverse(&self, listener: &TcpListener) -> Result<(), Iperf2Error> {
        let (context, config) = (self.context, self.config);
        let port = config.listen_port.unwrap_or(config.port);
        let until = clock::now() + REVERSE_TIMEOUT;
        let failed = |source| Iperf2Error::System { what: "wait for the server", source };
        thread::scope(|scope| {
            let mut threads = Vec::new();
            while threads.len() < config.streams as usize && !context.stop.is_raised() {
                if clock::now() >= until {
                    return Err(Iperf2Error::NoReverseConnection { peer: self.peer, port });
                }
                if wait::readable([listener.as_fd()], Some(TICK)).map_err(failed)? == [false] {
                    continue;
                }
                let Ok((stream, peer)) = listener.accept() else { continue };
                if peer.ip().to_canonical() != self.peer.ip().to_canonical() {
                    continue;
                }
                stream.set_nonblocking(false).map_err(failed)?;
                let (local, peer) = sockets::ends(&stream).map_err(failed)?;
                let label = context.label(true);
                let tcp = sockets::connection_info(&stream);
                (context.on_event)(Event::Connected {
                    label,
                    local,
                    peer,
                    mode: Mode::Normal,
                    tcp,
                });
                let meter = Meter::new(context, label, (local, peer), clock::now());
                let deadline = Some(self.deadline());
                threads.push(scope.spawn(move || {
                    tcp::receive(context, &stream, self.plan.length, deadline, meter, IDLE)
                }));
            }
            let results = threads.into_iter().map(|thread| thread.join().unwrap_or(Ok(())));
            first_error(results.map(|result| result.map_err(|error| self.aborted(error))))
        })
    }

    fn udp(&self, listener: Option<&ReverseListener>) -> Result<(), Iperf2Error> {
        let (context, config) = (self.context, self.config);
        let mut named = Vec::new();
        for index in 0..config.streams {
            let socket = sockets::connect_udp(self.peer, self.bind(index), &config.options)?;
            if index == 0 {
                let buffer = sockets::buffer(&socket, true);
                (context.on_event)(Event::Connecting { peer: self.peer, buffer });
            }
            let local = socket.local_addr().map_err(|error| self.aborted(error))?;
            let ends = (local, self.peer);
            let label = context.label(config.mode == Mode::Reverse);
            (context.on_event)(Event::Connected {
                label,
                local,
                peer: self.peer,
                mode: config.mode,
                tcp: None,
            });
            let meter = Meter::new(context, label, ends, clock::now());
            let reverse = (config.mode == Mode::FullDuplex)
                .then(|| Meter::new(context, Label { reverse: true, ..label }, ends, clock::now()));
            named.push((socket, meter, reverse));
        }
        thread::scope(|scope| {
            let reverse = match (listener, config.mode) {
                (Some(ReverseListener::Udp(socket)), Mode::Dual) => {
                    Some(scope.spawn(|| self.udp_reverse(socket)))
                }
                _ => None,
            };
            let threads: Vec<_> = named
                .into_iter()
                .map(|(socket, meter, reverse)| {
                    scope.spawn(move || {
                        self.udp_stream(&socket, meter, reverse)
                            .map_err(|error| self.aborted(error))
                    })
                })
                .collect();
            let sent =
                first_error(threads.into_iter().map(|thread| thread.join().unwrap_or(Ok(()))));
            let reverse = match (listener, config.mode, reverse) {
                (.., Some(thread)) => thread.join().unwrap_or(Ok(())),
                (Some(ReverseListener::Udp(socket)), Mode::TradeOff, None) if sent.is_ok() => {
                    self.udp_reverse(socket)
                }
                _ => Ok(()),
            };
            sent.and(reverse)
        })
    }

    fn udp_stream(
        &self,
        socket: &UdpSocket,
        meter: Meter<'d>,
        reverse: Option<Meter<'d>>,
    ) -> io::Result<()> {
        let (context, plan) = (self.context, &self.plan);
        let head = Some(self.header.encode_datagram());
        if self.config.mode == Mode::Reverse {
            let mut first = tcp::pattern(plan.length as usize);
            let number =
                iperf2_proto::Datagram { number: 1, last: false, sent: clock::unix_time() };
            number.encode(&mut first);
            if let (Some(field), Some(head)) = (first.get_mut(16..76), &head) {
                field.copy_from_slice(head);
            }
            socket.send(&first)?;
            return udp::receive(context, socket, self.deadline(), IDLE_TIMEOUT, meter);
        }
        thread::scope(|both| {
            let receiving = reverse.map(|reverse| {
                let until = self.deadline();
                both.spawn(move || udp::receive(context, socket, until, IDLE_TIMEOUT, reverse))
            });
            let stream = (meter.label(), meter.ends());
            let path = UdpPath::Connected(socket);
            let sent = udp::send(context, &path, plan, head.as_ref(), &Budget::Unlimited, meter);
            match receiving {
                Some(thread) => sent.map(drop).and(thread.join().unwrap_or(Ok(()))),
                // A group does not answer.
                None if self.peer.ip().is_multicast() => sent.map(drop),
                None => {
                    let (number, budget) = (sent?.number, &Budget::Unlimited);
                    let stream = Some(stream);
                    udp::await_report(context, socket, plan, head.as_ref(), budget, number, stream)
                }
            }
        })
    }

    /// Receives as many streams from the server as there are streams.
    fn udp_reverse(&self, socket: &UdpSocket) -> Result<(), Iperf2Error> {
        let (context, config) = (self.context, self.config);
        let port = config.listen_port.unwrap_or(config.port);
        let failed = |source| Iperf2Error::System { what: "receive datagrams", source };
        let count = config.streams as usize;
        let bounds = Bounds { streams: count, per_address: count, idle_timeout: IDLE_TIMEOUT };
        let mut receiver = UdpReceiver::new(context, socket, bounds)
            .map_err(failed)?
            .only_from(self.peer.ip().to_canonical());
        let until = self.deadline() + REVERSE_TIMEOUT;
        // With -d the reverse streams start at once, with -r after ours.
        let begins_by = clock::now() + REVERSE_TIMEOUT;
        let waits = |flows: &UdpFlows<'_, '_>| {
            let now = clock::now();
            now < until && (flows.has_started() || now < begins_by)
        };
        while receiver.flows.ended < count && !context.stop.is_raised() && waits(&receiver.flows) {
            receiver.step(&mut drop).map_err(failed)?;
        }
        let ended = receiver.flows.ended;
        // The server may ask again for a lost report.
        let linger = clock::now() + Duration::from_millis(300);
        while clock::now() < linger {
            receiver.step(&mut drop).map_err(failed)?;
        }
        receiver.flows.close(clock::now());
        if ended == 0 && !context.stop.is_raised() {
            return Err(Iperf2Error::NoReverseConnection { peer: self.peer, port });
        }
        Ok(())
    }
}
