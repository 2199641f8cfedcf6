//! The client: one test against one server, ours or a real iperf3.

mod config;
mod measurement;
mod session;
mod streams;

pub use crate::{
    auth::{Credentials, Padding},
    control::Keepalive,
    socket::Family,
};
pub use config::ClientConfig;

use crate::{Event, ProbeError, StopFlag};
use iperf3::Results;
use record::Measurement;

/// What came of a test.
#[derive(Debug, Clone, PartialEq)]
pub struct Report {
    /// Everything that was measured.
    pub measurement: Measurement,
    /// What this end told the server.
    pub ours: Results,
    /// What the server told; `None` where the test was interrupted.
    pub theirs: Option<Results>,
}

/// Runs one test from connecting to the last result.
///
/// `progress` is called in this thread, in the order of events; it should not
/// block for long, since samples are taken between its calls.
///
/// When `stop` is raised while traffic runs, the server is told and what was
/// measured so far is returned, with a note that says so.
///
/// # Errors
/// [`ProbeError`]: one line with operation, address and remedy;
/// [`ProbeError::is_usage`] tells a wrong command from work that failed.
pub fn run(
    config: &ClientConfig,
    progress: &mut dyn FnMut(Event),
    stop: &StopFlag,
) -> Result<Report, ProbeError> {
    config.check()?;
    // Where hundreds of streams run, who converses must not wait for them.
    let _prompt = host::slice::Prompt::begin();
    session::run(config, progress, stop)
}
