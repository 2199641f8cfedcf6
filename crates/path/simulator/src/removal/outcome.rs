//! What each action gave a transfer, and took from a neighbour.

use super::{Action, MENU};
use crate::{CrossFlow, Scenario, ScenarioError};
use control::Algorithm;
use twin::ConnectionConfig;
use units::BitRate;

/// The share of the best gain that right advice reaches.
pub const RIGHT: f64 = 0.9;
/// A gain below this is none.
pub const WORTH: f64 = 1.1;
/// An action with a gain below this makes the transfer slower.
pub const SLOWER: f64 = 0.95;

/// What a transfer and its neighbour reach.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Outcome {
    /// Payload that the measured streams' applications read over the whole run.
    pub goodput: BitRate,
    /// The same of a CUBIC flow that joins them at the start and has no limit of its own.
    pub neighbour: BitRate,
}

/// What each action gave. The run as it was is always among them.
#[derive(Debug, Clone, PartialEq)]
pub struct Outcomes {
    as_it_was: Outcome,
    others: Vec<(Action, Outcome)>,
}

impl Outcomes {
    /// The outcomes of some actions beside that of the run as it was.
    #[must_use]
    pub const fn new(as_it_was: Outcome, others: Vec<(Action, Outcome)>) -> Self {
        Outcomes { as_it_was, others }
    }

    /// That of an action; `None` if it was not run.
    #[must_use]
    pub fn of(&self, action: Action) -> Option<Outcome> {
        if action == Action::Nothing {
            return Some(self.as_it_was);
        }
        self.others.iter().find(|(other, _)| *other == action).map(|(_, outcome)| *outcome)
    }

    /// The goodput with an action over that of the run as it was; 1 if it was not run.
    #[must_use]
    pub fn gain(&self, action: Action) -> f64 {
        let as_it_was = self.as_it_was.goodput.as_f64().max(1.0);
        self.of(action).map_or(1.0, |outcome| outcome.goodput.as_f64().max(1.0) / as_it_was)
    }

    /// The largest gain of the menu. Both buffers together count only where no single change of
    /// the menu has a gain.
    #[must_use]
    pub fn best_gain(&self) -> f64 {
        let single = MENU.into_iter().map(|action| self.gain(action)).fold(1.0, f64::max);
        if single >= WORTH { single } else { single.max(self.gain(Action::Buffers)) }
    }

    /// The simplest action with nearly the largest gain: nothing, if no action has one.
    #[must_use]
    pub fn best(&self) -> Action {
        let mut all = MENU.into_iter().chain([Action::Buffers]);
        all.find(|action| self.is_right(*action)).unwrap_or(Action::Nothing)
    }

    /// True if an action of the menu has a gain.
    #[must_use]
    pub fn has_gain(&self) -> bool {
        self.best_gain() >= WORTH
    }

    /// True if an action reaches nine tenths of the largest gain.
    #[must_use]
    pub fn is_right(&self, action: Action) -> bool {
        self.gain(action) >= RIGHT * self.best_gain()
    }

    /// The share of the largest gain that an action misses, 0 to 1.
    #[must_use]
    pub fn regret(&self, action: Action) -> f64 {
        (1.0 - self.gain(action) / self.best_gain()).max(0.0)
    }

    /// True if the transfer is slower with an action.
    #[must_use]
    pub fn is_slower(&self, action: Action) -> bool {
        self.gain(action) < SLOWER
    }

    /// The share of its goodput beside the run as it was that an action takes from the
    /// neighbour, 0 to 1.
    #[must_use]
    pub fn harm(&self, action: Action) -> f64 {
        let before = self.as_it_was.neighbour.as_f64().max(1.0);
        let after = self.of(action).map_or(before, |outcome| outcome.neighbour.as_f64());
        (1.0 - after / before).max(0.0)
    }
}

/// Runs a scenario as it was and with each action of the menu, both buffers, fasterdata's advice,
/// and those that are `advised`; each with and without the neighbour.
///
/// # Errors
/// Those of [`Scenario::run`].
pub fn measure(
    scenario: &Scenario,
    seed: u64,
    advised: &[Action],
) -> Result<Outcomes, ScenarioError> {
    let as_it_was = outcome(scenario, seed)?;
    let mut run = vec![(scenario.clone(), as_it_was)];
    let mut others: Vec<(Action, Outcome)> = Vec::new();
    let further = [Action::Buffers, Action::BuffersAndBbr];
    for action in MENU.into_iter().chain(further).chain(advised.iter().copied()) {
        if others.iter().any(|(other, _)| *other == action) {
            continue;
        }
        let changed = action.applied(scenario)?;
        let known = run.iter().find(|(other, _)| *other == changed).map(|(_, outcome)| *outcome);
        let outcome = match known {
            Some(outcome) => outcome,
            None => outcome(&changed, seed)?,
        };
        run.push((changed, outcome));
        others.push((action, outcome));
    }
    Ok(Outcomes::new(as_it_was, others))
}

fn outcome(scenario: &Scenario, seed: u64) -> Result<Outcome, ScenarioError> {
    let streams = scenario.streams as usize;
    let own = read(scenario, seed)?;
    let neighbour = CrossFlow::Tcp { congestion: Algorithm::Cubic, start_s: 0.0 };
    let cross = std::iter::once(neighbour).chain(scenario.cross.iter().copied()).collect();
    // The measured streams come first, then the cross traffic in its order.
    let shared = read(&Scenario { cross, ..scenario.clone() }, seed)?;
    let sum = |rates: &[f64]| BitRate::from_bps_f64(rates.iter().sum());
    Ok(Outcome {
        goodput: sum(own.get(..streams).unwrap_or_default()),
        neighbour: sum(shared.get(streams..=streams).unwrap_or_default()),
    })
}

/// Payload that each connection's application read, bit/s.
fn read(scenario: &Scenario, seed: u64) -> Result<Vec<f64>, ScenarioError> {
    let run = scenario.run(seed)?;
    // A run that was truncated is shorter than planned.
    let seconds = run.intervals.last().map_or(scenario.seconds, |last| last.to_s).max(1e-3);
    let bits = f64::from(ConnectionConfig::default().mss) * 8.0;
    Ok(run.read.iter().map(|packets| *packets as f64 * bits / seconds).collect())
}
