//! RTT and loss of probes to a host.

use crate::{Problem, StopFlag};
pub use probe::{Event as PingEvent, Family, PingConfig as PingRequest, PingMethod};
use record::PingReport;

/// Sends the probes, and returns the statistics of their replies.
///
/// # Errors
/// An invalid field, a name without address, no privilege, no route.
pub fn run(
    request: &PingRequest,
    on_event: &mut dyn FnMut(PingEvent),
    stop: &StopFlag,
) -> Result<PingReport, Problem> {
    Ok(probe::ping(request, on_event, &|| stop.is_raised())?)
}
