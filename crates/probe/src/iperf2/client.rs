//! A client: one test.

use super::desk::{Desk, TICK};
use super::error::Iperf2Error;
use super::event::{Event, Label};
use super::flows::Flows;
use super::meter::Meter;
use super::open::{self, Options};
use super::tcp::{self, Plan};
use super::udp::{self, Budget, Way};
use crate::StopFlag;
use host::{clock, wait};
use iperf2::{Amount, ClientHeader, Mode, Pace};
use std::io::{self, Write};
use std::net::{SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::os::fd::AsFd;
use std::thread;
use std::time::{Duration, Instant};

/// How much longer than it was asked the other end may send.
const SLOP: Duration = Duration::from_secs(2);

/// How long a server may take to begin the other way.
const WAY_BACK: Duration = Duration::from_secs(5);

/// How long nothing may move.
const SILENCE: Duration = Duration::from_secs(30);

/// A test that ends by bytes lasts a day at most.
const DAY: Duration = Duration::from_secs(86_400);

/// Streams of one test.
pub const MOST_STREAMS: u32 = 128;

/// The test that is wanted.
#[derive(Debug, Clone)]
pub struct ClientConfig {
    /// Name or address of the server.
    pub host: String,
    /// Its port.
    pub port: u16,
    /// IPv6 or IPv4 alone; whatever the name has where `None`.
    pub v6: Option<bool>,
    /// Our address and port; port 0 for one that is free.
    pub bind: Option<SocketAddr>,
    /// Datagrams instead of TCP.
    pub udp: bool,
    /// Who sends.
    pub mode: Mode,
    /// Streams, 1 to [`MOST_STREAMS`].
    pub streams: u32,
    /// When it ends.
    pub amount: Amount,
    /// Bytes of a write or datagram.
    pub length: Option<u32>,
    /// Rate of each stream; unlimited over TCP, 1M over UDP where `None`.
    pub pace: Option<Pace>,
    /// Time between rows.
    pub interval: Option<Duration>,
    /// Where to listen for the other way of `-d` and `-r`.
    pub listen_port: Option<u16>,
    /// What sockets are given.
    pub options: Options,
}

impl ClientConfig {
    /// Ten seconds over one TCP connection.
    #[must_use]
    pub fn new(host: &str) -> Self {
        ClientConfig {
            host: host.to_owned(),
            port: iperf2::DEFAULT_PORT,
            v6: None,
            bind: None,
            udp: false,
            mode: Mode::Normal,
            streams: 1,
            amount: Amount::Time(Duration::from_secs(10)),
            length: None,
            pace: None,
            interval: None,
            listen_port: None,
            options: Options::default(),
        }
    }

    /// Bytes of a write or datagram to a server of one IP version.
    #[must_use]
    pub fn block(&self, v6: bool) -> u32 {
        self.length.unwrap_or(match (self.udp, v6) {
            (false, _) => iperf2::DEFAULT_BLOCK,
            (true, false) => iperf2::DEFAULT_DATAGRAM_V4,
            (true, true) => iperf2::DEFAULT_DATAGRAM_V6,
        })
    }

    fn check(&self) -> Result<(), Iperf2Error> {
        let usage = |line: String| Err(Iperf2Error::Usage(line));
        if !(1..=MOST_STREAMS).contains(&self.streams) {
            return usage(format!("-P {}: give 1 to {MOST_STREAMS} streams", self.streams));
        }
        // The header stands in every datagram.
        let least = if self.udp { 76 } else { 1 };
        let most = if self.udp { udp::LONGEST } else { 1 << 24 };
        match self.length {
            Some(length) if !(least..=most).contains(&length) => {
                usage(format!("-l {length}: give {least} to {most} bytes"))
            }
            _ => Ok(()),
        }
    }
}

/// One test's threads and what they share.
struct Session<'c, 'd> {
    config: &'c ClientConfig,
    desk: &'c Desk<'d>,
    peer: SocketAddr,
    plan: Plan,
    header: ClientHeader,
}

/// Where the server sends back to.
enum WayBack {
    Tcp(TcpListener),
    Udp(UdpSocket),
}

/// Makes one test. `tell` is called from many threads.
///
/// # Errors
/// What was asked cannot be, nobody answers, or the test breaks off; then rows
/// told so far still hold.
pub fn run(
    config: &ClientConfig,
    tell: &(dyn Fn(Event) + Sync),
    stop: &StopFlag,
) -> Result<(), Iperf2Error> {
    config.check()?;
    let desk = Desk::new(tell, stop, config.interval);
    let peers = open::resolve(&config.host, config.port, config.v6, stop)?;
    let fits = |peer: &&SocketAddr| config.bind.is_none_or(|b| b.is_ipv4() == peer.is_ipv4());
    let Some(&first) = peers.iter().find(fits) else {
        return Err(Iperf2Error::Usage("-B and the server are of different IP versions".into()));
    };
    let listener = listener(config, first, &desk)?;
    let mut connections = Vec::new();
    let peer = if config.udp {
        first
    } else {
        let (peer, stream) = reach(config, &peers, tell)?;
        connections.push(stream);
        peer
    };
    let length = config.block(peer.is_ipv6());
    let rate = config.pace.map(|pace| pace.bits_per_second(length));
    let default = if config.udp { iperf2::DEFAULT_RATE } else { 0 };
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
    let plan = Plan { length, pace: config.pace, amount: config.amount, most: DAY };
    let session = Session { config, desk: &desk, peer, plan, header };
    if config.udp {
        session.udp(listener.as_ref())
    } else {
        session.tcp(connections, listener.as_ref())
    }
}

/// The port for the other way, open before the server is told of it.
fn listener(
    config: &ClientConfig,
    peer: SocketAddr,
    desk: &Desk<'_>,
) -> Result<Option<WayBack>, Iperf2Error> {
    if !matches!(config.mode, Mode::Dual | Mode::TradeOff) {
        return Ok(None);
    }
    let port = config.listen_port.unwrap_or(config.port);
    let bind = config.bind.map(|bind| bind.ip());
    let any = if peer.is_ipv4() { [0, 0, 0, 0].into() } else { [0u16; 8].into() };
    let bind = Some(bind.unwrap_or(any));
    let way = if config.udp {
        WayBack::Udp(open::listen_udp(bind, port, &config.options)?)
    } else {
        let listener = open::listen(bind, port, &config.options)?;
        listener
            .set_nonblocking(true)
            .map_err(|source| Iperf2Error::System { what: "listen", source })?;
        WayBack::Tcp(listener)
    };
    (desk.tell)(Event::Listening { port });
    Ok(Some(way))
}

/// The first address that answers.
fn reach(
    config: &ClientConfig,
    peers: &[SocketAddr],
    tell: &(dyn Fn(Event) + Sync),
) -> Result<(SocketAddr, TcpStream), Iperf2Error> {
    let mut first = None;
    for &peer in peers {
        if config.bind.is_some_and(|bind| bind.is_ipv4() != peer.is_ipv4()) {
            continue;
        }
        match open::connect(peer, config.bind, &config.options) {
            Ok(stream) => {
                tell(Event::Connecting { peer, buffer: open::buffer(&stream, true) });
                return Ok((peer, stream));
            }
            Err(error) => first = first.or(Some(error)),
        }
    }
    Err(first.unwrap_or(Iperf2Error::Interrupted))
}

/// The first of several results that is an error.
fn all(results: impl IntoIterator<Item = Result<(), Iperf2Error>>) -> Result<(), Iperf2Error> {
    results.into_iter().fold(Ok(()), Result::and)
}

impl<'d> Session<'_, 'd> {
    fn broken(&self, source: io::Error) -> Iperf2Error {
        Iperf2Error::Broken { peer: self.peer, source }
    }

    /// Our address for the next stream: a port that was asked serves one.
    fn bind(&self, index: u32) -> Option<SocketAddr> {
        self.config.bind.map(|bind| match bind.port() {
            0 => bind,
            port => SocketAddr::new(bind.ip(), port.saturating_add(index.try_into().unwrap_or(0))),
        })
    }

    /// When the other end should long have been done.
    fn patience(&self) -> Instant {
        self.plan.until(clock::now()) + SLOP
    }

    fn tcp(
        &self,
        mut streams: Vec<TcpStream>,
        listener: Option<&WayBack>,
    ) -> Result<(), Iperf2Error> {
        let (desk, config) = (self.desk, self.config);
        for index in 1..config.streams {
            streams.push(open::connect(self.peer, self.bind(index), &config.options)?);
        }
        let mut named = Vec::new();
        for stream in streams {
            let ends = open::ends(&stream).map_err(|error| self.broken(error))?;
            let label = desk.label(config.mode == Mode::Reverse);
            let tcp = open::facts(&stream);
            let (local, peer) = ends;
            (desk.tell)(Event::Connected { label, local, peer, mode: config.mode, tcp });
            // All are counted before the first one ends, so that they are summed.
            let meter = Meter::new(desk, label, ends, clock::now());
            let back = (config.mode == Mode::FullDuplex)
                .then(|| Meter::new(desk, Label { other_way: true, ..label }, ends, clock::now()));
            named.push((stream, meter, back));
        }
        thread::scope(|scope| {
            let back = match (listener, config.mode) {
                (Some(WayBack::Tcp(listener)), Mode::Dual) => {
                    Some(scope.spawn(|| self.tcp_back(listener)))
                }
                _ => None,
            };
            let threads: Vec<_> = named
                .into_iter()
                .map(|(stream, meter, back)| {
                    scope.spawn(move || self.tcp_stream(&stream, meter, back))
                })
                .collect();
            let sent = all(threads.into_iter().map(|thread| thread.join().unwrap_or(Ok(()))));
            let back = match (listener, config.mode, back) {
                (.., Some(thread)) => thread.join().unwrap_or(Ok(())),
                (Some(WayBack::Tcp(listener)), Mode::TradeOff, None) if sent.is_ok() => {
                    self.tcp_back(listener)
                }
                _ => Ok(()),
            };
            sent.and(back)
        })
    }

    fn tcp_stream(
        &self,
        mut stream: &TcpStream,
        mut meter: Meter<'d>,
        back: Option<Meter<'d>>,
    ) -> Result<(), Iperf2Error> {
        let desk = self.desk;
        let head = self.header.encode();
        let result = stream.write_all(&head).and_then(|()| match (self.config.mode, back) {
            (Mode::Reverse, _) => {
                let until = Some(self.patience());
                tcp::receive(desk, stream, self.plan.length, until, meter, SILENCE)
            }
            (_, back) => {
                meter.add(head.len());
                thread::scope(|both| {
                    let receiving = back.map(|back| {
                        let until = Some(self.patience());
                        let length = self.plan.length;
                        both.spawn(move || tcp::receive(desk, stream, length, until, back, SILENCE))
                    });
                    let sent = tcp::send(desk, stream, &self.plan, meter, SILENCE);
                    match receiving {
                        Some(thread) => sent.and(thread.join().unwrap_or(Ok(()))),
                        None => {
                            tcp::drain(desk, stream);
                            sent
                        }
                    }
                })
            }
        });
        result.map_err(|error| self.broken(error))
    }

    /// Takes the server's connections, as many as ours.
    fn tcp_back(&self, listener: &TcpListener) -> Result<(), Iperf2Error> {
        let (desk, config) = (self.desk, self.config);
        let port = config.listen_port.unwrap_or(config.port);
        let until = clock::now() + WAY_BACK;
        let system = |source| Iperf2Error::System { what: "wait for the server", source };
        thread::scope(|scope| {
            let mut threads = Vec::new();
            while threads.len() < config.streams as usize && !desk.stop.is_raised() {
                if clock::now() >= until {
                    return Err(Iperf2Error::NoWayBack { peer: self.peer, port });
                }
                if wait::readable([listener.as_fd()], Some(TICK)).map_err(system)? == [false] {
                    continue;
                }
                let Ok((stream, peer)) = listener.accept() else { continue };
                if peer.ip().to_canonical() != self.peer.ip().to_canonical() {
                    continue;
                }
                stream.set_nonblocking(false).map_err(system)?;
                let (local, peer) = open::ends(&stream).map_err(system)?;
                let label = desk.label(true);
                let tcp = open::facts(&stream);
                (desk.tell)(Event::Connected { label, local, peer, mode: Mode::Normal, tcp });
                let meter = Meter::new(desk, label, (local, peer), clock::now());
                let patience = Some(self.patience());
                threads.push(scope.spawn(move || {
                    tcp::receive(desk, &stream, self.plan.length, patience, meter, SILENCE)
                }));
            }
            let results = threads.into_iter().map(|thread| thread.join().unwrap_or(Ok(())));
            all(results.map(|result| result.map_err(|error| self.broken(error))))
        })
    }

    fn udp(&self, listener: Option<&WayBack>) -> Result<(), Iperf2Error> {
        let (desk, config) = (self.desk, self.config);
        let mut named = Vec::new();
        for index in 0..config.streams {
            let socket = open::dial(self.peer, self.bind(index), &config.options)?;
            if index == 0 {
                let buffer = open::buffer(&socket, true);
                (desk.tell)(Event::Connecting { peer: self.peer, buffer });
            }
            let local = socket.local_addr().map_err(|error| self.broken(error))?;
            let ends = (local, self.peer);
            let label = desk.label(config.mode == Mode::Reverse);
            (desk.tell)(Event::Connected {
                label,
                local,
                peer: self.peer,
                mode: config.mode,
                tcp: None,
            });
            let meter = Meter::new(desk, label, ends, clock::now());
            let back = (config.mode == Mode::FullDuplex)
                .then(|| Meter::new(desk, Label { other_way: true, ..label }, ends, clock::now()));
            named.push((socket, meter, back));
        }
        thread::scope(|scope| {
            let back = match (listener, config.mode) {
                (Some(WayBack::Udp(socket)), Mode::Dual) => {
                    Some(scope.spawn(|| self.udp_back(socket)))
                }
                _ => None,
            };
            let threads: Vec<_> = named
                .into_iter()
                .map(|(socket, meter, back)| {
                    scope.spawn(move || {
                        self.udp_stream(&socket, meter, back).map_err(|error| self.broken(error))
                    })
                })
                .collect();
            let sent = all(threads.into_iter().map(|thread| thread.join().unwrap_or(Ok(()))));
            let back = match (listener, config.mode, back) {
                (.., Some(thread)) => thread.join().unwrap_or(Ok(())),
                (Some(WayBack::Udp(socket)), Mode::TradeOff, None) if sent.is_ok() => {
                    self.udp_back(socket)
                }
                _ => Ok(()),
            };
            sent.and(back)
        })
    }

    fn udp_stream(
        &self,
        socket: &UdpSocket,
        meter: Meter<'d>,
        back: Option<Meter<'d>>,
    ) -> io::Result<()> {
        let (desk, plan) = (self.desk, &self.plan);
        let head = Some(self.header.encode_datagram());
        if self.config.mode == Mode::Reverse {
            let mut first = tcp::pattern(plan.length as usize);
            let number = iperf2::Datagram { number: 1, last: false, sent: clock::unix_time() };
            number.encode(&mut first);
            if let (Some(room), Some(head)) = (first.get_mut(16..76), &head) {
                room.copy_from_slice(head);
            }
            socket.send(&first)?;
            return udp::receive(desk, socket, self.patience(), SILENCE, meter);
        }
        thread::scope(|both| {
            let receiving = back.map(|back| {
                let until = self.patience();
                both.spawn(move || udp::receive(desk, socket, until, SILENCE, back))
            });
            let told = (meter.label(), meter.ends());
            let way = Way::Connected(socket);
            let sent = udp::send(desk, &way, plan, head.as_ref(), &Budget::Unlimited, meter);
            match receiving {
                Some(thread) => sent.map(drop).and(thread.join().unwrap_or(Ok(()))),
                None => {
                    let number = sent?;
                    udp::await_report(desk, socket, plan, head.as_ref(), number, told)
                }
            }
        })
    }

    /// Takes the server's streams, as many as ours.
    fn udp_back(&self, socket: &UdpSocket) -> Result<(), Iperf2Error> {
        let (desk, config) = (self.desk, self.config);
        let port = config.listen_port.unwrap_or(config.port);
        let system = |source| Iperf2Error::System { what: "receive datagrams", source };
        let most = config.streams as usize;
        let mut flows = Flows::new(desk, socket, most, SILENCE)
            .map_err(system)?
            .only_from(self.peer.ip().to_canonical());
        let until = self.patience() + WAY_BACK;
        // Beside our own stream theirs begins at once, otherwise after it.
        let begins_by = clock::now() + WAY_BACK;
        let waits = |flows: &Flows| {
            let now = clock::now();
            now < until && (flows.has_begun() || now < begins_by)
        };
        while flows.ended < most && !desk.stop.is_raised() && waits(&flows) {
            flows.step(&mut drop).map_err(system)?;
        }
        let ended = flows.ended;
        // A report that is lost is asked for again.
        let linger = clock::now() + Duration::from_millis(300);
        while clock::now() < linger {
            flows.step(&mut drop).map_err(system)?;
        }
        flows.close();
        if ended == 0 && !desk.stop.is_raised() {
            return Err(Iperf2Error::NoWayBack { peer: self.peer, port });
        }
        Ok(())
    }
}
