//! The route to a host, with loss and RTT of each hop.

use crate::{Problem, StopFlag};
pub use probe::{TraceConfig as TraceRequest, TraceMethod};
use record::TraceReport;

/// Probes each hop in rounds. `on_update` gets the report so far, at most five times a second.
///
/// # Errors
/// An invalid field, a name without address, no privilege, no route.
pub fn run(
    request: &TraceRequest,
    on_update: &mut dyn FnMut(&TraceReport),
    stop: &StopFlag,
) -> Result<TraceReport, Problem> {
    Ok(probe::trace(request, on_update, &|| stop.is_raised())?)
}
