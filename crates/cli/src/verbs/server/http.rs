//! Just enough of HTTP/1.1 (RFC 9112) for a scraper: one page, one request a
//! connection. Everything is bounded: who asks wrongly, slowly or in a crowd
//! costs a few threads for a few seconds.

use host::clock;
use std::io::{self, Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

/// Longest request, its headers included.
const LONGEST: usize = 4096;
/// Longest it may take to arrive.
const PATIENCE: Duration = Duration::from_secs(2);
/// Connections at once; further ones are closed unread.
const MOST: usize = 8;
/// Prometheus' text format.
const TYPE: &str = "text/plain; version=0.0.4; charset=utf-8";

/// Answers `GET /metrics` with what `page` gives, from a thread of its own.
///
/// # Errors
/// The system's own where no thread can be had.
pub(super) fn serve(
    listener: TcpListener,
    page: impl Fn() -> String + Send + Sync + 'static,
) -> io::Result<()> {
    let (page, open) = (Arc::new(page), Arc::new(AtomicUsize::new(0)));
    thread::Builder::new().name("metrics".to_owned()).spawn(move || {
        loop {
            let Ok((connection, _)) = listener.accept() else {
                // Out of descriptors for now, most likely.
                thread::sleep(Duration::from_millis(100));
                continue;
            };
            if open.fetch_add(1, Ordering::Relaxed) >= MOST {
                open.fetch_sub(1, Ordering::Relaxed);
                continue;
            }
            let (page, place) = (Arc::clone(&page), Place(Arc::clone(&open)));
            let answer = move || {
                let _place = place;
                // A scraper that left has nobody to be told of it.
                let _ = answer(&connection, &*page);
            };
            let builder = thread::Builder::new().stack_size(128 * 1024);
            let _ = builder.name("scrape".to_owned()).spawn(answer);
        }
    })?;
    Ok(())
}

/// A connection's place, given back however it ends.
struct Place(Arc<AtomicUsize>);

impl Drop for Place {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

fn answer(mut connection: &TcpStream, page: &dyn Fn() -> String) -> io::Result<()> {
    connection.set_write_timeout(Some(PATIENCE))?;
    let (status, body) = match request(connection) {
        Ok(head) => reply(&head, page),
        Err(status) => (status, String::new()),
    };
    let allow = if status == Status::Method { "Allow: GET\r\n" } else { "" };
    let head = format!(
        "HTTP/1.1 {}\r\nContent-Type: {TYPE}\r\nContent-Length: {}\r\n{allow}Connection: close\r\n\r\n",
        status.line(),
        body.len()
    );
    connection.write_all(head.as_bytes())?;
    connection.write_all(body.as_bytes())?;
    connection.shutdown(Shutdown::Write)?;
    // Closing with unread bytes would reset the connection and take the answer with it.
    connection.set_read_timeout(Some(Duration::from_millis(200)))?;
    let _ = io::copy(&mut connection.take(LONGEST as u64), &mut io::sink());
    Ok(())
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Status {
    Fine,
    Malformed,
    NotFound,
    Method,
    TooSlow,
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
            Status::TooLong => "431 Request Header Fields Too Large",
        }
    }
}

/// Reads up to the empty line that ends the headers.
fn request(mut connection: &TcpStream) -> Result<Vec<u8>, Status> {
    let until = clock::now() + PATIENCE;
    let mut head = Vec::new();
    let mut piece = [0; 1024];
    while !head.windows(4).any(|end| end == b"\r\n\r\n") {
        let left = until.saturating_duration_since(clock::now());
        if left.is_zero() || connection.set_read_timeout(Some(left)).is_err() {
            return Err(Status::TooSlow);
        }
        match connection.read(&mut piece) {
            Ok(0) => return Err(Status::Malformed),
            Ok(got) if head.len() + got > LONGEST => return Err(Status::TooLong),
            Ok(got) => head.extend_from_slice(&piece[..got]),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(_) => return Err(Status::TooSlow),
        }
    }
    Ok(head)
}

fn reply(head: &[u8], page: &dyn Fn() -> String) -> (Status, String) {
    match judge(head) {
        Status::Fine => (Status::Fine, page()),
        status => (status, String::new()),
    }
}

/// What the request line asks for (RFC 9112 section 3).
fn judge(head: &[u8]) -> Status {
    let line = head.split(|byte| *byte == b'\r').next().unwrap_or_default();
    let words: Vec<&[u8]> = line.split(|byte| *byte == b' ').collect();
    let [method, target, version] = words[..] else { return Status::Malformed };
    if !version.starts_with(b"HTTP/1.") {
        return Status::Malformed;
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
            assert_eq!(judge(format!("{line}\r\n\r\n").as_bytes()), status, "{line}");
        }
    }

    fn asked(parts: &[&[u8]]) -> String {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let mut connection = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        serve(listener, || "page".to_owned()).unwrap();
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
        let answer = asked(&[b"GET /met", b"rics HTTP/1.1\r\nHost: x\r", b"\n\r\n"]);
        assert!(answer.starts_with("HTTP/1.1 200 OK\r\n") && answer.ends_with("\r\n\r\npage"));
        assert!(answer.contains("Content-Length: 4\r\n") && answer.contains("Connection: close"));
        let long = asked(&[b"GET /metrics HTTP/1.1\r\n", &[b'x'; 5000]]);
        assert!(long.starts_with("HTTP/1.1 431 "), "{long}");
        let slow = asked(&[b"GET /metrics HTTP/1.1\r\n"]);
        assert!(slow.starts_with("HTTP/1.1 408 "), "{slow}");
    }
}
