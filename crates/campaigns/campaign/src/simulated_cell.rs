//! One run in the simulator: the cell's path and flows in virtual time.
//!
//! ```text
//!  Test ──> scope: what the simulator cannot run ──> connections ──> twin ──> flows
//! ```
//!
//! The hosts are ideal: nothing but the path, the windows and the congestion control limits a flow.
//! The path is the lab's, with the same draws: several clients and servers share it, as behind the
//! lab's routers.

mod connections;
mod flows;
mod scope;

pub(crate) use scope::refusal;
pub use scope::{NotSimulated, Unsupported, unsupported};

use crate::testbed::Attempt;
use perf::StopFlag;
use record::Direction;
use std::ops::ControlFlow;
use std::time::Duration;
use study::Test;
use tcp::{Acknowledgement, Segments};
use twin::{Host, Observer, Scenario};
use units::Nanos;

/// Runs a test once, with the draws of `seed`; `None`: stopped. The same test and seed give the same
/// result, also its times, which are virtual.
pub(crate) fn run(test: &Test, seed: u64, stop: &StopFlag) -> Option<Attempt> {
    let (scenario, planned) = scenario(test, seed);
    let outcome = twin::run_observed(&scenario, &mut Watch(stop));
    if outcome.interrupted {
        return None;
    }
    let mut reasons = Vec::new();
    if outcome.truncated {
        reasons.push(format!("the simulation ended early, after {} packets", outcome.packets));
    }
    let report = twin::path_report(&test.spec, seed, &outcome);
    let took = Duration::try_from_secs_f64(outcome.measurement.spec.seconds).unwrap_or_default();
    let flows = flows::of(test, &planned, outcome, &report);
    Some(Attempt { reasons, disturbed: false, took, start_skew: None, flows })
}

/// What is simulated, and the flow that each connection belongs to.
fn scenario(test: &Test, seed: u64) -> (Scenario, Vec<connections::PlannedFlow>) {
    let [up, down] = test.spec.schedules(seed);
    // All flows have the same direction.
    let is_reverse = test.flows.iter().any(|flow| flow.direction == Direction::Reverse);
    let (forward, reverse) = if is_reverse { (down, up) } else { (up, down) };
    let (connections, planned) = connections::of(test);
    let scenario = Scenario {
        connections,
        max_packets: scope::most_packets(test),
        ..Scenario::new(forward, reverse, test.planned())
    };
    (scenario, planned)
}

/// Ends a simulation when the study is stopped.
struct Watch<'a>(&'a StopFlag);

impl Observer for Watch<'_> {
    fn data(&mut self, _: Nanos, _: Host, _: u32, _: &Segments, _: bool) {}

    fn acknowledgement(&mut self, _: Nanos, _: Host, _: u32, _: &Acknowledgement) {}

    fn passed(&mut self, _: Nanos, _: u64) -> ControlFlow<()> {
        if self.0.is_raised() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    }
}

#[cfg(test)]
mod tests;
