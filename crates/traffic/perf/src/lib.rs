//! Traffic endpoints: a client and a server for iperf3's protocol that sample
//! TCP_INFO of every stream.
//!
//! * [`client::run`] runs one test and returns a [`record::Measurement`].
//! * [`server::Server`] serves many clients concurrently, longhaul's and iperf3's.
//!
//! Blocking threads, one per stream. Threads inherit their caller's network
//! namespace, which is all this crate needs to run in a lab.

mod arrivals;
pub mod auth;
pub mod client;
mod control;
mod error;
mod event;
mod extra;
mod memory_budget;
mod pacing;
mod plan;
mod quota;
mod sampler;
mod sampling;
pub mod search;
pub mod server;
mod socket;
mod stream;
mod traffic;
mod udt_state;
mod unsent_limit;

pub use error::PerfError;
pub use event::{
    DatagramInterval, Event, Interval, Observer, RefusalReason, ServerEvent, ServerOutput, Started,
    StreamAddress, Summary,
};
pub use host::stop::StopFlag;
pub use iperf3_proto::Role;

/// The version sent to the peer.
pub(crate) const VERSION: &str = env!("CARGO_PKG_VERSION");
