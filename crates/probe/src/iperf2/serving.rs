//! What a server does with one client's stream.

use super::desk::Desk;
use super::error::Iperf2Error;
use super::event::Event;
use super::flows::Asked;
use super::meter::Meter;
use super::server::{ServerConfig, Trust};
use super::tcp::{self, Plan, may_go_on};
use super::udp::{self, Budget, Way};
use super::{open, tcp::drain};
use host::clock;
use iperf2::{ClientHeader, Mode, Opening, Pace, header};
use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream, UdpSocket};
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread::{self, Scope};
use std::time::Duration;

/// The longest write a client may ask for.
const LONGEST_BLOCK: u32 = 1 << 20;

/// The lowest port we connect back to: those below belong to services.
const LOWEST_PORT: u32 = 1024;

/// One of the streams a server carries at the same time.
pub(crate) struct Place<'d>(&'d AtomicU32);

impl<'d> Place<'d> {
    /// `None` where all are taken.
    pub(crate) fn take(taken: &'d AtomicU32, most: u32) -> Option<Self> {
        let add = |now| (now < most).then_some(now + 1);
        taken.fetch_update(Ordering::Relaxed, Ordering::Relaxed, add).ok()?;
        Some(Place(taken))
    }
}

impl Drop for Place<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

pub(crate) struct Serving<'a, 'd> {
    pub(crate) desk: &'d Desk<'a>,
    pub(crate) config: &'d ServerConfig,
    pub(crate) taken: &'d AtomicU32,
}

impl<'a, 'd> Serving<'a, 'd>
where
    'a: 'd,
{
    fn trouble(&self, peer: SocketAddr, why: &dyn ToString) {
        (self.desk.tell)(Event::Trouble { peer: open::plain(peer), why: why.to_string() });
    }

    pub(crate) fn tcp<'s>(
        &'s self,
        scope: &'s Scope<'s, '_>,
        mut stream: TcpStream,
        place: Place<'s>,
    ) {
        let Ok((local, peer)) = open::ends(&stream) else { return };
        let begun = clock::now();
        match self.greet(&mut stream) {
            Ok(Some((header, read))) => {
                let _place = place;
                if let Err(error) = self.test(scope, &stream, (local, peer), header, read, begun) {
                    self.trouble(peer, &error);
                }
            }
            // Whoever connects and says nothing is no client.
            Ok(None) => {}
            Err(why) => self.trouble(peer, &why),
        }
    }

    /// Reads what the client asks, and how many bytes that took.
    fn greet(
        &self,
        stream: &mut TcpStream,
    ) -> Result<Option<(Option<ClientHeader>, usize)>, String> {
        let mut bytes = [0; header::LONGEST];
        let mut first = [0; 4];
        if !self.fill(stream, &mut first)? {
            return Ok(None);
        }
        let length = match Opening::of(first) {
            Opening::Data => return Ok(Some((None, first.len()))),
            Opening::NotCarried(what) => return Err(format!("asks for {what}: not carried here")),
            Opening::Header(length) => length,
        };
        bytes[..4].copy_from_slice(&first);
        let whole = bytes.get_mut(4..length).ok_or("its header is too long")?;
        if !self.fill(stream, whole)? {
            return Err("left in the middle of its header".to_owned());
        }
        let header = ClientHeader::decode(&bytes[..length])
            .map_err(|what| format!("asks for {what}: not carried here"))?;
        if header.is_some_and(|header| header.acknowledged) {
            stream.write_all(&header::ACKNOWLEDGEMENT).map_err(|error| error.to_string())?;
        }
        Ok(Some((header, length)))
    }

    /// Fills the buffer; not where the client closes or takes too long.
    fn fill(&self, stream: &mut TcpStream, buffer: &mut [u8]) -> Result<bool, String> {
        let until = clock::now() + self.config.limits.header;
        let failed = |error: io::Error| error.to_string();
        stream.set_read_timeout(Some(super::desk::TICK)).map_err(failed)?;
        let mut filled = 0;
        while filled < buffer.len() {
            match stream.read(&mut buffer[filled..]) {
                Ok(0) => return Ok(false),
                Ok(read) => filled += read,
                Err(error) if may_go_on(&error) => {
                    if clock::now() >= until || self.desk.is_over() {
                        return Ok(false);
                    }
                }
                Err(error) => return Err(failed(error)),
            }
        }
        Ok(true)
    }

    fn test<'s>(
        &'s self,
        scope: &'s Scope<'s, '_>,
        stream: &TcpStream,
        (local, peer): (SocketAddr, SocketAddr),
        header: Option<ClientHeader>,
        read: usize,
        begun: std::time::Instant,
    ) -> Result<(), Iperf2Error> {
        let broken = |source| Iperf2Error::Broken { peer, source };
        let (desk, limits) = (self.desk, &self.config.limits);
        let mode = header.map_or(Mode::Normal, |header| header.mode);
        let label = desk.label(false);
        let tcp = open::facts(stream);
        (desk.tell)(Event::Connected { label, local, peer, mode, tcp });
        let ends = (local, peer);
        let plan = header.map(|header| self.plan(&header, false));
        if let (Mode::Reverse, Some(plan)) = (mode, plan) {
            let meter = Meter::new(desk, label, ends, begun);
            let sent = tcp::send(desk, stream, &plan, meter, limits.silence);
            drain(desk, stream);
            return sent.map_err(broken);
        }
        let length = self.config.length.unwrap_or(iperf2::DEFAULT_BLOCK);
        let mut meter = Meter::new(desk, label, ends, begun);
        meter.add(read);
        let receive =
            |meter| tcp::receive(desk, stream, length, None, meter, limits.silence).map_err(broken);
        match (mode, header, plan) {
            (Mode::FullDuplex, _, Some(plan)) => thread::scope(|both| {
                let other = super::Label { other_way: true, ..label };
                let sending = Meter::new(desk, other, ends, begun);
                let send =
                    both.spawn(move || tcp::send(desk, stream, &plan, sending, limits.silence));
                let received = receive(meter);
                let sent = send.join().unwrap_or(Ok(()));
                received.and(sent.map_err(broken))
            }),
            (Mode::Dual, Some(header), Some(plan)) => {
                if let Some(place) = Place::take(self.taken, limits.streams) {
                    scope.spawn(move || {
                        let _place = place;
                        if let Err(error) = self.connect_back(ends, &header, &plan) {
                            self.trouble(peer, &error);
                        }
                    });
                } else {
                    self.trouble(peer, &"no place is left for the other way (--max-streams)");
                }
                receive(meter)
            }
            (Mode::TradeOff, Some(header), Some(plan)) => {
                receive(meter)?;
                let _ = stream.shutdown(std::net::Shutdown::Both);
                self.connect_back(ends, &header, &plan)
            }
            _ => receive(meter),
        }
    }

    /// The other way of `-d` and `-r`: only to the address that asked over an
    /// established connection.
    fn connect_back(
        &self,
        (local, peer): (SocketAddr, SocketAddr),
        header: &ClientHeader,
        plan: &Plan,
    ) -> Result<(), Iperf2Error> {
        let (desk, limits) = (self.desk, &self.config.limits);
        let peer = SocketAddr::new(peer.ip(), port(header)?);
        let stream = self.reach_back(peer, SocketAddr::new(local.ip(), 0))?;
        let buffer = open::buffer(&stream, true);
        (desk.tell)(Event::Connecting { peer, buffer });
        let broken = |source| Iperf2Error::Broken { peer, source };
        let ends = open::ends(&stream).map_err(broken)?;
        let label = desk.label(true);
        let tcp = open::facts(&stream);
        let mode = Mode::Reverse;
        (desk.tell)(Event::Connected { label, local: ends.0, peer: ends.1, mode, tcp });
        let meter = Meter::new(desk, label, ends, clock::now());
        let sent = tcp::send(desk, &stream, plan, meter, limits.silence);
        drain(desk, &stream);
        sent.map_err(broken)
    }

    /// A client of `-d` asks before it listens: on a busy machine its port opens
    /// a while after its header came. Eight tries within 1.3 s.
    fn reach_back(&self, peer: SocketAddr, bind: SocketAddr) -> Result<TcpStream, Iperf2Error> {
        let mut pause = Duration::from_millis(10);
        loop {
            match open::connect(peer, Some(bind), &self.config.options) {
                Err(Iperf2Error::Connect { source, .. })
                    if source.kind() == io::ErrorKind::ConnectionRefused
                        && pause < Duration::from_secs(1)
                        && !self.desk.is_over() => {}
                done => return done,
            }
            thread::sleep(pause);
            pause *= 2;
        }
    }

    /// What a header asks for, within the limits.
    fn plan(&self, header: &ClientHeader, udp: bool) -> Plan {
        let limits = &self.config.limits;
        let (default, least, most) = if udp {
            (iperf2::DEFAULT_DATAGRAM_V6, 16, udp::LONGEST)
        } else {
            (iperf2::DEFAULT_BLOCK, 1, LONGEST_BLOCK)
        };
        let length = if header.length == 0 { default } else { header.length.clamp(least, most) };
        let rate = match header.rate_bps {
            0 if udp => Some(iperf2::DEFAULT_RATE),
            0 => None,
            rate if udp => Some(rate.min(limits.udp_rate_bps)),
            rate => Some(rate),
        };
        Plan { length, pace: rate.map(Pace::Bits), amount: header.amount, most: limits.duration }
    }

    /// What a UDP stream asks for, if it may have it.
    pub(crate) fn udp<'s>(&'s self, scope: &'s Scope<'s, '_>, socket: &'s UdpSocket, asked: Asked) {
        let trusted = match self.config.limits.trust {
            Trust::Nobody => false,
            Trust::Machine => asked.peer.ip().to_canonical().is_loopback(),
            Trust::Everybody => true,
        };
        let now = match asked.header.mode {
            Mode::Normal => return,
            Mode::TradeOff => asked.ended,
            Mode::Dual | Mode::Reverse | Mode::FullDuplex => !asked.ended,
        };
        if !now {
            return;
        }
        if asked.header.mode == Mode::Reverse && !trusted {
            self.trouble(
                asked.peer,
                &"asks for -u -R: one forged datagram would have this server flood anybody; \
                 let it with --trust-udp, or use --full-duplex",
            );
            return;
        }
        let budget = if trusted { Budget::Unlimited } else { Budget::Came(asked.came) };
        let Some(place) = Place::take(self.taken, self.config.limits.streams) else {
            self.trouble(asked.peer, &"no place is left for the other way (--max-streams)");
            return;
        };
        let (peer, header) = (asked.peer, asked.header);
        scope.spawn(move || {
            let _place = place;
            if let Err(error) = self.send_back(socket, peer, &header, &budget) {
                self.trouble(peer, &error);
            }
        });
    }

    fn send_back(
        &self,
        socket: &UdpSocket,
        peer: SocketAddr,
        header: &ClientHeader,
        budget: &Budget,
    ) -> Result<(), Iperf2Error> {
        let desk = self.desk;
        let mut plan = self.plan(header, true);
        if header.length == 0 && open::plain(peer).is_ipv4() {
            plan.length = iperf2::DEFAULT_DATAGRAM_V4;
        }
        let failed = |source| Iperf2Error::Broken { peer: open::plain(peer), source };
        let mode = header.mode;
        // Where the server alone sends, that is the usual way.
        let label = desk.label(mode != Mode::Reverse);
        if matches!(mode, Mode::Reverse | Mode::FullDuplex) {
            let local = open::plain(socket.local_addr().map_err(failed)?);
            let local = open::local_towards(local, peer);
            let ends = (local, open::plain(peer));
            (desk.tell)(Event::Connected { label, local, peer: ends.1, mode, tcp: None });
            let meter = Meter::new(desk, label, ends, clock::now());
            let way = Way::To(socket, peer);
            return udp::send(desk, &way, &plan, None, budget, meter).map(drop).map_err(failed);
        }
        let peer = SocketAddr::new(peer.ip().to_canonical(), port(header)?);
        let socket = open::dial(peer, None, &self.config.options)?;
        let buffer = open::buffer(&socket, true);
        (desk.tell)(Event::Connecting { peer, buffer });
        let local = socket.local_addr().map_err(failed)?;
        (desk.tell)(Event::Connected { label, local, peer, mode: Mode::Reverse, tcp: None });
        // Time for its socket, where both run on one machine.
        thread::sleep(Duration::from_millis(1));
        let meter = Meter::new(desk, label, (local, peer), clock::now());
        let told = (meter.label(), meter.ends());
        let way = Way::Connected(&socket);
        let number = udp::send(desk, &way, &plan, None, budget, meter).map_err(failed)?;
        udp::await_report(desk, &socket, &plan, None, number, told).map_err(failed)
    }
}

fn port(header: &ClientHeader) -> Result<u16, Iperf2Error> {
    let fits = u16::try_from(header.port).ok().filter(|_| header.port >= LOWEST_PORT);
    fits.ok_or_else(|| {
        Iperf2Error::Usage(format!(
            "its -L asks for port {}: only {LOWEST_PORT} to 65535 are connected back to",
            header.port
        ))
    })
}
