//! The changes while a lab runs.

use super::build::Paths;
use super::error::{PlanError, Problem};
use super::names::listed;
use super::source::Source;
use super::written::ChangeText;
use super::{ChangePlan, Plan, time};
use crate::PathSpec;
use crate::toml_text::{Spanned, short};

/// The changes, earliest first; those of one moment as written.
pub(super) fn read(
    written: &[Spanned<ChangeText>],
    plan: &Plan,
    source: &Source<'_>,
    paths: &mut Paths<'_, '_>,
) -> Result<Vec<ChangePlan>, PlanError> {
    let mut timed = Vec::with_capacity(written.len());
    for at in written {
        let moment = &at.get_ref().at;
        let time = time::parse("at", &moment.get_ref().0)
            .map_err(|wrong| source.error_at(moment, wrong))?;
        if plan.duration.is_some_and(|end| time >= end) {
            return Err(source.error_at(moment, Problem::AfterTheEnd { what: "at" }));
        }
        timed.push((time, at.get_ref()));
    }
    timed.sort_by_key(|(time, _)| *time);

    // Each change is made to what the ones before it left.
    let mut now: Vec<PathSpec> = plan.links.iter().map(|link| link.path.clone()).collect();
    let mut changes = Vec::with_capacity(timed.len());
    for (at, ChangeText { link, set, .. }) in timed {
        let Some(number) = plan.link(link.get_ref()) else {
            let known = listed(plan.links.iter().map(|link| link.name.as_str()), 12);
            let who = "the change".to_owned();
            let unknown = short(link.get_ref(), 70);
            return Err(source.error_at(link, Problem::UnknownLink { who, link: unknown, known }));
        };
        let wrong = |reason: String| {
            source.error_at(set, Problem::Change { link: link.get_ref().clone(), reason })
        };
        if set.get_ref().trim().is_empty() {
            return Err(wrong("set is empty; write set = \"loss=1%\"".to_owned()));
        }
        // Since when would such a time count?
        if set.get_ref().split(',').any(|part| part.trim().starts_with('@')) {
            return Err(wrong("the time is given by at; omit @".to_owned()));
        }
        let path = paths.change(&now[number], set.get_ref());
        let path = path.map_err(|error| wrong(error.to_string()))?;
        if path.mtu() != now[number].mtu() {
            let reason = "mtu belongs to the devices and cannot change; up.mtu and down.mtu can";
            return Err(wrong(reason.to_owned()));
        }
        now[number] = path.clone();
        let (set, line) = (set.get_ref().trim().to_owned(), source.line(set));
        changes.push(ChangePlan { at, link: number, set, path, line });
    }
    Ok(changes)
}
