//! One test of ndt7 over one connection.

use super::{Ndt7Event, Ndt7Test};
use crate::http_client::{Connected, Endpoint, Socket, Stream};
use crate::{Fault, Problem};
use host::clock;
use host::tcp_info::{receiver_sample, sender_sample};
use record::{Measurement, ReceiverSample, Sample};
use std::cell::{Cell, RefCell};
use std::time::{Duration, Instant};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, split};
use tokio::time::{sleep, timeout, timeout_at};
use tool_results::ndt7_server::{self, ServerMessage};
use units::{BitRate, ByteCount};
use websocket::frame::{self, Opcode};
use websocket::{ClientKey, CloseCode, Event, Limits, Reader, Role};

const SUBPROTOCOL: &str = "net.measurementlab.ndt.v7";

/// The time in which a server answers, as in ndt7-client-go.
const ANSWER_TIME: Duration = Duration::from_secs(7);
/// Time of an upload, which the client ends.
const UPLOAD_TIME: Duration = Duration::from_secs(10);
/// The time after which a download ends even if the server goes on, as in ndt7-client-go.
const MAX_TIME: Duration = Duration::from_secs(15);
/// The time in which both ends close the connection.
const CLOSE_TIME: Duration = Duration::from_secs(3);

/// Bytes of an upload's first messages, most of any, and the part of what was sent before that a
/// message has at most.
const FIRST_MESSAGE: usize = 8 << 10;
const MAX_MESSAGE: usize = 1 << 20;
const MESSAGE_SHARE: u64 = 16;

/// Messages of a server that are kept: it may send ten a second.
const MAX_MESSAGES: usize = 1000;
/// Pings that are answered.
const MAX_PONGS: u32 = 1000;
/// What a server may send.
const LIMITS: Limits = Limits { text_bytes: 64 << 10, binary_frame_bytes: 16 << 20 };

/// Bytes read at once.
const READ: usize = 256 << 10;
/// The interval of samples, every second of which is shown.
const SAMPLE_INTERVAL: Duration = Duration::from_millis(100);

/// A test that runs.
pub(super) struct Session {
    test: Test,
    stream: Stream,
    reader: Reader,
    /// Received with the answer.
    already: Vec<u8>,
}

/// What its parts share: those that read, write, and take samples.
struct Test {
    kind: Ndt7Test,
    server: String,
    socket: Socket,
    began: Instant,
    bytes: Cell<u64>,
    pongs: Cell<u32>,
    /// The payload of the newest Ping (RFC 6455, section 5.5.3).
    ping: RefCell<Option<Vec<u8>>>,
    messages: RefCell<Vec<ServerMessage>>,
    sender: RefCell<Vec<Sample>>,
    receiver: RefCell<Vec<ReceiverSample>>,
    /// True once the server has closed.
    is_closed: Cell<bool>,
    /// Within a message, behind which no other can follow.
    is_within: Cell<bool>,
}

fn broken(error: impl std::fmt::Display) -> Problem {
    Problem::new(Fault::Peer, format!("ndt7: {error}"))
}

impl Session {
    /// Has the server begin.
    pub(super) async fn open(
        kind: Ndt7Test,
        endpoint: &Endpoint,
        connected: Connected,
    ) -> Result<Self, Problem> {
        let Connected { mut stream, socket, .. } = connected;
        let key = host::random::secret().map_err(|error| Problem::new(Fault::Host, error))?;
        let key = ClientKey::new(key);
        let target = endpoint.target(kind.path());
        let request = key.request(&target, &endpoint.authority(), SUBPROTOCOL);
        let request = request.ok_or_else(|| broken("the URL cannot be requested"))?;
        let mut received = Vec::new();
        let answer = async {
            stream.write_all(request.as_bytes()).await.map_err(broken)?;
            stream.flush().await.map_err(broken)?;
            loop {
                if let Some(head) = key.check_response(&received, SUBPROTOCOL).map_err(broken)? {
                    return Ok(head);
                }
                if stream.read_buf(&mut received).await.map_err(broken)? == 0 {
                    return Err(broken("the server closed the connection without an answer"));
                }
            }
        };
        let head = timeout(ANSWER_TIME, answer).await;
        let head = head.map_err(|_| broken("the server does not answer"))??;
        let test = Test {
            kind,
            server: endpoint.authority(),
            socket,
            began: clock::now(),
            bytes: Cell::new(0),
            pongs: Cell::new(0),
            ping: RefCell::new(None),
            messages: RefCell::new(Vec::new()),
            sender: RefCell::new(Vec::new()),
            receiver: RefCell::new(Vec::new()),
            is_closed: Cell::new(false),
            is_within: Cell::new(false),
        };
        let already = received.split_off(head.min(received.len()));
        Ok(Session { test, stream, reader: Reader::new(Role::Client, LIMITS), already })
    }

    /// Runs the test to its end.
    pub(super) async fn run(
        self,
        on_event: &mut dyn FnMut(Ndt7Event),
    ) -> Result<Measurement, Problem> {
        let Session { test, stream, mut reader, already } = self;
        let started = clock::unix_seconds();
        let (host, cpu) = (host::facts::read(None), host::cpu::this_thread().ok());
        let (mut reading, mut writing) = split(stream);
        let deadline = tokio::time::Instant::from_std(test.began + MAX_TIME);
        let failed = {
            let read = test.read(&mut reader, already, &mut reading);
            let both = async {
                // Whichever ends first ends the test: the reader at the server's Close, the writer
                // of an upload at its time.
                tokio::select! {
                    result = read => result,
                    result = test.write_while_there(&mut writing) => result,
                    () = test.sample(on_event) => Ok(()),
                }
            };
            timeout_at(deadline, both).await.unwrap_or(Ok(())).err()
        };
        let used = cpu.zip(host::cpu::this_thread().ok());
        let seconds = test.began.elapsed().as_secs_f64();
        test.take_sample();
        let closing = async {
            if !test.is_within.get() {
                let close = frame::close(CloseCode::NORMAL, "", Some(mask()?));
                writing.write_all(&close).await.map_err(broken)?;
                writing.flush().await.map_err(broken)?;
            }
            if !test.is_closed.get() {
                test.read(&mut reader, Vec::new(), &mut reading).await?;
            }
            writing.shutdown().await.map_err(broken)
        };
        if failed.is_none() {
            let _ = timeout(CLOSE_TIME, closing).await;
        }
        let mut measurement = test.measurement(started).ok_or_else(|| {
            let nothing = Problem::new(Fault::Peer, "ndt7: the server ended the test at once");
            failed.clone().unwrap_or(nothing)
        })?;
        measurement.host = host;
        let share = used.map(|(from, to)| to.saturating_sub(from).as_secs_f64() / seconds);
        match test.kind {
            Ndt7Test::Download => measurement.receiver_cpu = share,
            Ndt7Test::Upload => measurement.sender_cpu = share,
        }
        measurement
            .notes
            .extend(failed.map(|problem| format!("the test broke off: {}", problem.message)));
        Ok(measurement)
    }
}

/// A mask that nobody can foresee (RFC 6455, section 10.3).
fn mask() -> Result<[u8; 4], Problem> {
    host::random::secret().map_err(|error| Problem::new(Fault::Host, error))
}

impl Test {
    /// Reads until the server's Close, the end of the connection, or a breach of the protocol.
    async fn read(
        &self,
        reader: &mut Reader,
        already: Vec<u8>,
        reading: &mut (impl AsyncRead + Unpin),
    ) -> Result<(), Problem> {
        let mut buffer = already;
        let mut length = buffer.len();
        buffer.resize(READ.max(length), 0);
        loop {
            let mut bytes = buffer.get(..length).unwrap_or_default();
            while let Some(event) = reader.next(&mut bytes).map_err(broken)? {
                self.receive(event)?;
                if self.is_closed.get() {
                    return Ok(());
                }
            }
            // The specification forgives a missing Close, and a reset.
            match timeout(ANSWER_TIME, reading.read(&mut buffer)).await {
                Ok(Ok(0) | Err(_)) => return Ok(()),
                Ok(Ok(read)) => length = read,
                Err(_) => return Err(broken("the server sends nothing for 7 s")),
            }
        }
    }

    fn receive(&self, event: Event) -> Result<(), Problem> {
        match event {
            Event::Binary(_) if self.kind == Ndt7Test::Upload => {
                Err(broken("the server sends payload during an upload"))
            }
            Event::Binary(bytes) => {
                self.bytes.set(self.bytes.get().saturating_add(bytes as u64));
                Ok(())
            }
            Event::Text(text) => {
                let mut messages = self.messages.borrow_mut();
                let Some(message) = ServerMessage::parse(&text) else { return Ok(()) };
                // The newest has the result.
                if messages.len() >= MAX_MESSAGES {
                    messages.pop();
                }
                messages.push(message);
                Ok(())
            }
            Event::Ping(payload) => {
                *self.ping.borrow_mut() = Some(payload);
                Ok(())
            }
            Event::Close(_) => {
                self.is_closed.set(true);
                Ok(())
            }
            Event::BinaryEnd | Event::Pong(_) => Ok(()),
        }
    }

    /// Writes; once the server has gone, the reader has what it sent before.
    async fn write_while_there(
        &self,
        writing: &mut (impl AsyncWrite + Unpin),
    ) -> Result<(), Problem> {
        match self.write(writing).await {
            Err(problem) if problem.fault == Fault::Peer => std::future::pending().await,
            ended => ended,
        }
    }

    /// Answers pings, and in an upload sends until its time is over.
    async fn write(&self, writing: &mut (impl AsyncWrite + Unpin)) -> Result<(), Problem> {
        let payload = host::random::incompressible(MAX_MESSAGE);
        let mut size = FIRST_MESSAGE;
        // As soon as it can: RFC 6455, section 5.5.2.
        loop {
            self.answer(writing).await?;
            if self.kind == Ndt7Test::Download {
                sleep(SAMPLE_INTERVAL / 10).await;
                continue;
            }
            if self.began.elapsed() >= UPLOAD_TIME {
                return writing.flush().await.map_err(broken);
            }
            // The block is random: under any mask it is some other random payload.
            let header = frame::header(Opcode::Binary, size as u64, Some(mask()?));
            self.is_within.set(true);
            let sent = async {
                writing.write_all(&header).await?;
                writing.write_all(payload.get(..size).unwrap_or_default()).await
            };
            let left = UPLOAD_TIME.saturating_sub(self.began.elapsed());
            match timeout(left, sent).await {
                Ok(sent) => sent.map_err(broken)?,
                // Within a message: no Close can follow it.
                Err(_) => return Ok(()),
            }
            self.is_within.set(false);
            let total = self.bytes.get().saturating_add(size as u64);
            self.bytes.set(total);
            if size < MAX_MESSAGE && total / MESSAGE_SHARE >= size as u64 {
                size *= 2;
            }
        }
    }

    async fn answer(&self, writing: &mut (impl AsyncWrite + Unpin)) -> Result<(), Problem> {
        let ping = self.ping.borrow_mut().take();
        let Some(payload) = ping.filter(|_| self.pongs.get() < MAX_PONGS) else { return Ok(()) };
        self.pongs.set(self.pongs.get() + 1);
        let pong = frame::message(Opcode::Pong, &payload, Some(mask()?));
        self.is_within.set(true);
        writing.write_all(&pong).await.map_err(broken)?;
        self.is_within.set(false);
        writing.flush().await.map_err(broken)
    }

    /// Takes samples as long as it is polled.
    async fn sample(&self, on_event: &mut dyn FnMut(Ndt7Event)) {
        let mut count = 0u32;
        loop {
            self.take_sample();
            if count % 2 == 1 {
                let elapsed = self.began.elapsed();
                let bytes = match self.kind {
                    Ndt7Test::Download => self.bytes.get(),
                    Ndt7Test::Upload => self.sender.borrow().last().map_or(0, |it| it.acked_bytes),
                };
                let bytes = ByteCount::from_bytes(bytes);
                let (t_s, rate) = (elapsed.as_secs_f64(), BitRate::of(bytes, elapsed));
                on_event(Ndt7Event::Progress { test: self.kind, t_s, bytes, rate });
            }
            count = count.wrapping_add(1);
            sleep(SAMPLE_INTERVAL).await;
        }
    }

    fn take_sample(&self) {
        let t_s = self.began.elapsed().as_secs_f64();
        let Some(info) = self.socket.tcp_info() else { return };
        match self.kind {
            Ndt7Test::Download => {
                let memory = self.socket.memory();
                let sample = receiver_sample(t_s, self.bytes.get(), Some(&info), memory.as_ref());
                // Headers and TLS are not counted, which makes the socket look unread.
                self.receiver.borrow_mut().push(ReceiverSample { unread_bytes: None, ..sample });
            }
            Ndt7Test::Upload => {
                self.sender.borrow_mut().push(sender_sample(t_s, self.bytes.get(), &info));
            }
        }
    }

    fn measurement(&self, started: u64) -> Option<Measurement> {
        let messages = self.messages.take();
        match self.kind {
            Ndt7Test::Download => {
                let receiver = self.receiver.take();
                ndt7_server::download(messages, receiver, &self.server, started)
            }
            Ndt7Test::Upload => {
                let (sender, control) = (self.sender.take(), self.socket.congestion());
                ndt7_server::upload(messages, sender, control, &self.server, started)
            }
        }
    }
}
