//! One test of ndt7 over an upgraded connection.

use super::super::transfer::{Transfer, incompressible};
use super::measurement::{self, ConnectionInfo};
use crate::connection::Connection;
use crate::websocket::{Parts, WebSocket};
use host::lock::lock;
use host::tcp_info::BbrInfo;
use std::io;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::sync::Notify;
use tokio::time::Instant;
use units::ByteCount;
use websocket::frame::{self, Opcode};
use websocket::{CloseCode, Event, ProtocolError, Reader};

/// Time from the handshake to Close.
const DURATION: Duration = Duration::from_secs(10);
/// Time from the handshake to the end of the connection, whatever the peer does.
const MAX_DURATION: Duration = Duration::from_secs(13);

/// Bytes of the first binary messages.
const FIRST_MESSAGE: usize = 8 << 10;
/// Most bytes of a binary message: the read limit of ndt7-client-go.
const MAX_MESSAGE: usize = 1 << 20;
/// A message has at most this part of what was sent before.
const MESSAGE_SHARE: u64 = 16;

/// Acknowledged bytes after which a test with `early_exit` ends.
const EARLY_EXIT_BYTES: u64 = 250_000_000;

/// Bytes read at once.
const READ: usize = 256 << 10;

/// What the kernel may hold unsent is sent in this time, within bounds.
const UNSENT_TIME: f64 = 0.005;
const MIN_UNSENT: u64 = 128 << 10;
const MAX_UNSENT: u64 = 4 << 20;

/// The direction of a test.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Test {
    Download,
    Upload,
}

/// A test that runs.
#[derive(Debug)]
pub(super) struct Session {
    test: Test,
    connection: Connection,
    transfer: Transfer,
    early_exit: bool,
    ends: ConnectionInfo,
    began: Instant,
    inbox: Inbox,
}

/// What the reading half tells the writing half.
#[derive(Debug, Default)]
struct Inbox {
    /// Bytes of binary messages.
    received: AtomicU64,
    news: Notify,
    mail: Mutex<Mail>,
}

#[derive(Debug, Default)]
struct Mail {
    /// The payload of the newest Ping; older ones need no answer (RFC 6455, section 5.5.3).
    pong: Option<Vec<u8>>,
    /// The code to close with, once the peer closes or breaks the protocol.
    end: Option<CloseCode>,
}

impl Inbox {
    fn mail(&self) -> MutexGuard<'_, Mail> {
        lock(&self.mail)
    }
}

impl Session {
    pub(super) fn new(
        test: Test,
        connection: Connection,
        transfer: Transfer,
        early_exit: bool,
    ) -> Self {
        let id = host::random::secret::<16>().unwrap_or_default();
        let uuid = format!("{:032x}", u128::from_be_bytes(id));
        let ends = ConnectionInfo::new(connection.client(), connection.local(), uuid);
        let (began, inbox) = (Instant::now(), Inbox::default());
        Session { test, connection, transfer, early_exit, ends, began, inbox }
    }

    /// Runs the test; the connection is closed when it ends.
    pub(super) async fn run(self, socket: WebSocket) {
        let Parts { io, reader, input, held: _held } = socket.into_parts();
        let (mut reading, mut writing) = tokio::io::split(io);
        let both = async {
            tokio::join!(self.read(reader, &input, &mut reading), async {
                let _ = self.write(&mut writing).await;
            })
        };
        let _ = tokio::time::timeout_at(self.began + MAX_DURATION, both).await;
        let _ = tokio::time::timeout(Duration::from_secs(1), writing.shutdown()).await;
        crate::websocket::drain(&mut reading).await;
    }

    /// Reads until the peer's Close, a breach of the protocol, or the end of the connection.
    async fn read(
        &self,
        mut reader: Reader,
        already: &[u8],
        reading: &mut (impl AsyncRead + Unpin),
    ) {
        let mut end = self.receive_all(&mut reader, already);
        let mut buffer = vec![0; READ];
        while end.is_ok() {
            end = match reading.read(&mut buffer).await {
                Ok(length @ 1..) => {
                    self.receive_all(&mut reader, buffer.get(..length).unwrap_or_default())
                }
                _ => Err(CloseCode::GOING_AWAY),
            };
        }
        if let Err(code) = end {
            self.inbox.mail().end.get_or_insert(code);
            self.inbox.news.notify_one();
        }
    }

    /// # Errors
    /// The code to close the connection with.
    fn receive_all(&self, reader: &mut Reader, mut bytes: &[u8]) -> Result<(), CloseCode> {
        // All that arrives counts, headers and messages too.
        if !self.transfer.take(bytes.len() as u64) {
            return Err(CloseCode::TRY_AGAIN_LATER);
        }
        while let Some(event) = reader.next(&mut bytes).map_err(ProtocolError::close_code)? {
            self.receive(event)?;
        }
        Ok(())
    }

    /// # Errors
    /// The code to close the connection with.
    fn receive(&self, event: Event) -> Result<(), CloseCode> {
        match event {
            Event::Binary(_) if self.test == Test::Download => Err(CloseCode::POLICY),
            Event::Binary(bytes) => {
                self.inbox.received.fetch_add(bytes as u64, Ordering::Relaxed);
                Ok(())
            }
            Event::Ping(payload) => {
                self.inbox.mail().pong = Some(payload);
                self.inbox.news.notify_one();
                Ok(())
            }
            Event::Close(close) => Err(close.code.unwrap_or(CloseCode::NORMAL)),
            // What the client measures is its own business.
            Event::Text(_) | Event::BinaryEnd | Event::Pong(_) => Ok(()),
        }
    }

    async fn write(&self, writing: &mut (impl AsyncWrite + Unpin)) -> io::Result<()> {
        let mut sent = 0;
        let code = match self.test {
            Test::Download => self.download(writing, &mut sent).await?,
            Test::Upload => self.upload(writing).await?,
        };
        // The newest figures are the ones that clients show.
        self.measure(writing, sent).await?;
        writing.write_all(&frame::close(code, "", None)).await?;
        writing.flush().await
    }

    /// Sends messages that grow with what was sent, and measurements between them; the code to
    /// close with.
    async fn download(
        &self,
        writing: &mut (impl AsyncWrite + Unpin),
        sent: &mut u64,
    ) -> io::Result<CloseCode> {
        let mut size = FIRST_MESSAGE;
        let mut message = binary(size);
        let mut next = Instant::now() + draw();
        loop {
            if let Some(code) = self.over(writing).await? {
                return Ok(code);
            }
            if Instant::now() >= next {
                let acknowledged = self.measure(writing, *sent).await?;
                if self.early_exit && acknowledged >= EARLY_EXIT_BYTES {
                    return Ok(CloseCode::NORMAL);
                }
                next = Instant::now() + draw();
            }
            writing.write_all(&message).await?;
            *sent += size as u64;
            if !self.transfer.take(size as u64) {
                return Ok(CloseCode::TRY_AGAIN_LATER);
            }
            if size < MAX_MESSAGE && size as u64 <= *sent / MESSAGE_SHARE {
                size *= 2;
                message = binary(size);
            }
        }
    }

    /// Sends measurements; the code to close with.
    async fn upload(&self, writing: &mut (impl AsyncWrite + Unpin)) -> io::Result<CloseCode> {
        let mut next = Instant::now() + draw();
        loop {
            if let Some(code) = self.over(writing).await? {
                return Ok(code);
            }
            if Instant::now() >= next {
                self.measure(writing, 0).await?;
                next = Instant::now() + draw();
            }
            let wake = next.min(self.began + DURATION);
            let _ = tokio::time::timeout_at(wake, self.inbox.news.notified()).await;
        }
    }

    /// Answers a Ping; the code to close with where the test is over.
    async fn over(&self, writing: &mut (impl AsyncWrite + Unpin)) -> io::Result<Option<CloseCode>> {
        let (pong, end) = {
            let mut mail = self.inbox.mail();
            (mail.pong.take(), mail.end)
        };
        if let Some(payload) = pong {
            writing.write_all(&frame::message(Opcode::Pong, &payload, None)).await?;
        }
        let time_is_over = self.began.elapsed() >= DURATION;
        Ok(end.or(time_is_over.then_some(CloseCode::NORMAL)))
    }

    /// Sends a measurement and a Ping; how many bytes the peer has acknowledged.
    async fn measure(&self, writing: &mut (impl AsyncWrite + Unpin), sent: u64) -> io::Result<u64> {
        let info = self.connection.tcp_info()?;
        let bbr = BbrInfo::of(self.connection.descriptor()).ok().flatten();
        let (test, bytes) = match self.test {
            Test::Download => ("download", sent),
            Test::Upload => ("upload", self.inbox.received.load(Ordering::Relaxed)),
        };
        let elapsed = self.began.elapsed();
        let rate = info.delivery_rate.filter(|_| self.test == Test::Download);
        let unsent =
            rate.map(|rate| ((rate as f64 * UNSENT_TIME) as u64).clamp(MIN_UNSENT, MAX_UNSENT));
        let text = measurement::message(test, &self.ends, elapsed, bytes, &info, (bbr, unsent));
        let mut frames = frame::message(Opcode::Text, text.as_bytes(), None);
        frames.extend(frame::message(Opcode::Ping, b"", None));
        writing.write_all(&frames).await?;
        writing.flush().await?;
        if let Some(unsent) = unsent {
            let _ = self.connection.set_unsent_limit(Some(ByteCount::from_bytes(unsent)));
        }
        Ok(info.bytes_acked.unwrap_or_default())
    }
}

/// The time until the next measurement.
fn draw() -> Duration {
    measurement::interval(host::random::seed())
}

/// A message of incompressible bytes.
fn binary(size: usize) -> Vec<u8> {
    frame::message(Opcode::Binary, incompressible().get(..size).unwrap_or_default(), None)
}
