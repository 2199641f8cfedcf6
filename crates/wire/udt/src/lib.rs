//! UDT, the UDP-based data transfer protocol, without I/O: draft-gg-udt-03, and where the
//! library UDT 4.11 differs from it, the library.
//!
//! Time comes in as [`units::Nanos`], datagrams as bytes, randomness as numbers. A driver calls
//!
//! ```text
//!  datagrams ──> Connection::receive ──┐              ┌──> Connection::read ──> application
//!  timer ──────> Connection::on_timeout┼─> Connection ┤
//!  application ─> Connection::write ───┘              └──> Connection::poll_transmit ──> datagrams
//! ```
//!
//! | module | what |
//! |---|---|
//! | `packet`, `loss_list`, `handshake` | what is on the wire |
//! | `sequence` | numbers of 31 bits as counts of 64 |
//! | `connecting`, `listener`, `cookie` | the handshake of a client, a rendezvous, a server |
//! | `connection` | an established connection: both halves and its timers |
//! | `sender` | what is in flight and lost, windows, pacing |
//! | `receiver` | what has arrived, acknowledgements, messages |
//! | `estimate`, `rtt` | arrival rate, capacity, round-trip time |
//! | `packet_store` | payloads in blocks |
//! | `native` | the encrypted mode between two ends of ours |
//! | `endpoint` | what both modes have in common |
//!
//! Two departures from the library, which its peers do not notice: periods are not rounded
//! to microseconds, and cookies have a secret.

mod connecting;
mod connection;
mod cookie;
mod endpoint;
mod estimate;
mod handshake;
mod listener;
mod loss_list;
mod native;
mod packet;
mod packet_store;
mod receiver;
mod rtt;
mod sender;
mod sequence;

pub use connection::{Connection, Statistics, Transmit};
pub use cookie::PeerAddress;
pub use endpoint::Endpoint;
pub use handshake::{Handshake, Request, SocketType, VERSION};
pub use listener::{Incoming, Listener};
pub use loss_list::LossList;
pub use native::{NativeConfig, NativeConnection};
pub use packet::{
    Ack, Control, ControlHeader, DataHeader, FullAck, HEADER_BYTES, LOWER_HEADER_BYTES, Malformed,
    MessagePart, Packet,
};
pub use pinned_tls::{Identity, IdentityError, PublicKey};
pub use receiver::ReceiveCounters;
pub use sender::{SendCounters, SendLimit};
pub use sequence::{MessageNumber, Sequence};

use control::Algorithm;

/// The interval of acknowledgements and of rate control, ns (SYN).
pub const SYN_NS: u64 = 10_000_000;

/// Settings of a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Config {
    /// Stream or messages; both ends must have the same.
    pub socket_type: SocketType,
    /// Largest packet including the headers of IPv4 and UDP, bytes (UDT's MSS). The smaller
    /// one of both ends counts.
    pub packet_bytes: u32,
    /// Random, and not zero.
    pub socket_id: u32,
    /// Random.
    pub initial_sequence: Sequence,
    /// Packets that each buffer holds at most.
    pub max_buffer: u64,
    /// Congestion control.
    pub algorithm: Algorithm,
    /// Seed of what congestion control draws.
    pub seed: u64,
}

impl Config {
    /// Smallest packet: headers, and a payload of 32 bytes.
    pub const MIN_PACKET_BYTES: u32 = 76;
    /// Packets of Ethernet's MTU.
    pub const DEFAULT_PACKET_BYTES: u32 = 1_500;
    /// Buffers of 10 Gbit/s x 200 ms twice, packets of 1500 bytes.
    pub const MAX_BUFFER: u64 = 350_000;

    /// A stream with packets of 1500 bytes.
    #[must_use]
    pub const fn new(socket_id: u32, initial_sequence: Sequence, algorithm: Algorithm) -> Self {
        Config {
            socket_type: SocketType::Stream,
            packet_bytes: Config::DEFAULT_PACKET_BYTES,
            socket_id,
            initial_sequence,
            max_buffer: Config::MAX_BUFFER,
            algorithm,
            seed: 0,
        }
    }

    /// The flow window that a handshake names, packets: the library's, as far as the
    /// buffer reaches. Acknowledgements name more where the buffer has grown.
    fn flow_window(&self) -> u32 {
        u32::try_from(self.max_buffer.min(control::UDT_FLOW_WINDOW)).unwrap_or(u32::MAX)
    }
}

/// Why a connection ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum CloseReason {
    /// By this end.
    #[error("closed")]
    Local,
    /// The peer shut it down.
    #[error("the peer closed the connection")]
    Peer,
    /// No answer to the handshake.
    #[error("no answer to the handshake")]
    HandshakeTimeout,
    /// The server refused: another protocol version or socket type, or too many clients.
    #[error("the server refused the connection")]
    Refused,
    /// The server has no native mode, which the client asked for.
    #[error("the server has no native mode (encrypted UDT)")]
    NoNativeMode,
    /// The peer does not have the expected key.
    #[error("the peer does not have the expected key")]
    Authentication,
    /// The path carried packets of so many bytes of UDP payload and does not any more; smaller ones
    /// arrive.
    #[error("packets of {0} bytes no longer arrive on the path, and smaller ones do")]
    PathMtu(usize),
    /// Nothing came from the peer for long.
    #[error("the peer no longer answers")]
    TimedOut,
    /// The peer does not follow the protocol.
    #[error("protocol error of the peer: {0}")]
    Protocol(&'static str),
}
