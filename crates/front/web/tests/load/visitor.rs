//! A visitor that speaks the page's protocol, at the rate of a slow line.
//!
//! The rate is that at which the visitor reads and writes, all flows together; its receive and send
//! buffers are small, so that the server's kernel feels it soon. There is no link in between that
//! drops or delays packets: what the server holds of a visitor is the same, what its kernel holds
//! in flight is less than over a long path.

use host::clock;
use serde_json::{Value, json};
use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{TcpSocket, TcpStream};
use tokio::sync::mpsc;
use tokio::time::{sleep, timeout};
use websocket::{ClientKey, Event, Limits, Opcode, Reader, Role, frame};

const MASK: [u8; 4] = [7, 77, 177, 27];
/// Buffers of a visitor's sockets: six flows at 5 Mbit/s empty them within a second after a step.
const BUFFER: u32 = 32 << 10;
/// Segments as on a line: with the loopback's, which are larger than the buffers, it would stall.
const MSS: u32 = 1448;
/// Bytes that are read or written at a time.
const PIECE: usize = 16 << 10;
/// A whole run at most.
const LONGEST: Duration = Duration::from_secs(120);

/// An address of the loopback for a visitor of its own.
pub(crate) fn address(number: u32) -> Ipv4Addr {
    Ipv4Addr::from(0x7f01_0000 + number)
}

/// Bytes at a steady rate, for several flows.
#[derive(Debug)]
struct Pace {
    bits_per_second: f64,
    next: Mutex<Instant>,
}

impl Pace {
    async fn take(&self, bytes: usize) {
        let now = clock::now();
        let at = {
            let mut next = self.next.lock().unwrap_or_else(PoisonError::into_inner);
            let at = (*next).max(now);
            *next = at + Duration::from_secs_f64(bytes as f64 * 8.0 / self.bits_per_second);
            at
        };
        sleep(at.saturating_duration_since(now)).await;
    }
}

async fn connect(server: SocketAddr, from: Ipv4Addr) -> io::Result<TcpStream> {
    let socket = TcpSocket::new_v4()?;
    socket2::SockRef::from(&socket).set_tcp_mss(MSS)?;
    socket.set_recv_buffer_size(BUFFER)?;
    socket.set_send_buffer_size(BUFFER)?;
    socket.bind((from, 0).into())?;
    let stream = socket.connect(server).await?;
    stream.set_nodelay(true)?;
    Ok(stream)
}

/// The head of an answer.
async fn head(stream: &mut TcpStream) -> io::Result<String> {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        head.push(stream.read_u8().await?);
    }
    Ok(String::from_utf8_lossy(&head).into_owned())
}

/// What a WebSocket receives.
struct Incoming {
    half: OwnedReadHalf,
    reader: Reader,
    input: Vec<u8>,
}

/// A WebSocket's client end.
pub(crate) struct Socket {
    incoming: Incoming,
    writer: OwnedWriteHalf,
}

impl Socket {
    /// Opens one; the head of the answer where it is refused.
    pub(crate) async fn open(
        server: SocketAddr,
        from: Ipv4Addr,
        target: &str,
    ) -> io::Result<Result<Self, String>> {
        let mut stream = connect(server, from).await?;
        let request = ClientKey::new([1; 16]).request(target, &server.to_string(), "x");
        let request = request.ok_or_else(|| io::Error::other("the target is invalid"))?;
        let request = request.replace("Sec-WebSocket-Protocol: x\r\n", "");
        stream.write_all(request.as_bytes()).await?;
        let head = head(&mut stream).await?;
        if !head.starts_with("HTTP/1.1 101 ") {
            return Ok(Err(head));
        }
        let limits = Limits { text_bytes: 1 << 20, ..Limits::default() };
        let reader = Reader::new(Role::Client, limits);
        let (half, writer) = stream.into_split();
        let incoming = Incoming { half, reader, input: Vec::new() };
        Ok(Ok(Socket { incoming, writer }))
    }

    async fn opened(server: SocketAddr, from: Ipv4Addr, target: &str) -> io::Result<Self> {
        Socket::open(server, from, target).await?.map_err(io::Error::other)
    }

    async fn event(&mut self) -> io::Result<Event> {
        self.incoming.event().await
    }

    async fn say(&mut self, message: &Value) -> io::Result<()> {
        let text = message.to_string();
        self.writer.write_all(&frame::message(Opcode::Text, text.as_bytes(), Some(MASK))).await
    }
}

impl Incoming {
    /// The next event; may be cancelled.
    async fn event(&mut self) -> io::Result<Event> {
        loop {
            let mut unread = &self.input[..];
            let event = self.reader.next(&mut unread).map_err(io::Error::other)?;
            let taken = self.input.len() - unread.len();
            self.input.drain(..taken);
            if let Some(event) = event {
                return Ok(event);
            }
            self.input.reserve(PIECE);
            if self.half.read_buf(&mut self.input).await? == 0 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
        }
    }
}

/// A visitor.
#[derive(Debug, Clone)]
pub(crate) struct Visitor {
    server: SocketAddr,
    from: Ipv4Addr,
    /// Whether flows are requests, as a page opens them, or WebSockets.
    by_requests: bool,
    pace: Arc<Pace>,
}

impl Visitor {
    pub(crate) fn new(server: SocketAddr, number: u32, bits_per_second: f64) -> Self {
        let pace = Pace { bits_per_second, next: Mutex::new(clock::now()) };
        let by_requests = number.is_multiple_of(2);
        Visitor { server, from: address(number), by_requests, pace: Arc::new(pace) }
    }

    /// A whole run; the result.
    pub(crate) async fn run(self) -> Result<Value, String> {
        let number = self.from;
        match timeout(LONGEST, self.conversation()).await {
            Ok(Ok(result)) if result["type"] == "result" => Ok(result),
            Ok(Ok(other)) => Err(format!("{number}: {other}")),
            Ok(Err(error)) => Err(format!("{number}: {error}")),
            Err(_) => Err(format!("{number}: the run did not end")),
        }
    }

    async fn conversation(self) -> io::Result<Value> {
        let mut control = Socket::opened(self.server, self.from, "/api/run").await?;
        let transports: &[&str] =
            if self.by_requests { &["http", "websocket"] } else { &["websocket"] };
        let hello = json!({"type": "hello", "version": 1, "platform": "linux", "max_bytes": null,
            "thorough": false, "transports": transports});
        control.say(&hello).await?;
        let (ended, mut ends) = mpsc::unbounded_channel();
        let (replied, mut replies) = mpsc::unbounded_channel();
        let (mut run, mut step, mut open) = (String::new(), 0, 0u64);
        loop {
            let event = tokio::select! {
                event = control.event() => event?,
                Some((of, end)) = ends.recv() => {
                    let end: io::Result<()> = end;
                    end?;
                    // What was still on its way may end after the server has gone on.
                    if of == step {
                        open -= 1;
                    }
                    if of == step && open == 0 {
                        report(&mut control, step).await?;
                    }
                    continue;
                }
                Some(rtt) = replies.recv() => {
                    let rtt: f64 = rtt;
                    control.say(&json!({"type": "probes", "step": step, "on": "own",
                        "replies": [[0.0, rtt]]})).await?;
                    continue;
                }
            };
            let Event::Text(text) = event else { continue };
            let message: Value = serde_json::from_str(&text)?;
            match message["type"].as_str() {
                Some("welcome") => {
                    run = message["run"].as_str().unwrap_or_default().to_owned();
                    let target = format!("/api/run/{run}/probe");
                    let probe = Socket::opened(self.server, self.from, &target).await?;
                    tokio::spawn(probing(probe, replied.clone()));
                }
                Some("step") => {
                    step = message["step"].as_u64().unwrap_or(0);
                    open = self.start_flows(&run, &message, &ended);
                    if open == 0 {
                        report(&mut control, step).await?;
                    }
                }
                Some("result" | "problem") => return Ok(message),
                _ => {}
            }
        }
    }

    fn start_flows(
        &self,
        run: &str,
        step: &Value,
        ended: &mpsc::UnboundedSender<(u64, io::Result<()>)>,
    ) -> u64 {
        let flows = step["flows"].as_u64().filter(|_| step["kind"] != "idle").unwrap_or(0);
        let of = step["step"].as_u64().unwrap_or(0);
        let is_upload = step["kind"] == "upload";
        for number in 0..flows {
            let target = format!("/api/run/{run}/flow/{}/{number}", step["step"]);
            let (visitor, ended) = (self.clone(), ended.clone());
            tokio::spawn(async move {
                let end = match (visitor.by_requests, is_upload) {
                    (true, false) => visitor.get(&target).await,
                    (true, true) => visitor.post(&target).await,
                    (false, false) => visitor.receive(&target).await,
                    (false, true) => visitor.send(&target).await,
                };
                let _ = ended.send((of, end));
            });
        }
        flows
    }

    async fn get(&self, target: &str) -> io::Result<()> {
        let mut stream = connect(self.server, self.from).await?;
        let request = format!("GET {target} HTTP/1.1\r\nHost: {}\r\n\r\n", self.server);
        stream.write_all(request.as_bytes()).await?;
        let head = head(&mut stream).await?;
        if !head.starts_with("HTTP/1.1 200 ") {
            return Err(io::Error::other(head));
        }
        let mut piece = vec![0; PIECE];
        loop {
            match stream.read(&mut piece).await? {
                0 => return Ok(()),
                bytes => self.pace.take(bytes).await,
            }
        }
    }

    async fn post(&self, target: &str) -> io::Result<()> {
        let mut stream = connect(self.server, self.from).await?;
        let head = format!(
            "POST {target} HTTP/1.1\r\nHost: {}\r\nContent-Length: {}\r\n\r\n",
            self.server,
            1u64 << 40
        );
        stream.write_all(head.as_bytes()).await?;
        let (block, mut answer) = (vec![0x55; PIECE], vec![0; PIECE]);
        let (mut reader, writer) = stream.into_split();
        loop {
            self.pace.take(block.len()).await;
            tokio::select! {
                biased;
                // The server answers at the step's end, and closes.
                read = reader.read(&mut answer) => {
                    let read = read.unwrap_or(0);
                    let is_refused = read > 0 && !answer.starts_with(b"HTTP/1.1 200 ");
                    let answer = String::from_utf8_lossy(&answer[..read]);
                    return if is_refused { Err(io::Error::other(answer)) } else { Ok(()) };
                }
                written = writer.writable() => written?,
            }
            match writer.try_write(&block) {
                Err(error) if error.kind() != io::ErrorKind::WouldBlock => return Ok(()),
                _ => {}
            }
        }
    }

    async fn receive(&self, target: &str) -> io::Result<()> {
        let mut socket = Socket::opened(self.server, self.from, target).await?;
        loop {
            match socket.event().await {
                Ok(Event::Binary(bytes)) => self.pace.take(bytes).await,
                Ok(Event::Close(_)) => return Ok(()),
                // The server cuts what a visitor has not read 3 s after the step.
                Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(()),
                Err(error) => return Err(error),
                Ok(_) => {}
            }
        }
    }

    async fn send(&self, target: &str) -> io::Result<()> {
        let mut socket = Socket::opened(self.server, self.from, target).await?;
        let message = frame::message(Opcode::Binary, &[0x55; 64 << 10], Some(MASK));
        let mut unsent = &message[..];
        loop {
            self.pace.take(unsent.len().min(PIECE)).await;
            tokio::select! {
                biased;
                event = socket.incoming.event() => match event {
                    Ok(Event::Close(_)) | Err(_) => return Ok(()),
                    Ok(_) => {}
                },
                written = socket.writer.writable() => {
                    written?;
                    match socket.writer.try_write(unsent.get(..PIECE).unwrap_or(unsent)) {
                        Ok(bytes) => unsent = unsent.get(bytes..).unwrap_or_default(),
                        Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                        Err(_) => return Ok(()),
                    }
                    if unsent.is_empty() {
                        unsent = &message;
                    }
                }
            }
        }
    }
}

async fn report(control: &mut Socket, step: u64) -> io::Result<()> {
    control
        .say(&json!({"type": "page", "step": step, "hidden": false, "busy": 0.2,
            "longest_stall_ms": 10, "dropped": 0}))
        .await
}

/// Sends probes until the run ends.
async fn probing(mut probe: Socket, replied: mpsc::UnboundedSender<f64>) {
    loop {
        let sent = clock::now();
        let asked = probe.say(&json!(42)).await;
        if asked.is_err() || !matches!(probe.event().await, Ok(Event::Text(_))) {
            return;
        }
        let rtt = (sent.elapsed().as_secs_f64() * 1e3).max(0.001);
        if replied.send(rtt).is_err() {
            return;
        }
        sleep(Duration::from_millis(250)).await;
    }
}

/// Keeps a WebSocket open on which nothing is said, and opens the next when the server closes it;
/// how many it has opened, once `until` has passed.
pub(crate) async fn idle(server: SocketAddr, number: u32, until: Instant) -> Result<u32, String> {
    let mut opened = 0;
    let wrong = |error: io::Error| format!("idle {number}: {error}");
    while clock::now() < until {
        let mut socket =
            Socket::opened(server, address(number), "/api/run").await.map_err(wrong)?;
        opened += 1;
        let left = until.saturating_duration_since(clock::now());
        // It is told that it said no hello in time, and then closed.
        let _ = timeout(left, async { while socket.event().await.is_ok() {} }).await;
    }
    Ok(opened)
}
