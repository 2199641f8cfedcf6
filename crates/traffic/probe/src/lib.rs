//! Probes of a host: RTT and loss, the route, the path MTU, the TCP handshake.
//!
//! [`ping()`] sends echo requests or opens TCP connections and returns statistics of
//! the replies. [`trace()`] sends probes that expire at each hop, in rounds. Both
//! return a document of `record`. [`path_mtu`] finds the largest packet that arrives,
//! and [`probe_handshake()`] the TCP options that the peer negotiates.
//!
//! | module | contents |
//! |---|---|
//! | `rtt_stats` | statistics of RTTs: pure |
//! | `icmp` | ICMP messages and their meaning: pure |
//! | `hops` | which hop to probe next, and statistics per hop: pure |
//! | `tcp_segment` | probes within an open TCP connection, and what quotes them: pure |
//! | `connection_route` | RTTs to the routers on the route of an open TCP connection |
//! | `prober`, `echo`, `connect`, `datagram` | sockets that send probes and receive responses |
//! | `geoip` | AS and location of addresses, from MaxMind databases |
//!
//! An RTT ends at the kernel's receive timestamp. Only ICMP echo requests need a
//! privilege, if `net.ipv4.ping_group_range` excludes the user: UDP and TCP probes read
//! ICMP errors from their socket's error queue (ip(7), `IP_RECVERR`).

mod connect;
mod connection_route;
mod datagram;
mod echo;
mod error;
pub mod fuzz;
mod geoip;
mod hops;
mod icmp;
mod mtu;
mod ping;
mod prober;
mod resolve;
mod route_map;
mod rtt_stats;
mod tcp_handshake;
mod tcp_segment;
mod trace;

pub use connection_route::{ConnectionRoute, HopRtt, Phase, connection_route};
pub use error::ProbeError;
pub use mtu::{PathMtu, path_mtu};
pub use ping::{Event, PingConfig, PingMethod, ping};
pub use resolve::{Family, resolve};
pub use tcp_handshake::{HandshakeInfo, TcpHandshake, probe_handshake};
pub use trace::{TraceConfig, TraceMethod, trace};
