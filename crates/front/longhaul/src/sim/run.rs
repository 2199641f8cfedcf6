//! One simulation.

use super::event::SimEvent;
use super::prepared::Prepared;
use super::{SimRequest, figures, path_report};
use crate::{Fault, Problem, StopFlag};
use host::clock;
use record::{Measurement, SimReport};
use serde::Serialize;
use std::ops::ControlFlow;
use std::time::{Duration, Instant};
use tcp::{Acknowledgement, Segments};
use twin::{Host, Observer, Outcome};
use units::Nanos;

/// Interval of reports on the progress; the first one follows after it.
const REPORT_EVERY: Duration = Duration::from_secs(2);

/// The result of a simulation; serialised, its report.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct SimResult {
    /// The document.
    #[serde(flatten)]
    pub report: SimReport,
    /// The measurement that the report is about, with every sample.
    #[serde(skip)]
    pub measurement: Measurement,
}

/// Simulates the flows of a request. A raised flag ends the simulation; what was simulated before
/// is in the result.
///
/// # Errors
/// An invalid field, a plan that needs real hosts, more packets or memory than a simulation may
/// take, a flag that was raised before anything was simulated.
pub fn run(
    request: &SimRequest,
    on_event: &mut dyn FnMut(SimEvent),
    stop: &StopFlag,
) -> Result<SimResult, Problem> {
    let prepared = Prepared::of(request)?;
    let bounds = prepared.bounds;
    on_event(SimEvent::Started { packets: bounds.packets, memory: bounds.memory });
    let outcome = simulate(&prepared, on_event, stop);
    let Some(path) = prepared.path().filter(|_| outcome.packets > 0) else {
        let (fault, why) = match outcome.interrupted {
            true => (Fault::Interrupted, "interrupted before any packet was sent"),
            false => (Fault::Request, "no packet was sent"),
        };
        return Err(Problem::new(fault, why));
    };
    let path = path_report::of(path, &prepared, &outcome);
    Ok(figures::result(&prepared, path, outcome))
}

/// Simulates what is prepared.
pub(super) fn simulate(
    prepared: &Prepared,
    on_event: &mut dyn FnMut(SimEvent),
    stop: &StopFlag,
) -> Outcome {
    let mut progress = Progress { on_event, stop, seconds: prepared.seconds, last: clock::now() };
    twin::run_observed(&prepared.scenario(), &mut progress)
}

/// Reports the progress, and ends the simulation when the flag is raised.
struct Progress<'a> {
    on_event: &'a mut dyn FnMut(SimEvent),
    stop: &'a StopFlag,
    seconds: f64,
    /// The last report, or the start.
    last: Instant,
}

impl Observer for Progress<'_> {
    fn data(&mut self, _: Nanos, _: Host, _: u32, _: &Segments, _: bool) {}

    fn acknowledgement(&mut self, _: Nanos, _: Host, _: u32, _: &Acknowledgement) {}

    fn passed(&mut self, now: Nanos, packets: u64) -> ControlFlow<()> {
        if self.stop.is_raised() {
            return ControlFlow::Break(());
        }
        if self.last.elapsed() >= REPORT_EVERY {
            self.last = clock::now();
            let (at_s, of_s) = (now.secs_f64(), self.seconds);
            (self.on_event)(SimEvent::Simulated { at_s, of_s, packets });
        }
        ControlFlow::Continue(())
    }
}
