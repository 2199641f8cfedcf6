//! This host tuned step by step over a real path, each step measured.
//!
//! ```text
//! round trip ── plan ── steps ──┬─ without, with, with, without, … ── keep
//!                               └─ the next one, with what was kept      or put back
//! ```
//!
//! A step is a group of settings that belong together (`steps/groups.rs`). Its tests
//! go without and with it in an order that a path that drifts cannot deceive
//! (`A B B A A B`), and it stays where Welch's t test says that the difference
//! is real and it is worth having. Settings are written by the [`Ledger`]:
//! whatever ends the run, its journals undo what is not yet decided.

mod course;
mod groups;
mod verdict;

use crate::VerifyError;
use probe::ProbeError;
use probe::client::ClientConfig;
use record::{
    Direction, Finding, Measurement, PlannedSetting, RunFigures, TunePlan, VerifyGoal,
    VerifyReport, VerifyStep,
};
use tune::{Goal, Ledger, LedgerError, Lock};
use units::{BitRate, ByteCount, Rtt};

/// Length of the test that only asks for the round trip, in seconds.
const GLANCE_S: f64 = 1.0;

/// So many round trips make a test: slow start takes a dozen, and CUBIC's
/// recovery from where that ends several times as many.
const ROUND_TRIPS: f64 = 100.0;

/// Least and most seconds of a test, unless one is given.
const LENGTHS_S: (f64, f64) = (10.0, 60.0);

/// What to tune for, and how to measure it.
#[derive(Debug, Clone)]
pub struct Job {
    /// How to reach the server, and the connections of a test. Length and
    /// direction are set for each.
    pub client: ClientConfig,
    /// The directions to measure, one after the other.
    pub directions: Vec<Direction>,
    /// Tests without a step and with it, each: 2 or more.
    pub repeats: u32,
    /// Length of a test in seconds; `None` for one that fits the round trip.
    pub seconds: Option<f64>,
    /// The path's rate, and where that is known from.
    pub rate: (BitRate, String),
    /// The path's round trip; `None` to measure it.
    pub rtt: Option<Rtt>,
    /// A congestion control to try.
    pub congestion: Option<String>,
    /// The machine's memory.
    pub memory: Option<ByteCount>,
}

/// Progress, in the order it happens.
#[derive(Debug)]
pub enum StepEvent<'a> {
    /// A short test for the round trip begins.
    Glance,
    /// A step begins, the `number`th `of` all.
    Begins {
        /// From 1.
        number: usize,
        /// All steps.
        of: usize,
        /// What it is about.
        name: &'a str,
        /// Its settings.
        settings: &'a [PlannedSetting],
    },
    /// A test begins.
    Test {
        /// Whether the step is applied.
        with: bool,
        /// Which way the data goes.
        direction: Direction,
        /// Which of the step's tests it is, from 1.
        number: u32,
        /// The step's tests.
        of: u32,
    },
    /// It has ended.
    Tested(&'a RunFigures),
    /// The step is decided.
    Ended(&'a VerifyStep),
}

/// What the loop needs of the world around it.
pub trait World {
    /// Runs one test. Where [`World::is_stopped`] has come true it may be cut short.
    ///
    /// # Errors
    /// [`ProbeError`].
    fn measure(&mut self, config: &ClientConfig) -> Result<Measurement, ProbeError>;

    /// Hears of progress.
    fn tell(&mut self, event: &StepEvent<'_>);

    /// Whether the user wants it to end.
    fn is_stopped(&self) -> bool;
}

/// A job whose path and plan are known.
#[derive(Debug, Clone)]
pub struct Prepared {
    job: Job,
    /// What is tuned for.
    pub goal: VerifyGoal,
    /// Length of a test, in seconds.
    pub seconds: f64,
    /// All that the host needs for it.
    pub plan: TunePlan,
    /// The steps, in their order.
    pub steps: Vec<Step>,
    notes: Vec<String>,
}

/// Settings to be tried together.
#[derive(Debug, Clone, PartialEq)]
pub struct Step {
    /// What they are about.
    pub name: &'static str,
    /// The settings.
    pub settings: Vec<PlannedSetting>,
}

impl Prepared {
    /// Learns the round trip, where it is not given, and plans.
    ///
    /// # Errors
    /// Where the server cannot be measured to, or no plan reaches the goal.
    pub fn new(job: Job, ledger: &Ledger<'_>, world: &mut dyn World) -> Result<Self, VerifyError> {
        let (rtt, rtt_from) = match job.rtt {
            Some(rtt) => (rtt, "asked"),
            None => (glance(&job, world)?, "measured"),
        };
        let (rate, rate_from) = job.rate.clone();
        let target = Goal::Target { rate, rtt, streams: job.client.streams };
        let plan = tune::advise(ledger.settings, &target, job.congestion.as_deref(), job.memory)?;
        let (steps, notes) = groups::of(&plan, &job.directions);
        let (least, most) = LENGTHS_S;
        let fits = (ROUND_TRIPS * rtt.secs_f64()).ceil().clamp(least, most);
        let goal = VerifyGoal { rate_bps: rate, rate_from, rtt, rtt_from: rtt_from.to_owned() };
        Ok(Prepared { seconds: job.seconds.unwrap_or(fits), job, goal, plan, steps, notes })
    }

    /// Whether settings may be changed here at all; changes none.
    ///
    /// # Errors
    /// Where not one of them may, or a journal stands in the way.
    pub fn rehearse(&self, ledger: &Ledger<'_>) -> Result<(), LedgerError> {
        let settings = self.steps.iter().flat_map(|step| step.settings.clone()).collect();
        ledger.rehearse(&TunePlan { settings, ..self.plan.clone() }, false).map(drop)
    }

    /// How many tests it takes.
    #[must_use]
    pub fn tests(&self) -> u32 {
        let steps = u32::try_from(self.steps.len()).unwrap_or(u32::MAX);
        let ways = u32::try_from(self.job.directions.len()).unwrap_or(u32::MAX);
        // Without a step one test tells what holds the path.
        steps.saturating_mul(2 * self.job.repeats).max(1).saturating_mul(ways)
    }

    /// Tries the steps, one after the other.
    ///
    /// A test that fails is tried once more; then the step under way is put
    /// back and the run ends with the error.
    ///
    /// # Errors
    /// [`VerifyError`].
    pub fn run(
        &self,
        ledger: &Ledger<'_>,
        lock: &Lock,
        world: &mut dyn World,
    ) -> Result<VerifyReport, VerifyError> {
        course::Course::new(self, ledger, lock, world).run()
    }
}

/// The least round trip of a short transfer.
fn glance(job: &Job, world: &mut dyn World) -> Result<Rtt, VerifyError> {
    world.tell(&StepEvent::Glance);
    let direction = job.directions.first().copied().unwrap_or(Direction::Forward);
    let config = ClientConfig { seconds: GLANCE_S, direction, ..job.client.clone() };
    let measured =
        world.measure(&config).map_err(|source| VerifyError::Test { source, kept: 0 })?;
    if world.is_stopped() {
        return Err(VerifyError::Untouched);
    }
    let finding = diagnose::explain(&measured);
    finding.min_rtt.filter(|rtt| *rtt > Rtt::ZERO).ok_or(VerifyError::NoRoundTrip)
}

impl Prepared {
    fn explain(&self, measurement: &Measurement) -> Finding {
        let goal =
            diagnose::Goal { rate: self.goal.rate_bps, rtt: self.goal.rtt, queue: ByteCount::ZERO };
        diagnose::explain_for(measurement, Some(goal))
    }
}
