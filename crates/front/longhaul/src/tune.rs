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
pub use tune::{Decision, Foreign, Goal, HostDisk, Profile, RouteGoal};
pub use verify::{TuneVerifyEvent, TuneVerifyRequest};

use crate::{Fault, Problem, StopFlag};
use host::{clock, identity};
use record::{
    RoutePrefix, TuneApplied, TunePlan, TuneRollback, TuneRouteApplied, TuneRoutePlan, TuneStatus,
    VerifyReport,
};
use serde::{Deserialize, Serialize};
use state::State;
use std::path::{Path, PathBuf};
use tune::{
    Adopted, Identity, JournalError, Lock, LockError, PERSISTED, RouteError, ThisHost, Tuner,
    TunerError,
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
    /// Of [`TuneRequest::PlanRoute`].
    RoutePlan(Box<TuneRoutePlan>),
    /// Of [`TuneRequest::ApplyRoute`].
    RouteApplied(Box<TuneRouteApplied>),
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
    match request {
        TuneRequest::Plan(goal) => return plan(goal).map(TuneDocument::Plan),
        TuneRequest::PlanRoute(goal) => {
            return plan_route(goal).map(|plan| TuneDocument::RoutePlan(Box::new(plan)));
        }
        _ => {}
    }
    let host = TunedHost::find(on_event)?;
    Ok(match request {
        TuneRequest::Plan(goal) => TuneDocument::Plan(plan(goal)?),
        TuneRequest::PlanRoute(goal) => TuneDocument::RoutePlan(Box::new(plan_route(goal)?)),
        TuneRequest::ApplyRoute { plan, dry_run: true } => {
            TuneDocument::RouteApplied(Box::new(host.dry_run_route(plan)?))
        }
        TuneRequest::ApplyRoute { plan, dry_run: false } => {
            TuneDocument::RouteApplied(Box::new(host.apply_route(plan, on_event)?))
        }
        TuneRequest::Apply { plan, persist, dry_run: true } => {
            TuneDocument::Applied(host.dry_run(plan, *persist)?)
        }
        TuneRequest::Apply { plan, persist, dry_run: false } => {
            TuneDocument::Applied(host.apply(plan, *persist, on_event)?)
        }
        TuneRequest::Rollback { route, all, force } => {
            let decision = if *force { Decision::Overwrite } else { Decision::Keep };
            TuneDocument::RolledBack(host.rollback(*route, *all, on_event, &mut |_| decision)?)
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

/// The plan for the route to one destination, from the routes and settings of this network
/// namespace. Changes nothing.
///
/// # Errors
/// An invalid field, or no route whose metrics can be changed.
pub fn plan_route(goal: &RouteGoal) -> Result<TuneRoutePlan, Problem> {
    request::check_route_goal(goal)?;
    tune::advise_route(&ThisHost, &ThisHost, goal).map_err(no_route)
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

    /// Returns the changes that [`TunedHost::apply_route`] would make.
    ///
    /// # Errors
    /// As [`TunedHost::apply_route`].
    pub fn dry_run_route(&self, plan: &TuneRoutePlan) -> Result<TuneRouteApplied, Problem> {
        self.tuner().dry_run_route(plan).map_err(failed)
    }

    /// Applies a plan for a route until it is rolled back or the next boot. It is not
    /// interruptible: callers block signals.
    ///
    /// # Errors
    /// No privilege, a route that cannot be changed, or a journal that prevents it.
    pub fn apply_route(
        &self,
        plan: &TuneRoutePlan,
        on_event: &mut dyn FnMut(TuneEvent),
    ) -> Result<TuneRouteApplied, Problem> {
        let lock = self.lock(on_event)?;
        self.tuner().apply_route(&lock, plan).map_err(failed)
    }

    /// Reverts the last applied plan, or all of them; with a prefix, those for its route alone.
    /// `decide` is asked about each value that
    /// somebody else has changed since.
    ///
    /// # Errors
    /// No privilege, or a journal that cannot be read.
    pub fn rollback(
        &self,
        route: Option<RoutePrefix>,
        all: bool,
        on_event: &mut dyn FnMut(TuneEvent),
        decide: &mut dyn FnMut(&Foreign<'_>) -> Decision,
    ) -> Result<TuneRollback, Problem> {
        let lock = self.lock(on_event)?;
        self.tuner().undo_of(&lock, route, all, decide).map_err(failed)
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
            routes: &ThisHost,
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
        TunerError::NotPermitted { .. } | TunerError::RoutesNotPermitted { .. } => {
            Problem::new(Fault::Host, error)
        }
        TunerError::Route(error) => no_route(error),
        TunerError::Journal(error) => unfit(error),
        other => Problem::new(Fault::Internal, other),
    }
}

/// Why the route to a prefix cannot be planned for.
fn no_route(error: RouteError) -> Problem {
    let fault = match error {
        RouteError::Table(_) => Fault::Host,
        _ => Fault::Request,
    };
    Problem::new(fault, error)
}

/// An unusable directory is the host's fault.
fn unfit(error: JournalError) -> Problem {
    let fault = match error {
        JournalError::Access { .. } => Fault::Host,
        _ => Fault::Internal,
    };
    Problem::new(fault, error)
}
