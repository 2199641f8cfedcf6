//! iperf3's messages and the order they come in.
//!
//! Pure: no I/O, no clock, no sockets. Bytes and facts come in, messages and
//! typed errors go out; the same code runs in a test and on the wire.
//!
//! | module | holds |
//! |---|---|
//! | [`state`] | the one-byte messages |
//! | [`cookie`] | the 37 bytes that tie connections to a test |
//! | [`datagram`] | UDP's greeting and the header of its datagrams |
//! | [`framing`] | length-prefixed JSON, written and read piece by piece |
//! | [`params`] | what a client asks |
//! | [`results`] | what both ends report |
//! | [`order`] | what may follow what |
//! | [`refusal`] | a server's error codes |
//!
//! Speaks with versions 3.9 to 3.21 of the program of that name.

pub mod cookie;
pub mod datagram;
pub mod framing;
mod lenient;
pub mod order;
pub mod params;
pub mod refusal;
pub mod results;
pub mod state;

pub use cookie::Cookie;
pub use framing::{Decoder, FrameError};
pub use order::{Order, OrderError, Role};
pub use params::{ParamError, Params};
pub use refusal::Refusal;
pub use results::{Results, StreamResult};
pub use state::State;

/// The port of the control connection and of TCP streams unless told otherwise.
pub const DEFAULT_PORT: u16 = 5201;

/// Bytes a TCP stream writes at a time unless the client asks for another size.
pub const DEFAULT_BLOCK: u32 = 128 * 1024;

/// The id of the stream opened as number `index`, counted from 0: 1, 3, 4, 5, …
/// (2 is skipped by every version, and results match by id).
#[must_use]
pub const fn stream_id(index: u32) -> u32 {
    if index == 0 { 1 } else { index + 2 }
}

#[cfg(test)]
mod tests {
    #[test]
    fn stream_ids_skip_two() {
        let ids: Vec<u32> = (0..5).map(super::stream_id).collect();
        assert_eq!(ids, [1, 3, 4, 5, 6]);
    }
}
