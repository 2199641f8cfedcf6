//! The WebSocket protocol, version 13 (RFC 6455), without extensions.
//!
//! Pure: no I/O, no clock. Keys and masks are arguments. No input causes a panic, and no input has
//! more stored of it than the [`Limits`] say.
//!
//! | module | contents |
//! |---|---|
//! | [`handshake`] | the upgrade: a server's answer, a client's request and its check |
//! | [`frame`] | headers of frames, masks, whole messages to send |
//! | [`close`] | close codes and the payload of Close |
//! | [`reader`] | received bytes in, events out |
//!
//! Binary messages are counted and dropped, still masked: they carry nothing but load. What is sent
//! in bulk is a header ([`frame::header`]) and a block of bytes, written as often as needed.

pub mod close;
pub mod frame;
pub mod handshake;
pub mod reader;

pub use close::CloseCode;
pub use frame::{Mask, Opcode};
pub use handshake::{ClientKey, Upgrade, UpgradeError};
pub use reader::{Event, Limits, ProtocolError, Reader, Role};
