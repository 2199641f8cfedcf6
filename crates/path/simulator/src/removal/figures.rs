//! How often advice is right, what it misses and what it costs, over many runs.

use super::{Action, Advised};
use model::statistics::{mean, percentile};
use record::Limit;
use std::collections::BTreeMap;

/// A count out of a number of runs.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Share {
    /// The runs for which something holds.
    pub of: u64,
    /// All of them.
    pub all: u64,
}

impl Share {
    fn count<'a>(
        runs: impl Iterator<Item = &'a Advised>,
        holds: impl Fn(&Advised) -> bool,
    ) -> Self {
        runs.fold(Share::default(), |share, run| Share {
            of: share.of + u64::from(holds(run)),
            all: share.all + 1,
        })
    }
}

/// Who advises.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Arm {
    /// The finding, over a path of unknown rate.
    Finding,
    /// The finding for a given rate of the path.
    FindingForRate,
    /// Nobody: a baseline.
    Nothing,
    /// fasterdata.es.net's buffers and BBR for every run: a baseline.
    BuffersAndBbr,
    /// An oracle that has tried the menu.
    Best,
}

impl Arm {
    /// All of them, in the order of the tables.
    pub const ALL: [Arm; 5] =
        [Arm::Finding, Arm::FindingForRate, Arm::Nothing, Arm::BuffersAndBbr, Arm::Best];

    /// What it advises for a run.
    #[must_use]
    pub fn action(self, run: &Advised) -> Action {
        match self {
            Arm::Finding => run.action,
            Arm::FindingForRate => run.action_for_rate,
            Arm::Nothing => Action::Nothing,
            Arm::BuffersAndBbr => Action::BuffersAndBbr,
            Arm::Best => run.outcomes.best(),
        }
    }
}

/// The figures of one arm.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ArmFigures {
    /// The action reaches nine tenths of the best gain.
    pub right: Share,
    /// The same among the runs in which an action has a gain.
    pub right_with_gain: Share,
    /// Nothing is advised, among the runs in which no action has a gain.
    pub honest_no: Share,
    /// Mean share of the best gain that is missed.
    pub regret: f64,
    /// Its 90th percentile.
    pub regret_p90: f64,
    /// The action makes the transfer slower.
    pub slower: Share,
    /// Mean share of a CUBIC neighbour's goodput that the action takes.
    pub harm: f64,
    /// Its 90th percentile.
    pub harm_p90: f64,
}

impl ArmFigures {
    /// Those of an arm over some runs; zero of no runs.
    #[must_use]
    pub fn of(arm: Arm, runs: &[&Advised]) -> Self {
        let all = || runs.iter().copied();
        let of_each = |figure: fn(&Advised, Action) -> f64| -> Vec<f64> {
            all().map(|run| figure(run, arm.action(run))).collect()
        };
        let regrets = of_each(|run, action| run.outcomes.regret(action));
        let harms = of_each(|run, action| run.outcomes.harm(action));
        let is_right = |run: &Advised| run.outcomes.is_right(arm.action(run));
        let with_gain = all().filter(|run| run.outcomes.has_gain());
        let without = all().filter(|run| !run.outcomes.has_gain());
        ArmFigures {
            right: Share::count(all(), is_right),
            right_with_gain: Share::count(with_gain, is_right),
            honest_no: Share::count(without, |run| arm.action(run) == Action::Nothing),
            regret: mean(&regrets).unwrap_or(0.0),
            regret_p90: percentile(&regrets, 0.9).unwrap_or(0.0),
            slower: Share::count(all(), |run| run.outcomes.is_slower(arm.action(run))),
            harm: mean(&harms).unwrap_or(0.0),
            harm_p90: percentile(&harms, 0.9).unwrap_or(0.0),
        }
    }
}

/// A group of runs.
#[derive(Debug, Clone, PartialEq)]
pub struct Group {
    /// The finding names the limit of the ground truth.
    pub cause_right: Share,
    /// The figures of each arm, in the order of [`Arm::ALL`].
    pub arms: [ArmFigures; 5],
}

impl Group {
    fn of(runs: &[&Advised]) -> Self {
        Group {
            cause_right: Share::count(runs.iter().copied(), |run| run.cause_right),
            arms: Arm::ALL.map(|arm| ArmFigures::of(arm, runs)),
        }
    }
}

/// Advice that was wrong in the same way.
#[derive(Debug, Clone, PartialEq)]
pub struct Mistake {
    /// The limit of the findings.
    pub found: Limit,
    /// The name of the action that they advise.
    pub advised: &'static str,
    /// The name of the simplest action that is right.
    pub best: &'static str,
    /// How many runs, and how many of them with a right cause.
    pub runs: Share,
    /// Their regret, summed.
    pub regret: f64,
}

/// The figures of all runs. Prints as tables.
#[derive(Debug, Clone, PartialEq)]
pub struct Figures {
    /// Of all runs.
    pub all: Group,
    /// By the family of the scenarios.
    pub families: Vec<(&'static str, Group)>,
    /// By the limit of the findings, those with the most regret first.
    pub found: Vec<(Limit, Group)>,
    /// The findings' mistakes, the most frequent first.
    pub mistakes: Vec<Mistake>,
    /// How often each action is the simplest that is right, the most frequent first.
    pub best: Vec<(&'static str, u64)>,
}

impl Figures {
    /// Of runs.
    #[must_use]
    pub fn of(runs: &[Advised]) -> Self {
        let all: Vec<&Advised> = runs.iter().collect();
        let mut found = grouped(runs, |run| run.found);
        let missed = |group: &Group| group.arms[0].regret * group.cause_right.all as f64;
        found.sort_by(|(_, one), (_, other)| missed(other).total_cmp(&missed(one)));
        let mut counts: BTreeMap<&str, u64> = BTreeMap::new();
        runs.iter().for_each(|run| *counts.entry(run.outcomes.best().name()).or_default() += 1);
        let mut best: Vec<_> = counts.into_iter().collect();
        best.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
        Figures {
            all: Group::of(&all),
            families: grouped(runs, |run| run.family),
            found,
            mistakes: mistakes(runs),
            best,
        }
    }
}

/// The figures of the runs that have the same key, in its order.
fn grouped<K: Ord + Copy>(runs: &[Advised], key: impl Fn(&Advised) -> K) -> Vec<(K, Group)> {
    let mut groups: BTreeMap<K, Vec<&Advised>> = BTreeMap::new();
    runs.iter().for_each(|run| groups.entry(key(run)).or_default().push(run));
    groups.into_iter().map(|(key, runs)| (key, Group::of(&runs))).collect()
}

fn mistakes(runs: &[Advised]) -> Vec<Mistake> {
    let mut kinds: BTreeMap<(Limit, &str, &str), Mistake> = BTreeMap::new();
    for run in runs.iter().filter(|run| !run.outcomes.is_right(run.action)) {
        let (found, advised, best) = (run.found, run.action.name(), run.outcomes.best().name());
        let none = Mistake { found, advised, best, runs: Share::default(), regret: 0.0 };
        let kind = kinds.entry((found, advised, best)).or_insert(none);
        kind.runs.all += 1;
        kind.runs.of += u64::from(run.cause_right);
        kind.regret += run.outcomes.regret(run.action);
    }
    let mut all: Vec<Mistake> = kinds.into_values().collect();
    all.sort_by_key(|mistake| std::cmp::Reverse(mistake.runs.all));
    all
}
