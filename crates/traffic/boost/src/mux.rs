//! `--mux`: many flows over one connection between the boxes, or several where buffers are capped, which
//! are replaced when they break.
//!
//! ```text
//!   local sockets ──> Session ──> Link ══ TCP, TLS ══ Link <── Session <── local sockets
//!                        │ unacknowledged bytes, retransmitted on the next link
//! ```
//!
//! A thread of its own carries all sessions of a box. Near has one session at a time; far has one for
//! each near box that uses it.
//!
//! | module | contents |
//! |---|---|
//! | `link` | one connection, and the greeting on it |
//! | `live` | a session, its connections, its flows |
//! | `mux_flow` | one flow: bytes between its local socket and its stream |
//! | `block` | compressed blocks that arrive |
//! | `slots` | numbered places for them |
//! | `udt_carrier` | UDT instead of TCP as what carries a session |
//! | `engine` | sockets, sessions and flows of the thread |
//! | `pump` | a turn of a session |
//! | `carry` | the bytes of a session on its connections |
//! | `connections` | how many connections near opens |
//! | `near` | opens streams, connects again |
//! | `far` | takes sessions, connects targets |

mod block;
mod carry;
mod connections;
pub(crate) mod engine;
pub(crate) mod far;
mod link;
mod live;
mod mux_flow;
pub(crate) mod near;
mod pump;
mod slots;
pub(crate) mod udt_carrier;

pub use connections::CappedBuffer;
use std::time::Duration;

/// A session whose connection broke is kept for so long; then its flows are reset.
pub const RESUME_TIMEOUT: Duration = Duration::from_secs(30);
/// A connection whose preface does not offer what the first one of its session did.
const OTHER_COMPRESSION: &str =
    "its offer to compress is not that of the session's first connection";
/// Bytes that wait for a connection; more would only delay other flows.
const UNSENT_LIMIT: usize = 256 << 10;
