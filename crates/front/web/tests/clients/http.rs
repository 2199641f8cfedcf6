//! HTTP/1.1 by hand, as each client writes it.

use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) head: String,
    pub(crate) body: Vec<u8>,
}

impl Answer {
    /// The value of a header.
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.head.lines().skip(1).find_map(|line| {
            let (its, value) = line.split_once(':')?;
            its.eq_ignore_ascii_case(name).then(|| value.trim())
        })
    }

    pub(crate) fn text(&self) -> &str {
        std::str::from_utf8(&self.body).unwrap_or("not text")
    }

    pub(crate) fn json(&self) -> serde_json::Value {
        serde_json::from_slice(&self.body).unwrap_or_default()
    }
}

/// A connection that is kept for several exchanges.
pub(crate) struct Client(pub(crate) TcpStream);

impl Client {
    pub(crate) fn new(address: SocketAddr) -> Self {
        let stream = TcpStream::connect(address);
        let stream = stream.unwrap_or_else(|error| panic!("{address}: {error}"));
        let limit = Some(Duration::from_secs(20));
        assert!(stream.set_read_timeout(limit).and(stream.set_write_timeout(limit)).is_ok());
        assert!(stream.set_nodelay(true).is_ok());
        Client(stream)
    }

    /// Sends bytes; an error where the server has closed.
    pub(crate) fn send(&mut self, bytes: &[u8]) -> std::io::Result<()> {
        self.0.write_all(bytes)
    }

    /// The head of an answer.
    pub(crate) fn head(&mut self) -> String {
        let mut head = Vec::new();
        let mut byte = [0];
        while !head.ends_with(b"\r\n\r\n") {
            match self.0.read(&mut byte) {
                Ok(1) => head.push(byte[0]),
                other => panic!("{other:?} after {:?}", String::from_utf8_lossy(&head)),
            }
        }
        String::from_utf8_lossy(&head).into_owned()
    }

    /// An answer and its body, which has a Content-Length.
    pub(crate) fn answer(&mut self) -> Answer {
        let head = self.head();
        let status = head.split(' ').nth(1).and_then(|status| status.parse().ok());
        let mut answer = Answer { status: status.unwrap_or(0), head, body: Vec::new() };
        let length = answer.header("content-length").and_then(|length| length.parse().ok());
        answer.body = vec![0; length.unwrap_or(0)];
        let read = self.0.read_exact(&mut answer.body);
        assert!(read.is_ok(), "{read:?}");
        answer
    }

    /// Sends a request without a body, and reads the answer.
    pub(crate) fn get(&mut self, target: &str) -> Answer {
        self.request("GET", target, "", b"")
    }

    pub(crate) fn post(&mut self, target: &str, kind: &str, body: &[u8]) -> Answer {
        let headers = format!("Content-Type: {kind}\r\nContent-Length: {}\r\n", body.len());
        self.request("POST", target, &headers, body)
    }

    pub(crate) fn request(
        &mut self,
        method: &str,
        target: &str,
        headers: &str,
        body: &[u8],
    ) -> Answer {
        let head = format!("{method} {target} HTTP/1.1\r\nHost: localhost\r\n{headers}\r\n");
        assert!(self.send(head.as_bytes()).and_then(|()| self.send(body)).is_ok());
        self.answer()
    }

    /// Whether the server has closed, or closes within the read timeout.
    pub(crate) fn is_closed(&mut self) -> bool {
        let mut rest = [0; 4096];
        loop {
            match self.0.read(&mut rest) {
                Ok(0) => return true,
                Ok(_) => {}
                Err(error) => return error.kind() != ErrorKind::WouldBlock,
            }
        }
    }
}
