//! What helps, instead of what limited: `--removal`, in the twin.
//!
//! Each run is explained as on a path of unknown rate, and for its rate, and repeated with the same seed with each
//! action of a menu (`simulator::removal`).

use crate::options::Options;
use crate::{Fallible, each_in_parallel, fresh_seed, threads};
use diagnose::Goal;
use record::{Limit, Measurement};
use simulator::Scenario;
use simulator::removal::{self, Action, Advised, Figures};
use topology::PathSpec;
use units::{BitRate, ByteCount};

/// Measures the cases and prints advice that is wrong, and the figures.
///
/// # Errors
/// The bench is not in the twin, or a case cannot run.
pub(crate) fn measure(options: &Options) -> Fallible<()> {
    if !options.twin {
        return Err("--removal needs --twin: only there nothing else changes".into());
    }
    let seed = options.seed.unwrap_or_else(fresh_seed);
    println!("seed {seed}");
    let started = host::clock::now();
    let cases = options.cases(seed);
    let all = each_in_parallel(&cases, threads(), |case| advised(case, seed))?;
    for (case, run) in cases.iter().zip(&all).filter(|(_, run)| !is_right(run)) {
        tell(case, run);
    }
    println!("\nseed {seed}: {} runs", all.len());
    println!("{:.1} s\n", started.elapsed().as_secs_f64());
    println!("{}", Figures::of(&all));
    Ok(())
}

fn advised(case: &Scenario, seed: u64) -> Fallible<Advised> {
    let failed = |error| format!("{case}: {error}");
    let run = case.run(seed).map_err(failed)?;
    let seen = Measurement { path: None, ..run.measurement };
    let finding = diagnose::explain(&seen);
    let action = Action::advised(&finding);
    // The RTT as measured, as the loop of `tune verify` takes it.
    let goal = rate(case)?.zip(finding.min_rtt);
    let goal = goal.map(|(rate, rtt)| Goal { rate, rtt, queue: ByteCount::ZERO });
    let action_for_rate = Action::advised(&diagnose::explain_for(&seen, goal));
    let found = finding.limit.unwrap_or(Limit::Unknown);
    Ok(Advised {
        family: case.family,
        found,
        cause_right: found == run.truth.limit,
        action,
        action_for_rate,
        outcomes: removal::measure(case, seed, &[action, action_for_rate]).map_err(failed)?,
    })
}

/// The rate of the data's direction; `None` if unlimited.
fn rate(case: &Scenario) -> Fallible<Option<BitRate>> {
    let path: PathSpec = case.path.parse()?;
    Ok(path.directions()[usize::from(case.reverse)].rate())
}

fn is_right(run: &Advised) -> bool {
    run.outcomes.is_right(run.action)
}

fn tell(case: &Scenario, run: &Advised) {
    let Advised { found, cause_right, action, outcomes, .. } = run;
    let best = outcomes.best();
    println!(
        "{:<20} {} advised {} x{:.2}, best {} x{:.2}: {case}",
        found.name(),
        if *cause_right { "right cause" } else { "wrong cause" },
        action.name(),
        outcomes.gain(*action),
        best.name(),
        outcomes.gain(best),
    );
}
