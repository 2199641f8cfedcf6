//! The cells of a study in words and figures, and the order of its tests.

use crate::level::Level;
use crate::plan::{Cell, Order, Plan};
use crate::real_hosts::RealHosts;
use crate::setting::{Setting, ValueKind};
use crate::value::is_buffer;
use model::statistics::shuffle;
use rand_core::{Rng, SeedableRng};
use rand_pcg::Pcg64;
use record::{RunStatus, STUDY_PLAN_SCHEMA, StudyFactor, StudyPlanReport, StudyRun, StudyUntil};
use std::collections::{BTreeMap, BTreeSet};

/// One test to be run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct CellRun {
    /// The cell's number.
    pub cell: usize,
    /// From 1.
    pub repeat: u32,
}

impl Plan {
    /// The values of a cell, such as `window=64KiB streams=2`.
    #[must_use]
    pub fn label(&self, cell: &Cell) -> String {
        // Of those that are paired, the first one names the others.
        let mut after_first = false;
        let pairs = self
            .factors
            .iter()
            .zip(&cell.levels)
            .filter(|(factor, _)| !std::mem::replace(&mut after_first, factor.paired));
        let pairs = pairs.map(|(factor, level)| format!("{}={}", factor.setting, level.text));
        pairs.collect::<Vec<_>>().join(" ")
    }

    /// What the plan comes to.
    #[must_use]
    pub fn report(&self) -> StudyPlanReport {
        let values = |setting: &Setting, levels: &[Level]| StudyFactor {
            name: setting.to_string(),
            values: levels.iter().map(|level| level.text.clone()).collect(),
            numbers: numbers(levels),
            unit: unit(setting, levels).to_owned(),
            paired: false,
        };
        let first = self.factors.iter().position(|factor| factor.paired);
        let factors = self.factors.iter().enumerate().map(|(at, factor)| StudyFactor {
            paired: factor.paired && first != Some(at),
            ..values(&factor.setting, &factor.levels)
        });
        let fixed = self.fixed.iter();
        let fixed = fixed.map(|(setting, level)| values(setting, std::slice::from_ref(level)));
        let optional = self.optional.iter().map(|one| StudyFactor {
            name: Setting::Sysctl(one.side, one.name.clone()).to_string(),
            values: vec![one.value.clone()],
            numbers: Vec::new(),
            unit: String::new(),
            paired: false,
        });
        StudyPlanReport {
            schema: STUDY_PLAN_SCHEMA.to_owned(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            question: self.question.clone(),
            factors: factors.collect(),
            fixed: fixed.collect(),
            cells: self.cells(),
            repeats: self.repeats.count,
            tests: self.cells() * self.repeats.count as usize,
            order: self.repeats.order.name().to_owned(),
            seed: self.repeats.seed,
            until: self
                .repeats
                .until
                .map(|until| StudyUntil { within: until.within, most: until.most }),
            estimated_s: self.estimate().as_secs_f64(),
            optional: optional.collect(),
            plots: self.plots.clone(),
            clients: self.real_hosts.as_ref().map(RealHosts::client_names).unwrap_or_default(),
            servers: self.real_hosts.as_ref().map(RealHosts::server_names).unwrap_or_default(),
            source: self.source.clone(),
            run: None,
            programs: self.programs_run().iter().map(|program| program.report()).collect(),
        }
    }

    /// Every test, in the order to be run: the same for the same plan.
    #[must_use]
    pub fn runs(&self) -> Vec<CellRun> {
        let cells = self.cells();
        let repeat = |repeat| (0..cells).map(move |cell| CellRun { cell, repeat });
        let mut runs: Vec<CellRun> = (1..=self.repeats.count).flat_map(repeat).collect();
        let mut random = Pcg64::seed_from_u64(self.repeats.seed);
        match self.repeats.order {
            Order::Plan => runs.sort_unstable(),
            Order::Random => shuffle(&mut runs, || random.next_u64()),
            Order::Blocked => {
                let blocks = runs.chunks_mut(cells.max(1));
                blocks.for_each(|block| shuffle(block, || random.next_u64()));
            }
        }
        runs
    }

    /// The tests to be added to those that are stored, in the order to be run.
    #[must_use]
    pub fn further_runs(&self, stored: &[StudyRun]) -> Vec<CellRun> {
        if self.repeats.until.is_none() {
            return Vec::new();
        }
        let mut of_cell: BTreeMap<usize, (BTreeSet<u32>, Vec<f64>)> = BTreeMap::new();
        for run in stored.iter().filter(|run| run.cell < self.cells()) {
            let (repeats, goodputs) = of_cell.entry(run.cell).or_default();
            repeats.insert(run.repeat);
            if run.status == RunStatus::Valid {
                goodputs.push(run.throughput_bps());
            }
        }
        let runs = of_cell.into_iter().flat_map(|(cell, (repeats, goodputs))| {
            let done = u32::try_from(repeats.len()).unwrap_or(u32::MAX);
            let more = self.repeats.to_add(done, &goodputs);
            // An interruption can have left a gap.
            let missing = (1..).filter(move |repeat| !repeats.contains(repeat));
            missing.take(more as usize).map(move |repeat| CellRun { cell, repeat })
        });
        let mut runs: Vec<CellRun> = runs.collect();
        if self.repeats.order != Order::Plan {
            let seed = self.repeats.seed.wrapping_add(stored.len() as u64);
            let mut random = Pcg64::seed_from_u64(seed);
            shuffle(&mut runs, || random.next_u64());
        }
        runs
    }

    /// The seed of a test's path: of the plan's seed, the cell and the repeat.
    #[must_use]
    pub fn seed(&self, run: CellRun) -> u64 {
        let of_run = (run.cell as u64) << 20 | u64::from(run.repeat);
        let mixed = self.repeats.seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ of_run;
        Pcg64::seed_from_u64(mixed).next_u64()
    }
}

/// Levels as numbers; none unless all are numbers of one unit.
pub(crate) fn numbers(levels: &[Level]) -> Vec<f64> {
    let all: Option<Vec<f64>> = levels.iter().map(Level::number).collect();
    all.filter(|_| levels.windows(2).all(|pair| pair[0].per_bdp() == pair[1].per_bdp()))
        .unwrap_or_default()
}

fn unit(setting: &Setting, levels: &[Level]) -> &'static str {
    if matches!(setting, Setting::Sysctl(_, name) if is_buffer(name)) {
        return "bytes";
    }
    match setting.kind() {
        ValueKind::Bytes if levels.iter().any(Level::per_bdp) => "BDP",
        ValueKind::Bytes => "bytes",
        ValueKind::Rate => "bit/s",
        ValueKind::Time => "s",
        ValueKind::Share => "ratio",
        ValueKind::Count | ValueKind::Word => "",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plan(order: &str) -> Plan {
        let text = format!(
            "question = \"?\"\n[path]\nrate = \"10mbit\"\nrtt = \"10ms\"\n[factors]\n\
             streams = \"1..8 +1\"\n[traffic]\nduration = \"1s\"\n[repeats]\ncount = 3\n\
             order = \"{order}\""
        );
        Plan::parse(&text).unwrap()
    }

    #[test]
    fn each_order_has_every_test_once() {
        for order in ["random", "blocked", "plan"] {
            let runs = plan(order).runs();
            let mut sorted = runs.clone();
            sorted.sort_unstable();
            sorted.dedup();
            assert_eq!((runs.len(), sorted.len()), (24, 24));
            assert_eq!(runs, plan(order).runs(), "the same for the same plan");
            assert_eq!(runs == sorted, order == "plan");
        }
        let blocked = plan("blocked").runs();
        assert!(blocked[..8].iter().all(|run| run.repeat == 1));
    }

    #[test]
    fn seeds_differ() {
        let plan = plan("plan");
        let mut seeds: Vec<u64> = plan.runs().into_iter().map(|run| plan.seed(run)).collect();
        seeds.sort_unstable();
        seeds.dedup();
        assert_eq!(seeds.len(), 24);
    }
}
