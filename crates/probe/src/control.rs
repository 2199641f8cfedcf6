//! The control connection: one byte at a time, framed JSON, and a limit on
//! every wait.

use crate::{ProbeError, StopFlag, extra::Who, flow::unmapped};
use host::{clock, tcp_info::TcpInfo, wait};
use iperf3::{Decoder, Order, Refusal, Role, State, framing};
use serde::{Serialize, de::DeserializeOwned};
use socket2::{SockRef, TcpKeepalive};
use std::{
    io::{self, Read, Write},
    net::{SocketAddr, TcpStream},
    os::fd::AsFd,
    time::{Duration, Instant},
};

/// Longest silence within a message or while one is due.
pub(crate) const IDLE: Duration = Duration::from_secs(10);
/// Longest time for one whole message: a slow path may take some of it.
pub(crate) const WHOLE: Duration = Duration::from_secs(60);
/// How often the stop flag is looked at while waiting.
const LOOK: Duration = Duration::from_millis(100);

/// How a silent control connection is probed (RFC 9293 section 3.8.4).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Keepalive {
    /// Silence before the first probe.
    pub idle: Duration,
    /// Time between probes.
    pub interval: Duration,
    /// Probes without an answer that end it.
    pub count: u32,
}

impl Default for Keepalive {
    /// A peer that lost power says nothing: three probes decide within half a minute.
    fn default() -> Self {
        Keepalive { idle: Duration::from_secs(15), interval: Duration::from_secs(5), count: 3 }
    }
}

/// A control connection, seen from one end.
pub(crate) struct Control {
    stream: TcpStream,
    address: SocketAddr,
    order: Order,
    /// The other end.
    peer: Who,
    stop: StopFlag,
}

impl Control {
    pub(crate) fn new(
        stream: TcpStream,
        address: SocketAddr,
        role: Role,
        keepalive: Keepalive,
        stop: &StopFlag,
    ) -> Result<Self, ProbeError> {
        let peer = match role {
            Role::Client => Who::Server,
            Role::Server => Who::Client,
        };
        let set_up = || -> io::Result<()> {
            stream.set_nodelay(true)?;
            stream.set_write_timeout(Some(IDLE))?;
            stream.set_nonblocking(false)?;
            let keepalive = TcpKeepalive::new()
                .with_time(keepalive.idle)
                .with_interval(keepalive.interval)
                .with_retries(keepalive.count);
            SockRef::from(&stream).set_tcp_keepalive(&keepalive)
        };
        set_up().map_err(|source| ProbeError::System {
            operation: "set up the control connection",
            address,
            source,
        })?;
        Ok(Control { stream, address, order: Order::new(role), peer, stop: stop.clone() })
    }

    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }

    /// This end's address.
    pub(crate) fn local(&self) -> SocketAddr {
        self.stream.local_addr().map_or(self.address, unmapped)
    }

    /// Its segment size, bytes of payload.
    pub(crate) fn mss(&self) -> u32 {
        TcpInfo::of(&self.stream).map_or(0, |info| info.snd_mss)
    }

    /// Sends raw bytes: the cookie, a whole message. A peer that takes them
    /// one by one does not hold us longer than one that takes none.
    pub(crate) fn send(&mut self, bytes: &[u8]) -> Result<(), ProbeError> {
        let until = clock::now() + WHOLE;
        let mut rest = bytes;
        while !rest.is_empty() {
            match self.stream.write(rest) {
                Ok(0) => return Err(self.vanished()),
                Ok(sent) => rest = &rest[sent..],
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(self.broken(&error)),
            }
            if self.stop.is_raised() && !rest.is_empty() {
                return Err(ProbeError::Interrupted);
            }
            if clock::now() >= until && !rest.is_empty() {
                return Err(self.silent(WHOLE));
            }
        }
        Ok(())
    }

    /// Sends a message of one byte.
    pub(crate) fn say(&mut self, state: State) -> Result<(), ProbeError> {
        let byte = self.order.say(state).map_err(|source| self.out_of_order(source))?;
        self.send(&[byte])
    }

    /// Tells the client why there will be no test.
    pub(crate) fn refuse(&mut self, refusal: Refusal) {
        if self.say(State::ServerError).is_ok() {
            let _ = self.send(&refusal.to_wire());
        }
        self.close_gently();
    }

    /// Ends our side, and waits a moment for the other's: closing with unread
    /// bytes would reset the connection and take our last words with it.
    pub(crate) fn close_gently(&mut self) {
        let _ = self.stream.shutdown(std::net::Shutdown::Write);
        let until = clock::now() + Duration::from_millis(500);
        let mut rest = [0; 512];
        while self.readable_before(until) {
            if !matches!(self.stream.read(&mut rest), Ok(1..)) {
                break;
            }
        }
    }

    /// Waits for the next message, at most `patience`.
    pub(crate) fn next(&mut self, patience: Duration) -> Result<State, ProbeError> {
        let until = clock::now() + patience;
        loop {
            if let Some(state) = self.poll(until)? {
                return Ok(state);
            }
            if self.stop.is_raised() {
                return Err(ProbeError::Interrupted);
            }
            if clock::now() >= until {
                return Err(self.silent(patience));
            }
        }
    }

    /// The byte that waits to be read, without taking it.
    pub(crate) fn peek(&self) -> Option<u8> {
        let now = clock::now();
        let mut byte = [0];
        (self.readable_before(now) && matches!(self.stream.peek(&mut byte), Ok(1)))
            .then_some(byte[0])
    }

    /// A message if one comes before `until`; comes back early now and then,
    /// so that the caller can look at its stop flag.
    pub(crate) fn poll(&mut self, until: Instant) -> Result<Option<State>, ProbeError> {
        if !self.readable_before(until.min(clock::now() + LOOK)) {
            return Ok(None);
        }
        let mut byte = [0];
        match self.stream.read(&mut byte) {
            Ok(0) => Err(self.vanished()),
            Ok(_) => self.hear(byte[0]).map(Some),
            Err(error) if is_transient(&error) => Ok(None),
            Err(error) => Err(self.broken(&error)),
        }
    }

    /// Reads one framed message of at most `limit` bytes.
    pub(crate) fn read_json<T: DeserializeOwned>(
        &mut self,
        what: &'static str,
        limit: u32,
    ) -> Result<T, ProbeError> {
        let mut decoder = Decoder::new(limit);
        let whole = clock::now() + WHOLE;
        let mut piece = [0; 16 * 1024];
        while decoder.missing() > 0 {
            let want = decoder.missing().min(piece.len());
            let got = self.read_some(&mut piece[..want], whole)?;
            decoder.take(&piece[..got]).map_err(|source| self.frame(what, source))?;
        }
        decoder.finish().map_err(|source| self.frame(what, source))
    }

    /// Sends one framed message.
    pub(crate) fn send_json(
        &mut self,
        what: &'static str,
        message: &impl Serialize,
    ) -> Result<(), ProbeError> {
        let wire = framing::encode(message).map_err(|source| self.frame(what, source))?;
        self.send(&wire)
    }

    fn hear(&mut self, byte: u8) -> Result<State, ProbeError> {
        let point = self.order.point();
        let address = self.address;
        match self.order.hear(byte).map_err(|source| self.out_of_order(source))? {
            State::AccessDenied => Err(ProbeError::Busy { address }),
            State::ServerTerminate => Err(ProbeError::ServerStopped { address, point }),
            State::ClientTerminate => Err(ProbeError::ClientStopped { address, point }),
            State::ServerError => {
                let mut wire = [0; Refusal::LEN];
                let until = clock::now() + IDLE;
                let mut at = 0;
                while at < wire.len() {
                    at += self.read_some(&mut wire[at..], until)?;
                }
                Err(ProbeError::Refused { address, refusal: Refusal::from_wire(wire) })
            }
            state => Ok(state),
        }
    }

    fn read_some(&mut self, into: &mut [u8], whole: Instant) -> Result<usize, ProbeError> {
        let idle = (clock::now() + IDLE).min(whole);
        loop {
            if self.readable_before(idle.min(clock::now() + LOOK)) {
                match self.stream.read(into) {
                    Ok(0) => return Err(self.vanished()),
                    Ok(got) => return Ok(got),
                    Err(error) if is_transient(&error) => {}
                    Err(error) => return Err(self.broken(&error)),
                }
            }
            if self.stop.is_raised() {
                return Err(ProbeError::Interrupted);
            }
            if clock::now() >= idle {
                return Err(self.silent(IDLE));
            }
        }
    }

    fn readable_before(&self, until: Instant) -> bool {
        let left = until.saturating_duration_since(clock::now());
        // Where waiting itself fails, reading tells why.
        wait::readable([self.stream.as_fd()], Some(left)).map_or(true, |[ready]| ready)
    }

    fn vanished(&self) -> ProbeError {
        ProbeError::Vanished { who: self.peer, address: self.address, point: self.order.point() }
    }

    fn silent(&self, waited: Duration) -> ProbeError {
        ProbeError::Silent {
            who: self.peer,
            address: self.address,
            point: self.order.point(),
            waited,
        }
    }

    fn broken(&self, error: &io::Error) -> ProbeError {
        match error.kind() {
            io::ErrorKind::TimedOut | io::ErrorKind::WouldBlock => self.silent(IDLE),
            _ => self.vanished(),
        }
    }

    fn out_of_order(&self, source: iperf3::OrderError) -> ProbeError {
        ProbeError::Order { who: self.peer, address: self.address, source }
    }

    fn frame(&self, what: &'static str, source: iperf3::FrameError) -> ProbeError {
        ProbeError::Frame { what, who: self.peer, address: self.address, source }
    }
}

fn is_transient(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::Interrupted | io::ErrorKind::WouldBlock)
}
