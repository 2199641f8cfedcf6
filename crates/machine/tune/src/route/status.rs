//! The status of routes of applied plans.

use super::find::{Keyed, stale};
use crate::Tuner;
use crate::journal::{Journal, RouteEntry};
use host::kernel_route::KernelRoute;
use record::{AppliedRoute, RouteChange, SettingStatus};

impl Tuner<'_> {
    /// The previous metrics of `later` plans are the present ones of this plan.
    pub(crate) fn applied_routes(
        &self,
        journal: &Journal,
        later: &[Journal],
        gone: bool,
    ) -> Vec<AppliedRoute> {
        let entries = journal.begun.routes.iter();
        let held = entries.filter(|entry| !journal.is_refused(entry));
        held.map(|entry| self.applied_route(journal, entry, later, gone)).collect()
    }

    fn applied_route(
        &self,
        journal: &Journal,
        entry: &RouteEntry,
        later: &[Journal],
        gone: bool,
    ) -> AppliedRoute {
        let &RouteEntry { prefix, priority, change, .. } = entry;
        let (before, set) = (entry.restored(), journal.route_set(entry).clone());
        let all = self.routes.around(prefix);
        let keyed = all.as_ref().map_or(Keyed::None, |all| Keyed::of(all, prefix, priority));
        let route = keyed.one();
        let now = route.map(KernelRoute::tcp_metrics);
        let mut found = later.iter().flat_map(|journal| &journal.begun.routes);
        let found = found.find(|one| (one.prefix, one.priority) == (prefix, priority));
        let was = found.map(|one| one.before.clone()).or_else(|| now.clone());
        let is_own = route.is_some_and(KernelRoute::is_own);
        let status = match &was {
            _ if all.is_err() => SettingStatus::Unreadable,
            _ if matches!(keyed, Keyed::Several) => SettingStatus::Foreign,
            None => SettingStatus::Gone,
            Some(_) if change == RouteChange::Copy && !is_own => SettingStatus::Foreign,
            Some(was) if *was == set => SettingStatus::AsSet,
            Some(was) if change == RouteChange::Metrics && *was == before => {
                SettingStatus::AsBefore
            }
            Some(_) if gone => SettingStatus::Gone,
            Some(_) => SettingStatus::Foreign,
        };
        let stale = all.as_ref().ok().zip(route).and_then(|(all, route)| stale(route, all));
        AppliedRoute { prefix, priority, change, before, set, now, status, stale }
    }
}
