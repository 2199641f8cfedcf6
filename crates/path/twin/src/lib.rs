//! A simulated twin of the lab: TCP connections of `tcp` over links of `link`, in virtual
//! time.
//!
//! [`run`] takes a [`Scenario`] and gives a [`record::Measurement`], as a test over the
//! same path would, and the ground truth that no measurement has: what limited each
//! connection in every 100 ms, the bottleneck's queue, and its drops by cause. The same
//! scenario gives the same outcome, bit by bit. [`run_observed`] shows every TCP packet as
//! captures at both hosts would. [`run_with`] takes congestion control of the caller's own.
//!
//! ```text
//!   Sender ──> forward: Link ──> Receiver      one for each connection; connections
//!      ^                            │          that are not measured are cross traffic
//!      └────── reverse: Link <──────┘          datagram sources only send
//! ```
//!
//! Pure: no I/O, no clock, no thread.

mod access_delay;
mod backward;
mod connection;
mod datagrams;
mod event_loop;
mod measurement;
mod observer;
mod path_report;
mod pauses;
mod scenario;
mod timer_queue;
mod truth;

pub use datagrams::DatagramSource;
pub use event_loop::{run, run_observed, run_observed_with, run_with};
pub use observer::{Host, Observer};
pub use path_report::{link_drops, path_report};
pub use pauses::{HostPauses, Pause};
pub use scenario::{ConnectionConfig, ControllerFailed, Ecn, Granularity, Outcome, Scenario};
pub use truth::{ConnectionTruth, ReverseTruth, TruthInterval};

/// IP and TCP headers with timestamps: 20 + 20 + 12 bytes.
pub const HEADER_BYTES: u32 = 52;
