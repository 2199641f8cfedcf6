//! The control connection: one-byte messages, framed JSON, and a timeout on every
//! wait.

use crate::{
    PerfError, StopFlag,
    memory_budget::{MemoryBudget, Reservation},
};
use host::address::canonical;
use host::{address_key::AddressKey, clock, tcp_info::TcpInfo, wait};
use iperf3_proto::{Decoder, Order, Refusal, Role, State, framing};
use serde::{Deserialize, Serialize, de::DeserializeOwned};
use socket2::{SockRef, TcpKeepalive};
use std::{
    io::{self, Read, Write},
    net::{SocketAddr, TcpStream},
    os::fd::AsFd,
    sync::Arc,
    time::{Duration, Instant},
};
use units::ByteCount;

/// Timeout without data within a message or while one is due.
pub(crate) const IDLE_TIMEOUT: Duration = Duration::from_secs(10);
/// Timeout for one whole message, on a slow path.
pub(crate) const MESSAGE_TIMEOUT: Duration = Duration::from_secs(60);
/// Maximum memory of one sample as text while its message is built.
const SAMPLE_BYTES: u64 = 512;
/// Timeout for memory to send samples.
const SAMPLE_MEMORY_TIMEOUT: Duration = Duration::from_secs(1);
/// Interval between checks of the stop flag.
const POLL_INTERVAL: Duration = Duration::from_millis(100);

/// TCP keepalive of the control connection (RFC 9293 section 3.8.4).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Keepalive {
    /// Idle time before the first probe.
    #[serde(with = "units::seconds")]
    pub idle: Duration,
    /// Interval between probes.
    #[serde(with = "units::seconds")]
    pub interval: Duration,
    /// Unanswered probes that close the connection.
    pub count: u32,
}

impl Default for Keepalive {
    /// Detects a peer that lost power within half a minute.
    fn default() -> Self {
        Keepalive { idle: Duration::from_secs(15), interval: Duration::from_secs(5), count: 3 }
    }
}

/// A control connection, seen from one end.
pub(crate) struct Control {
    stream: TcpStream,
    address: SocketAddr,
    order: Order,
    /// The other end's role.
    peer_role: Role,
    stop: StopFlag,
    /// Memory for messages of all sessions; `None` on a client.
    memory: Option<Arc<MemoryBudget>>,
    /// [`MESSAGE_TIMEOUT`].
    message_timeout: Duration,
}

/// A message that was received completely.
pub(crate) struct Message {
    decoder: Decoder,
    what: &'static str,
    role: Role,
    address: SocketAddr,
    _reservation: Option<Reservation>,
}

impl Message {
    pub(crate) fn parse<T: DeserializeOwned>(&self) -> Result<T, PerfError> {
        let Message { what, role, address, .. } = *self;
        self.decoder.finish().map_err(|source| PerfError::Frame { what, role, address, source })
    }

    pub(crate) fn decoder(&self) -> &Decoder {
        &self.decoder
    }
}

impl Control {
    pub(crate) fn new(
        stream: TcpStream,
        address: SocketAddr,
        role: Role,
        keepalive: Keepalive,
        stop: &StopFlag,
    ) -> Result<Self, PerfError> {
        let peer_role = match role {
            Role::Client => Role::Server,
            Role::Server => Role::Client,
        };
        // Kernels differ in what sockets of MPTCP have, and a test works without these.
        let if_offered = |set: io::Result<()>| match set {
            Err(error) if host::socket::is_not_offered(&error) => Ok(()),
            other => other,
        };
        let set_up = || -> io::Result<()> {
            if_offered(stream.set_nodelay(true))?;
            stream.set_write_timeout(Some(IDLE_TIMEOUT))?;
            stream.set_nonblocking(false)?;
            let keepalive = TcpKeepalive::new()
                .with_time(keepalive.idle)
                .with_interval(keepalive.interval)
                .with_retries(keepalive.count);
            if_offered(SockRef::from(&stream).set_tcp_keepalive(&keepalive))
        };
        set_up().map_err(|source| PerfError::System {
            operation: "set up the control connection",
            address,
            source,
        })?;
        let order = Order::new(role);
        Ok(Control {
            stream,
            address,
            order,
            peer_role,
            stop: stop.clone(),
            memory: None,
            message_timeout: MESSAGE_TIMEOUT,
        })
    }

    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }

    /// The other end's address as the kernel connected to it: not 0.0.0.0, if that was given.
    pub(crate) fn peer(&self) -> SocketAddr {
        self.stream.peer_addr().map_or(self.address, canonical)
    }

    /// This end's address.
    pub(crate) fn local(&self) -> SocketAddr {
        self.stream.local_addr().map_or(self.address, canonical)
    }

    /// Its segment size, bytes of payload.
    pub(crate) fn mss(&self) -> u32 {
        TcpInfo::of(&self.stream).map_or(0, |info| info.snd_mss)
    }

    /// Sends raw bytes: the cookie or a whole message. The timeout covers all of
    /// them, also for a peer that reads byte by byte.
    pub(crate) fn send(&mut self, bytes: &[u8]) -> Result<(), PerfError> {
        let until = clock::now() + self.message_timeout;
        let mut rest = bytes;
        while !rest.is_empty() {
            match self.stream.write(rest) {
                Ok(0) => return Err(self.closed()),
                Ok(sent) => rest = &rest[sent..],
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    return Err(self.incomplete("reading a message", IDLE_TIMEOUT));
                }
                Err(error) => return Err(self.io_error(&error)),
            }
            if self.stop.is_raised() && !rest.is_empty() {
                return Err(PerfError::Interrupted);
            }
            if clock::now() >= until && !rest.is_empty() {
                return Err(self.incomplete("reading a message", self.message_timeout));
            }
        }
        Ok(())
    }

    /// Sends a message of one byte.
    pub(crate) fn send_state(&mut self, state: State) -> Result<(), PerfError> {
        let byte = self.order.send(state).map_err(|source| self.out_of_order(source))?;
        self.send(&[byte])
    }

    /// Records a message that was sent before this object was created.
    pub(crate) fn note_sent(&mut self, state: State) {
        let _ = self.order.send(state);
    }

    /// Sends the client an error code and closes.
    pub(crate) fn refuse(&mut self, refusal: Refusal) {
        if self.send_state(State::ServerError).is_ok() {
            let _ = self.send(&refusal.to_wire());
        }
        self.close_gently();
    }

    /// Shuts down this end and briefly waits for the other: closing with unread
    /// data would reset the connection and discard the last message.
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

    /// Waits for the next message, at most `timeout`.
    pub(crate) fn next(&mut self, timeout: Duration) -> Result<State, PerfError> {
        let until = clock::now() + timeout;
        loop {
            if let Some(state) = self.poll(until)? {
                return Ok(state);
            }
            if self.stop.is_raised() {
                return Err(PerfError::Interrupted);
            }
            if clock::now() >= until {
                return Err(self.silent(timeout));
            }
        }
    }

    /// The next byte, left in the receive buffer.
    pub(crate) fn peek(&self) -> Option<u8> {
        let now = clock::now();
        let mut byte = [0];
        (self.readable_before(now) && matches!(self.stream.peek(&mut byte), Ok(1)))
            .then_some(byte[0])
    }

    /// A message if one arrives before `until`; returns earlier at times, so that
    /// the caller can check its stop flag.
    pub(crate) fn poll(&mut self, until: Instant) -> Result<Option<State>, PerfError> {
        if !self.readable_before(until.min(clock::now() + POLL_INTERVAL)) {
            return Ok(None);
        }
        let mut byte = [0];
        match self.stream.read(&mut byte) {
            Ok(0) => Err(self.closed()),
            Ok(_) => self.received(byte[0]).map(Some),
            Err(error) if is_transient(&error) => Ok(None),
            Err(error) => Err(self.io_error(&error)),
        }
    }

    /// Reads one framed message of at most `limit` bytes.
    pub(crate) fn read_json<T: DeserializeOwned>(
        &mut self,
        what: &'static str,
        limit: u32,
    ) -> Result<T, PerfError> {
        self.read_message(what, Decoder::new(limit))?.parse()
    }

    /// Reads one framed message; a server reserves its memory before reading the
    /// text, until the message is dropped.
    pub(crate) fn read_message(
        &mut self,
        what: &'static str,
        mut decoder: Decoder,
    ) -> Result<Message, PerfError> {
        let whole = clock::now() + self.message_timeout;
        let mut piece = [0; 16 * 1024];
        let mut reservation = None;
        while decoder.missing() > 0 {
            let want = decoder.missing().min(piece.len());
            let got = self.read_some(&mut piece[..want], whole)?;
            let Some(got) = got else {
                return Err(self.incomplete(&format!("sending its {what}"), self.message_timeout));
            };
            decoder.take(&piece[..got]).map_err(|source| self.frame_error(what, source))?;
            if let (Some(memory), Some(length), None) =
                (&self.memory, decoder.length(), &reservation)
            {
                let bytes = ByteCount::from_bytes(length.saturating_mul(framing::MEMORY_PER_BYTE));
                let until = whole.min(clock::now() + IDLE_TIMEOUT);
                reservation = Some(self.reserve(memory, bytes, until)?);
            }
        }
        let (role, address) = (self.peer_role, self.address);
        Ok(Message { decoder, what, role, address, _reservation: reservation })
    }

    /// Charges messages to a server's memory budget.
    pub(crate) fn account_to(&mut self, memory: Arc<MemoryBudget>) {
        self.memory = Some(memory);
    }

    /// Reserves memory for a message with `count` samples. `None` if other sessions
    /// leave too little: the samples are then omitted.
    pub(crate) fn reserve_samples(&self, count: usize) -> Result<Option<Reservation>, PerfError> {
        let Some(memory) = &self.memory else { return Ok(None) };
        let bytes = ByteCount::from_bytes((count as u64).saturating_mul(SAMPLE_BYTES));
        match self.reserve(memory, bytes, clock::now() + SAMPLE_MEMORY_TIMEOUT) {
            Ok(reservation) => Ok(Some(reservation)),
            Err(PerfError::OutOfMessageMemory { .. }) => Ok(None),
            Err(error) => Err(error),
        }
    }

    fn reserve(
        &self,
        memory: &Arc<MemoryBudget>,
        bytes: ByteCount,
        until: Instant,
    ) -> Result<Reservation, PerfError> {
        loop {
            let now = clock::now();
            let wait = POLL_INTERVAL.min(until.saturating_duration_since(now));
            let key = AddressKey::of(self.address.ip());
            if let Some(reservation) = memory.reserve(key, bytes, wait) {
                return Ok(reservation);
            }
            if self.stop.is_raised() {
                return Err(PerfError::Interrupted);
            }
            if clock::now() >= until {
                return Err(PerfError::OutOfMessageMemory {
                    role: self.peer_role,
                    address: self.address,
                });
            }
        }
    }

    /// Sends one framed message.
    pub(crate) fn send_json(
        &mut self,
        what: &'static str,
        message: &impl Serialize,
    ) -> Result<(), PerfError> {
        let wire = framing::encode(message).map_err(|source| self.frame_error(what, source))?;
        self.send(&wire)
    }

    fn received(&mut self, byte: u8) -> Result<State, PerfError> {
        let point = self.order.point();
        let address = self.address;
        match self.order.receive(byte).map_err(|source| self.out_of_order(source))? {
            State::AccessDenied => Err(PerfError::Busy { address }),
            State::ServerTerminate => Err(PerfError::ServerStopped { address, point }),
            State::ClientTerminate => Err(PerfError::ClientStopped { address, point }),
            State::ServerError => {
                let mut wire = [0; Refusal::LEN];
                let until = clock::now() + IDLE_TIMEOUT;
                let mut at = 0;
                while at < wire.len() {
                    let got = self.read_some(&mut wire[at..], until)?;
                    at += got.ok_or_else(|| self.incomplete("sending its error", IDLE_TIMEOUT))?;
                }
                Err(PerfError::Refused { address, refusal: Refusal::from_wire(wire) })
            }
            state => Ok(state),
        }
    }

    /// Reads a part of a message; `None` once `whole` has passed, the deadline of all of it.
    fn read_some(&mut self, into: &mut [u8], whole: Instant) -> Result<Option<usize>, PerfError> {
        let idle = (clock::now() + IDLE_TIMEOUT).min(whole);
        loop {
            if self.readable_before(idle.min(clock::now() + POLL_INTERVAL)) {
                match self.stream.read(into) {
                    Ok(0) => return Err(self.closed()),
                    Ok(got) => return Ok(Some(got)),
                    Err(error) if is_transient(&error) => {}
                    Err(error) => return Err(self.io_error(&error)),
                }
            }
            if self.stop.is_raised() {
                return Err(PerfError::Interrupted);
            }
            match clock::now() {
                now if now >= whole => return Ok(None),
                now if now >= idle => return Err(self.silent(IDLE_TIMEOUT)),
                _ => {}
            }
        }
    }

    fn readable_before(&self, until: Instant) -> bool {
        let left = until.saturating_duration_since(clock::now());
        // If poll() fails, read() reports the error.
        wait::readable([self.stream.as_fd()], Some(left)).map_or(true, |[ready]| ready)
    }

    fn closed(&self) -> PerfError {
        PerfError::Vanished {
            role: self.peer_role,
            address: self.address,
            point: self.order.point(),
        }
    }

    fn silent(&self, waited: Duration) -> PerfError {
        PerfError::Silent {
            role: self.peer_role,
            address: self.address,
            point: self.order.point(),
            waited,
        }
    }

    fn incomplete(&self, what: &str, waited: Duration) -> PerfError {
        PerfError::Incomplete {
            what: what.to_owned(),
            role: self.peer_role,
            address: self.address,
            point: self.order.point(),
            waited,
        }
    }

    fn io_error(&self, error: &io::Error) -> PerfError {
        match error.kind() {
            io::ErrorKind::TimedOut | io::ErrorKind::WouldBlock => self.silent(IDLE_TIMEOUT),
            _ => self.closed(),
        }
    }

    fn out_of_order(&self, source: iperf3_proto::OrderError) -> PerfError {
        PerfError::Order { role: self.peer_role, address: self.address, source }
    }

    /// The error for a message that cannot be parsed.
    pub(crate) fn frame_error(
        &self,
        what: &'static str,
        source: iperf3_proto::FrameError,
    ) -> PerfError {
        PerfError::Frame { what, role: self.peer_role, address: self.address, source }
    }
}

fn is_transient(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::Interrupted | io::ErrorKind::WouldBlock)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::TcpListener;
    use std::sync::atomic::{AtomicBool, Ordering};
    use std::thread;

    /// A server's control connection, and its client.
    fn pair() -> (Control, TcpStream) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let (stream, address) = listener.accept().unwrap();
        let stop = StopFlag::new();
        let mut control =
            Control::new(stream, address, Role::Server, Keepalive::default(), &stop).unwrap();
        control.message_timeout = Duration::from_millis(300);
        (control, client)
    }

    #[test]
    fn a_client_that_sends_a_byte_at_a_time_is_not_said_to_send_nothing() {
        let (mut control, mut client) = pair();
        let is_over = AtomicBool::new(false);
        thread::scope(|scope| {
            scope.spawn(|| {
                for byte in [0, 0, 0xff].iter().chain(std::iter::repeat(&b' ')) {
                    if is_over.load(Ordering::Relaxed) || client.write(&[*byte]).is_err() {
                        return;
                    }
                    thread::sleep(Duration::from_millis(2));
                }
            });
            let read = control.read_json::<serde_json::Value>("results", 1 << 20);
            is_over.store(true, Ordering::Relaxed);
            let error = read.unwrap_err().to_string();
            assert!(error.contains("did not complete sending its results"), "{error}");
        });
    }

    #[test]
    fn a_client_that_reads_nothing_is_not_said_to_send_nothing() {
        let (mut control, _client) = pair();
        control.stream.set_write_timeout(Some(Duration::from_millis(20))).unwrap();
        let error = control.send(&vec![0; 64 << 20]).unwrap_err().to_string();
        assert!(error.contains("did not complete reading a message"), "{error}");
    }
}
