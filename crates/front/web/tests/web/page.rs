//! A server in this process, and a client that speaks the page's protocol.

use host::clock::now;
use serde_json::{Value, json};
use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};
use web::{WebEvent, WebRequest};
use websocket::{ClientKey, Event, Limits, Opcode, Reader, Role, frame};

const MASK: [u8; 4] = [7, 77, 177, 27];

/// A server that ends with the test.
pub(crate) struct Server {
    pub(crate) address: SocketAddr,
    pub(crate) events: Receiver<WebEvent>,
    pub(crate) drain: longhaul::StopFlag,
    stop: longhaul::StopFlag,
    thread: Option<JoinHandle<()>>,
}

/// A request with short steps at a port that is free.
pub(crate) fn short() -> WebRequest {
    let listen = SocketAddr::from(([127, 0, 0, 1], 0));
    // The loopback carries gigabytes in a step.
    let max_bytes_per_run = units::ByteCount::from_bytes(1_000_000_000_000);
    WebRequest { listen, step_seconds: 0.5, max_bytes_per_run, ..WebRequest::default() }
}

impl Server {
    pub(crate) fn start(request: WebRequest) -> Self {
        let (stop, drain) = (longhaul::StopFlag::new(), longhaul::StopFlag::new());
        let (sender, events) = channel();
        let flags = (drain.clone(), stop.clone());
        let thread = thread::spawn(move || {
            let on_event = &mut |event| drop(sender.send(event));
            web::serve(&request, on_event, &flags.0, &flags.1).unwrap();
        });
        let first = events.recv_timeout(Duration::from_secs(10)).unwrap();
        let WebEvent::Listening { address, .. } = first else { panic!("{first:?}") };
        Server { address, events, drain, stop, thread: Some(thread) }
    }

    /// The next event that is of interest.
    pub(crate) fn wait(&self, wanted: impl Fn(&WebEvent) -> bool) -> WebEvent {
        self.wait_for(Duration::from_secs(20), wanted)
    }

    pub(crate) fn wait_for(
        &self,
        longest: Duration,
        wanted: impl Fn(&WebEvent) -> bool,
    ) -> WebEvent {
        loop {
            let event = self.events.recv_timeout(longest).expect("the event");
            if wanted(&event) {
                return event;
            }
        }
    }

    pub(crate) fn has_stopped(&self) -> bool {
        self.thread.as_ref().is_none_or(JoinHandle::is_finished)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.stop.raise();
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// The status and the whole answer to a request.
pub(crate) fn ask(address: SocketAddr, request: &str) -> (u16, String) {
    let mut stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
    stream.write_all(request.as_bytes()).unwrap();
    let mut answer = Vec::new();
    let _ = stream.read_to_end(&mut answer);
    let answer = String::from_utf8_lossy(&answer).into_owned();
    let status = answer.split(' ').nth(1).and_then(|status| status.parse().ok()).unwrap_or(0);
    (status, answer)
}

/// A WebSocket's client end.
pub(crate) struct Socket {
    pub(crate) stream: TcpStream,
    reader: Reader,
    input: Vec<u8>,
}

impl Socket {
    pub(crate) fn open(address: SocketAddr, target: &str) -> Self {
        Socket::try_open(address, target, "").expect("the upgrade")
    }

    /// Opens with more headers; the status where it is refused.
    pub(crate) fn try_open(address: SocketAddr, target: &str, more: &str) -> Result<Self, u16> {
        let mut stream = TcpStream::connect(address).unwrap();
        stream.set_nodelay(true).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
        let request = ClientKey::new([1; 16]).request(target, &address.to_string(), "x").unwrap();
        let request = request.replace("Sec-WebSocket-Protocol: x\r\n", more);
        stream.write_all(request.as_bytes()).unwrap();
        let mut head = Vec::new();
        let mut byte = [0];
        while !head.ends_with(b"\r\n\r\n") {
            if stream.read(&mut byte).map_err(|_| 0u16)? == 0 {
                return Err(0);
            }
            head.push(byte[0]);
        }
        let head = String::from_utf8(head).unwrap();
        let status = head.split(' ').nth(1).unwrap().parse().unwrap();
        if status != 101 {
            return Err(status);
        }
        let limits = Limits { text_bytes: 1 << 20, ..Limits::default() };
        Ok(Socket { stream, reader: Reader::new(Role::Client, limits), input: Vec::new() })
    }

    /// The next event within a time; `None` when that has passed, or the server has left.
    pub(crate) fn next(&mut self, within: Duration) -> Result<Option<Event>, std::io::Error> {
        self.stream.set_read_timeout(Some(within.max(Duration::from_millis(1)))).unwrap();
        loop {
            let mut unread = &self.input[..];
            let event = self.reader.next(&mut unread).expect("a server that keeps the protocol");
            let taken = self.input.len() - unread.len();
            self.input.drain(..taken);
            if event.is_some() {
                return Ok(event);
            }
            let mut buffer = vec![0; 256 << 10];
            match self.stream.read(&mut buffer) {
                Ok(0) => return Err(ErrorKind::UnexpectedEof.into()),
                Ok(bytes) => self.input.extend_from_slice(&buffer[..bytes]),
                Err(error)
                    if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) =>
                {
                    return Ok(None);
                }
                Err(error) => return Err(error),
            }
        }
    }

    /// The next text message.
    pub(crate) fn text(&mut self) -> Option<Value> {
        let deadline = now() + Duration::from_secs(20);
        while now() < deadline {
            match self.next(Duration::from_secs(1)) {
                Ok(Some(Event::Text(text))) => return Some(serde_json::from_str(&text).unwrap()),
                Ok(Some(Event::Close(_))) | Err(_) => return None,
                Ok(_) => {}
            }
        }
        panic!("no message in time")
    }

    pub(crate) fn say(&mut self, message: &Value) {
        self.send(message.to_string().as_bytes());
    }

    /// Sends a text frame of any bytes.
    pub(crate) fn send(&mut self, text: &[u8]) {
        let _ = self.stream.write_all(&frame::message(Opcode::Text, text, Some(MASK)));
    }
}

pub(crate) fn hello() -> Value {
    json!({"type": "hello", "version": 1, "platform": "linux", "max_bytes": null, "thorough": true})
}

/// The same, of a page that opens its flows by requests.
pub(crate) fn hello_by_requests() -> Value {
    let mut hello = hello();
    hello["transports"] = json!(["http", "websocket"]);
    hello
}

/// A control connection that has said hello, and the answer.
pub(crate) fn begin(address: SocketAddr) -> (Socket, Value) {
    let mut control = Socket::open(address, "/api/run");
    control.say(&hello());
    let welcome = control.text().unwrap();
    assert_eq!(welcome["type"], "welcome", "{welcome}");
    (control, welcome)
}

/// Everything that the server said in a run.
pub(crate) struct Conversation {
    pub(crate) messages: Vec<Value>,
    /// When each of them came.
    pub(crate) times: Vec<Instant>,
    /// Bytes that arrived in downloads, and that were sent in uploads.
    pub(crate) downloaded: u64,
    pub(crate) uploaded: u64,
}

impl Conversation {
    pub(crate) fn of(&self, kind: &str) -> Vec<&Value> {
        self.messages.iter().filter(|message| message["type"] == kind).collect()
    }
}

/// Carries out a run as the page does, until its result or a problem.
pub(crate) fn carry_out(address: SocketAddr, hello: &Value) -> Conversation {
    carry_out_with(address, hello, |_, _| None)
}

/// The same, of a page that receives datagrams: of a run and a step, what it reports.
pub(crate) fn carry_out_with(
    address: SocketAddr,
    hello: &Value,
    datagrams: impl FnMut(&str, &Value) -> Option<String>,
) -> Conversation {
    converse(address, hello, ["", ""], datagrams)
}

/// The same, with more headers of the control connection and of the probe connection, as a proxy
/// adds them.
pub(crate) fn carry_out_through(
    address: SocketAddr,
    hello: &Value,
    headers: [&str; 2],
) -> Conversation {
    converse(address, hello, headers, |_, _| None)
}

fn converse(
    address: SocketAddr,
    hello: &Value,
    [of_control, of_probe]: [&str; 2],
    mut datagrams: impl FnMut(&str, &Value) -> Option<String>,
) -> Conversation {
    let mut control = Socket::try_open(address, "/api/run", of_control).expect("the upgrade");
    control.say(hello);
    let welcome = control.text().unwrap();
    let run = welcome["run"].as_str().unwrap().to_owned();
    let probe = Socket::try_open(address, &format!("/api/run/{run}/probe"), of_probe);
    let probes = start_probes(probe.expect("the upgrade"));
    let mut told =
        Conversation { messages: vec![welcome], times: vec![now()], downloaded: 0, uploaded: 0 };
    let (ended, ends) = channel();
    let (mut step, mut open, mut began) = (0, 0, now());
    let deadline = now() + Duration::from_secs(120);
    loop {
        assert!(now() < deadline, "{:?}", told.messages.last());
        match control.next(Duration::from_millis(20)) {
            Ok(Some(Event::Text(text))) => {
                let message: Value = serde_json::from_str(&text).unwrap();
                let kind = message["type"].as_str().unwrap().to_owned();
                told.times.push(now());
                if kind == "step" {
                    (step, began) = (message["step"].as_u64().unwrap(), now());
                    open = start_flows(address, &run, &message, &ended);
                    let idle = message["kind"] == "idle" || message["kind"] == "loss";
                    if message["kind"] == "loss" {
                        let received = datagrams(&run, &message);
                        control.say(&json!({"type": "datagrams", "step": step,
                            "received": received}));
                    }
                    told.messages.push(message);
                    if idle {
                        report(&mut control, step);
                    }
                } else {
                    told.messages.push(message);
                }
                if kind == "result" || kind == "problem" {
                    return told;
                }
            }
            Ok(Some(Event::Close(_))) | Err(_) => return told,
            Ok(_) => {}
        }
        let of_step = probes.try_iter().filter(|(sent, _)| *sent >= began);
        let replies: Vec<(f64, f64)> = of_step
            .map(|(sent, rtt)| (sent.duration_since(began).as_secs_f64() * 1e3, rtt))
            .collect();
        if !replies.is_empty() {
            control.say(&json!({"type": "probes", "step": step, "on": "own", "replies": replies}));
        }
        while let Ok((downloaded, uploaded)) = ends.try_recv() {
            told.downloaded += downloaded;
            told.uploaded += uploaded;
            open -= 1;
            if open == 0 {
                report(&mut control, step);
            }
        }
    }
}

fn report(control: &mut Socket, step: u64) {
    control.say(&json!({"type": "page", "step": step, "hidden": false, "busy": 0.2,
        "longest_stall_ms": 10, "dropped": 0}));
}

/// Between probes, which are sent whether or not earlier ones have come back, as the page does; the
/// server echoes at most 50 a second.
const PROBE_INTERVAL: Duration = Duration::from_millis(22);

/// Sends probes until the server closes their connection; when each was sent, and its RTT in ms.
fn start_probes(mut probe: Socket) -> Receiver<(Instant, f64)> {
    let (sender, replies) = channel();
    let mut writer = probe.stream.try_clone().unwrap();
    let (sent, outstanding) = channel();
    thread::spawn(move || {
        let text = frame::message(Opcode::Text, b"42", Some(MASK));
        while sent.send(now()).is_ok() && writer.write_all(&text).is_ok() {
            thread::sleep(PROBE_INTERVAL);
        }
    });
    thread::spawn(move || {
        // They come back in their order.
        while let Ok(Some(Event::Text(text))) = probe.next(Duration::from_secs(10)) {
            assert_eq!(text, "42");
            let sent = outstanding.recv().unwrap();
            let rtt = (sent.elapsed().as_secs_f64() * 1e3).max(0.001);
            if sender.send((sent, rtt)).is_err() {
                return;
            }
        }
    });
    replies
}

/// After the end of a step, the page waits so long for what is still under way.
const CLOSE_GRACE: Duration = Duration::from_secs(5);

fn start_flows(address: SocketAddr, run: &str, step: &Value, ended: &Sender<(u64, u64)>) -> usize {
    let seconds = Duration::from_secs_f64(step["seconds"].as_f64().unwrap());
    let until = now() + seconds + CLOSE_GRACE;
    let flows = step["flows"].as_u64().unwrap();
    for number in 0..flows {
        let target = format!("/api/run/{run}/flow/{}/{number}", step["step"]);
        let (upload, ended) = (step["kind"] == "upload", ended.clone());
        let by_request = step["transport"] == "http";
        thread::spawn(move || {
            let flow = || match Socket::try_open(address, &target, "") {
                Ok(flow) => Some(flow),
                // The step has begun without it.
                Err(status) => {
                    assert_eq!(status, 409);
                    None
                }
            };
            let bytes = match (by_request, upload) {
                (true, true) => (0, post(address, &target, until)),
                (true, false) => (get(address, &target, until), 0),
                (false, true) => (0, flow().map_or(0, |flow| send(flow, until))),
                (false, false) => (flow().map_or(0, |flow| receive(flow, until)), 0),
            };
            let _ = ended.send(bytes);
        });
    }
    flows as usize
}

/// What is left until a time, as a timeout of a socket.
fn left(until: Instant) -> Option<Duration> {
    let left = until.saturating_duration_since(now());
    (left > Duration::ZERO).then_some(left)
}

/// Downloads by a request until a time; bytes of the body, with the sizes of its chunks.
fn get(address: SocketAddr, target: &str, until: Instant) -> u64 {
    let mut stream = TcpStream::connect(address).unwrap();
    write!(stream, "GET {target} HTTP/1.1\r\nHost: {address}\r\n\r\n").unwrap();
    let (mut buffer, mut bytes, mut tail) = (vec![0; 256 << 10], 0, Vec::new());
    loop {
        let Some(left) = left(until) else { return bytes };
        stream.set_read_timeout(Some(left)).unwrap();
        let count = match stream.read(&mut buffer) {
            Ok(0) => break,
            Ok(count) => count,
            Err(error) if error.kind() == ErrorKind::WouldBlock => return bytes,
            Err(error) => panic!("{error}"),
        };
        if bytes == 0 {
            assert!(buffer.starts_with(b"HTTP/1.1 200 "));
        }
        bytes += count as u64;
        tail.extend_from_slice(&buffer[count.saturating_sub(5)..count]);
        tail.drain(..tail.len().saturating_sub(5));
    }
    // The body is complete: the server has ended it.
    assert_eq!(tail, b"0\r\n\r\n");
    bytes
}

/// Uploads by a request until the server ends it, or until a time; bytes of the body.
fn post(address: SocketAddr, target: &str, until: Instant) -> u64 {
    let mut stream = TcpStream::connect(address).unwrap();
    let length = 1u64 << 40;
    write!(stream, "POST {target} HTTP/1.1\r\nHost: {address}\r\nContent-Length: {length}\r\n\r\n")
        .unwrap();
    let (block, mut bytes) = (vec![0x55; 64 << 10], 0);
    while let Some(left) = left(until) {
        stream.set_write_timeout(Some(left)).unwrap();
        if stream.write_all(&block).is_err() {
            break;
        }
        bytes += block.len() as u64;
    }
    bytes
}

/// Receives until the server closes, or until a time; bytes of payload.
pub(crate) fn receive(mut socket: Socket, until: Instant) -> u64 {
    let (mut bytes, mut closed) = (0, false);
    socket.send(b"probe");
    let mut echoed = false;
    loop {
        let Some(left) = left(until) else { return bytes };
        let Ok(event) = socket.next(left) else { break };
        match event {
            Some(Event::Binary(count)) => bytes += count as u64,
            Some(Event::Text(text)) => echoed = text == "probe",
            Some(Event::Close(close)) => {
                assert_eq!(close.code, Some(websocket::CloseCode::NORMAL));
                closed = true;
            }
            _ => {}
        }
    }
    assert!(closed && echoed, "closed {closed}, echoed {echoed}");
    bytes
}

/// Sends until the server closes, or until a time; bytes of payload.
fn send(mut socket: Socket, until: Instant) -> u64 {
    let block = frame::message(Opcode::Binary, &[0x55; 64 << 10], Some(MASK));
    let mut bytes = 0;
    while let Some(left) = left(until) {
        socket.stream.set_write_timeout(Some(left)).unwrap();
        match socket.next(Duration::from_millis(1)) {
            Ok(None) => {}
            Ok(Some(Event::Close(_))) | Err(_) => return bytes,
            Ok(Some(_)) => {}
        }
        if socket.stream.write_all(&block).is_err() {
            return bytes;
        }
        bytes += 64 << 10;
    }
    bytes
}
