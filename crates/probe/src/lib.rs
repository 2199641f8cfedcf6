//! Traffic endpoints: a client and a server that speak iperf3's protocol and
//! keep what the kernel says of every stream.
//!
//! * [`client::run`] makes one test and returns a [`record::Measurement`].
//! * [`server::Server`] answers many clients at a time, ours and iperf3's.
//!
//! Plain blocking threads, one for each stream. Threads inherit the network
//! namespace of their caller, which is all this crate needs to run inside an
//! emulated path; it knows nothing of namespaces itself.

mod arrivals;
pub mod auth;
pub mod client;
mod control;
mod course;
mod error;
mod event;
mod extra;
mod flow;
pub mod iperf2;
mod pacing;
mod plan;
mod sampling;
pub mod search;
pub mod server;
mod socket;
mod stop;
mod traffic;

pub use error::ProbeError;
pub use event::{
    DatagramInterval, Event, Interval, Observer, RefusalReason, ServerEvent, ServerOutput, Started,
    StreamAddress, Summary,
};
pub use extra::Who;
pub use sampling::{receiver_sample, sender_sample};
pub use stop::StopFlag;

/// The version told to the peer.
pub(crate) const VERSION: &str = env!("CARGO_PKG_VERSION");
