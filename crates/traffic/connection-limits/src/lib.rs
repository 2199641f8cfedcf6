//! Limits of a server on the open network, in total and per address, that no address can
//! turn against another: an address is an IPv4 address or the /64 prefix of an IPv6 address
//! ([`host::address_key`]).
//!
//! ```text
//!            HalfOpenTable          ThreadSlots              Shares
//! accept ─> handshake is read ─> it needs a thread ─> session ─> its resources, as it takes them
//!           full: the oldest of   the second half is   full: the oldest that took nothing, of the
//!           the address with      for addresses        address with the most of them, is evicted
//!           most is closed        without one
//! ```
//!
//! - [`Acceptor`] reads the handshakes of all connections in one thread.
//! - [`HalfOpenTable`] is what it keeps them in; a server whose handshakes go on in threads uses
//!   it alone.
//! - [`ThreadSlots`] bounds threads that serve clients before these are admitted.
//! - [`Shares`] counts what admitted sessions hold. It has neither a clock nor a lock.

mod acceptor;
mod half_open;
mod shares;
mod thread_slots;

pub use acceptor::{Acceptor, Ended, Handshake};
pub use half_open::{
    GRACE_PERIOD, HalfOpenLimits, HalfOpenTable, HandshakeCounts, HandshakeTicket,
};
pub use shares::{Exceeded, Limit, Scope, SessionId, Shares};
pub use thread_slots::{ThreadSlot, ThreadSlots};
