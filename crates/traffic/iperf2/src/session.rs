//! Serves one TCP connection of a client.

use crate::context::{self, Context};
use crate::error::Iperf2Error;
use crate::event::Event;
use crate::meter::{Meter, Start};
use crate::server::ServerConfig;
use crate::slots::{Slot, StreamSlots};
use crate::tcp::{self, Idle, Plan, is_retryable};
use crate::{sockets, tcp::drain, udp};
use host::address::with_port;
use host::clock;
use iperf2_proto::{Amount, ClientHeader, Mode, Pace, Preamble, header};
use problem::Field;
use socket2::SockRef;
use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::thread::{self, Scope};
use std::time::{Duration, Instant};

/// A connection's first bytes that are not a header that this server takes.
#[derive(Debug, thiserror::Error)]
enum HeaderError {
    #[error("refused {0}: not supported")]
    Unsupported(&'static str),
    #[error("the header is too long")]
    TooLong,
    #[error("the header is incomplete")]
    Incomplete,
    #[error(transparent)]
    Io(#[from] io::Error),
}

/// Maximum block length that a client may request, bytes: the buffer of a stream.
const MAX_BLOCK: u32 = iperf2_proto::DEFAULT_BLOCK;

/// Minimum port for reverse connections: lower ones belong to services.
const MIN_PORT: u32 = 1024;

/// The state that the threads of a server share.
pub(crate) struct ServerState<'a, 'd> {
    pub(crate) context: &'d Context<'a>,
    pub(crate) config: &'d ServerConfig,
    pub(crate) slots: &'d StreamSlots,
}

impl<'a, 'd> ServerState<'a, 'd>
where
    'a: 'd,
{
    /// When a TCP stream counts as idle.
    fn idle(&self) -> Idle {
        let limits = &self.config.limits;
        Idle { timeout: limits.idle_timeout, bytes: limits.min_progress }
    }

    /// When a client must have finished sending: after the time that it announced, or the
    /// maximum.
    fn receive_deadline(&self, header: Option<&ClientHeader>, begun: Instant) -> Instant {
        let limits = &self.config.limits;
        let announced = match header.map(|header| header.amount) {
            Some(Amount::Time(time)) => time.min(limits.duration),
            Some(Amount::Bytes(_)) | None => limits.duration,
        };
        begun + announced + limits.grace
    }

    pub(crate) fn tcp<'s>(
        &'s self,
        scope: &'s Scope<'s, '_>,
        mut stream: TcpStream,
        slot: Slot<'s>,
    ) {
        let Ok((local, peer)) = sockets::ends(&stream) else { return };
        let begun = clock::now();
        let _slot = slot;
        // Closes the connection if the peer stops acknowledging (tcp(7)).
        let _ = SockRef::from(&stream).set_tcp_user_timeout(Some(self.config.limits.idle_timeout));
        match self.read_header(&mut stream) {
            Ok(Some((header, read))) => {
                if let Err(error) = self.test(scope, &stream, (local, peer), header, read, begun) {
                    self.context.peer_error(peer, &error);
                }
            }
            // A connection without a header is not a client.
            Ok(None) => {}
            Err(reason) => self.context.peer_error(peer, &reason),
        }
    }

    /// Reads the header, if there is one, and returns the number of bytes read.
    fn read_header(
        &self,
        stream: &mut TcpStream,
    ) -> Result<Option<(Option<ClientHeader>, usize)>, HeaderError> {
        let mut bytes = [0; header::MAX_LENGTH];
        let mut first = [0; 4];
        let until = clock::now() + self.config.limits.header_timeout;
        if !self.fill(stream, &mut first, until)? {
            return Ok(None);
        }
        let length = match Preamble::of(first) {
            Preamble::Data => return Ok(Some((None, first.len()))),
            Preamble::Unsupported(option) => {
                return Err(HeaderError::Unsupported(option));
            }
            Preamble::Header(length) => length,
        };
        bytes[..4].copy_from_slice(&first);
        let whole = bytes.get_mut(4..length).ok_or(HeaderError::TooLong)?;
        if !self.fill(stream, whole, until)? {
            return Err(HeaderError::Incomplete);
        }
        let header = ClientHeader::decode(&bytes[..length]).map_err(HeaderError::Unsupported)?;
        if header.is_some_and(|header| header.acknowledged) {
            stream.write_all(&header::ACKNOWLEDGEMENT)?;
        }
        Ok(Some((header, length)))
    }

    /// Fills the buffer; `false` if the client closes or the time `until` passes.
    fn fill(&self, stream: &mut TcpStream, buffer: &mut [u8], until: Instant) -> io::Result<bool> {
        stream.set_read_timeout(Some(context::TICK))?;
        let mut filled = 0;
        while filled < buffer.len() {
            match stream.read(&mut buffer[filled..]) {
                Ok(0) => return Ok(false),
                Ok(read) => filled += read,
                Err(error) if is_retryable(&error) => {}
                Err(error) => return Err(error),
            }
            if filled < buffer.len() && (clock::now() >= until || self.context.is_over()) {
                return Ok(false);
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
        begun: Instant,
    ) -> Result<(), Iperf2Error> {
        let aborted = |source| Iperf2Error::Aborted { peer, source };
        let (context, idle) = (self.context, self.idle());
        let mode = header.map_or(Mode::Normal, |header| header.mode);
        let label = context.label(false);
        let tcp = sockets::connection_info(stream);
        let ends = (local, peer);
        let start = Start { label, ends, mode, tcp, connecting: None, begun };
        let mut meter = Meter::start(context, start, clock::now());
        let plan = header.map(|header| self.plan(&header, false));
        if let (Mode::Reverse, Some(plan)) = (mode, plan) {
            let sent = tcp::send(context, stream, &plan, meter, idle);
            drain(context, stream);
            return sent.map_err(aborted);
        }
        let length = self.config.length.unwrap_or(iperf2_proto::DEFAULT_BLOCK);
        meter.add(read);
        let until = self.receive_deadline(header.as_ref(), begun);
        let receive = |meter| {
            let received = tcp::receive(context, stream, length, Some(until), meter, idle);
            if received.is_ok() && clock::now() >= until {
                let reason = format!(
                    "the client sent for longer than announced, or than {}",
                    Field::MaxTime
                );
                return Err(aborted(io::Error::new(io::ErrorKind::TimedOut, reason)));
            }
            received.map_err(aborted)
        };
        match (mode, header, plan) {
            (Mode::FullDuplex, _, Some(plan)) => {
                let refused = |full| aborted(io::Error::other(format!("{full}")));
                let _slot = self.slots.take(peer.ip()).map_err(refused)?;
                thread::scope(|both| {
                    let label = crate::Label { reverse: true, ..label };
                    let sending = Meter::also(context, &meter, label);
                    let send = move || tcp::send(context, stream, &plan, sending, idle);
                    let send = thread::Builder::new()
                        .name(context::THREAD_NAME.to_owned())
                        .spawn_scoped(both, send)
                        .map_err(aborted)?;
                    let received = receive(meter);
                    let sent = send.join().unwrap_or(Ok(()));
                    received.and(sent.map_err(aborted))
                })
            }
            (Mode::Dual, Some(header), Some(plan)) => {
                match self.slots.take(peer.ip()) {
                    Ok(slot) => {
                        let work = move || {
                            let _slot = slot;
                            if let Err(error) = self.connect_back(ends, &header, &plan) {
                                context.peer_error(peer, &error);
                            }
                        };
                        context::spawn(scope, work).map_err(aborted)?;
                    }
                    Err(full) => context.peer_error(peer, &full),
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

    /// Opens the reverse connection of `-d` and `-r`, only to the address of an established
    /// connection.
    fn connect_back(
        &self,
        (local, peer): (SocketAddr, SocketAddr),
        header: &ClientHeader,
        plan: &Plan,
    ) -> Result<(), Iperf2Error> {
        let context = self.context;
        let peer = with_port(peer, port(header)?);
        let stream = self.connect_with_retry(peer, with_port(local, 0))?;
        let _ = SockRef::from(&stream).set_tcp_user_timeout(Some(self.config.limits.idle_timeout));
        let buffer = sockets::buffer(&stream, true);
        let connecting = Some(Event::Connecting { peer, buffer });
        let aborted = |source| Iperf2Error::Aborted { peer, source };
        let ends = sockets::ends(&stream).map_err(aborted)?;
        let label = context.label(true);
        let tcp = sockets::connection_info(&stream);
        let mode = Mode::Reverse;
        let start = Start { label, ends, mode, tcp, connecting, begun: clock::now() };
        let meter = Meter::start(context, start, clock::now());
        let sent = tcp::send(context, &stream, plan, meter, self.idle());
        drain(context, &stream);
        sent.map_err(aborted)
    }

    /// Connects to the client, whose port may open after its header arrives. Retries for
    /// 1.3 s while the port is closed.
    fn connect_with_retry(
        &self,
        peer: SocketAddr,
        bind: SocketAddr,
    ) -> Result<TcpStream, Iperf2Error> {
        let mut pause = Duration::from_millis(10);
        loop {
            match sockets::connect(peer, Some(bind), &self.config.options) {
                Err(Iperf2Error::Connect { source, .. })
                    if source.kind() == io::ErrorKind::ConnectionRefused
                        && pause < Duration::from_secs(1)
                        && !self.context.is_over() => {}
                done => return done,
            }
            thread::sleep(pause);
            pause *= 2;
        }
    }

    /// The requested test, within the limits.
    pub(crate) fn plan(&self, header: &ClientHeader, udp: bool) -> Plan {
        let limits = &self.config.limits;
        let (default, min, max) = if udp {
            (iperf2_proto::DEFAULT_DATAGRAM_V6, 16, udp::MAX_PAYLOAD)
        } else {
            (iperf2_proto::DEFAULT_BLOCK, 1, MAX_BLOCK)
        };
        let length = if header.length == 0 { default } else { header.length.clamp(min, max) };
        let rate = match header.rate_bps {
            0 if udp => Some(iperf2_proto::DEFAULT_RATE),
            0 => None,
            rate if udp => Some(rate.min(limits.udp_rate_bps)),
            rate => Some(rate),
        };
        Plan {
            length,
            pace: rate.map(Pace::Bits),
            amount: header.amount,
            max_duration: limits.duration,
        }
    }
}

/// The client's port for the reverse connection.
pub(crate) fn port(header: &ClientHeader) -> Result<u16, Iperf2Error> {
    let fits = u16::try_from(header.port).ok().filter(|_| header.port >= MIN_PORT);
    fits.ok_or_else(|| {
        Iperf2Error::Usage(format!(
            "refused reverse connection to port {}; choose {MIN_PORT} to 65535 with -L",
            header.port
        ))
    })
}
