//! A session between the two boxes of a boosted path: many flows over one connection or several,
//! which may break and be replaced.
//!
//! Pure: no I/O, no clock. Payload passes through without being kept, except for what the peer has
//! not acknowledged.
//!
//! ```text
//!   near                                   far
//!   preface, Hello ──────────────>              identity, and the offset that near has received
//!                  <────────────── preface, Welcome      the offset that far has received
//!   Open, Data … ────────────────>              streams: like the flows of a lane, with a number
//!                  <────────────── Opened, Data, Credit, Ack …
//! ```
//!
//! What each end sends is one sequence of bytes, whatever connection carries it, in chunks with their
//! offset. Each end counts the bytes that it has received without a gap and holds those beyond one,
//! so that every frame is processed exactly once. Bytes are kept until they are acknowledged, and go to
//! the connections that are left when one breaks.
//!
//! | module | contents |
//! |---|---|
//! | [`greeting`] | the first messages of a connection: which session, from which offset |
//! | [`chunk`] | which bytes of the session a connection carries |
//! | [`event`] | what a session reports of its peer |
//! | [`reassembly`] | the bytes that have arrived before earlier ones |
//! | [`frame`] | headers and bodies |
//! | [`replay`] | the bytes that the peer has not acknowledged |
//! | [`stream`] | phases and credit of one stream |
//! | [`session`] | the streams, and what the peer may do |

pub mod chunk;
pub mod event;
pub mod frame;
pub mod greeting;
pub mod reassembly;
pub mod replay;
pub mod session;
pub mod stream;

pub use chunk::ChunkReader;
pub use event::{BlockPiece, Event, Received};
pub use greeting::{Attachment, Hello, SessionId, UdtOffer, Verdict, Welcome};
pub use reassembly::Reassembly;
pub use session::{MuxError, Session};

/// Number of a stream: near counts from 1, and uses none twice.
pub type StreamId = u32;

/// Most connections of a session at a time.
pub const MAX_CONNECTIONS: usize = 16;
/// Most streams of a session at a time.
pub const MAX_STREAMS: usize = 2048;
/// Bytes that a peer may send on a new stream before it has got any credit.
pub const INITIAL_WINDOW: u64 = 16 << 10;
/// Most credit that a stream has at a time.
pub const MAX_WINDOW: u64 = 16 << 20;
/// Credit beyond [`INITIAL_WINDOW`], over all streams of a session.
pub const WINDOW_POOL: u64 = 64 << 20;
/// Bytes of payload that are kept for a peer that has not acknowledged them.
pub const REPLAY_LIMIT: usize = 32 << 20;
