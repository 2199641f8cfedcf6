//! The sysctls of a study: set with a journal of their previous values, and reverted.
//!
//! The journal is that of `longhaul tune`: whatever happens to the agent, `longhaul tune
//! rollback` reverts what it set, and the next agent of a study does so first.

use crate::refusal::Refusal;
use host::clock;
use problem::Problem;
use record::{
    MemoryCost, Outcome, PlannedSetting, RevertOutcome, TUNE_PLAN_SCHEMA, TunePlan, Written,
    is_tuned_sysctl, is_tuned_value,
};
use remote::protocol::SysctlRequest;
use std::path::Path;
use tune::{Decision, HostDisk, Identity, Lock, PERSISTED, ThisHost, Tuner, TunerError};
use units::ByteCount;

/// The goal of a study's journals.
const GOAL: &str = "a test of a study";

/// The sysctls that this agent has set.
#[derive(Debug)]
pub(crate) struct Sysctls {
    journals: Result<HostDisk, Problem>,
    /// Held while something is set.
    lock: Option<Lock>,
}

impl Sysctls {
    pub(crate) fn new(journals: Result<HostDisk, Problem>) -> Self {
        Sysctls { journals, lock: None }
    }

    /// Sets them all, or none: what was set before is reverted first. Which were changed.
    pub(crate) fn set(&mut self, wanted: &[SysctlRequest]) -> Result<Vec<Written>, Refusal> {
        self.revert()?;
        let settings = wanted.iter().map(planned).collect::<Result<Vec<_>, _>>()?;
        if settings.is_empty() {
            return Ok(Vec::new());
        }
        let disk = self.journals.as_ref().map_err(Clone::clone)?;
        let lock = Lock::take(&disk.journals, disk.trust)?;
        let tuner = tuner(disk);
        revert_studies(&tuner, &lock)?;
        let applied = tuner.apply(&lock, &plan(settings), false);
        let applied = match applied {
            Ok(applied) => applied,
            // Whatever it wrote before is in a journal.
            Err(error) => {
                let _ = revert_studies(&tuner, &lock);
                return Err(error.into());
            }
        };
        let lacking = applied.settings.iter().find(|one| {
            one.outcome != Outcome::Set
                && !wanted.iter().any(|wanted| wanted.key == one.key && wanted.optional)
        });
        if let Some(one) = lacking {
            revert_studies(&tuner, &lock)?;
            return Err(Refusal::NotSet { key: one.key.clone(), note: one.note.clone() });
        }
        if applied.journal.is_some() {
            self.lock = Some(lock);
        }
        Ok(applied.settings)
    }

    /// Reverts what was set; what is left, with the reason.
    pub(crate) fn revert(&mut self) -> Result<Vec<String>, Refusal> {
        let (Some(lock), Ok(disk)) = (&self.lock, &self.journals) else { return Ok(Vec::new()) };
        let left = revert_studies(&tuner(disk), lock);
        self.lock = None;
        left
    }
}

/// Reverts the last journals, as long as they are of studies: nobody else holds the lock, so a
/// study that is still there was killed. What is left, with the reason.
fn revert_studies(tuner: &Tuner<'_>, lock: &Lock) -> Result<Vec<String>, Refusal> {
    let mut left = Vec::new();
    loop {
        let status = tuner.status().map_err(TunerError::from)?;
        if status.applied.last().is_none_or(|last| last.goal != GOAL) {
            return Ok(left);
        }
        let undone = tuner.undo(lock, false, &mut |_| Decision::Keep)?;
        let kept = undone.settings.iter().filter(|one| {
            matches!(one.state, RevertOutcome::Failed | RevertOutcome::Left) && !one.note.is_empty()
        });
        left.extend(kept.map(|one| format!("{}: {}", one.key, one.note)));
        if undone.undone == 0 {
            return Ok(left);
        }
    }
}

fn planned(wanted: &SysctlRequest) -> Result<PlannedSetting, Refusal> {
    let SysctlRequest { key, value, .. } = wanted;
    if !is_tuned_sysctl(key) || !is_tuned_value(key, value) {
        return Err(Refusal::NotTuned { key: key.clone(), value: value.clone() });
    }
    Ok(PlannedSetting {
        key: key.clone(),
        now: String::new(),
        planned: value.clone(),
        why: GOAL.to_owned(),
        risk: String::new(),
    })
}

fn plan(settings: Vec<PlannedSetting>) -> TunePlan {
    TunePlan {
        schema: TUNE_PLAN_SCHEMA.to_owned(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        goal: GOAL.to_owned(),
        settings,
        left_out: Vec::new(),
        unchanged: Vec::new(),
        carries_now_bps: None,
        carries_then_bps: None,
        memory: MemoryCost {
            per_connection_bytes: ByteCount::ZERO,
            connections: 0,
            together_bytes: ByteCount::ZERO,
            pressure_bytes: None,
            limit_bytes: None,
            machine_bytes: None,
        },
        notes: Vec::new(),
    }
}

fn tuner(disk: &HostDisk) -> Tuner<'_> {
    Tuner {
        settings: &ThisHost,
        routes: &ThisHost,
        disk,
        folder: &disk.journals,
        persisted: Path::new(PERSISTED),
        here: Identity::here(),
        now_s: clock::unix_seconds(),
    }
}
