//! Reverts routes from their journal, which has the prefix and the metrics only.
//!
//! A copy is deleted if the kernel has it as Longhaul's; another route to the prefix stays. Of the
//! prefix's own route the present one is written again with its previous metrics.

use super::find::Keyed;
use crate::journal::{Journal, RouteEntry};
use crate::undo::{Decide, changed_by_others};
use crate::{Decision, Foreign, Tuner};
use host::kernel_route::KernelRoute;
use record::{RevertOutcome, RevertedRoute, RouteChange, RouteMetrics};
use std::io;

impl Tuner<'_> {
    pub(crate) fn undo_route(
        &self,
        journal: &Journal,
        entry: &RouteEntry,
        gone: bool,
        decide: Decide<'_>,
        refusal: &mut Option<io::Error>,
    ) -> RevertedRoute {
        let &RouteEntry { prefix, priority, change, .. } = entry;
        let before = entry.restored();
        let end = |found: Option<RouteMetrics>, state, note: String| {
            let before = before.clone();
            RevertedRoute { prefix, priority, change, found, before, state, note }
        };
        let failed = |found, error: &io::Error| {
            end(found, RevertOutcome::Failed, format!("cannot restore it: {error}"))
        };
        let all = match self.routes.around(prefix) {
            Ok(all) => all,
            Err(error) => return failed(None, &error),
        };
        let route = match Keyed::of(&all, prefix, priority) {
            Keyed::One(route) => route,
            Keyed::None => {
                // Of a copy nothing is left to revert; a route that is gone has no metrics.
                let state = match change {
                    RouteChange::Copy => RevertOutcome::AsBefore,
                    RouteChange::Metrics => RevertOutcome::Gone,
                };
                return end(None, state, String::new());
            }
            Keyed::Several => {
                let why = io::Error::other(
                    "another program has added a route to the prefix with the same metric; delete \
                     that one with ip route del",
                );
                return failed(None, &why);
            }
        };
        let now = route.tcp_metrics();
        if change == RouteChange::Copy && !route.is_own() {
            let note = "another program's route has taken the place of the copy, and stays";
            return end(Some(now), RevertOutcome::AsBefore, note.to_owned());
        }
        if change == RouteChange::Metrics && now == before {
            return end(Some(now), RevertOutcome::AsBefore, String::new());
        }
        let set = journal.route_set(entry);
        let ours = now == *set;
        if gone && !(ours && route.is_own()) {
            return end(Some(now), RevertOutcome::Gone, String::new());
        }
        if !ours {
            let key = format!("the route to {prefix} (metric {priority})");
            let texts = [&now, set, &before].map(ToString::to_string);
            let [found, wanted, earlier] = &texts;
            let foreign =
                Foreign { key: &key, now: Some(found), set: Some(wanted), before: Some(earlier) };
            match decide(&foreign) {
                Decision::Overwrite => {}
                Decision::Accept => return end(Some(now), RevertOutcome::Left, String::new()),
                Decision::Keep => {
                    let note = changed_by_others(Some(wanted));
                    return end(Some(now), RevertOutcome::Left, note);
                }
            }
        }
        match self.restore_route(change, route, &before) {
            Ok(()) if ours => end(Some(now), RevertOutcome::Restored, String::new()),
            Ok(()) => end(Some(now), RevertOutcome::Overwritten, String::new()),
            Err(error) => {
                let end = failed(Some(now), &error);
                refusal.get_or_insert(error);
                end
            }
        }
    }

    /// Deletes a copy, or writes the present route with its previous metrics.
    fn restore_route(
        &self,
        change: RouteChange,
        route: &KernelRoute,
        before: &RouteMetrics,
    ) -> io::Result<()> {
        let why = match change {
            RouteChange::Copy => route.not_copyable(),
            RouteChange::Metrics => route.unsupported(),
        };
        if let Some(why) = why {
            return Err(io::Error::other(why));
        }
        if change == RouteChange::Copy {
            return self.routes.delete(route);
        }
        self.routes.replace(&route.with_tcp_metrics(before))?;
        let all = self.routes.around(route.prefix())?;
        let now = Keyed::of(&all, route.prefix(), route.priority()).one();
        match now.map(KernelRoute::tcp_metrics) {
            Some(now) if now == *before => Ok(()),
            Some(now) => Err(io::Error::other(format!("written, but it has {now}"))),
            None => Err(io::Error::other("written, but the route is gone")),
        }
    }
}
