//! Native mode: the mode of a connection whose ends are both Longhaul's. It has UDT's
//! handshake with cookies, and after it nothing of UDT's packets:
//!
//! * TLS 1.3 (RFC 8446) authenticates both ends by pinned Ed25519 keys (RFC 7250) and
//!   gives the keys; packets are protected as QUIC's are (RFC 9001 section 5), without
//!   header protection.
//! * Every packet has a number of its own, also where it repeats data, so that
//!   acknowledgements of ranges of numbers are unambiguous. Loss detection follows
//!   RFC 9002, with a reordering threshold that adapts.
//! * Connections are known by an ID of 64 bits. One end's address may change; the other
//!   one validates the new address before it uses it.
//!
//! | module | what |
//! |---|---|
//! | `packet` | headers and frames |
//! | `protection` | keys of packets and their updates |
//! | `tls` | the TLS handshake over datagrams |
//! | `opening` | cookies, then TLS: from the first datagram to an open connection |
//! | `flight` | packets in flight, loss detection |
//! | `outgoing` | the stream that is sent |
//! | `incoming` | the stream that is received, acknowledgements |
//! | `path` | the peer's address and its validation |
//! | `path_mtu` | which packet size the path carries (RFC 8899) |
//! | `clocks`, `round_trip` | the receiver's times, the RTT |
//! | `open` | an open connection |
//! | `connection` | all of it |

mod clocks;
mod connection;
mod flight;
mod incoming;
mod open;
mod opening;
mod outgoing;
mod packet;
mod path;
mod path_mtu;
mod protection;
mod round_trip;
mod tls;

pub use connection::{NativeConfig, NativeConnection};
