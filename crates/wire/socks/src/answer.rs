//! Replies once the far side has connected or refused.

use crate::Denial;
use lane::Refusal;

/// The protocol of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Protocol {
    /// SOCKS version 5.
    Socks5,
    /// HTTP CONNECT.
    Connect,
}

/// The reply code (RFC 1928, section 6). TTL expired stands for a timeout, as in OpenSSH and Tor.
const fn socks_code(refusal: Refusal) -> u8 {
    match refusal {
        Refusal::Busy => 0x01,
        Refusal::NotAllowed => 0x02,
        Refusal::Unreachable | Refusal::NameNotFound => 0x04,
        Refusal::Refused => 0x05,
        Refusal::TimedOut => 0x06,
    }
}

/// The status of a refusal (RFC 9110, section 15).
const fn status(refusal: Refusal) -> Status {
    match refusal {
        Refusal::NotAllowed => Status::FORBIDDEN,
        Refusal::Refused | Refusal::Unreachable | Refusal::NameNotFound => Status::BAD_GATEWAY,
        Refusal::TimedOut => Status::TIMEOUT,
        Refusal::Busy => Status::BUSY,
    }
}

impl Protocol {
    /// The answer after which the connection carries the client's and the target's bytes.
    #[must_use]
    pub fn accepted(self) -> Vec<u8> {
        match self {
            Protocol::Socks5 => socks_reply(0x00),
            // Without a length: RFC 9110, section 9.3.6.
            Protocol::Connect => b"HTTP/1.1 200 Connection established\r\n\r\n".to_vec(),
        }
    }

    /// The answer after which the connection is closed.
    #[must_use]
    pub fn refused(self, refusal: Refusal) -> Vec<u8> {
        match self {
            Protocol::Socks5 => socks_reply(socks_code(refusal)),
            Protocol::Connect => response(status(refusal), &[], &refusal.to_string()),
        }
    }
}

/// A reply (RFC 1928, section 6) whose bound address is unspecified: it is the far side's.
pub(crate) fn socks_reply(code: u8) -> Vec<u8> {
    const IPV4: u8 = 1;
    vec![5, code, 0, IPV4, 0, 0, 0, 0, 0, 0]
}

/// A status code with its reason phrase.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Status(&'static str);

impl Status {
    pub(crate) const BAD_REQUEST: Status = Status("400 Bad Request");
    const FORBIDDEN: Status = Status("403 Forbidden");
    pub(crate) const METHOD: Status = Status("405 Method Not Allowed");
    pub(crate) const AUTHENTICATE: Status = Status("407 Proxy Authentication Required");
    pub(crate) const TOO_LONG: Status = Status("431 Request Header Fields Too Large");
    const BAD_GATEWAY: Status = Status("502 Bad Gateway");
    const BUSY: Status = Status("503 Service Unavailable");
    const TIMEOUT: Status = Status("504 Gateway Timeout");
    pub(crate) const VERSION: Status = Status("505 HTTP Version Not Supported");
}

/// The response to a request that is denied before anything is connected.
pub(crate) fn denied(denial: Denial) -> Vec<u8> {
    let (status, headers): (_, &[_]) = match denial {
        Denial::Token => {
            (Status::AUTHENTICATE, &["Proxy-Authenticate: Basic realm=\"longhaul boost\""])
        }
        Denial::Method => (Status::METHOD, &["Allow: CONNECT"]),
        Denial::HttpVersion => (Status::VERSION, &[]),
        Denial::TooLong => (Status::TOO_LONG, &[]),
        _ => (Status::BAD_REQUEST, &[]),
    };
    response(status, headers, &denial.to_string())
}

fn response(Status(status): Status, headers: &[&str], text: &str) -> Vec<u8> {
    let headers: String = headers.iter().map(|line| format!("{line}\r\n")).collect();
    let length = text.len() + "longhaul: \n".len();
    format!(
        "HTTP/1.1 {status}\r\n{headers}Content-Type: text/plain\r\nContent-Length: {length}\r\n\
         Connection: close\r\n\r\nlonghaul: {text}\n"
    )
    .into_bytes()
}
