//! The body of a handshake: twelve words, and four more where it asks for the native mode.
//! The library reads the first twelve of them only.

use crate::packet::{Malformed, word};
use crate::sequence::Sequence;

/// The protocol's version.
pub const VERSION: u32 = 4;
/// Bytes of the body without and with the extension; others are no handshake.
const BODY_BYTES: usize = 48;
const EXTENDED_BYTES: usize = 64;
/// The extension's first word: `LHN` and its version.
const NATIVE: u32 = 0x4C48_4E01;

/// How data is delivered.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum SocketType {
    /// A stream of bytes (`UDT_STREAM`, 1 on the wire).
    #[default]
    Stream,
    /// Messages (`UDT_DGRAM`, 2 on the wire).
    Message,
}

/// What a handshake asks for or answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Request {
    /// A client's first request, and a server's answer to it with a cookie (1).
    Induction,
    /// A client's second request, and a server's answer to it (-1); in a rendezvous, an
    /// agreement.
    Conclusion,
    /// The first request of both ends of a rendezvous (0).
    Rendezvous,
    /// The last answer of a rendezvous (-2).
    RendezvousDone,
    /// The connection is refused (1002).
    Refused,
    /// Any other.
    Unknown(i32),
}

impl Request {
    const fn from_wire(number: u32) -> Self {
        match number.cast_signed() {
            1 => Request::Induction,
            -1 => Request::Conclusion,
            0 => Request::Rendezvous,
            -2 => Request::RendezvousDone,
            1002 => Request::Refused,
            other => Request::Unknown(other),
        }
    }

    const fn wire(self) -> u32 {
        match self {
            Request::Induction => 1,
            Request::Conclusion => (-1_i32).cast_unsigned(),
            Request::Rendezvous => 0,
            Request::RendezvousDone => (-2_i32).cast_unsigned(),
            Request::Refused => 1002,
            Request::Unknown(other) => other.cast_unsigned(),
        }
    }
}

/// A handshake.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Handshake {
    /// Version of the protocol.
    pub version: u32,
    /// Number of the socket type; [`Handshake::socket_type`] names it.
    pub socket_type: u32,
    /// Sequence number of the first packet of data.
    pub initial_sequence: Sequence,
    /// Largest packet including the headers of IPv4 and UDP, bytes.
    pub packet_bytes: u32,
    /// Flow window, packets.
    pub flow_window: u32,
    /// What it asks for.
    pub request: Request,
    /// The sender's socket ID.
    pub socket_id: u32,
    /// The server's cookie; 0 in a client's first request.
    pub cookie: u32,
    /// The receiver's address as the sender knows it; informational.
    pub peer_address: [u32; 4],
    /// The native mode is asked for or granted: the sender's connection ID.
    pub native: Option<u64>,
}

impl Handshake {
    pub(crate) fn parse(body: &[u8]) -> Result<Handshake, Malformed> {
        let at = |index| word(body, index).unwrap_or(0);
        let native = match body.len() {
            BODY_BYTES => None,
            EXTENDED_BYTES if at(12) == NATIVE => Some(u64::from(at(13)) << 32 | u64::from(at(14))),
            _ => return Err(Malformed("handshake of another length than 48 bytes")),
        };
        Ok(Handshake {
            version: at(0),
            socket_type: at(1),
            initial_sequence: Sequence::new(at(2)),
            packet_bytes: at(3),
            flow_window: at(4),
            request: Request::from_wire(at(5)),
            socket_id: at(6),
            cookie: at(7),
            peer_address: [at(8), at(9), at(10), at(11)],
            native,
        })
    }

    pub(crate) fn words(&self) -> impl Iterator<Item = u32> {
        let [a, b, c, d] = self.peer_address;
        let words = [
            self.version,
            self.socket_type,
            self.initial_sequence.number(),
            self.packet_bytes,
            self.flow_window,
            self.request.wire(),
            self.socket_id,
            self.cookie,
            a,
            b,
            c,
            d,
        ];
        let extension = self.native.map(|id| [NATIVE, (id >> 32) as u32, id as u32, 0]);
        words.into_iter().chain(extension.into_iter().flatten())
    }

    /// The socket type, if it is one.
    #[must_use]
    pub const fn socket_type(&self) -> Option<SocketType> {
        match self.socket_type {
            1 => Some(SocketType::Stream),
            2 => Some(SocketType::Message),
            _ => None,
        }
    }
}

impl SocketType {
    pub(crate) const fn wire(self) -> u32 {
        match self {
            SocketType::Stream => 1,
            SocketType::Message => 2,
        }
    }
}
