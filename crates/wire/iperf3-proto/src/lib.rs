//! iperf3's messages and their order.
//!
//! Pure: no I/O, no clock, no sockets. Turns bytes into messages and typed errors.
//!
//! | module | holds |
//! |---|---|
//! | [`state`] | the one-byte messages |
//! | [`cookie`] | the 37 bytes that tie connections to a test |
//! | [`datagram`] | UDP's connect datagrams and the header of data datagrams |
//! | [`framing`] | length-prefixed JSON, decoded incrementally |
//! | [`params`] | a client's test parameters |
//! | [`extension`] | a longhaul client's additional parameters |
//! | [`token_proof`] | its proof that it knows a token |
//! | [`results`] | one end's results |
//! | [`json_text`] | JSON that is passed through as text |
//! | [`lenient`] | lenient parsing of values, without building trees |
//! | [`order`] | order of the messages |
//! | [`refusal`] | a server's error codes |
//!
//! Compatible with iperf3 3.9 to 3.21.

pub mod cookie;
pub mod datagram;
pub mod extension;
pub mod framing;
pub mod json_text;
pub mod lenient;
pub mod order;
pub mod params;
pub mod refusal;
pub mod results;
pub mod state;
pub mod token_proof;
mod trim;
pub mod values;

pub use cookie::Cookie;
pub use extension::Extension;
pub use framing::{Decoder, FrameError};
pub use json_text::JsonText;
pub use order::{Order, OrderError, Role};
pub use params::{ParamError, Params};
pub use refusal::Refusal;
pub use results::{Results, StreamResult};
pub use state::State;
pub use token_proof::{TOKEN_PROOF_VERSION, TokenProof};

/// The port of the control connection and of TCP streams by default.
pub const DEFAULT_PORT: u16 = 5201;

/// Bytes a TCP stream writes at a time by default.
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
