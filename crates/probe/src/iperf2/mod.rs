//! Endpoints that speak iperf 2's protocol, for either end of a test.
//!
//! * [`client::run`] makes one test.
//! * [`server::Server`] answers many clients at a time.
//!
//! One thread for each stream; a server's UDP streams share the thread that reads
//! their socket. What happens is told through callbacks as [`Event`]s, in the
//! order it happens; rows come at each interval and at each stream's end.

pub mod client;
mod desk;
mod error;
mod event;
mod flows;
mod meter;
mod open;
pub mod server;
mod serving;
mod tcp;
mod udp;

pub use error::Iperf2Error;
pub use event::{Event, Label, Received, Row, TcpFacts};
pub use open::Options;
