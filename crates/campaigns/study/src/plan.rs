//! A plan: a question, a path, what varies, and what is sent.
//!
//! ```toml
//! question = "Does throughput follow window over round trip?"
//! [path]
//! rate = "100mbit"
//! rtt = "50ms"
//! [factors]
//! window = ["64KiB", "128KiB", "256KiB"]
//! streams = "1..4"
//! [traffic]
//! protocol = "tcp"
//! duration = "5s"
//! [repeats]
//! count = 3
//! ```
//!
//! A factor is a [`Setting`] with several values: a list, or a range such as
//! `"64KiB..1MiB x2"`, `"0ms..100ms +20ms"` and `"0.25..4 bdp log 5"`. Those of `[paired]` vary
//! together: the first values of all, the second ones, and so on. `[path]` and `[traffic]` fix
//! the others. A plan is checked as a whole: every cell is one that can run.

mod hosts;
mod plots;
mod reader;
mod repeats;
mod source;

pub use repeats::{Order, Repeats, Until};
pub use topology::toml_text::TomlError as PlanError;

use crate::level::Level;
use crate::program::Program;
use crate::real_hosts::RealHosts;
use crate::setting::Setting;
use crate::test::{Sysctl, Test};
use crate::test_error::TestError;
use crate::traffic;
use crate::value::{Hosts, Source, Value};
use record::{StudyPlot, StudySource};
use std::sync::Arc;
use std::time::Duration;

/// The most cells of a plan.
pub const MAX_CELLS: usize = 100_000;
/// The most tests of a plan, repeats included.
pub const MAX_TESTS: usize = 1_000_000;

/// What a test of a lab takes beside its duration: creating it, the handshake, and exchanging
/// the results.
const OVERHEAD: Duration = Duration::from_millis(300);

/// The same between real hosts: comparing clocks, the time until all begin, round trips.
const OVERHEAD_ON_HOSTS: Duration = Duration::from_millis(1500);

/// A study, checked.
#[derive(Debug, Clone, PartialEq)]
pub struct Plan {
    /// In one sentence, ending with a question mark.
    pub question: String,
    /// The names of its flows; empty for a single flow.
    pub flows: Vec<String>,
    /// The programs that the plan brings.
    pub programs: Vec<Arc<Program>>,
    /// Sysctls that are set where a lab has them.
    pub optional: Vec<Sysctl>,
    /// The hosts that it runs between; `None`: labs.
    pub real_hosts: Option<RealHosts>,
    /// What is fixed: of the path, of the test and of its flows.
    pub fixed: Vec<(Setting, Level)>,
    /// What varies, in the order of the file; those that are paired come last.
    pub factors: Vec<Factor>,
    /// How often, and in what order.
    pub repeats: Repeats,
    /// What its page shows; empty: what its factors suggest.
    pub plots: Vec<StudyPlot>,
    /// The document whose experiment it repeats.
    pub source: Option<StudySource>,
}

/// What varies, with its values in the order of the file.
#[derive(Debug, Clone, PartialEq)]
pub struct Factor {
    /// What varies.
    pub setting: Setting,
    /// Its values, all different unless it is paired.
    pub levels: Vec<Level>,
    /// Whether it varies together with the others that are paired, which have as many values.
    pub paired: bool,
}

/// One combination of values, in the order of the plan's factors.
#[derive(Debug, Clone, PartialEq)]
pub struct Cell {
    /// From 0, in the order of the plan.
    pub number: usize,
    /// A value of each factor.
    pub levels: Vec<Level>,
}

impl Plan {
    /// The number of cells: the product of the factors' values, of which those that are paired
    /// count once.
    #[must_use]
    pub fn cells(&self) -> usize {
        self.dimensions().map(|factor| factor.levels.len()).product()
    }

    /// The factors that vary by themselves, and the first of those that are paired.
    pub(crate) fn dimensions(&self) -> impl DoubleEndedIterator<Item = &Factor> {
        let first = self.factors.iter().position(|factor| factor.paired);
        let factors = self.factors.iter().enumerate();
        let own = factors.filter(move |(at, factor)| !factor.paired || first == Some(*at));
        own.map(|(_, factor)| factor)
    }

    /// One cell; `number` is less than [`Plan::cells`].
    #[must_use]
    pub fn cell(&self, number: usize) -> Cell {
        let mut rest = number;
        let mut levels = Vec::with_capacity(self.factors.len());
        let mut dimensions = self.dimensions().rev().peekable();
        // Of those that are paired, which are the last, the same value each.
        let pairs = dimensions.next_if(|factor| factor.paired);
        if let Some(count) = pairs.map(|first| first.levels.len().max(1)) {
            let paired = self.factors.iter().rev().filter(|factor| factor.paired);
            levels.extend(paired.filter_map(|factor| factor.levels.get(rest % count).cloned()));
            rest /= count;
        }
        for factor in dimensions {
            let count = factor.levels.len().max(1);
            levels.extend(factor.levels.get(rest % count).cloned());
            rest /= count;
        }
        levels.reverse();
        Cell { number, levels }
    }

    /// The names of its flows, as results have them.
    #[must_use]
    pub(crate) fn flow_names(&self) -> Vec<String> {
        match self.flows.as_slice() {
            [] => vec![traffic::ONLY.to_owned()],
            names => names.to_vec(),
        }
    }

    /// The names of the flows of all its tests: those of each client where there are several.
    #[must_use]
    pub fn flows_of_tests(&self) -> Vec<String> {
        let counted = |value: &Value| match value {
            Value::Hosts(hosts) => Some(hosts.clients),
            _ => None,
        };
        let mut clients: Vec<u8> = self.values().filter_map(counted).collect();
        if clients.is_empty() {
            clients.push(self.real_hosts.as_ref().map_or(1, |hosts| hosts.counts().clients));
        }
        let mut names: Vec<String> = Vec::new();
        for hosts in clients.into_iter().map(|clients| Hosts { clients, servers: 1 }) {
            let flows = self.flow_names();
            let flows = flows.iter().flat_map(|flow| {
                (0..hosts.clients).map(move |client| hosts.flow_name(flow, client))
            });
            names.extend(flows.filter(|name| !names.contains(name)).collect::<Vec<_>>());
        }
        names
    }

    /// All settings with their values.
    fn levels(&self) -> impl Iterator<Item = (&Setting, &[Level])> {
        let fixed =
            self.fixed.iter().map(|(setting, level)| (setting, std::slice::from_ref(level)));
        fixed.chain(self.factors.iter().map(|factor| (&factor.setting, factor.levels.as_slice())))
    }

    fn values(&self) -> impl Iterator<Item = &Value> {
        self.levels().flat_map(|(_, levels)| levels).map(|level| &level.value)
    }

    /// What runs in a cell.
    ///
    /// # Errors
    /// The values of the cell contradict each other.
    pub fn test(&self, cell: &Cell) -> Result<Test, TestError> {
        let varied = self.factors.iter().map(|factor| &factor.setting).zip(&cell.levels);
        let fixed = self.fixed.iter().map(|(setting, level)| (setting, level));
        let (flows, hosts) = (self.flow_names(), self.real_hosts.as_ref());
        Test::of(&flows, hosts, &self.optional, fixed.chain(varied))
    }

    /// The sysctls that its tests set, with the side and every value.
    #[must_use]
    pub fn sysctls(&self) -> Vec<(String, Vec<String>)> {
        let named = self.levels().filter(|(setting, _)| matches!(setting, Setting::Sysctl(..)));
        let named = named.map(|(setting, levels)| {
            let values = levels.iter().map(|level| level.text.clone());
            (setting.to_string(), values.collect())
        });
        let optional = self.optional.iter().map(|one| {
            let name = Setting::Sysctl(one.side, one.name.clone()).to_string();
            (name, vec![one.value.clone()])
        });
        named.chain(optional).collect()
    }

    /// Whether a test of it sends a file.
    #[must_use]
    pub fn sends_files(&self) -> bool {
        self.values().any(|value| *value == Value::Source(Source::File))
    }

    /// The programs that its tests run, each once.
    #[must_use]
    pub fn programs_run(&self) -> Vec<Arc<Program>> {
        let mut programs: Vec<Arc<Program>> = Vec::new();
        for value in self.values() {
            if let Value::Program(Some(found)) = value
                && !programs.contains(found)
            {
                programs.push(Arc::clone(found));
            }
        }
        programs
    }

    /// About how long all tests take: in the lab, two light ones at once.
    #[must_use]
    pub fn estimate(&self) -> Duration {
        let one = |number| {
            let Ok(test) = self.test(&self.cell(number)) else { return Duration::ZERO };
            if self.real_hosts.is_some() {
                return test.planned() + OVERHEAD_ON_HOSTS;
            }
            let alone = test.planned() + OVERHEAD;
            if test.is_light() { alone / 2 } else { alone }
        };
        (0..self.cells()).map(one).sum::<Duration>() * self.repeats.count
    }
}

#[cfg(test)]
mod tests;
