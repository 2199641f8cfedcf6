//! Routes in a journal: the prefix, the priority, and TCP metrics. Nothing in a journal says where
//! packets go.

use super::{Begun, Damage, Journal, SCHEMA};
use crate::route::MAX_ROUTES;
use record::{RouteChange, RouteMetrics, RoutePrefix};
use serde::{Deserialize, Serialize};

/// One route. An unknown field, such as a gateway, makes the line unreadable.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct RouteEntry {
    pub(crate) prefix: RoutePrefix,
    /// The route's own metric.
    pub(crate) priority: u32,
    pub(crate) change: RouteChange,
    /// Its metrics before; of a copy, those of the copied route.
    pub(crate) before: RouteMetrics,
    pub(crate) planned: RouteMetrics,
}

impl RouteEntry {
    /// The metrics after a rollback: none for a copy, which is deleted.
    pub(crate) fn restored(&self) -> RouteMetrics {
        match self.change {
            RouteChange::Copy => RouteMetrics::default(),
            RouteChange::Metrics => self.before.clone(),
        }
    }
}

impl Begun {
    /// The prefix whose route it changes; `None` if it is of sysctls.
    pub(crate) fn route(&self) -> Option<RoutePrefix> {
        self.routes.first().map(|entry| entry.prefix)
    }

    /// The first part about routes that Longhaul cannot have written.
    pub(super) fn check_routes(&self) -> Result<(), Damage> {
        let Some(prefix) = self.route() else { return Ok(()) };
        let is_other = |entry: &RouteEntry| entry.prefix != prefix;
        if self.schema != SCHEMA || !self.entries.is_empty() || self.routes.iter().any(is_other) {
            return Err(Damage::Mixed);
        }
        if self.routes.len() > MAX_ROUTES {
            return Err(Damage::Routes { prefix });
        }
        for (index, entry) in self.routes.iter().enumerate() {
            check_metrics(prefix, &entry.before)?;
            check_metrics(prefix, &entry.planned)?;
            let is_same = |one: &RouteEntry| one.priority == entry.priority;
            if self.routes.iter().take(index).any(is_same) {
                return Err(Damage::Routes { prefix });
            }
        }
        Ok(())
    }

    pub(super) fn check_planned_route(
        &self,
        prefix: RoutePrefix,
        priority: u32,
    ) -> Result<(), Damage> {
        let is_planned = |one: &RouteEntry| (one.prefix, one.priority) == (prefix, priority);
        match self.routes.iter().any(is_planned) {
            true => Ok(()),
            false => Err(Damage::RouteNotPlanned { prefix }),
        }
    }
}

impl Journal {
    /// The metrics that a route was given, or was to be given.
    pub(crate) fn route_set<'a>(&'a self, entry: &'a RouteEntry) -> &'a RouteMetrics {
        let read_back = self.routes.get(&(entry.prefix, entry.priority));
        read_back.and_then(Option::as_ref).unwrap_or(&entry.planned)
    }

    /// Returns true if the kernel refused a route.
    pub(crate) fn is_refused(&self, entry: &RouteEntry) -> bool {
        matches!(self.routes.get(&(entry.prefix, entry.priority)), Some(None))
    }
}

pub(super) fn check_metrics(prefix: RoutePrefix, metrics: &RouteMetrics) -> Result<(), Damage> {
    match metrics.is_valid() {
        true => Ok(()),
        false => Err(Damage::Metrics { prefix }),
    }
}
