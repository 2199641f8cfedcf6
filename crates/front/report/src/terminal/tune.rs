//! Tuning a host: the plan, the result of applying and rolling it back, and the
//! status of applied plans.

use super::{
    Style,
    line::{Line, block, labelled},
    settings, style, tune_route,
};
use crate::calendar;
use record::{
    AppliedPlan, AppliedSetting, OtherNetwork, Outcome, RevertOutcome, RevertedSetting,
    SettingStatus, TuneApplied, TunePlan, TuneRollback, TuneStatus,
};

/// Column of the texts.
const COLUMN: usize = 10;

/// A plan for one host.
#[must_use]
pub fn tune_plan(plan: &TunePlan, style: &Style) -> String {
    let count = match plan.settings.len() {
        0 => "nothing to change".to_owned(),
        1 => "1 setting".to_owned(),
        many => format!("{many} settings"),
    };
    let mut lines = row(style, "Plan", style::PLAIN, &format!("{}; {count}", plan.goal));
    for setting in &plan.settings {
        lines.extend(settings::planned(setting, style));
    }
    for (heading, settings) in [("Skipped", &plan.left_out), ("Unchanged", &plan.unchanged)] {
        if settings.is_empty() {
            continue;
        }
        lines.push(Line::new(style));
        lines.push(Line::new(style).put(style::STRONG, heading));
        for one in settings {
            lines.push(Line::new(style).to(2).put(style::STRONG, &one.key));
            lines.extend(labelled(style, 4, (style::DIM, ""), 6, (style::DIM, &one.why)));
        }
    }
    lines.push(Line::new(style));
    lines.extend(ceiling(plan, style));
    lines.extend(row(style, "Memory", style::PLAIN, &memory(plan)));
    for note in &plan.notes {
        lines.extend(row(style, "Note", style::PLAIN, note));
    }
    block(lines)
}

pub(super) fn row(style: &Style, label: &str, text_style: anstyle::Style, text: &str) -> Vec<Line> {
    labelled(style, 0, (style::STRONG, label), COLUMN, (text_style, text))
}

fn ceiling(plan: &TunePlan, style: &Style) -> Vec<Line> {
    let text = match (plan.carries_now_bps, plan.carries_then_bps) {
        (Some(now), Some(then)) if now == then => {
            format!("the buffers limit one connection to {now}")
        }
        (Some(now), Some(then)) => {
            format!("the buffers limit one connection to {now} now, to {then} with the plan")
        }
        _ => return Vec::new(),
    };
    row(style, "Rate", style::PLAIN, &text)
}

fn memory(plan: &TunePlan) -> String {
    let cost = &plan.memory;
    let mut text =
        format!("at most {} per connection with both buffers full", cost.per_connection_bytes);
    if cost.connections > 1 {
        text += &format!("; {} for {} connections", cost.together_bytes, cost.connections);
    }
    if let (Some(pressure), Some(limit)) = (cost.pressure_bytes, cost.limit_bytes) {
        text += &format!(
            "; the kernel shrinks TCP buffers above {pressure} in total and allows {limit} (tcp_mem)"
        );
    }
    if let Some(machine) = cost.machine_bytes {
        text += &format!("; the host has {machine}");
    }
    text
}

/// The result of applying a plan; `undo` is the command that reverts it.
#[must_use]
pub fn tune_applied(applied: &TuneApplied, undo: &str, style: &Style) -> String {
    let set = applied.settings.iter().filter(|one| one.outcome != Outcome::Skipped).count();
    let verb = if applied.dry_run { "Would set" } else { "Set" };
    let count = match (set, applied.settings.len()) {
        (0, 0) => "nothing: all settings already have their planned values".to_owned(),
        (set, all) if set == all => format!("{set} setting{}", plural(set)),
        (set, all) => format!("{set} of {all} settings"),
    };
    let mut lines = row(style, verb, style::PLAIN, &count);
    for one in &applied.settings {
        lines.extend(settings::written(one, style));
    }
    if let Some(file) = &applied.persisted {
        lines.extend(row(style, "At boot", style::PLAIN, file));
    }
    for note in &applied.notes {
        lines.extend(row(style, "Note", style::PLAIN, note));
    }
    if let Some(journal) = &applied.journal {
        lines.extend(row(style, "Journal", style::PLAIN, journal));
        lines.extend(row(style, "Undo", style::PLAIN, undo));
    }
    block(lines)
}

pub(super) fn plural(count: usize) -> &'static str {
    if count == 1 { "" } else { "s" }
}

/// The result of a rollback.
#[must_use]
pub fn tune_rolled_back(undone: &TuneRollback, style: &Style) -> String {
    let count = match undone.undone {
        0 if undone.remain == 0 => "no plan is applied".to_owned(),
        0 => "not all settings were restored".to_owned(),
        many => format!("{many} plan{} rolled back", plural(many)),
    };
    let remain = match undone.remain {
        0 => String::new(),
        _ if undone.undone == 0 => String::new(),
        many => format!("; {many} still applied (--all rolls back all)"),
    };
    let mut lines = row(style, "Rollback", style::PLAIN, &(count + &remain));
    for one in &undone.settings {
        lines.extend(restored(one, style));
    }
    for one in &undone.routes {
        lines.extend(tune_route::reverted(one, style));
    }
    for note in &undone.notes {
        lines.extend(row(style, "Note", style::PLAIN, note));
    }
    block(lines)
}

fn restored(one: &RevertedSetting, style: &Style) -> Vec<Line> {
    let (mark, colour, what) = match one.state {
        RevertOutcome::Restored => ("-", style::RUNS[0], "restored"),
        RevertOutcome::AsBefore => ("=", style::DIM, "already at the previous value"),
        RevertOutcome::Overwritten => {
            ("!", style::WARN, "restored, overwriting another program's value")
        }
        RevertOutcome::Left => ("!", style::WARN, "left unchanged"),
        RevertOutcome::Gone => ("=", style::DIM, "gone since the last boot"),
        RevertOutcome::Failed => ("x", style::BAD, "not restored"),
    };
    let mut text = match (&one.before, &one.found, one.state) {
        (Some(before), _, RevertOutcome::Restored | RevertOutcome::AsBefore) => {
            format!("{} = {before}: {what}", one.key)
        }
        (Some(before), Some(found), RevertOutcome::Overwritten) => {
            format!("{} = {before}: {what} {found}", one.key)
        }
        (_, Some(found), RevertOutcome::Left | RevertOutcome::Failed) => {
            format!("{} = {found}: {what}", one.key)
        }
        _ => format!("{}: {what}", one.key),
    };
    if !one.note.is_empty() {
        text += &format!("; {}", one.note);
    }
    labelled(style, 2, (colour, mark), 4, (style::PLAIN, &text))
}

/// The plans applied, and the status of each setting.
#[must_use]
pub fn tune_status(status: &TuneStatus, style: &Style) -> String {
    let mut lines = Vec::new();
    if status.applied.is_empty() {
        lines.extend(row(style, "Applied", style::PLAIN, "nothing"));
    }
    for (index, holding) in status.applied.iter().enumerate() {
        if index > 0 {
            lines.push(Line::new(style));
        }
        lines.extend(applied_plan(holding, status.at_s, style));
    }
    for OtherNetwork { journal, network } in &status.other_networks {
        let text = format!("{journal} belongs to another network namespace (net:[{network}])");
        lines.extend(row(style, "Note", style::DIM, &text));
    }
    block(lines)
}

fn applied_plan(holding: &AppliedPlan, now_s: u64, style: &Style) -> Vec<Line> {
    let mut lines = row(style, "Applied", style::STRONG, &holding.goal);
    let age = age(now_s.saturating_sub(holding.since_s));
    lines.extend(row(
        style,
        "Since",
        style::PLAIN,
        &format!("{}, {age} ago", calendar::utc(holding.since_s)),
    ));
    if holding.earlier_boot {
        let text = "applied before the last boot: values that no file sets at boot are gone";
        lines.extend(row(style, "", style::WARN, text));
    } else if holding.interrupted {
        let text = "interrupted while it was applied: revert it with longhaul tune rollback";
        lines.extend(row(style, "", style::WARN, text));
    }
    for one in &holding.settings {
        lines.extend(setting_status(one, style));
    }
    for one in &holding.routes {
        lines.extend(tune_route::status(one, style));
    }
    if let Some(file) = &holding.file {
        let how = match file.status {
            SettingStatus::AsSet => "unchanged",
            SettingStatus::AsBefore | SettingStatus::Gone => "reverted",
            SettingStatus::Foreign => "changed by another program",
            SettingStatus::Unreadable => "unreadable",
        };
        lines.extend(row(style, "At boot", style::PLAIN, &format!("{}: {how}", file.path)));
    }
    lines.extend(row(style, "Journal", style::DIM, &holding.journal));
    lines
}

fn setting_status(one: &AppliedSetting, style: &Style) -> Vec<Line> {
    let now = one.now.as_deref().unwrap_or("unreadable");
    let (mark, colour, text) = match one.status {
        SettingStatus::AsSet => ("+", style::RUNS[1], format!("{} = {}", one.key, one.set)),
        SettingStatus::AsBefore => {
            ("=", style::DIM, format!("{} = {now}, reverted; {} was set", one.key, one.set))
        }
        SettingStatus::Gone => (
            "=",
            style::DIM,
            format!("{} = {now}; {} is gone since the last boot", one.key, one.set),
        ),
        SettingStatus::Foreign | SettingStatus::Unreadable => (
            "!",
            style::WARN,
            format!("{} = {now}; was set to {} (before: {})", one.key, one.set, one.before),
        ),
    };
    labelled(style, 2, (colour, mark), 4, (style::PLAIN, &text))
}

fn age(seconds: u64) -> String {
    match seconds {
        0..120 => format!("{seconds} s"),
        120..7_200 => format!("{} min", seconds / 60),
        7_200..172_800 => format!("{} h", seconds / 3_600),
        _ => format!("{} days", seconds / 86_400),
    }
}

#[cfg(test)]
mod tests {
    use super::super::fit::{assert_fits, styles};
    use super::*;

    const KEY: &str = "net.ipv4.tcp_rmem";

    fn undone(state: RevertOutcome, note: &str) -> RevertedSetting {
        let (found, before) = (Some("1 2 3".to_owned()), Some("4 5 6".to_owned()));
        RevertedSetting { key: KEY.to_owned(), found, before, state, note: note.to_owned() }
    }

    #[test]
    fn every_outcome_of_a_rollback_is_shown_and_fits() {
        use RevertOutcome::{AsBefore, Failed, Gone, Left, Overwritten, Restored};
        let all = [Restored, AsBefore, Overwritten, Left, Gone, Failed];
        let report = TuneRollback {
            schema: String::new(),
            version: String::new(),
            undone: 1,
            remain: 1,
            settings: all.map(|state| undone(state, "because … of µ")).to_vec(),
            routes: all.map(tune_route::tests::undone).to_vec(),
            notes: vec!["a note that goes on for a while, so that it has to be wrapped".into()],
        };
        for style in styles() {
            assert_fits(&tune_rolled_back(&report, &style), &style);
        }
        let text = tune_rolled_back(&report, &Style { colour: false, width: 200, unicode: true });
        for part in [
            "1 plan rolled back; 1 still applied",
            "- net.ipv4.tcp_rmem = 4 5 6: restored",
            "! net.ipv4.tcp_rmem = 4 5 6: restored, overwriting another program's value 1 2 3",
            "! net.ipv4.tcp_rmem = 1 2 3: left unchanged; because",
            "x net.ipv4.tcp_rmem = 1 2 3: not restored",
            "- 192.0.2.0/24 metric 100: the copy is deleted",
            "! 192.0.2.0/24 metric 100: left unchanged",
        ] {
            assert!(text.contains(part), "{part}: {text}");
        }
    }

    #[test]
    fn every_status_is_shown_and_fits() {
        use SettingStatus::{AsBefore, AsSet, Foreign, Gone, Unreadable};
        let held = |status| AppliedSetting {
            key: KEY.to_owned(),
            before: "4 5 6".to_owned(),
            set: "7 8 9".to_owned(),
            now: (status != Unreadable).then(|| "1 2 3".to_owned()),
            status,
        };
        let holding = |interrupted, earlier_boot| AppliedPlan {
            goal: "10 Gbit/s over 200 ms".to_owned(),
            since_s: 0,
            journal: "/var/lib/longhaul/000001.journal".to_owned(),
            interrupted,
            earlier_boot,
            settings: [AsSet, AsBefore, Foreign, Gone, Unreadable].map(held).to_vec(),
            routes: [AsSet, AsBefore, Foreign, Gone, Unreadable]
                .map(tune_route::tests::applied)
                .to_vec(),
            file: None,
        };
        let status = TuneStatus {
            schema: String::new(),
            version: String::new(),
            at_s: 7_200,
            other_networks: vec![OtherNetwork { journal: "j".to_owned(), network: 42 }],
            applied: vec![holding(true, false), holding(false, true)],
        };
        for style in styles() {
            assert_fits(&tune_status(&status, &style), &style);
        }
        let text = tune_status(&status, &Style { colour: false, width: 200, unicode: true });
        for part in [
            "1970-01-01 00:00 UTC, 2 h ago",
            "interrupted while it was applied",
            "before the last boot",
            "+ net.ipv4.tcp_rmem = 7 8 9",
            "! net.ipv4.tcp_rmem = 1 2 3; was set to 7 8 9 (before: 4 5 6)",
            "! net.ipv4.tcp_rmem = unreadable",
            "j belongs to another network namespace (net:[42])",
            "+ 192.0.2.0/24 metric 100: congctl bbr initcwnd 44",
            "! 192.0.2.0/24 metric 100: congctl cubic; was set to congctl bbr initcwnd 44",
            "! Stale: the route in force is now another",
        ] {
            assert!(text.contains(part), "{part}: {text}");
        }
    }

    #[test]
    fn ages_are_short() {
        assert_eq!(age(119), "119 s");
        assert_eq!(age(120), "2 min");
        assert_eq!(age(7_200), "2 h");
        assert_eq!(age(172_800), "2 days");
    }
}
