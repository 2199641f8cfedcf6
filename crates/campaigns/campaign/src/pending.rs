//! The runs of a study that are not stored.

use crate::schedule::Job;
use crate::simulated_cell;
use crate::{CampaignError, Store};
use std::collections::VecDeque;
use study::{CellRun, Part, Shard, Study};

/// The cells of a study that are to run.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Selection {
    /// `None`: all of them.
    pub(crate) shard: Option<Shard>,
    /// Only those that the simulator can run.
    pub(crate) simulated: bool,
}

/// The selected runs that are not stored; after those of the plan, those to be added to its cells.
pub(crate) fn queue<'a>(
    study: &'a Study,
    store: &Store,
    selection: Selection,
) -> Result<VecDeque<Job<'a>>, CampaignError> {
    let mut queue = VecDeque::new();
    for (first, part) in numbered(study) {
        let done = store.done(&part.name)?;
        let runs = part.plan.runs().into_iter().filter(|run| !done.contains(run));
        queue.extend(runs.filter_map(|run| job(part, run, first, selection)));
    }
    if queue.is_empty() {
        for (first, part) in numbered(study) {
            if part.plan.repeats.until.is_none() {
                continue;
            }
            let runs = part.plan.further_runs(&store.runs(&part.name)?);
            queue.extend(runs.into_iter().filter_map(|run| job(part, run, first, selection)));
        }
    }
    Ok(queue)
}

/// The parts, each with the position of its first cell among those of all parts.
fn numbered(study: &Study) -> impl Iterator<Item = (usize, &Part)> {
    study.parts.iter().scan(0, |next, part| {
        let first = *next;
        *next += part.plan.cells();
        Some((first, part))
    })
}

/// A plan is checked as a whole before: every cell is one that can run in a lab.
fn job(part: &Part, run: CellRun, first: usize, selection: Selection) -> Option<Job<'_>> {
    if selection.shard.is_some_and(|shard| !shard.has(first + run.cell)) {
        return None;
    }
    let test = part.plan.test(&part.plan.cell(run.cell)).ok()?;
    if selection.simulated && simulated_cell::refusal(&test).is_some() {
        return None;
    }
    Some(Job { part, run, test })
}

/// A run in words: its part, its cell's values, and which repeat it is.
pub(crate) fn name(part: &Part, run: CellRun) -> String {
    let label = part.plan.label(&part.plan.cell(run.cell));
    let name = format!("{} {label}", part.name);
    format!("{}, repeat {}", name.trim(), run.repeat)
}
