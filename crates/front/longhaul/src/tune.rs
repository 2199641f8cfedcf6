//! This host's settings for a long path: planned, applied with a journal of the previous values,
//! measured step by step, and reverted.
//!
//! ```no_run
//! use longhaul::tune::{TuneDocument, TuneGoal, TuneRequest};
//! use longhaul::{Document, Request, StopFlag};
//!
//! let goal = TuneGoal::target("10gbit".parse().unwrap(), "200ms".parse().unwrap());
//! let run = |request| longhaul::run(Request::Tune(request), &mut |_| (), &StopFlag::new());
//! // What is applied is the plan that somebody has seen.
//! if let Ok(Document::Tune(TuneDocument::Plan(plan))) = run(TuneRequest::Plan(goal)) {
//!     for setting in &plan.settings {
//!         println!("{}: {}", setting.key, setting.why);
//!     }
//!     let apply = TuneRequest::Apply { plan, persist: false, dry_run: true };
//!     println!("{:?}", run(apply));
//! }
//! ```

mod lab_journals;
mod request;
mod state;
pub mod verify;

pub use lab_journals::lab_journals;
pub use request::{TuneGoal, TuneRequest};
pub use tune::{Decision, Foreign, Goal, HostDisk, Profile};
pub use verify::{TuneVerifyEvent, TuneVerifyRequest};

use crate::{Fault, Problem, StopFlag};
use host::{clock, identity};
use record::{TuneApplied, TunePlan, TuneRollback, TuneStatus, VerifyReport};
use serde::{Deserialize, Serialize};
use state::State;
use std::path::{Path, PathBuf};
use tune::{
    Adopted, Identity, JournalError, Lock, LockError, PERSISTED, ThisHost, Tuner, TunerError,
};
use units::ByteCount;

/// Events of a run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum TuneEvent {
    /// A journal of an earlier version was moved to where journals are now.
    JournalMoved {
        /// From where.
        from: PathBuf,
        /// To where.
        to: PathBuf,
    },
    /// A journal of an earlier version cannot be trusted.
    JournalIgnored {
        /// The file.
        path: PathBuf,
        /// The reason.
        why: String,
    },
    /// A network namespace that was tuned is gone, as that of an ended lab.
    NamespaceGone {
        /// Where its journal is now.
        journal: PathBuf,
    },
    /// Of [`verify`].
    Verify(TuneVerifyEvent),
}

/// The result.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(untagged)]
pub enum TuneDocument {
    /// Of [`TuneRequest::Plan`].
    Plan(TunePlan),
    /// Of [`TuneRequest::Apply`].
    Applied(TuneApplied),
    /// Of [`TuneRequest::Rollback`].
    RolledBack(TuneRollback),
    /// Of [`TuneRequest::Status`].
    Status(TuneStatus),
    /// Of [`TuneRequest::Verify`].
    Verified(VerifyReport),
}

/// Carries out a request. Keeps values that others have changed, unless the request says
/// otherwise.
///
/// # Errors
/// An invalid field, no privilege, a journal that prevents it, a test that failed.
pub fn run(
    request: &TuneRequest,
    on_event: &mut dyn FnMut(TuneEvent),
    stop: &StopFlag,
) -> Result<TuneDocument, Problem> {
    request.check()?;
    if let TuneRequest::Plan(goal) = request {
        return plan(goal).map(TuneDocument::Plan);
    }
    let host = TunedHost::find(on_event)?;
    Ok(match request {
        TuneRequest::Plan(goal) => TuneDocument::Plan(plan(goal)?),
        TuneRequest::Apply { plan, persist, dry_run: true } => {
            TuneDocument::Applied(host.dry_run(plan, *persist)?)
        }
        TuneRequest::Apply { plan, persist, dry_run: false } => {
            TuneDocument::Applied(host.apply(plan, *persist, on_event)?)
        }
        TuneRequest::Rollback { all, force } => {
            let decision = if *force { Decision::Overwrite } else { Decision::Keep };
            TuneDocument::RolledBack(host.rollback(*all, on_event, &mut |_| decision)?)
        }
        TuneRequest::Status => TuneDocument::Status(host.status()?),
        TuneRequest::Verify(request) => {
            TuneDocument::Verified(verify::Session::prepare(request, &host, on_event, stop)?.run()?)
        }
    })
}

/// The plan for a goal, from the settings of this network namespace. Changes nothing.
///
/// # Errors
/// An invalid field, or a goal that no buffer reaches.
pub fn plan(goal: &TuneGoal) -> Result<TunePlan, Problem> {
    goal.check()?;
    let memory = identity::memory_bytes().map(ByteCount::from_bytes);
    tune::advise(&ThisHost, &goal.goal, goal.congestion.as_deref(), memory)
        .map_err(|error| Problem::new(Fault::Request, error))
}

/// Where the journals of this host are, for an agent.
///
/// # Errors
/// No directory, or one that others can write to.
pub fn journals() -> Result<HostDisk, Problem> {
    State::find().map(State::journals)
}

/// This host, and the journals of its previous settings.
#[derive(Debug)]
pub struct TunedHost {
    disk: HostDisk,
}

impl TunedHost {
    /// Finds the journals, and moves those of earlier versions there.
    ///
    /// # Errors
    /// No directory, one that others can write to, or another run that changes settings.
    pub fn find(on_event: &mut dyn FnMut(TuneEvent)) -> Result<Self, Problem> {
        let state = State::find()?;
        let earlier = state.earlier();
        let host = TunedHost { disk: state.journals() };
        host.adopt(&earlier, on_event)?;
        Ok(host)
    }

    /// With the journals in a directory.
    ///
    /// # Errors
    /// A directory that others can write to.
    pub fn at(journals: &Path) -> Result<Self, Problem> {
        let State { directory, trust, .. } = State::at(journals)?;
        Ok(TunedHost { disk: HostDisk { journals: directory, trust } })
    }

    /// The directory of journals.
    #[must_use]
    pub fn journals(&self) -> &Path {
        &self.disk.journals
    }

    /// Returns the changes that [`TunedHost::apply`] would make.
    ///
    /// # Errors
    /// As [`TunedHost::apply`].
    pub fn dry_run(&self, plan: &TunePlan, persist: bool) -> Result<TuneApplied, Problem> {
        self.tuner().dry_run(plan, persist).map_err(failed)
    }

    /// Applies a plan, also at each boot if `persist` is set. It is not interruptible, as half a
    /// plan is useless: callers block signals.
    ///
    /// # Errors
    /// No privilege, or a journal that prevents it.
    pub fn apply(
        &self,
        plan: &TunePlan,
        persist: bool,
        on_event: &mut dyn FnMut(TuneEvent),
    ) -> Result<TuneApplied, Problem> {
        let lock = self.lock(on_event)?;
        self.tuner().apply(&lock, plan, persist).map_err(failed)
    }

    /// Reverts the last applied plan, or all of them. `decide` is asked about each value that
    /// somebody else has changed since.
    ///
    /// # Errors
    /// No privilege, or a journal that cannot be read.
    pub fn rollback(
        &self,
        all: bool,
        on_event: &mut dyn FnMut(TuneEvent),
        decide: &mut dyn FnMut(&Foreign<'_>) -> Decision,
    ) -> Result<TuneRollback, Problem> {
        let lock = self.lock(on_event)?;
        self.tuner().undo(&lock, all, decide).map_err(failed)
    }

    /// The applied plans, and the values that differ now.
    ///
    /// # Errors
    /// A journal that cannot be read.
    pub fn status(&self) -> Result<TuneStatus, Problem> {
        self.tuner().status().map_err(unfit)
    }

    /// Locks the journals, and sets those aside whose network namespace is gone.
    fn lock(&self, on_event: &mut dyn FnMut(TuneEvent)) -> Result<Lock, Problem> {
        let lock = self.take_lock()?;
        let gone = self.tuner().set_aside_gone(&lock, identity::network_namespace_exists);
        for journal in gone.map_err(unfit)? {
            on_event(TuneEvent::NamespaceGone { journal });
        }
        Ok(lock)
    }

    fn take_lock(&self) -> Result<Lock, Problem> {
        Lock::take(&self.disk.journals, self.disk.trust).map_err(|error| match error {
            LockError::Held(_) => Problem::new(Fault::Internal, error),
            LockError::Access { .. } => Problem::new(Fault::Host, error),
        })
    }

    /// Moves journals of an earlier version, and reports those it refuses.
    fn adopt(
        &self,
        earlier: &[PathBuf],
        on_event: &mut dyn FnMut(TuneEvent),
    ) -> Result<(), Problem> {
        if earlier.is_empty() {
            return Ok(());
        }
        let lock = self.take_lock()?;
        for old in earlier {
            for found in self.tuner().adopt(&lock, old).map_err(unfit)? {
                on_event(match found {
                    Adopted::Moved { from, to } => TuneEvent::JournalMoved { from, to },
                    Adopted::Refused { path, why } => TuneEvent::JournalIgnored { path, why },
                });
            }
        }
        Ok(())
    }

    fn tuner(&self) -> Tuner<'_> {
        Tuner {
            settings: &ThisHost,
            disk: &self.disk,
            folder: &self.disk.journals,
            persisted: Path::new(PERSISTED),
            here: Identity::here(),
            now_s: clock::unix_seconds(),
        }
    }
}

fn failed(error: TunerError) -> Problem {
    match error {
        TunerError::NotPermitted { .. } => Problem::new(Fault::Host, error),
        TunerError::Journal(error) => unfit(error),
        other => Problem::new(Fault::Internal, other),
    }
}

/// An unusable directory is the host's fault.
fn unfit(error: JournalError) -> Problem {
    let fault = match error {
        JournalError::Access { .. } => Fault::Host,
        _ => Fault::Internal,
    };
    Problem::new(fault, error)
}
