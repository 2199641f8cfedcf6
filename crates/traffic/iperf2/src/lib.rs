//! An iperf 2 client and server.
//!
//! * [`client::run`] runs one test.
//! * [`server::Server`] serves many clients at a time.
//!
//! Each stream has a thread; a server's UDP streams share the thread that reads their
//! socket, and each has another one for the data it is sent. Callbacks get [`Event`]s in
//! order; reports come at each interval and at the end of each stream.

pub mod client;
mod context;
mod credit;
mod error;
mod event;
mod flows;
mod meter;
pub mod output;
mod report_limit;
pub mod server;
mod session;
pub mod simulation;
mod slots;
mod sockets;
mod tcp;
mod udp;
mod udp_receiver;
mod udp_reverse;

pub use error::Iperf2Error;
pub use event::{ConnectionInfo, DatagramStats, Event, IntervalReport, Label};
pub use sockets::Options;
