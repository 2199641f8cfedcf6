//! What changes while a lab runs.

use super::build::Paths;
use super::error::{PlanError, Problem};
use super::names::{listed, short};
use super::source::{At, Source};
use super::written::ChangeText;
use super::{ChangePlan, Plan, time};

/// The changes, earliest first; those of one moment as written.
pub(super) fn read(
    written: &[At<ChangeText>],
    plan: &Plan,
    source: &Source,
    paths: &mut Paths<'_, '_>,
) -> Result<Vec<ChangePlan>, PlanError> {
    let mut timed = Vec::with_capacity(written.len());
    for at in written {
        let moment = &at.value.at;
        let time =
            time::parse("at", &moment.value.0).map_err(|wrong| source.wrong(moment, wrong))?;
        if plan.duration.is_some_and(|end| time >= end) {
            return Err(source.wrong(moment, Problem::AfterTheEnd { what: "at" }));
        }
        timed.push((time, &at.value));
    }
    timed.sort_by_key(|(time, _)| *time);

    // Each change is made to what the ones before it left.
    let mut texts: Vec<String> = plan.links.iter().map(|link| link.text.clone()).collect();
    let mut changes = Vec::with_capacity(timed.len());
    for (at, ChangeText { link, set, .. }) in timed {
        let Some(number) = plan.link(&link.value) else {
            let known = listed(plan.links.iter().map(|link| link.name.as_str()), 12);
            let who = "the change".to_owned();
            let unknown = short(&link.value, 70);
            return Err(source.wrong(link, Problem::UnknownLink { who, link: unknown, known }));
        };
        let wrong = |reason: String| {
            source.wrong(set, Problem::Change { link: link.value.clone(), reason })
        };
        if set.value.trim().is_empty() {
            return Err(wrong("it sets nothing; write set = \"loss=1%\"".to_owned()));
        }
        let text = overlaid(&texts[number], &set.value);
        let path = paths.parse(&text).map_err(|error| wrong(error.to_string()))?;
        texts[number] = text;
        let (set, line) = (set.value.trim().to_owned(), source.line(set));
        changes.push(ChangePlan { at, link: number, set, path, line });
    }
    Ok(changes)
}

/// A link's text in which `set` takes the place of what it says of the same
/// keys: `rate=1gbit,rtt=9ms` and `rate=2mbit` are `rtt=9ms,rate=2mbit`.
fn overlaid(base: &str, set: &str) -> String {
    let key = |part: &str| part.split_once('=').map(|(key, _)| key.trim().to_owned());
    let set_keys: Vec<String> = set.split(',').filter_map(key).collect();
    let kept = base.split(',').filter(|part| key(part).is_none_or(|key| !set_keys.contains(&key)));
    let parts = kept.chain(set.split(',')).map(str::trim).filter(|part| !part.is_empty());
    parts.collect::<Vec<_>>().join(",")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_set_takes_the_place_of_what_was() {
        assert_eq!(overlaid("rate=1gbit, rtt=9ms", "rate=2mbit"), "rtt=9ms,rate=2mbit");
        assert_eq!(overlaid("geo,loss=1%", "loss=2%,rtt=1ms"), "geo,loss=2%,rtt=1ms");
        assert_eq!(overlaid("geo", "loss=2%"), "geo,loss=2%");
        // A key that stands twice in one change is for the path's reader to refuse.
        assert_eq!(overlaid("geo", "loss=2%,loss=3%"), "geo,loss=2%,loss=3%");
    }
}
