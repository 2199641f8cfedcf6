//! Tuning the route to one destination: the plan, the result of applying it, and its rows in the
//! status and in a rollback.

use super::doctor::{SHELL, pasted};
use super::tune::{plural, row};
use super::{
    Style,
    line::{Line, block, labelled},
    settings, style,
};
use record::{
    AppliedRoute, Outcome, RevertOutcome, RevertedRoute, RouteChange, RouteMetrics,
    RoutePrediction, RoutePrefix, SettingStatus, TuneRouteApplied, TuneRoutePlan, WrittenRoute,
};

/// A plan for the route to one destination.
#[must_use]
pub fn tune_route_plan(plan: &TuneRoutePlan, style: &Style) -> String {
    let count = match plan.settings.len() {
        0 => "nothing to change".to_owned(),
        count => format!("{count} metric{}", plural(count)),
    };
    let mut lines = row(style, "Plan", style::PLAIN, &format!("{}; {count}", plan.goal));
    let change = match plan.change {
        RouteChange::Copy => "no route of its own; a copy gets the metrics: ",
        RouteChange::Metrics => "its own route gets the metrics: ",
    };
    lines.extend(row(style, "Route", style::PLAIN, &format!("{change}{}", plan.in_force)));
    for one in &plan.settings {
        lines.push(Line::new(style).to(2).put(style::STRONG, one.metric.name()));
        lines.extend(settings::diff(&one.now, &one.planned, &one.why, style));
        let risk = format!("Risk: {}", one.risk);
        lines.extend(labelled(style, 6, (style::DIM, ""), 6, (style::DIM, &risk)));
    }
    lines.push(Line::new(style));
    for one in &plan.predictions {
        lines.extend(prediction(one, style));
    }
    lines.extend(titled(
        "Unchanged",
        plan.left_out.iter().map(|one| format!("{}: {}", one.metric.name(), one.why)),
        style,
    ));
    lines.extend(titled("No route metric changes", plan.limits.iter().cloned(), style));
    for (title, commands) in [
        ("The same by hand", &plan.commands),
        (
            "On another host that sends to this prefix; the second command reverts it",
            &plan.other_hosts,
        ),
    ] {
        if !commands.is_empty() {
            lines.extend(titled(title, std::iter::empty(), style));
        }
        lines.extend(commands.iter().flat_map(|command| pasted(command, SHELL, style)));
    }
    if !plan.notes.is_empty() {
        lines.push(Line::new(style));
    }
    for note in &plan.notes {
        lines.extend(row(style, "Note", style::PLAIN, note));
    }
    block(lines)
}

/// A title and indented texts below it.
fn titled(title: &str, texts: impl Iterator<Item = String>, style: &Style) -> Vec<Line> {
    let mut lines = vec![Line::new(style)];
    lines.extend(labelled(style, 0, (style::STRONG, ""), 0, (style::STRONG, title)));
    for text in texts {
        lines.extend(labelled(style, 2, (style::DIM, ""), 4, (style::DIM, &text)));
    }
    lines
}

fn prediction(one: &RoutePrediction, style: &Style) -> Vec<Line> {
    let (what, from) = match one.bytes {
        Some(bytes) => (format!("a transfer of {bytes}"), "mean of "),
        None => ("a long transfer".to_owned(), ""),
    };
    let gain = match one.gain() {
        gain if gain < 1.005 => "no gain".to_owned(),
        gain => format!("x {gain:.*}", if gain < 10.0 { 2 } else { 1 }),
    };
    let text = format!(
        "{what} that this host sends: {from}{} now, {} with the plan ({gain})",
        one.before_bps, one.after_bps
    );
    let mut lines = row(style, "Predicted", style::PLAIN, &text);
    lines.extend(row(style, "", style::DIM, &one.why));
    lines
}

/// The result of applying a plan; `undo` is the command that reverts it.
#[must_use]
pub fn tune_route_applied(applied: &TuneRouteApplied, undo: &str, style: &Style) -> String {
    let set = applied.routes.iter().filter(|one| one.outcome != Outcome::Skipped).count();
    let verb = if applied.dry_run { "Would set" } else { "Set" };
    let count = match (set, applied.routes.len()) {
        (0, 0) => "nothing: the route has the planned metrics already".to_owned(),
        (set, all) if set == all => format!("the metrics of {set} route{}", plural(set)),
        (set, all) => format!("the metrics of {set} of {all} routes"),
    };
    let mut lines = row(style, verb, style::PLAIN, &count);
    for one in &applied.routes {
        lines.extend(written(one, style));
    }
    if let Some(journal) = &applied.journal {
        lines.extend(row(style, "Journal", style::PLAIN, journal));
        lines.extend(row(style, "Undo", style::PLAIN, undo));
    }
    block(lines)
}

/// The destination, with the route's own metric where it has one.
fn key(prefix: RoutePrefix, priority: u32) -> String {
    match priority {
        0 => prefix.to_string(),
        priority => format!("{prefix} metric {priority}"),
    }
}

fn marked(mark: &str, colour: anstyle::Style, text: &str, style: &Style) -> Vec<Line> {
    labelled(style, 2, (colour, mark), 4, (style::PLAIN, text))
}

fn written(one: &WrittenRoute, style: &Style) -> Vec<Line> {
    let key = key(one.prefix, one.priority);
    let copy = if one.change == RouteChange::Copy { ", a copy of the route in force" } else { "" };
    let (mark, colour, text) = match one.outcome {
        Outcome::Set => ("+", style::RUNS[1], format!("{key}: {}{copy}", one.now)),
        Outcome::Bounded => ("~", style::WARN, format!("{key}: {}{copy}; {}", one.now, one.note)),
        Outcome::Skipped => ("x", style::WARN, format!("{key} skipped: {}", one.note)),
    };
    marked(mark, colour, &text, style)
}

/// A route of an applied plan.
pub(super) fn status(one: &AppliedRoute, style: &Style) -> Vec<Line> {
    let key = key(one.prefix, one.priority);
    let now = one.now.as_ref().map_or("no such route".to_owned(), RouteMetrics::to_string);
    let set = &one.set;
    let (mark, colour, text) = match one.status {
        SettingStatus::AsSet => ("+", style::RUNS[1], format!("{key}: {set}")),
        SettingStatus::AsBefore => {
            ("=", style::DIM, format!("{key}: {now}, reverted; {set} was set"))
        }
        SettingStatus::Gone => ("=", style::DIM, format!("{key}: {now}; {set} is gone")),
        SettingStatus::Foreign => ("!", style::WARN, format!("{key}: {now}; was set to {set}")),
        SettingStatus::Unreadable => {
            ("!", style::WARN, format!("{key}: unreadable; {set} was set"))
        }
    };
    let mut lines = marked(mark, colour, &text, style);
    if let Some(stale) = &one.stale {
        let text = format!("Stale: {stale}; roll back and apply again to follow it");
        lines.extend(marked("!", style::WARN, &text, style));
    }
    lines
}

/// A route when reverted.
pub(super) fn reverted(one: &RevertedRoute, style: &Style) -> Vec<Line> {
    let (key, is_copy) = (key(one.prefix, one.priority), one.change == RouteChange::Copy);
    let found = one.found.as_ref().map_or_else(String::new, |found| format!(" ({found})"));
    let (mark, colour, what) = match one.state {
        RevertOutcome::Restored if is_copy => ("-", style::RUNS[0], "the copy is deleted".into()),
        RevertOutcome::Restored if one.before.is_empty() => {
            ("-", style::RUNS[0], "the metrics are removed".to_owned())
        }
        RevertOutcome::Restored => ("-", style::RUNS[0], format!("{} restored", one.before)),
        RevertOutcome::AsBefore if is_copy => ("=", style::DIM, "the copy is gone already".into()),
        RevertOutcome::AsBefore => ("=", style::DIM, "already as before".to_owned()),
        RevertOutcome::Overwritten => {
            ("!", style::WARN, format!("reverted, overwriting another program's metrics{found}"))
        }
        RevertOutcome::Left => ("!", style::WARN, format!("left unchanged{found}")),
        RevertOutcome::Gone => ("=", style::DIM, "the route no longer has the metrics".to_owned()),
        RevertOutcome::Failed => ("x", style::BAD, format!("not restored{found}")),
    };
    let note = if one.note.is_empty() { String::new() } else { format!("; {}", one.note) };
    marked(mark, colour, &format!("{key}: {what}{note}"), style)
}

#[cfg(test)]
pub(super) mod tests {
    use super::super::fit::{assert_fits, styles};
    use super::*;
    use record::{PlannedMetric, RouteMetric, SkippedMetric};

    fn metrics(congctl: &str, initcwnd: Option<u32>) -> RouteMetrics {
        RouteMetrics { congctl: Some(congctl.to_owned()), initcwnd, initrwnd: None }
    }

    fn prefix() -> RoutePrefix {
        "192.0.2.0/24".parse().unwrap()
    }

    pub(in super::super) fn undone(state: RevertOutcome) -> RevertedRoute {
        RevertedRoute {
            prefix: prefix(),
            priority: 100,
            change: RouteChange::Copy,
            found: Some(metrics("bbr", Some(44))),
            before: RouteMetrics::default(),
            state,
            note: "because … of µ".to_owned(),
        }
    }

    pub(in super::super) fn applied(status: SettingStatus) -> AppliedRoute {
        AppliedRoute {
            prefix: prefix(),
            priority: 100,
            change: RouteChange::Copy,
            before: RouteMetrics::default(),
            set: metrics("bbr", Some(44)),
            now: Some(metrics("cubic", None)),
            status,
            stale: Some("the route in force is now another".to_owned()),
        }
    }

    fn plan(settings: bool) -> TuneRoutePlan {
        let planned = PlannedMetric {
            metric: RouteMetric::Congctl,
            now: "cubic (the host's default)".to_owned(),
            planned: "bbr".to_owned(),
            why: "at 0.1 % loss cubic reaches 4 Mbit/s and BBR 90".to_owned(),
            risk: "unfair".to_owned(),
        };
        let command = |verb: &str| {
            format!(
                "sudo ip route {verb} 192.0.2.0/24 $(ip route get 192.0.2.1 | grep -oE 'dev a b')"
            )
        };
        let rate = |mbit: u64| units::BitRate::from_bps(mbit * 1_000_000);
        TuneRoutePlan {
            schema: String::new(),
            version: String::new(),
            goal: "100 Mbit/s over 173 ms to 192.0.2.0/24".to_owned(),
            prefix: prefix(),
            change: RouteChange::Copy,
            in_force: "default via 10.0.0.254 dev eth0 metric 100".to_owned(),
            metrics: metrics("bbr", None),
            settings: if settings { vec![planned] } else { Vec::new() },
            left_out: vec![SkippedMetric { metric: RouteMetric::Initrwnd, why: "lower".into() }],
            predictions: vec![
                RoutePrediction {
                    bytes: None,
                    before_bps: rate(4),
                    after_bps: rate(90),
                    why: "cubic: Mathis; bbr: link".to_owned(),
                },
                RoutePrediction {
                    bytes: Some(units::ByteCount::from_bytes(1_000_000)),
                    before_bps: rate(5),
                    after_bps: rate(5),
                    why: "cubic; cubic".to_owned(),
                },
            ],
            commands: if settings { vec![command("add")] } else { Vec::new() },
            other_hosts: if settings { vec![command("replace")] } else { Vec::new() },
            limits: vec!["the receive window".to_owned()],
            notes: vec!["the copy does not follow the route in force".to_owned()],
        }
    }

    #[test]
    fn a_plan_for_a_route_is_a_diff_with_predictions_and_commands() {
        for style in styles() {
            for settings in [true, false] {
                assert_fits(&tune_route_plan(&plan(settings), &style), &style);
            }
        }
        let wide = Style { colour: false, width: 200, unicode: true };
        let text = tune_route_plan(&plan(true), &wide);
        for part in [
            "192.0.2.0/24; 1 metric",
            "a copy gets the metrics: default via 10.0.0.254 dev eth0",
            "- cubic (the host's default)",
            "a long transfer that this host sends: 4 Mbit/s now, 90 Mbit/s with the plan (x 22.5)",
            "a transfer of 1 MB that this host sends: mean of 5 Mbit/s now, 5 Mbit/s",
            "5 Mbit/s now, 5 Mbit/s with the plan (no",
            "sudo ip route add 192.0.2.0/24 $(ip route get",
            "On another host",
        ] {
            assert!(text.contains(part), "{part}: {text}");
        }
        let idle = tune_route_plan(&plan(false), &wide);
        assert!(idle.contains("nothing to change") && !idle.contains("another host"), "{idle}");
    }

    const UNDO: &str = "longhaul tune rollback --route 192.0.2.0/24";

    #[test]
    fn every_outcome_of_an_apply_is_shown_and_fits() {
        let route = |outcome| WrittenRoute {
            prefix: prefix(),
            priority: 0,
            change: RouteChange::Copy,
            before: RouteMetrics::default(),
            now: metrics("bbr", Some(44)),
            outcome,
            note: "because".to_owned(),
        };
        let report = TuneRouteApplied {
            schema: String::new(),
            version: String::new(),
            plan: plan(true),
            journal: Some("/var/lib/longhaul/tune/000001.journal".to_owned()),
            routes: [Outcome::Set, Outcome::Bounded, Outcome::Skipped].map(route).to_vec(),
            dry_run: false,
        };
        for style in styles() {
            assert_fits(&tune_route_applied(&report, UNDO, &style), &style);
        }
        let wide = Style { colour: false, width: 200, unicode: true };
        let text = tune_route_applied(&report, UNDO, &wide);
        for part in [
            "the metrics of 2 of 3 routes",
            "+ 192.0.2.0/24: congctl bbr initcwnd 44, a copy of the route in force",
            "x 192.0.2.0/24 skipped: because",
            UNDO,
        ] {
            assert!(text.contains(part), "{part}: {text}");
        }
    }
}
