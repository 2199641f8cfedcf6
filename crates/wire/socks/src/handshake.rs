//! Bytes of a client in, its target or a denial out.

use crate::answer::Protocol;
use crate::http_connect::HttpConnect;
use crate::socks5::Socks5;
use crate::token::Token;
use lane::{InvalidTarget, Target};

/// Most bytes of a request's head. SOCKS5 needs less than 1 KiB; browsers' CONNECT requests too.
pub const MAX_HEAD: usize = 8 << 10;

/// SOCKS commands that are refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Command {
    /// A listening socket at the proxy (RFC 1928, section 4).
    #[error("SOCKS5 BIND")]
    Bind,
    /// A relay of datagrams.
    #[error("SOCKS5 UDP ASSOCIATE")]
    UdpAssociate,
    /// None of RFC 1928.
    #[error("SOCKS5 command {0}")]
    Unknown(u8),
}

/// The reason a client is refused before anything is connected.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Denial {
    /// Neither SOCKS5 nor HTTP.
    #[error("the client speaks neither SOCKS5 nor HTTP CONNECT")]
    Protocol,
    /// SOCKS version 4.
    #[error("the client speaks SOCKS4; use socks5h:// as its proxy")]
    Socks4,
    /// TLS to the proxy itself.
    #[error("the client speaks TLS to the proxy; use http:// as the proxy's scheme")]
    Tls,
    /// The client offers no method of authentication that is accepted here.
    #[error("a token is required, as the proxy's password")]
    NoMethod,
    /// No token, or the wrong one.
    #[error("the token is missing or wrong; give it as the proxy's password")]
    Token,
    /// A command other than CONNECT.
    #[error("{0} is not supported: only TCP connections are relayed")]
    Command(Command),
    /// An address type outside of RFC 1928.
    #[error("SOCKS5 address type {0} is unknown")]
    AddressType(u8),
    /// A host or port that is none.
    #[error(transparent)]
    Target(InvalidTarget),
    /// An HTTP method other than CONNECT.
    #[error("only CONNECT is supported; for http:// URLs tell the client to tunnel (curl -p)")]
    Method,
    /// Neither HTTP/1.0 nor HTTP/1.1.
    #[error("only HTTP/1.1 is supported")]
    HttpVersion,
    /// A head above [`MAX_HEAD`], or more than 100 header fields.
    #[error("the head of the request is too long")]
    TooLong,
    /// Bytes that break the protocol's grammar.
    #[error("the request is malformed: {0}")]
    Malformed(&'static str),
}

impl From<InvalidTarget> for Denial {
    fn from(error: InvalidTarget) -> Self {
        Denial::Target(error)
    }
}

/// What input led to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Progress {
    /// Bytes of the input that are done with. The others are to be given again, with those that
    /// arrive later; once there is a target, they are for it.
    pub used: usize,
    /// The target, once the request is whole.
    pub target: Option<Target>,
}

/// The server side of a connection until its request is whole.
#[derive(Debug)]
pub struct Handshake {
    token: Option<Token>,
    parser: Option<Parser>,
}

/// The protocol, known from the first byte on.
#[derive(Debug)]
enum Parser {
    Socks5(Socks5),
    Connect(HttpConnect),
}

/// A step of a parser.
pub(crate) enum Step {
    /// More bytes are needed.
    Incomplete,
    /// That many bytes are done with.
    Used(usize),
    /// The request is whole, and that many bytes long.
    Target(Target, usize),
}

impl Handshake {
    /// A handshake that asks for a token, if there is one.
    #[must_use]
    pub const fn new(token: Option<Token>) -> Self {
        Handshake { token, parser: None }
    }

    /// Reads input and appends what is to be sent to `answer`, also before a denial.
    ///
    /// # Errors
    /// The reason the client is denied; the connection is to be closed once the answer is sent.
    pub fn advance(&mut self, input: &[u8], answer: &mut Vec<u8>) -> Result<Progress, Denial> {
        let mut used = 0;
        loop {
            match self.step(input.get(used..).unwrap_or_default(), answer)? {
                Step::Incomplete => return Ok(Progress { used, target: None }),
                Step::Used(length) => used += length,
                Step::Target(target, length) => {
                    return Ok(Progress { used: used + length, target: Some(target) });
                }
            }
        }
    }

    /// The protocol, once a byte has told it.
    #[must_use]
    pub fn protocol(&self) -> Option<Protocol> {
        self.parser.as_ref().map(|parser| match parser {
            Parser::Socks5(_) => Protocol::Socks5,
            Parser::Connect(_) => Protocol::Connect,
        })
    }

    fn step(&mut self, input: &[u8], answer: &mut Vec<u8>) -> Result<Step, Denial> {
        let token = self.token.as_ref();
        match (&mut self.parser, input.first()) {
            (_, None) => Ok(Step::Incomplete),
            (Some(Parser::Socks5(socks)), _) => socks.step(input, token, answer),
            (Some(Parser::Connect(http)), _) => http.step(input, token, answer),
            (None, Some(first)) => {
                self.parser = Some(parser(*first, answer)?);
                Ok(Step::Used(0))
            }
        }
    }
}

/// Tells the protocol by its first byte.
fn parser(first: u8, answer: &mut Vec<u8>) -> Result<Parser, Denial> {
    match first {
        0x05 => Ok(Parser::Socks5(Socks5::default())),
        b'A'..=b'Z' => Ok(Parser::Connect(HttpConnect::default())),
        0x04 => {
            // SOCKS4's reply: request rejected.
            answer.extend([0, 0x5b, 0, 0, 0, 0, 0, 0]);
            Err(Denial::Socks4)
        }
        // ContentType handshake (RFC 8446, section 5.1).
        0x16 => Err(Denial::Tls),
        _ => Err(Denial::Protocol),
    }
}
