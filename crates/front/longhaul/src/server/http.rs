//! A minimal HTTP/1.1 server (RFC 9112) for a metrics scraper: one page, one
//! request per connection.
//!
//! Everything is bounded: a connection has one deadline for its request, response
//! and close, and a maximum request size. Above the maximum number of connections
//! the oldest is closed, so that slow clients cannot lock out a scraper.

use crate::http_host::{HostError, OwnNames};
use host::clock;
use host::lock::lock;
use std::collections::VecDeque;
use std::io::{self, Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::{Arc, Mutex, MutexGuard};
use std::thread;
use std::time::{Duration, Instant};

/// Maximum request size, including headers, in bytes; as much is discarded after it.
const MAX_REQUEST: usize = 4096;
/// Deadline of a connection, from accept to close.
const DEADLINE: Duration = Duration::from_secs(2);
/// Part of the deadline that is reserved for the response to a slow request, and
/// how long a client may take to close its end after a response.
const LINGER: Duration = Duration::from_millis(200);
/// Maximum number of connections; for a further one the oldest is closed.
const MAX_CONNECTIONS: usize = 16;
/// Prometheus' text format.
const TYPE: &str = "text/plain; version=0.0.4; charset=utf-8";

/// Answers `GET /metrics` for a host of `names` with the result of `page`, and for another host
/// with `misdirected`, from a separate thread.
///
/// # Errors
/// If the thread cannot be created.
pub(super) fn serve(
    listener: TcpListener,
    names: OwnNames,
    misdirected: String,
    page: impl Fn() -> String + Send + Sync + 'static,
) -> io::Result<()> {
    serve_within(DEADLINE, listener, names, misdirected, page)
}

fn serve_within(
    deadline: Duration,
    listener: TcpListener,
    names: OwnNames,
    misdirected: String,
    page: impl Fn() -> String + Send + Sync + 'static,
) -> io::Result<()> {
    let page = move |head: &[u8]| reply(head, &names, &misdirected, &page);
    let (page, open) = (Arc::new(page), Arc::new(Open::default()));
    thread::Builder::new().name("metrics".to_owned()).spawn(move || {
        loop {
            let Ok((connection, _)) = listener.accept() else {
                // Most likely out of file descriptors.
                thread::sleep(Duration::from_millis(100));
                continue;
            };
            let until = clock::now() + deadline;
            let connection = Arc::new(connection);
            let (page, entry) = (Arc::clone(&page), open.admit(&connection));
            let answer = move || {
                let _entry = entry;
                // If the scraper has disconnected, the error concerns nobody.
                let _ = answer(&connection, until, &*page);
            };
            // Without a thread the connection is closed unanswered.
            let builder = thread::Builder::new().stack_size(128 * 1024);
            let _ = builder.name("scrape".to_owned()).spawn(answer);
        }
    })?;
    Ok(())
}

/// The open connections.
#[derive(Debug, Default)]
struct Open(Mutex<Connections>);

#[derive(Debug, Default)]
struct Connections {
    /// The number of the next one.
    next: u64,
    /// Each with its number, oldest first.
    list: VecDeque<(u64, Arc<TcpStream>)>,
}

impl Open {
    /// Adds a connection, and closes the oldest if there are too many: its thread
    /// then fails to read or write, and ends.
    fn admit(self: &Arc<Self>, connection: &Arc<TcpStream>) -> OpenConnection {
        let mut held = self.hold();
        let number = held.next;
        held.next += 1;
        held.list.push_back((number, Arc::clone(connection)));
        while held.list.len() > MAX_CONNECTIONS {
            if let Some((_, oldest)) = held.list.pop_front() {
                // It may have been closed by its client already.
                let _ = oldest.shutdown(Shutdown::Both);
            }
        }
        OpenConnection { open: Arc::clone(self), number }
    }

    fn hold(&self) -> MutexGuard<'_, Connections> {
        lock(&self.0)
    }
}

/// Removes the connection from the list when dropped.
struct OpenConnection {
    open: Arc<Open>,
    number: u64,
}

impl Drop for OpenConnection {
    fn drop(&mut self) {
        self.open.hold().list.retain(|(number, _)| *number != self.number);
    }
}

fn answer(
    connection: &TcpStream,
    until: Instant,
    reply: &dyn Fn(&[u8]) -> (Status, String),
) -> io::Result<()> {
    // The reserve is for the response that the request was too slow.
    let request_deadline = until.checked_sub(LINGER).unwrap_or(until);
    let (status, body) = match request(connection, request_deadline) {
        Ok(head) => reply(&head),
        Err(status) => (status, String::new()),
    };
    let allow = if status == Status::Method { "Allow: GET\r\n" } else { "" };
    let head = format!(
        "HTTP/1.1 {}\r\nContent-Type: {TYPE}\r\nContent-Length: {}\r\n{allow}Connection: close\r\n\r\n",
        status.line(),
        body.len()
    );
    send(connection, (head + &body).as_bytes(), until)?;
    connection.shutdown(Shutdown::Write)?;
    // Closing with unread bytes would reset the connection and take the answer with it.
    discard(connection, until.min(clock::now() + LINGER));
    Ok(())
}

/// The remaining time; an error if there is none.
fn left(until: Instant) -> io::Result<Duration> {
    let left = until.saturating_duration_since(clock::now());
    if left.is_zero() { Err(io::ErrorKind::TimedOut.into()) } else { Ok(left) }
}

fn send(mut connection: &TcpStream, mut bytes: &[u8], until: Instant) -> io::Result<()> {
    while !bytes.is_empty() {
        connection.set_write_timeout(Some(left(until)?))?;
        match connection.write(bytes) {
            Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
            Ok(sent) => bytes = bytes.get(sent..).unwrap_or_default(),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// Reads and discards further data, up to a limit and a deadline.
fn discard(mut connection: &TcpStream, until: Instant) {
    let mut piece = [0; 1024];
    let mut bytes = 0;
    while bytes < MAX_REQUEST
        && let Ok(left) = left(until)
        && connection.set_read_timeout(Some(left)).is_ok()
        && let Ok(got @ 1..) = connection.read(&mut piece)
    {
        bytes += got;
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Status {
    Fine,
    Malformed,
    NotFound,
    Method,
    TooSlow,
    Misdirected,
    TooLong,
}

impl Status {
    const fn line(self) -> &'static str {
        match self {
            Status::Fine => "200 OK",
            Status::Malformed => "400 Bad Request",
            Status::NotFound => "404 Not Found",
            Status::Method => "405 Method Not Allowed",
            Status::TooSlow => "408 Request Timeout",
            Status::Misdirected => "421 Misdirected Request",
            Status::TooLong => "431 Request Header Fields Too Large",
        }
    }
}

/// Reads up to the empty line that ends the headers.
fn request(mut connection: &TcpStream, until: Instant) -> Result<Vec<u8>, Status> {
    let mut head = Vec::new();
    let mut piece = [0; 1024];
    while !head.windows(4).any(|end| end == b"\r\n\r\n") {
        let Ok(left) = left(until) else { return Err(Status::TooSlow) };
        if connection.set_read_timeout(Some(left)).is_err() {
            return Err(Status::TooSlow);
        }
        match connection.read(&mut piece) {
            Ok(0) => return Err(Status::Malformed),
            Ok(got) if head.len() + got > MAX_REQUEST => return Err(Status::TooLong),
            Ok(got) => head.extend_from_slice(&piece[..got]),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(_) => return Err(Status::TooSlow),
        }
    }
    Ok(head)
}

fn reply(
    head: &[u8],
    names: &OwnNames,
    misdirected: &str,
    page: &dyn Fn() -> String,
) -> (Status, String) {
    match status_of(head, names) {
        Status::Fine => (Status::Fine, page()),
        Status::Misdirected => (Status::Misdirected, misdirected.to_owned()),
        status => (status, String::new()),
    }
}

/// The status of a request by its Host and its request line (RFC 9112, section 3).
fn status_of(head: &[u8], names: &OwnNames) -> Status {
    let line = head.split(|byte| *byte == b'\r').next().unwrap_or_default();
    let words: Vec<&[u8]> = line.split(|byte| *byte == b' ').collect();
    let [method, target, version] = words[..] else { return Status::Malformed };
    if !version.starts_with(b"HTTP/1.") {
        return Status::Malformed;
    }
    match names.check(head, version == b"HTTP/1.0") {
        Ok(()) => {}
        Err(HostError::Malformed) => return Status::Malformed,
        Err(HostError::Foreign) => return Status::Misdirected,
    }
    let path = target.split(|byte| *byte == b'?').next().unwrap_or_default();
    match (path, method) {
        (b"/metrics", b"GET") => Status::Fine,
        (b"/metrics", _) => Status::Method,
        _ => Status::NotFound,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MISDIRECTED: &str = "another server";

    #[test]
    fn one_page_by_one_method() {
        for (line, status) in [
            ("GET /metrics HTTP/1.1", Status::Fine),
            ("GET /metrics?x=y HTTP/1.0", Status::Fine),
            ("POST /metrics HTTP/1.1", Status::Method),
            ("GET / HTTP/1.1", Status::NotFound),
            ("GET /metrics/ HTTP/1.1", Status::NotFound),
            ("GET /../metrics HTTP/1.1", Status::NotFound),
            ("GET /metrics", Status::Malformed),
            ("GET /metrics SPDY/3", Status::Malformed),
            ("", Status::Malformed),
            ("\0\u{ff} \0 \0", Status::Malformed),
        ] {
            let head = format!("{line}\r\nHost: localhost\r\n\r\n");
            assert_eq!(status_of(head.as_bytes(), &OwnNames::default()), status, "{line}");
        }
    }

    #[test]
    fn another_name_gets_no_page() {
        for (version, header, status) in [
            ("1.1", "Host: 192.0.2.1:9201\r\n", Status::Fine),
            ("1.1", "Host: evil.example\r\n", Status::Misdirected),
            ("1.0", "Host: evil.example\r\n", Status::Misdirected),
            ("1.1", "", Status::Malformed),
            ("1.0", "", Status::Fine),
        ] {
            let head = format!("GET /metrics HTTP/{version}\r\n{header}\r\n");
            let (got, body) =
                reply(head.as_bytes(), &OwnNames::default(), MISDIRECTED, &|| "page".to_owned());
            assert_eq!(got, status, "{head}");
            assert_eq!(body == "page", status == Status::Fine, "{head}");
            assert_eq!(body.contains(MISDIRECTED), status == Status::Misdirected, "{head}");
        }
    }

    /// Time enough to answer, and short enough to wait for.
    const SHORT: Duration = Duration::from_millis(500);

    fn response_to(parts: &[&[u8]], deadline: Duration) -> String {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let mut connection = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        serve_within(deadline, listener, OwnNames::default(), MISDIRECTED.to_owned(), || {
            "page".to_owned()
        })
        .unwrap();
        for part in parts {
            connection.write_all(part).unwrap();
            thread::sleep(Duration::from_millis(10));
        }
        let mut answer = String::new();
        connection.read_to_string(&mut answer).unwrap();
        answer
    }

    #[test]
    fn requests_come_in_pieces_and_end() {
        const HOUR: Duration = Duration::from_secs(3600);
        let pieces: [&[u8]; 3] = [b"GET /met", b"rics HTTP/1.1\r\nHost: [::1]\r", b"\n\r\n"];
        let answer = response_to(&pieces, HOUR);
        assert!(answer.starts_with("HTTP/1.1 200 OK\r\n") && answer.ends_with("\r\n\r\npage"));
        assert!(answer.contains("Content-Length: 4\r\n") && answer.contains("Connection: close"));
        let long = response_to(&[b"GET /metrics HTTP/1.1\r\n", &[b'x'; 5000]], HOUR);
        assert!(long.starts_with("HTTP/1.1 431 "), "{long}");
        let slow = response_to(&[b"GET /metrics HTTP/1.1\r\n"], SHORT);
        assert!(slow.starts_with("HTTP/1.1 408 "), "{slow}");
    }

    /// A server with more slow connections than its maximum: each has sent half a
    /// request.
    fn under_attack(deadline: Duration) -> (std::net::SocketAddr, Vec<TcpStream>) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        serve_within(deadline, listener, OwnNames::default(), MISDIRECTED.to_owned(), || {
            "page".to_owned()
        })
        .unwrap();
        let slow = |_| {
            let mut connection = TcpStream::connect(address).unwrap();
            connection.write_all(b"GET /metrics HTTP/1.1\r\nX: ").unwrap();
            connection
        };
        (address, (0..4 * MAX_CONNECTIONS).map(slow).collect())
    }

    #[test]
    fn slow_connections_do_not_lock_out_a_scraper() {
        // An hour: the scraper is served only if slow connections are closed.
        let (address, slow) = under_attack(Duration::from_secs(3600));
        for _ in 0..20 {
            let mut scraper = TcpStream::connect(address).unwrap();
            scraper.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
            scraper.write_all(b"GET /metrics HTTP/1.0\r\n\r\n").unwrap();
            let mut answer = String::new();
            scraper.read_to_string(&mut answer).unwrap();
            assert!(answer.starts_with("HTTP/1.1 200 OK\r\n"), "{answer}");
        }
        drop(slow);
    }

    /// Returns true if the server has closed this connection, though a byte is sent
    /// every few milliseconds.
    fn is_closed_eventually(mut connection: TcpStream) -> bool {
        let until = clock::now() + Duration::from_secs(20);
        connection.set_read_timeout(Some(Duration::from_millis(20))).unwrap();
        let mut closed = false;
        while !closed && clock::now() < until {
            closed = connection.write_all(b"x").is_err()
                || match connection.read(&mut [0; 512]) {
                    Ok(_) => false,
                    Err(error) => {
                        !matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut)
                    }
                };
        }
        closed
    }

    #[test]
    fn a_trickle_does_not_extend_the_deadline() {
        let (address, mut slow) = under_attack(SHORT);
        // One in the middle of its request, and one that was answered already.
        let asking = slow.pop().unwrap();
        let mut answered = TcpStream::connect(address).unwrap();
        answered.write_all(b"GET /metrics HTTP/1.0\r\n\r\n").unwrap();
        assert!(is_closed_eventually(asking));
        assert!(is_closed_eventually(answered));
    }
}
