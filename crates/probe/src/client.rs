//! The client: one test against one server, ours or a real iperf3.

mod config;
mod measurement;
mod session;

pub use crate::socket::Family;
pub use config::ClientConfig;

use crate::{Event, ProbeError, StopFlag};
use record::Measurement;

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
) -> Result<Measurement, ProbeError> {
    config.check()?;
    session::run(config, progress, stop)
}
