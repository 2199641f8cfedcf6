//! The loop: measure, explain, tune, measure again, and compare.
//!
//! ```text
//! lab ── measure ── explain ── plan ── apply ── measure ── explain ── gain
//!          before                                  after
//! ```
//!
//! [`run`] closes it over an emulated path: one kernel TCP transfer between
//! two hosts of a [`lab::Lab`], rwnd-limited by [`Experiment::window`], and the
//! same transfer with the settings that [`tune::plan`] computed. Each is
//! compared with its own prediction.
//!
//! [`steps`] closes it over a real path, for this host: settings are tried in
//! groups, measured with and without, and kept where they help. [`boosted`] compares
//! a command as it is and through a pair of boxes. [`decide`] tells two causes apart
//! by a second test.

pub mod boosted;
pub mod decide;
mod error;
mod order;
pub mod steps;
mod transfer;
mod window;

pub use error::VerifyError;
pub use perf::{Interval, StopFlag};

use lab::{Lab, LabHost, Options};
use model::BufferTarget;
use record::{Finding, LOOP_SCHEMA, LoopReport, Measurement, PlanItem};
use serde::{Deserialize, Serialize};
use topology::Plan;
use tune::Buffers;
use units::ByteCount;

/// What to run.
#[derive(Debug, Clone)]
pub struct Experiment {
    /// The hosts and the path between them.
    pub lab: Plan,
    /// The window the receiver advertises before tuning, on the wire.
    pub window: ByteCount,
    /// Length of the first transfer, in seconds.
    pub before_s: f64,
    /// Length of the second, in seconds.
    pub after_s: f64,
}

/// One of the two transfers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum LoopRun {
    /// With the hosts as they were.
    Before,
    /// With the plan applied.
    After,
}

/// Progress, in the order it happens.
#[derive(Debug)]
pub enum Event<'a> {
    /// The lab is up; the receiver's buffer is being sized for the window.
    LabReady(&'a Lab),
    /// A transfer begins.
    Begins(LoopRun),
    /// A report interval of a transfer has passed.
    Interval(LoopRun, Interval),
    /// A transfer was explained.
    Explained(LoopRun, &'a Measurement, &'a Finding),
    /// The plan was computed; it is applied next.
    Planned(&'a [PlanItem]),
}

/// The result.
#[derive(Debug, Clone, PartialEq)]
pub struct Outcome {
    /// The comparison.
    pub report: LoopReport,
    /// The first transfer.
    pub before: Measurement,
    /// The second.
    pub after: Measurement,
}

/// Runs the loop. Needs the privileges of a sandbox ([`host::sandbox`]).
///
/// When `stop` is raised, removes the lab and ends with [`VerifyError::Interrupted`].
///
/// # Errors
/// [`VerifyError`].
pub fn run(
    experiment: &Experiment,
    observe: &mut (dyn FnMut(Event<'_>) + Send),
    stop: &StopFlag,
) -> Result<Outcome, VerifyError> {
    let lab = Lab::start(&experiment.lab, Options::default())?;
    observe(Event::LabReady(&lab));
    let share = window::limit(&lab, experiment.window, stop)?;

    let before = measure(&lab, LoopRun::Before, experiment.before_s, observe, stop)?;

    let plan = plan(&lab, share)?;
    observe(Event::Planned(&plan));
    apply(&lab, &plan)?;

    let after = measure(&lab, LoopRun::After, experiment.after_s, observe, stop)?;

    let path = lab.finish()?.into_path();
    let certify = |measurement| Measurement { path: Some(path.clone()), ..measurement };
    let (before, after) = (certify(before), certify(after));
    // Explained again with the validity report, which a finding may use.
    let findings = [&before, &after].map(diagnose::explain);
    let gain = findings[1].throughput_bps.as_f64() / findings[0].throughput_bps.as_f64().max(1.0);
    let [found_before, found_after] = findings;
    let report = LoopReport {
        schema: LOOP_SCHEMA.to_owned(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        path,
        before: found_before,
        after: found_after,
        plan,
        gain,
    };
    Ok(Outcome { report, before, after })
}

fn measure(
    lab: &Lab,
    run: LoopRun,
    seconds: f64,
    observe: &mut (dyn FnMut(Event<'_>) + Send),
    stop: &StopFlag,
) -> Result<Measurement, VerifyError> {
    observe(Event::Begins(run));
    let measurement =
        transfer::run(lab, seconds, &mut |interval| observe(Event::Interval(run, interval)), stop)?;
    let measurement = Measurement { path: Some(lab.asked()), ..measurement };
    observe(Event::Explained(run, &measurement, &diagnose::explain(&measurement)));
    Ok(measurement)
}

/// The plan for the two hosts of this path.
fn plan(lab: &Lab, share: f64) -> Result<Vec<PlanItem>, VerifyError> {
    let buffers = |host: &LabHost| {
        host.namespace.run(Buffers::read).and_then(|read| read).map_err(VerifyError::Settings)
    };
    let path = lab.path();
    let rate = path.rate().ok_or(VerifyError::Unlimited)?;
    let target = BufferTarget { rate, rtt: path.rtt(), queue: path.queue_bytes(), streams: 1 };
    Ok(tune::plan(&buffers(lab.client())?, &buffers(lab.server())?, &target, share)?)
}

/// Applies each host's part of the plan on that host.
fn apply(lab: &Lab, plan: &[PlanItem]) -> Result<(), VerifyError> {
    for host in [lab.client(), lab.server()] {
        let items: Vec<PlanItem> =
            plan.iter().filter(|item| item.host == host.name).cloned().collect();
        host.namespace.run(|| tune::apply(&items)).map_err(VerifyError::Settings)??;
    }
    Ok(())
}
