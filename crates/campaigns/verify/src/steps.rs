//! Tunes this host step by step over a real path, and measures each step.
//!
//! ```text
//! RTT ── plan ── steps ──┬─ without, with, with, without, … ── keep
//!                               └─ the next one, with what was kept      or revert
//! ```
//!
//! A step is a group of related settings (`groups`). Its tests run without and
//! with it in an order that cancels drift of the path (`A B B A A B`), and it
//! is kept if Welch's t test finds a significant gain of at least 2 %. Settings
//! are written by the [`Tuner`]: however the run ends, its journals revert the
//! undecided step.

mod groups;
mod run;
mod verdict;

use crate::VerifyError;
use perf::PerfError;
use perf::client::{ClientConfig, EndAfter};
use record::{
    Direction, Finding, Measurement, PlannedSetting, RunFigures, TunePlan, VerifyGoal,
    VerifyReport, VerifyStep,
};
use tune::{Goal, Lock, Tuner, TunerError};
use units::{BitRate, ByteCount, Rtt};

/// Length of the test that measures the RTT, in seconds.
const RTT_TEST_S: f64 = 1.0;

/// RTTs per test: slow start takes a dozen, and CUBIC's recovery several times as many.
const ROUND_TRIPS: f64 = 100.0;

/// Minimum and maximum length of a test in seconds, unless it is given.
const LENGTHS_S: (f64, f64) = (10.0, 60.0);

/// What to tune for, and how to measure it.
#[derive(Debug, Clone)]
pub struct Job {
    /// The server, and the connections of a test. Length and direction are set for each
    /// test.
    pub client: ClientConfig,
    /// The directions to measure, one after the other.
    pub directions: Vec<Direction>,
    /// Tests without a step and with it, each: 2 or more.
    pub repeats: u32,
    /// Length of a test in seconds; `None`: by the RTT.
    pub seconds: Option<f64>,
    /// The path's rate, and its source.
    pub rate: (BitRate, String),
    /// The path's RTT; `None` to measure it.
    pub rtt: Option<Rtt>,
    /// A congestion control to try.
    pub congestion: Option<String>,
    /// The machine's memory.
    pub memory: Option<ByteCount>,
}

/// Progress, in the order it happens.
#[derive(Debug)]
pub enum StepEvent<'a> {
    /// A short test for the RTT begins.
    MeasureRtt,
    /// A step begins.
    Begins {
        /// Its number, from 1.
        number: usize,
        /// Number of steps.
        of: usize,
        /// Its name.
        name: &'a str,
        /// Its settings.
        settings: &'a [PlannedSetting],
    },
    /// A test begins.
    Test {
        /// Whether the step is applied.
        with: bool,
        /// Direction of the data.
        direction: Direction,
        /// Its number within the step, from 1.
        number: u32,
        /// Number of tests of the step.
        of: u32,
    },
    /// A test has ended.
    Tested(&'a RunFigures),
    /// The step is decided.
    Ended(&'a VerifyStep),
}

/// Runs the tests, reports progress, and knows whether the user has interrupted.
pub trait Environment {
    /// Runs one test. May return early once [`Environment::is_stopped`] is true.
    ///
    /// # Errors
    /// [`PerfError`].
    fn measure(&mut self, config: &ClientConfig) -> Result<Measurement, PerfError>;

    /// Reports progress.
    fn report(&mut self, event: &StepEvent<'_>);

    /// Whether the user has interrupted the run.
    fn is_stopped(&self) -> bool;
}

/// A job with a known path and plan.
#[derive(Debug, Clone)]
pub struct Prepared {
    job: Job,
    /// The tuning target.
    pub goal: VerifyGoal,
    /// Length of a test, in seconds.
    pub seconds: f64,
    /// The complete plan for this host.
    pub plan: TunePlan,
    /// The steps in order.
    pub steps: Vec<Step>,
    notes: Vec<String>,
}

/// Settings that are tried together.
#[derive(Debug, Clone, PartialEq)]
pub struct Step {
    /// Their subject.
    pub name: &'static str,
    /// The settings.
    pub settings: Vec<PlannedSetting>,
}

impl Prepared {
    /// Measures the RTT unless it is given, and computes the plan.
    ///
    /// # Errors
    /// If a test with the server fails, or no plan reaches the target.
    pub fn new(
        job: Job,
        tuner: &Tuner<'_>,
        environment: &mut dyn Environment,
    ) -> Result<Self, VerifyError> {
        let (rtt, rtt_from) = match job.rtt {
            Some(rtt) => (rtt, "asked"),
            None => (measure_rtt(&job, environment)?, "measured"),
        };
        let (rate, rate_from) = job.rate.clone();
        let target = Goal::Target { rate, rtt, streams: job.client.streams };
        let plan = tune::advise(tuner.settings, &target, job.congestion.as_deref(), job.memory)?;
        let (steps, notes) = groups::of(&plan, &job.directions);
        let (least, most) = LENGTHS_S;
        let fits = (ROUND_TRIPS * rtt.secs_f64()).ceil().clamp(least, most);
        let goal = VerifyGoal { rate_bps: rate, rate_from, rtt, rtt_from: rtt_from.to_owned() };
        Ok(Prepared { seconds: job.seconds.unwrap_or(fits), job, goal, plan, steps, notes })
    }

    /// Checks whether any setting may be changed here; changes none.
    ///
    /// # Errors
    /// Where none may be changed, or a journal prevents it.
    pub fn dry_run(&self, tuner: &Tuner<'_>) -> Result<(), TunerError> {
        let settings = self.steps.iter().flat_map(|step| step.settings.clone()).collect();
        tuner.dry_run(&TunePlan { settings, ..self.plan.clone() }, false).map(drop)
    }

    /// Number of tests.
    #[must_use]
    pub fn tests(&self) -> u32 {
        let steps = u32::try_from(self.steps.len()).unwrap_or(u32::MAX);
        let ways = u32::try_from(self.job.directions.len()).unwrap_or(u32::MAX);
        // Without steps, one test per direction finds the limit.
        steps.saturating_mul(2 * self.job.repeats).max(1).saturating_mul(ways)
    }

    /// Tries the steps, one after the other.
    ///
    /// A failed test is repeated once; then the current step is reverted and the run
    /// ends with the error.
    ///
    /// # Errors
    /// [`VerifyError`].
    pub fn run(
        &self,
        tuner: &Tuner<'_>,
        lock: &Lock,
        environment: &mut dyn Environment,
    ) -> Result<VerifyReport, VerifyError> {
        run::StepRun::new(self, tuner, lock, environment).run()
    }
}

/// The minimum RTT of a short transfer.
fn measure_rtt(job: &Job, environment: &mut dyn Environment) -> Result<Rtt, VerifyError> {
    environment.report(&StepEvent::MeasureRtt);
    let direction = job.directions.first().copied().unwrap_or(Direction::Forward);
    let config =
        ClientConfig { end: EndAfter::Seconds(RTT_TEST_S), direction, ..job.client.clone() };
    let measured =
        environment.measure(&config).map_err(|source| VerifyError::Test { source, kept: 0 })?;
    if environment.is_stopped() {
        return Err(VerifyError::InterruptedBefore);
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
