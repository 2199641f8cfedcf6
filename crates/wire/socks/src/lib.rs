//! The server side of two proxy protocols: SOCKS5 (RFC 1928, RFC 1929) and HTTP CONNECT (RFC 9110,
//! section 9.3.6).
//!
//! Pure: no I/O, no clock, no name resolution. A client's bytes go into a [`Handshake`]; out comes the
//! [`Target`](lane::Target) that it wants to reach, or the reason it is refused, and in both cases the
//! bytes to answer. No input causes a panic, nothing received is stored, and no request has more than
//! [`MAX_HEAD`] bytes.
//!
//! | module | contents |
//! |---|---|
//! | [`handshake`] | the protocol told by its first byte; bytes in, a request or a denial out |
//! | [`token`] | the token that a listener asks for |
//! | [`answer`] | replies once the far side has connected or refused |

pub mod answer;
pub mod handshake;
mod http_connect;
mod socks5;
pub mod token;

pub use answer::Protocol;
pub use handshake::{Command, Denial, Handshake, MAX_HEAD, Progress};
pub use token::Token;
