//! Graphs of TCP connections in a capture, at levels of detail that fit a page. Pure: no
//! I/O, no clock.
//!
//! A [`Recorder`] gets each packet of a connection with its analysis and keeps two levels:
//!
//! - **bins** of 1 ms, with the least and the greatest value of every series in them, its
//!   sums, its retransmissions by kind, and the numbers of its packets. Only bins in which
//!   something happened exist. Where there are too many, pairs are merged, so that a bin is
//!   2, 4, 8 ms wide; no extreme and no count is lost.
//! - **single packets**: all of them while they fit, then those of the handshake and the
//!   ends, those around events, and runs of consecutive packets at regular distances.
//!
//! Memory is bounded by [`Limits`], whatever the capture says, and [`Graphs::encode`] fits
//! both levels into a number of bytes.
//!
//! | module | contents |
//! |---|---|
//! | `recorder` | relative sequence numbers, windows, goodput of each direction |
//! | `in_flight` | bytes in flight in order of time |
//! | `bins` | the values of a bin, and merging them |
//! | `marks` | events that are marked: retransmissions by kind, zero windows |
//! | `packets` | which single packets are kept |
//! | `columns` | both as columns of variable-length integers |

mod bins;
mod columns;
mod in_flight;
mod marks;
mod packets;
mod recorder;

pub use bins::{Acks, Bin, Bins, Data, Span};
pub use columns::Encoded;
pub use marks::{MARK_COUNT, Mark};
pub use packets::{KeptPacket, MAX_BLOCKS};
pub use recorder::{Graphs, Limits, Recorder};
