//! A study: one plan, or several that answer one question together.

use crate::plan::{Plan, PlanError};
use crate::program::Program;
use crate::real_hosts::RealHosts;
use crate::shard::Shard;
use record::{PlannedRun, PlannedShard, StudyTestbed};
use std::sync::Arc;
use std::time::Duration;

/// A study.
#[derive(Debug, Clone, PartialEq)]
pub struct Study {
    /// Of a built-in study, or of the plan's file.
    pub name: String,
    /// In one sentence, ending with a question mark.
    pub question: String,
    /// Whether it is the short form.
    pub quick: bool,
    /// At least one, in the order of running.
    pub parts: Vec<Part>,
}

/// One plan of a study.
#[derive(Debug, Clone, PartialEq)]
pub struct Part {
    /// Empty for a study of one plan.
    pub name: String,
    /// Its plan as text.
    pub text: String,
    /// The same, checked.
    pub plan: Plan,
}

impl Study {
    /// How each part would run: in virtual time or not, every cell or those of a shard.
    #[must_use]
    pub fn planned(&self, is_simulated: bool, shard: Option<Shard>) -> Vec<PlannedRun> {
        let mut first = 0;
        let planned = |part: &Part| {
            let (plan, before) = (&part.plan, first);
            first += plan.cells();
            let of_shard = |shard: Shard| PlannedShard {
                name: shard.to_string(),
                cells: (0..plan.cells())
                    .filter(|cell| shard.has(before + cell))
                    .map(|cell| plan.label(&plan.cell(cell)))
                    .collect(),
            };
            PlannedRun { is_simulated, shard: shard.map(of_shard) }
        };
        self.parts.iter().map(planned).collect()
    }

    /// A study of one plan.
    ///
    /// # Errors
    /// What is wrong with the plan.
    pub fn of_plan(name: &str, text: &str, quick: bool) -> Result<Self, PlanError> {
        let part = Part::parse("", text, quick)?;
        Ok(Study {
            name: name.to_owned(),
            question: part.plan.question.clone(),
            quick,
            parts: vec![part],
        })
    }

    /// The hosts that it runs between; `None`: labs.
    #[must_use]
    pub fn real_hosts(&self) -> Option<&RealHosts> {
        self.parts.iter().find_map(|part| part.plan.real_hosts.as_ref())
    }

    /// Where it runs unless it is simulated.
    #[must_use]
    pub fn testbed(&self) -> StudyTestbed {
        if self.real_hosts().is_some() { StudyTestbed::Hosts } else { StudyTestbed::Lab }
    }

    /// The number of cells of all parts.
    #[must_use]
    pub fn cells(&self) -> usize {
        self.parts.iter().map(|part| part.plan.cells()).sum()
    }

    /// The number of runs.
    #[must_use]
    pub fn runs(&self) -> usize {
        self.parts.iter().map(|part| part.plan.cells() * part.plan.repeats.count as usize).sum()
    }

    /// The programs that its tests run, each once.
    #[must_use]
    pub fn programs(&self) -> Vec<Arc<Program>> {
        let mut programs: Vec<Arc<Program>> = Vec::new();
        for program in self.parts.iter().flat_map(|part| part.plan.programs_run()) {
            if !programs.contains(&program) {
                programs.push(program);
            }
        }
        programs
    }

    /// Whether a test of it sends a file.
    #[must_use]
    pub fn sends_files(&self) -> bool {
        self.parts.iter().any(|part| part.plan.sends_files())
    }

    /// About how long it takes.
    #[must_use]
    pub fn estimate(&self) -> Duration {
        self.parts.iter().map(|part| part.plan.estimate()).sum()
    }
}

impl Part {
    /// A part by its plan.
    ///
    /// # Errors
    /// What is wrong with the plan.
    pub fn parse(name: &str, text: &str, quick: bool) -> Result<Self, PlanError> {
        let plan = if quick { Plan::parse_quick(text)? } else { Plan::parse(text)? };
        Ok(Part { name: name.to_owned(), text: text.to_owned(), plan })
    }
}
