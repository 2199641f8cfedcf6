//! A TCP connection with TLS that carries a session, alone or with others.

use super::Session;
use super::pump::Pump;
use crate::CopyError;
use crate::protocol::message::Carrier;
use host::tcp_info::TcpInfo;
use host::{clock, wait};
use pinned_tls::{Identity, IdentityError, PublicKey};
use rustls::pki_types::ServerName;
use rustls::{ClientConnection, Connection, ServerConnection};
use std::io::{self, ErrorKind, Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

/// The protocol that TLS agrees on.
const PROTOCOL: &[u8] = b"longhaul-copy/1";
/// Plaintext that TLS buffers.
const BUFFER_BYTES: usize = 256 << 10;
/// How often the session is asked for more to send.
const POLL: Duration = Duration::from_millis(1);
/// The same where UDT carries everything after a trial.
const IDLE: Duration = Duration::from_millis(20);
/// How often the bytes are counted that were carried.
const COUNT: Duration = Duration::from_millis(100);
/// Where little arrived at once, the thread sleeps so long and takes more together: a wake-up
/// for each message of many small files would cost more than all else.
const MODERATION: Duration = Duration::from_micros(300);
const LITTLE_BYTES: usize = 32 << 10;
/// What an end that finished waits for the peer's end.
const LINGER: Duration = Duration::from_secs(3);

/// What a read found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Received {
    Some,
    Nothing,
    End,
}

/// A connection whose TLS handshake may not have begun.
pub(crate) struct Tls {
    stream: TcpStream,
    connection: Connection,
}

impl Tls {
    pub(crate) fn client(
        stream: TcpStream,
        identity: &Identity,
        server: PublicKey,
    ) -> Result<Self, CopyError> {
        let make = || -> Result<ClientConnection, IdentityError> {
            let name = ServerName::try_from("longhaul.invalid")
                .map_err(|_| rustls::Error::General("name".into()))?;
            Ok(ClientConnection::new(identity.client(server, PROTOCOL)?, name)?)
        };
        Tls::new(stream, make().map(Connection::Client))
    }

    pub(crate) fn server(
        stream: TcpStream,
        identity: &Identity,
        client: PublicKey,
    ) -> Result<Self, CopyError> {
        let make = || -> Result<ServerConnection, IdentityError> {
            Ok(ServerConnection::new(identity.server(client, PROTOCOL)?)?)
        };
        Tls::new(stream, make().map(Connection::Server))
    }

    fn new(
        stream: TcpStream,
        connection: Result<Connection, IdentityError>,
    ) -> Result<Self, CopyError> {
        let mut connection =
            connection.map_err(|error| CopyError::Connection(error.to_string()))?;
        connection.set_buffer_limit(Some(BUFFER_BYTES));
        stream.set_nonblocking(true).map_err(CopyError::socket)?;
        stream.set_nodelay(true).map_err(CopyError::socket)?;
        Ok(Tls { stream, connection })
    }

    /// Writes and reads what is possible now. Whether the peer ended the connection.
    fn exchange(&mut self) -> io::Result<bool> {
        self.flush()?;
        let received = self.receive()?;
        self.flush()?;
        Ok(received == Received::End)
    }

    /// Reads a part of what has arrived.
    fn receive(&mut self) -> io::Result<Received> {
        match self.connection.read_tls(&mut self.stream) {
            Ok(0) => Ok(Received::End),
            Ok(_) => {
                self.connection.process_new_packets().map_err(|error| {
                    io::Error::new(ErrorKind::InvalidData, format!("TLS: {error}"))
                })?;
                Ok(Received::Some)
            }
            Err(error) if error.kind() == ErrorKind::WouldBlock => Ok(Received::Nothing),
            Err(error) if error.kind() == ErrorKind::Interrupted => Ok(Received::Some),
            // TLS holds enough that was not read yet.
            Err(error) if error.kind() == ErrorKind::Other => Ok(Received::Some),
            Err(error) => Err(error),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        while self.connection.wants_write() {
            match self.connection.write_tls(&mut self.stream) {
                Ok(_) => {}
                Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    fn wait(&self, timeout: Duration) -> io::Result<()> {
        wait::ready(&self.stream, self.connection.wants_write(), timeout)
    }

    /// Completes the handshake: the peer has the expected key.
    pub(crate) fn handshake(&mut self, until: Instant) -> Result<(), CopyError> {
        while self.connection.is_handshaking() {
            let is_over = self.exchange().map_err(handshake_error)?;
            self.check_open(is_over, until)?;
        }
        Ok(())
    }

    fn check_open(&self, is_over: bool, until: Instant) -> Result<(), CopyError> {
        if is_over {
            return Err(CopyError::Connection("the peer closed it during the handshake".into()));
        }
        let left = until.saturating_duration_since(clock::now());
        if left.is_zero() {
            return Err(CopyError::Connection("the handshake timed out".into()));
        }
        self.wait(left.min(Duration::from_millis(100))).map_err(CopyError::socket)
    }

    /// Sends a line.
    pub(crate) fn send_line(&mut self, line: &str, until: Instant) -> Result<(), CopyError> {
        self.connection
            .writer()
            .write_all(format!("{line}\n").as_bytes())
            .map_err(CopyError::socket)?;
        while self.connection.wants_write() {
            let is_over = self.exchange().map_err(handshake_error)?;
            if self.connection.wants_write() {
                self.check_open(is_over, until)?;
            }
        }
        Ok(())
    }

    /// Receives a line of at most `limit` bytes; what follows it stays unread.
    pub(crate) fn receive_line(
        &mut self,
        limit: usize,
        until: Instant,
    ) -> Result<String, CopyError> {
        let mut line = Vec::new();
        loop {
            let is_over = self.exchange().map_err(handshake_error)?;
            let mut byte = [0];
            while let Ok(1) = self.connection.reader().read(&mut byte) {
                if byte == *b"\n" {
                    return Ok(String::from_utf8_lossy(&line).into_owned());
                }
                line.push(byte[0]);
                if line.len() > limit {
                    return Err(CopyError::Protocol("a line is too long".into()));
                }
            }
            self.check_open(is_over, until)?;
        }
    }

    /// The largest segment that it sends, bytes of payload.
    pub(crate) fn segment_bytes(&self) -> u32 {
        TcpInfo::of(&self.stream).map_or(0, |info| info.snd_mss)
    }

    /// The RTT so far.
    pub(crate) fn rtt(&self) -> Duration {
        TcpInfo::of(&self.stream)
            .map_or(Duration::ZERO, |info| Duration::from_micros(info.rtt_us.into()))
    }

    /// Whether the peer has closed the connection. Nothing else is read.
    pub(crate) fn is_closed(&mut self) -> bool {
        self.exchange().unwrap_or(true)
    }

    /// Carries the session until it ends.
    pub(crate) fn carry(&mut self, session: &Session, carries_control: bool) {
        let mut pump = Pump::new(session, Carrier::Tcp, true, carries_control);
        if let Err(error) = self.carry_by(session, &mut pump)
            && !pump.is_done()
        {
            session.fail(CopyError::Connection(error.to_string()));
        }
        if carries_control || pump.has_failed() {
            pump.ended();
        }
    }

    fn carry_by(&mut self, session: &Session, pump: &mut Pump<'_>) -> io::Result<()> {
        let mut buffer = vec![0; BUFFER_BYTES];
        let mut done_since = None;
        let (mut counted, mut counted_at) = (0, clock::now());
        loop {
            if counted_at.elapsed() >= COUNT {
                counted_at = clock::now();
                let carried = self.carried();
                session.data_path().count_tcp(carried.saturating_sub(counted));
                counted = counted.max(carried);
            }
            self.fill(pump)?;
            self.flush()?;
            let (mut is_over, mut total, mut is_dry) = (false, 0, false);
            while pump.has_room() && total < BUFFER_BYTES && !is_over && !is_dry {
                match self.receive()? {
                    Received::End => is_over = true,
                    Received::Nothing => is_dry = true,
                    Received::Some => {}
                }
                loop {
                    match self.connection.reader().read(&mut buffer) {
                        Ok(0) => {
                            is_over = true;
                            break;
                        }
                        Ok(length) => {
                            total += length;
                            pump.received(&buffer[..length]);
                        }
                        Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                        Err(error) => return Err(error),
                    }
                }
            }
            if is_over || pump.has_failed() {
                return Ok(());
            }
            if pump.is_done() {
                if done_since.is_none() {
                    self.connection.send_close_notify();
                    self.flush()?;
                }
                if session.is_answered() {
                    return Ok(());
                }
                if done_since.get_or_insert_with(clock::now).elapsed() > LINGER {
                    return Ok(());
                }
            }
            if !pump.has_room() {
                std::thread::sleep(POLL);
                continue;
            }
            if is_dry && (1..LITTLE_BYTES).contains(&total) {
                std::thread::sleep(MODERATION);
            }
            self.wait(if pump.is_sending() { POLL } else { IDLE })?;
        }
    }

    /// Bytes that the peer has acknowledged, and that were received.
    fn carried(&self) -> u64 {
        let info = TcpInfo::of(&self.stream).ok();
        info.map_or(0, |info| info.delivered_bytes() + info.bytes_received.unwrap_or(0))
    }

    fn fill(&mut self, pump: &mut Pump<'_>) -> io::Result<()> {
        loop {
            let pending = pump.pending();
            if pending.is_empty() {
                return Ok(());
            }
            let written = self.connection.writer().write(pending)?;
            pump.advance(written);
            if written == 0 {
                self.flush()?;
                if self.connection.wants_write() {
                    return Ok(());
                }
            }
        }
    }
}

fn handshake_error(error: io::Error) -> CopyError {
    match error.kind() {
        ErrorKind::InvalidData => CopyError::Authentication,
        _ => CopyError::socket(error),
    }
}
