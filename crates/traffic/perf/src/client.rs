//! The client: one test against one server, ours or a real iperf3.

mod config;
mod measurement;
mod policing;
mod session;
mod streams;

pub use crate::{
    auth::{Credentials, Padding},
    control::Keepalive,
};
pub use config::{
    ClientConfig, EndAfter, RisingTrain, TcpOptions, Transport, UdpOptions, UdtOptions,
};
pub use host::resolve::Family;

use crate::{Event, PerfError, StopFlag};
use iperf3_proto::Results;
use record::Measurement;

/// Result of a test.
#[derive(Debug, Clone, PartialEq)]
pub struct Report {
    /// Everything that was measured.
    pub measurement: Measurement,
    /// This end's results.
    pub ours: Results,
    /// The server's results; `None` if the test was interrupted, or is incomplete.
    pub theirs: Option<Results>,
    /// The reason that the server's results are missing, as one line, if the test failed.
    pub incomplete: Option<String>,
}

/// Runs one test.
///
/// `progress` is called in this thread, in the order of events; it must not block
/// for long, since samples are taken between its calls.
///
/// When `stop` is raised during the test, the server is notified and the result so
/// far is returned, with a note.
///
/// # Errors
/// [`PerfError`]: one line with operation, address and remedy;
/// [`PerfError::is_usage`] distinguishes a wrong command line from a failed test.
pub fn run(
    config: &ClientConfig,
    progress: &mut dyn FnMut(Event),
    stop: &StopFlag,
) -> Result<Report, PerfError> {
    config.check()?;
    // The control connection must not wait for the CPU behind hundreds of streams.
    let _prompt = host::slice::ShortSlices::begin();
    session::run(config, progress, stop)
}
