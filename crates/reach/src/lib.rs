//! Whether a host is there, how far it is, and which way leads to it.
//!
//! [`ping()`] sends echo requests (or TCP connects) and takes the statistics of
//! the answers; [`trace()`] lets probes expire on the way, one hop after the
//! other, again and again. Both give a document of `record`'s. [`path_mtu`] finds
//! the largest packet that gets there, and [`shake()`] what a handshake agrees on.
//!
//! | module | knows |
//! |---|---|
//! | `tally` | figures of round trips: pure |
//! | `icmp` | messages of ICMP and their meaning: pure |
//! | `hops` | which hops to ask next, and what they said: pure |
//! | `prober`, `echo`, `connect`, `datagram` | sockets that send probes and hear answers |
//! | `place` | networks and places of addresses, from a MaxMind database |
//!
//! A round trip ends when the kernel stamped the answer, not when this program
//! got to it. No probe needs a privilege but the ICMP echo where
//! `net.ipv4.ping_group_range` leaves the user out: errors of UDP and TCP come
//! by the socket's own error queue (ip(7), `IP_RECVERR`).

mod connect;
mod datagram;
mod echo;
mod error;
mod hops;
mod icmp;
mod mtu;
mod ping;
mod place;
mod prober;
mod resolve;
mod shake;
mod tally;
mod trace;

pub use error::ReachError;
pub use mtu::{PathMtu, path_mtu};
pub use ping::{Event, PingConfig, PingMethod, ping};
pub use resolve::{Family, resolve};
pub use shake::{Shake, Shaken, shake};
pub use trace::{TraceConfig, TraceMethod, trace};
