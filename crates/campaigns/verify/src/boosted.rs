//! A command as it is and through a pair of boxes, in alternation.
//!
//! ```text
//! direct, boosted, boosted, direct, … ── gain ── what a CUBIC flow loses beside each
//!    └─ pair ─┘       └─ pair ─┘
//! ```
//!
//! Neighbouring runs are a pair: what changes the path slowly affects both. The gain is the mean of
//! the logarithms of the pairs' ratios. Running the command is the caller's part: [`BoostRunner`].

mod compare;

pub use compare::compare;

use crate::order::alternating;
use problem::{Fault, Problem};
use record::{BoostRun, BoostWay, CubicHarm};
use units::BitRate;

/// The most runs of each way.
pub const MAX_REPEATS: u32 = 100;

/// Shortest and longest test of a CUBIC flow beside a transfer, in seconds: a shorter one is in slow
/// start, a longer one shows no more.
const HARM_SECONDS: (f64, f64) = (5.0, 30.0);

/// Share of the shorter transfer's time for which the CUBIC flow runs beside it: both have to connect
/// first, and the flow ends first.
const HARM_SHARE: f64 = 0.8;

/// What to run, and how often.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BoostSchedule {
    /// Runs of each way.
    pub repeats: u32,
    /// Tests of a CUBIC flow alone and beside a transfer of each way; 0 for none.
    pub harm_rounds: u32,
}

/// Progress, in the order it happens.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum BoostProgress<'a> {
    /// A run begins.
    Run {
        /// The way.
        way: BoostWay,
        /// Its number, from 1.
        number: u32,
        /// The number of runs.
        of: u32,
    },
    /// A run has ended.
    Ended(&'a BoostRun),
    /// A CUBIC flow begins, alone or beside a transfer.
    Cubic {
        /// The transfer's way; `None`: alone.
        beside: Option<BoostWay>,
        /// Its length.
        seconds: f64,
    },
    /// The CUBIC flow has ended.
    CubicEnded(BitRate),
}

/// Runs the command, reports progress, and knows whether the user has interrupted.
pub trait BoostRunner {
    /// Runs the command once. A command that fails is a run that does not count; may return early
    /// once [`BoostRunner::is_stopped`] is true.
    ///
    /// # Errors
    /// Nothing can be run any more.
    fn run(&mut self, way: BoostWay) -> Result<BoostRun, Problem>;

    /// The goodput of a CUBIC flow of some seconds, alone or beside the command.
    ///
    /// # Errors
    /// The flow failed.
    fn cubic(&mut self, beside: Option<BoostWay>, seconds: f64) -> Result<BitRate, Problem>;

    /// Reports progress.
    fn report(&mut self, progress: BoostProgress<'_>);

    /// True if the user has interrupted the run.
    fn is_stopped(&self) -> bool;
}

/// The runs in order, and what a CUBIC flow lost.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct BoostRuns {
    /// The runs.
    pub runs: Vec<BoostRun>,
    /// The harm; `None` if it was not measured.
    pub harm: Option<CubicHarm>,
    /// Why it was not, and the like.
    pub notes: Vec<String>,
    /// True if the user has interrupted them.
    pub interrupted: bool,
}

/// Runs the schedule.
///
/// # Errors
/// Nothing can be run any more, or the command fails both ways at once.
pub fn run(schedule: BoostSchedule, runner: &mut dyn BoostRunner) -> Result<BoostRuns, Problem> {
    let mut done = BoostRuns::default();
    let of = 2 * schedule.repeats;
    for (number, is_boosted) in (1..).zip(alternating(schedule.repeats)) {
        let way = if is_boosted { BoostWay::Boosted } else { BoostWay::Direct };
        runner.report(BoostProgress::Run { way, number, of });
        let run = runner.run(way);
        // A truncated run is not comparable, whether it ended or could not begin.
        if runner.is_stopped() {
            return Ok(BoostRuns { interrupted: true, ..done });
        }
        let run = run?;
        runner.report(BoostProgress::Ended(&run));
        done.runs.push(run);
        fails_both_ways(&done.runs)?;
    }
    if schedule.harm_rounds > 0 {
        harm(schedule.harm_rounds, runner, &mut done)?;
    }
    Ok(done)
}

/// Ends a series whose first two runs failed: more of them show nothing.
fn fails_both_ways(runs: &[BoostRun]) -> Result<(), Problem> {
    let [BoostRun { failed: Some(direct), .. }, BoostRun { failed: Some(boosted), .. }] = runs
    else {
        return Ok(());
    };
    let message = format!("the command fails both ways: direct, {direct}; boosted, {boosted}");
    Err(Problem::new(Fault::Request, message))
}

/// Compares the goodput of a CUBIC flow alone, beside the direct and beside the boosted transfer.
fn harm(rounds: u32, runner: &mut dyn BoostRunner, done: &mut BoostRuns) -> Result<(), Problem> {
    let shortest = [BoostWay::Direct, BoostWay::Boosted]
        .map(|way| compare::summary(&done.runs, way, None).median_s)
        .into_iter()
        .try_fold(f64::INFINITY, |least, median| Some(f64::min(least, median?)));
    let Some(shortest) = shortest else { return Ok(()) };
    let (least, most) = HARM_SECONDS;
    let seconds = (shortest * HARM_SHARE).min(most).floor();
    if seconds < least {
        done.notes.push(format!(
            "the harm to a CUBIC flow was not measured: a transfer takes {shortest:.1} s, and the \
             flow needs {least:.0} s beside it"
        ));
        return Ok(());
    }
    let kinds = [None, Some(BoostWay::Direct), Some(BoostWay::Boosted)];
    let mut rates: [Vec<f64>; 3] = Default::default();
    for round in 0..rounds {
        // Forwards and backwards in turn, against drift.
        let forwards = [0, 1, 2];
        let order = if round % 2 == 0 { forwards } else { [2, 1, 0] };
        for kind in order {
            let (Some(beside), Some(of_kind)) = (kinds.get(kind), rates.get_mut(kind)) else {
                continue;
            };
            runner.report(BoostProgress::Cubic { beside: *beside, seconds });
            let rate = runner.cubic(*beside, seconds);
            if runner.is_stopped() {
                done.interrupted = true;
                return Ok(());
            }
            match rate {
                Ok(rate) => {
                    runner.report(BoostProgress::CubicEnded(rate));
                    of_kind.push(rate.as_f64());
                }
                Err(problem) => {
                    let why = problem::stored(problem);
                    done.notes.push(format!("a test of the CUBIC flow failed: {why}"));
                }
            }
        }
    }
    done.harm = compare::harm(&rates, seconds);
    Ok(())
}

#[cfg(test)]
mod tests;
