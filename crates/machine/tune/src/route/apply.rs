//! Applies metrics to routes so that they can be reverted: the journal is written first.

use super::RouteError;
use super::find::{Found, Keyed, check_available, in_force_beyond, shown};
use crate::journal::{Line, RouteEntry};
use crate::{Lock, Tuner, TunerError};
use record::{
    Outcome, RouteChange, TUNE_ROUTE_APPLY_SCHEMA, TuneRouteApplied, TuneRoutePlan, WrittenRoute,
};
use std::io;

impl Tuner<'_> {
    /// What [`apply_route`](Self::apply_route) would do, without doing it.
    ///
    /// # Errors
    /// As [`apply_route`](Self::apply_route).
    pub fn dry_run_route(&self, plan: &TuneRoutePlan) -> Result<TuneRouteApplied, TunerError> {
        let routes = self.prepare_route(plan)?;
        let would = |entry: RouteEntry| written(&entry, entry.planned.clone(), Ok(()));
        Ok(applied(plan, None, routes.into_iter().map(would).collect(), true))
    }

    /// Applies a plan: first the journal, then each route, read back. Of the plan only the prefix
    /// and the metrics are used; gateways and devices are the kernel's.
    ///
    /// # Errors
    /// [`TunerError`]. Where the journal cannot be written any more the run ends, and
    /// [`undo`](Self::undo) reverts its changes.
    pub fn apply_route(
        &self,
        _lock: &Lock,
        plan: &TuneRoutePlan,
    ) -> Result<TuneRouteApplied, TunerError> {
        let entries = self.prepare_route(plan)?;
        if entries.is_empty() {
            return Ok(applied(plan, None, Vec::new(), false));
        }
        let store = self.journal_store();
        let journal = store.begin(self.begun(&plan.goal, Vec::new(), entries))?;
        let (mut routes, mut refusal) = (Vec::new(), None);
        for entry in &journal.begun.routes {
            let RouteEntry { prefix, priority, before, .. } = entry.clone();
            routes.push(match self.set_route(entry) {
                Ok(()) => match self.read_back(entry) {
                    Some(now) => {
                        let line = Line::RouteSet { prefix, priority, now: now.clone() };
                        store.add(&journal, &line)?;
                        written(entry, now, Ok(()))
                    }
                    // The journal has what was to be set.
                    None => unread(entry),
                },
                Err(source) => {
                    store.add(&journal, &Line::RouteRefused { prefix, priority })?;
                    let written = written(entry, before, Err(&source));
                    refusal = Some(source);
                    written
                }
            });
        }
        if routes.iter().all(|one| one.outcome == Outcome::Skipped) {
            store.remove(&journal)?;
            return match refusal {
                Some(source) => Err(TunerError::RouteRefused { prefix: plan.prefix, source }),
                None => Ok(applied(plan, None, routes, false)),
            };
        }
        store.add(&journal, &Line::Ended)?;
        Ok(applied(plan, Some(journal.path.display().to_string()), routes, false))
    }

    /// The entries of the journal: none where the metrics have their planned values already.
    fn prepare_route(&self, plan: &TuneRoutePlan) -> Result<Vec<RouteEntry>, TunerError> {
        let prefix = plan.prefix;
        let found = Found::new(self.routes, prefix)?;
        check_available(self.settings, &plan.metrics)?;
        self.check_not_interrupted()?;
        self.routes.may_change().map_err(|source| TunerError::RoutesNotPermitted { source })?;
        let in_force = found.in_force().map(shown).unwrap_or_default();
        if (found.change, &in_force) != (plan.change, &plan.in_force) {
            return Err(RouteError::Changed(prefix, plan.in_force.clone()).into());
        }
        let entry = |route: &host::kernel_route::KernelRoute| {
            let before = route.tcp_metrics();
            let planned = before.overridden_by(&plan.metrics);
            let priority = route.priority();
            RouteEntry { prefix, priority, change: found.change, before, planned }
        };
        let entries = found.routes.iter().map(entry);
        let entries: Vec<_> = entries.filter(|entry| entry.before != entry.planned).collect();
        match entries.iter().find(|entry| !entry.planned.is_valid()) {
            Some(entry) => Err(RouteError::Metrics(entry.planned.to_string()).into()),
            None => Ok(entries),
        }
    }

    /// Writes one route; after an error it is unchanged. The route is read again: nothing of it is
    /// from the time before the journal was synced.
    fn set_route(&self, entry: &RouteEntry) -> io::Result<()> {
        let &RouteEntry { prefix, priority, change, .. } = entry;
        let all = self.routes.around(prefix)?;
        let own = Keyed::of(&all, prefix, priority).one();
        let is_as_planned =
            |route: &&host::kernel_route::KernelRoute| route.tcp_metrics() == entry.before;
        match change {
            RouteChange::Copy => {
                let base = in_force_beyond(&all, prefix);
                let base = base.filter(is_as_planned).filter(|one| one.not_copyable().is_none());
                let copied = base.ok_or_else(changed_meanwhile)?.copied_to(prefix);
                self.routes.add(&copied.with_tcp_metrics(&entry.planned))
            }
            RouteChange::Metrics => {
                let own = own.filter(is_as_planned).filter(|one| one.unsupported().is_none());
                let own = own.ok_or_else(changed_meanwhile)?;
                self.routes.replace(&own.with_tcp_metrics(&entry.planned))
            }
        }
    }

    /// The metrics that a route has; `None` if another program keeps changing the table.
    fn read_back(&self, entry: &RouteEntry) -> Option<record::RouteMetrics> {
        let all = self.routes.around(entry.prefix).ok()?;
        let route = Keyed::of(&all, entry.prefix, entry.priority).one()?;
        Some(route.tcp_metrics())
    }
}

fn changed_meanwhile() -> io::Error {
    io::Error::other("another program changed the route meanwhile; try again")
}

fn written(
    entry: &RouteEntry,
    now: record::RouteMetrics,
    set: Result<(), &io::Error>,
) -> WrittenRoute {
    let RouteEntry { prefix, priority, change, before, planned } = entry.clone();
    let (outcome, note) = match set {
        Err(source) => (Outcome::Skipped, format!("the kernel refused: {source}")),
        Ok(()) if now == planned => (Outcome::Set, String::new()),
        Ok(()) => (Outcome::Bounded, format!("requested {planned}; the kernel bounded it")),
    };
    WrittenRoute { prefix, priority, change, before, now, outcome, note }
}

/// A route that was changed, but could not be read since.
fn unread(entry: &RouteEntry) -> WrittenRoute {
    let note = "it was changed, but not read back: another program changes the table";
    WrittenRoute {
        note: note.to_owned(),
        outcome: Outcome::Bounded,
        ..written(entry, entry.planned.clone(), Ok(()))
    }
}

fn applied(
    plan: &TuneRoutePlan,
    journal: Option<String>,
    routes: Vec<WrittenRoute>,
    dry_run: bool,
) -> TuneRouteApplied {
    TuneRouteApplied {
        schema: TUNE_ROUTE_APPLY_SCHEMA.to_owned(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        plan: plan.clone(),
        journal,
        routes,
        dry_run,
    }
}
