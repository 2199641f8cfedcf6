//! `longhaul boost`: a pair of boxes that split TCP connections, near the applications and near
//! their targets.
//!
//! ```text
//!  application ──TCP──> near ══ lane ══> far ──TCP──> target
//!                        │                │
//!                     Ingress      DestinationPolicy
//! ```
//!
//! | module | |
//! |---|---|
//! | [`near`] | accepts connections of applications, opens lanes |
//! | [`far`] | accepts lanes, connects to targets |
//! | [`ingress`] | how a connection at near says where it is to go |
//! | [`forward`] | the ingress of a forwarded port |
//! | [`proxy`] | the ingress of SOCKS5 and HTTP CONNECT |
//! | [`transparent`] | the ingress of connections to any address |
//! | [`program`] | a program in a network of its own |
//! | [`gateway`] | connections that arrive at a device |
//! | [`dns`] | DNS of a program in a network of its own |
//! | [`policy`] | where far may connect |
//! | [`destination`] | the policy of `--allow`: classes of addresses, rules |
//! | [`keys`] | the keys of a pair |
//! | `address_share` | what one address may have of the flows and lanes of a box |
//! | `lane_buffers` | the buffers that the kernel grants connections between the boxes |
//! | `mux` | many flows over one connection or several, which may break |
//! | `event_loop` | one thread: sockets, relays, timers |
//! | `connector` | connects flows to their targets at far |
//! | `block_codec` | blocks compressed by zstd |
//! | `saved` | the least time that a flow was spared |
//! | `relay` | one lane with its flow: moves bytes between two sockets |
//!
//! A thread for each core runs an event loop; flows are shared out among them and stay there.
//! Other threads accept connections and resolve names.

mod address_share;
mod block_codec;
mod connector;
mod counters;
pub mod destination;
pub mod dns;
mod event;
mod event_loop;
pub mod far;
pub mod forward;
pub mod gateway;
pub mod ingress;
pub mod keys;
mod lane_buffers;
mod lane_socket;
mod local_flow;
mod mux;
pub mod near;
mod pipes;
pub mod policy;
pub mod program;
pub mod proxy;
mod relay;
mod resolver;
mod saved;
pub mod sockets;
pub mod transparent;

pub use ::mux::MAX_CONNECTIONS;
pub use counters::{NotBoosted, Totals, UncompressedFlows};
pub use destination::{AllowRule, Destinations, InvalidRule};
pub use event::Event;
pub use event_loop::Ending;
pub use far::{Far, FarConfig};
pub use forward::PortForward;
pub use ingress::{Accepted, Ingress, Negotiation, Next, Step};
pub use keys::{FarKeys, PairKey};
pub use lane::{HostName, InvalidTarget, Refusal, Target, TargetHost, Uncompressed};
pub use lane_buffers::BufferKind;
pub use local_flow::{FlowEnd, FlowSummary};
pub use mux::{CappedBuffer, RESUME_TIMEOUT};
pub use near::{Listener, Near, NearConfig};
pub use policy::DestinationPolicy;
pub use proxy::Proxy;
pub use sockets::LaneOptions;
pub use transparent::Transparent;

use std::net::SocketAddr;
use std::time::Duration;

/// The TCP port of far.
pub const PORT: u16 = 7425;

/// Timeouts of both boxes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Timeouts {
    /// A flow in which nothing moves for so long is reset.
    pub idle: Duration,
    /// Time that flows have to end once the box drains; then they are reset.
    pub drain: Duration,
}

impl Default for Timeouts {
    fn default() -> Self {
        Timeouts { idle: Duration::from_secs(3600), drain: Duration::from_secs(30) }
    }
}

/// The reason why a box cannot start.
#[derive(Debug, thiserror::Error)]
pub enum BoostError {
    /// An address to listen on.
    #[error("cannot listen on {address}: {reason}")]
    Listen {
        /// The address.
        address: SocketAddr,
        /// The system error.
        reason: String,
    },
    /// The congestion control.
    #[error("{0}")]
    Congestion(String),
    /// Sockets or threads.
    #[error("the system refuses a socket or a thread: {0}")]
    Socket(std::io::Error),
    /// The keys.
    #[error("{0}")]
    Key(#[from] keys::KeyError),
}
