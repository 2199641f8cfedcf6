//! Tuning a host: the plan as a diff, what came of it, of undoing it, and what
//! is in force.

use super::{
    Style, ink,
    line::{Line, block, labelled},
};
use record::{
    Held, Holding, Outcome, PlannedSetting, Standing, State, TuneApplied, TunePlan, TuneStatus,
    TuneUndone, Undone, Written,
};

/// Where texts stand beside their labels.
const COLUMN: usize = 10;

/// A plan for one host.
#[must_use]
pub fn tune_plan(plan: &TunePlan, style: &Style) -> String {
    let count = match plan.settings.len() {
        0 => "nothing to change".to_owned(),
        1 => "1 setting".to_owned(),
        many => format!("{many} settings"),
    };
    let mut lines = row(style, "Plan", ink::PLAIN, &format!("{}; {count}", plan.goal));
    for setting in &plan.settings {
        lines.extend(change(setting, style));
    }
    if !plan.left_out.is_empty() {
        lines.push(Line::new(style));
        lines.push(Line::new(style).put(ink::STRONG, "Left out"));
        for left in &plan.left_out {
            lines.push(Line::new(style).to(2).put(ink::STRONG, &left.key));
            lines.extend(labelled(style, 4, (ink::DIM, ""), 6, (ink::DIM, &left.why)));
        }
    }
    lines.push(Line::new(style));
    lines.extend(carries(plan, style));
    lines.extend(row(style, "Memory", ink::PLAIN, &memory(plan)));
    for note in &plan.notes {
        lines.extend(row(style, "Note", ink::PLAIN, note));
    }
    block(lines)
}

fn row(style: &Style, label: &str, ink: anstyle::Style, text: &str) -> Vec<Line> {
    labelled(style, 0, (ink::STRONG, label), COLUMN, (ink, text))
}

fn change(setting: &PlannedSetting, style: &Style) -> Vec<Line> {
    let mut lines = vec![Line::new(style).to(2).put(ink::STRONG, &setting.key)];
    lines.extend(labelled(style, 4, (ink::RUNS[0], "-"), 6, (ink::RUNS[0], &setting.now)));
    lines.extend(labelled(style, 4, (ink::RUNS[1], "+"), 6, (ink::RUNS[1], &setting.planned)));
    lines.extend(labelled(style, 6, (ink::DIM, ""), 6, (ink::DIM, &setting.why)));
    let risk = format!("Risk: {}", setting.risk);
    lines.extend(labelled(style, 6, (ink::DIM, ""), 6, (ink::DIM, &risk)));
    lines
}

fn carries(plan: &TunePlan, style: &Style) -> Vec<Line> {
    let text = match (plan.carries_now_bps, plan.carries_then_bps) {
        (Some(now), Some(then)) if now == then => format!("the buffers allow one connection {now}"),
        (Some(now), Some(then)) => {
            format!("the buffers allow one connection {now} now, {then} with the plan")
        }
        _ => return Vec::new(),
    };
    row(style, "Carries", ink::PLAIN, &text)
}

fn memory(plan: &TunePlan) -> String {
    let cost = &plan.memory;
    let mut text = format!("at most {} a connection, both ways full", cost.per_connection_bytes);
    if cost.connections > 1 {
        text += &format!("; {} for {}", cost.together_bytes, cost.connections);
    }
    if let (Some(pressure), Some(limit)) = (cost.pressure_bytes, cost.limit_bytes) {
        text += &format!(
            "; TCP as a whole shrinks buffers from {pressure} on and ends at {limit} (tcp_mem)"
        );
    }
    if let Some(machine) = cost.machine_bytes {
        text += &format!("; the machine has {machine}");
    }
    text
}

/// What came of applying a plan; `undo` is the command that undoes it.
#[must_use]
pub fn tuned(applied: &TuneApplied, undo: &str, style: &Style) -> String {
    let set = applied.settings.iter().filter(|one| one.outcome != Outcome::Skipped).count();
    let verb = if applied.dry_run { "Would set" } else { "Set" };
    let count = match (set, applied.settings.len()) {
        (0, 0) => "nothing: all is as planned".to_owned(),
        (set, all) if set == all => format!("{set} setting{}", plural(set)),
        (set, all) => format!("{set} of {all} settings"),
    };
    let mut lines = row(style, verb, ink::PLAIN, &count);
    for one in &applied.settings {
        lines.extend(written(one, style));
    }
    if let Some(file) = &applied.persisted {
        lines.extend(row(style, "At boot", ink::PLAIN, file));
    }
    for note in &applied.notes {
        lines.extend(row(style, "Note", ink::PLAIN, note));
    }
    if let Some(journal) = &applied.journal {
        lines.extend(row(style, "Journal", ink::PLAIN, journal));
        lines.extend(row(style, "Undo", ink::PLAIN, undo));
    }
    block(lines)
}

fn plural(count: usize) -> &'static str {
    if count == 1 { "" } else { "s" }
}

fn written(one: &Written, style: &Style) -> Vec<Line> {
    let (mark, colour) = match one.outcome {
        Outcome::Set => ("+", ink::RUNS[1]),
        Outcome::Bounded => ("~", ink::WARN),
        Outcome::Skipped => ("x", ink::WARN),
    };
    let text = match one.outcome {
        Outcome::Set => format!("{} = {}", one.key, one.now),
        Outcome::Bounded => format!("{} = {}: {}", one.key, one.now, one.note),
        Outcome::Skipped => format!("{} skipped: {}", one.key, one.note),
    };
    labelled(style, 2, (colour, mark), 4, (ink::PLAIN, &text))
}

/// What came of undoing.
#[must_use]
pub fn untuned(undone: &TuneUndone, style: &Style) -> String {
    let count = match undone.undone {
        0 if undone.remain == 0 => "nothing is applied".to_owned(),
        0 => "not all is as before".to_owned(),
        many => format!("{many} plan{} undone", plural(many)),
    };
    let remain = match undone.remain {
        0 => String::new(),
        _ if undone.undone == 0 => String::new(),
        many => format!("; {many} still applied (--all undoes all)"),
    };
    let mut lines = row(style, "Rollback", ink::PLAIN, &(count + &remain));
    for one in &undone.settings {
        lines.extend(put_back(one, style));
    }
    for note in &undone.notes {
        lines.extend(row(style, "Note", ink::PLAIN, note));
    }
    block(lines)
}

fn put_back(one: &Undone, style: &Style) -> Vec<Line> {
    let (mark, colour, what) = match one.state {
        State::Restored => ("-", ink::RUNS[0], "put back"),
        State::AsBefore => ("=", ink::DIM, "already as before"),
        State::Overwritten => ("!", ink::WARN, "overwrote someone else's value"),
        State::Left => ("!", ink::WARN, "left as it is"),
        State::Gone => ("=", ink::DIM, "gone with the last boot"),
        State::Failed => ("x", ink::BAD, "not put back"),
    };
    let mut text = match (&one.before, &one.found, one.state) {
        (Some(before), _, State::Restored | State::AsBefore) => {
            format!("{} = {before}: {what}", one.key)
        }
        (Some(before), Some(found), State::Overwritten) => {
            format!("{} = {before}: {what} {found}", one.key)
        }
        (_, Some(found), State::Left | State::Failed) => format!("{} = {found}: {what}", one.key),
        _ => format!("{}: {what}", one.key),
    };
    if !one.note.is_empty() {
        text += &format!("; {}", one.note);
    }
    labelled(style, 2, (colour, mark), 4, (ink::PLAIN, &text))
}

/// What is in force.
#[must_use]
pub fn tune_status(status: &TuneStatus, style: &Style) -> String {
    if status.applied.is_empty() {
        return block(row(style, "Applied", ink::PLAIN, "nothing"));
    }
    let mut lines = Vec::new();
    for (index, holding) in status.applied.iter().enumerate() {
        if index > 0 {
            lines.push(Line::new(style));
        }
        lines.extend(held(holding, status.at_s, style));
    }
    block(lines)
}

fn held(holding: &Holding, now_s: u64, style: &Style) -> Vec<Line> {
    let mut lines = row(style, "Applied", ink::STRONG, &holding.goal);
    let age = age(now_s.saturating_sub(holding.since_s));
    lines.extend(row(style, "Since", ink::PLAIN, &format!("{}, {age} ago", date(holding.since_s))));
    if holding.earlier_boot {
        let text = "before the last boot, which took the values that no file sets again";
        lines.extend(row(style, "", ink::WARN, text));
    } else if holding.broken_off {
        let text = "broken off before its end: longhaul tune rollback undoes it";
        lines.extend(row(style, "", ink::WARN, text));
    }
    for one in &holding.settings {
        lines.extend(stands(one, style));
    }
    if let Some(file) = &holding.file {
        let how = match file.standing {
            Standing::AsSet => "as written",
            Standing::AsBefore | Standing::Gone => "as before",
            Standing::Foreign => "changed by someone else",
            Standing::Unreadable => "cannot be read",
        };
        lines.extend(row(style, "At boot", ink::PLAIN, &format!("{}: {how}", file.path)));
    }
    lines.extend(row(style, "Journal", ink::DIM, &holding.journal));
    lines
}

fn stands(one: &Held, style: &Style) -> Vec<Line> {
    let now = one.now.as_deref().unwrap_or("nothing that can be read");
    let (mark, colour, text) = match one.standing {
        Standing::AsSet => ("+", ink::RUNS[1], format!("{} = {}", one.key, one.set)),
        Standing::AsBefore => {
            ("=", ink::DIM, format!("{} = {now}, as before; {} was set", one.key, one.set))
        }
        Standing::Gone => ("=", ink::DIM, format!("{} = {now}; {} is gone", one.key, one.set)),
        Standing::Foreign | Standing::Unreadable => (
            "!",
            ink::WARN,
            format!("{} = {now}; {} was set, {} before", one.key, one.set, one.before),
        ),
    };
    labelled(style, 2, (colour, mark), 4, (ink::PLAIN, &text))
}

fn age(seconds: u64) -> String {
    match seconds {
        0..120 => format!("{seconds} s"),
        120..7_200 => format!("{} min", seconds / 60),
        7_200..172_800 => format!("{} h", seconds / 3_600),
        _ => format!("{} days", seconds / 86_400),
    }
}

/// A date of the proleptic Gregorian calendar, UTC. Years begin in March, so
/// that the day that comes and goes is the last; 400 of them have 146097 days.
fn date(unix_s: u64) -> String {
    let (days, time) = (unix_s / 86_400 + 719_468, unix_s % 86_400);
    let (era, day) = (days / 146_097, days % 146_097);
    let year = (day - day / 1_460 + day / 36_524 - day / 146_096) / 365;
    let day = day - (365 * year + year / 4 - year / 100);
    let month = (5 * day + 2) / 153;
    let day = day - (153 * month + 2) / 5 + 1;
    let month = if month < 10 { month + 3 } else { month - 9 };
    let year = era * 400 + year + u64::from(month <= 2);
    format!("{year:04}-{month:02}-{day:02} {:02}:{:02} UTC", time / 3_600, time / 60 % 60)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_are_those_of_the_calendar() {
        assert_eq!(date(0), "1970-01-01 00:00 UTC");
        assert_eq!(date(951_782_399), "2000-02-28 23:59 UTC");
        assert_eq!(date(951_782_400), "2000-02-29 00:00 UTC");
        assert_eq!(date(951_868_800), "2000-03-01 00:00 UTC");
        assert_eq!(date(1_795_268_595), "2026-11-21 13:43 UTC");
        assert_eq!(date(4_107_542_399), "2100-02-28 23:59 UTC");
        assert_eq!(date(4_107_542_400), "2100-03-01 00:00 UTC");
    }

    const KEY: &str = "net.ipv4.tcp_rmem";

    fn styles() -> impl Iterator<Item = Style> {
        [1, 40, 80, 200]
            .into_iter()
            .flat_map(|width| [true, false].map(|unicode| Style { colour: false, width, unicode }))
    }

    fn fits(text: &str, style: &Style) {
        for line in text.lines() {
            assert!(line.chars().count() <= style.width, "{}: {line}", style.width);
            assert!(style.unicode || line.is_ascii(), "{line}");
            assert_eq!(line, line.trim_end());
        }
    }

    fn undone(state: State, note: &str) -> Undone {
        let (found, before) = (Some("1 2 3".to_owned()), Some("4 5 6".to_owned()));
        Undone { key: KEY.to_owned(), found, before, state, note: note.to_owned() }
    }

    #[test]
    fn every_end_of_a_rollback_is_told_and_fits() {
        use State::{AsBefore, Failed, Gone, Left, Overwritten, Restored};
        let all = [Restored, AsBefore, Overwritten, Left, Gone, Failed];
        let report = TuneUndone {
            schema: String::new(),
            version: String::new(),
            undone: 1,
            remain: 1,
            settings: all.map(|state| undone(state, "because … of µ")).to_vec(),
            notes: vec!["a note that goes on for a while, so that it has to be wrapped".into()],
        };
        for style in styles() {
            fits(&untuned(&report, &style), &style);
        }
        let text = untuned(&report, &Style { colour: false, width: 200, unicode: true });
        for part in [
            "1 plan undone; 1 still applied",
            "- net.ipv4.tcp_rmem = 4 5 6: put back",
            "! net.ipv4.tcp_rmem = 4 5 6: overwrote someone else's value 1 2 3",
            "! net.ipv4.tcp_rmem = 1 2 3: left as it is; because",
            "x net.ipv4.tcp_rmem = 1 2 3: not put back",
        ] {
            assert!(text.contains(part), "{part}: {text}");
        }
    }

    #[test]
    fn every_standing_is_told_and_fits() {
        use Standing::{AsBefore, AsSet, Foreign, Gone, Unreadable};
        let held = |standing| Held {
            key: KEY.to_owned(),
            before: "4 5 6".to_owned(),
            set: "7 8 9".to_owned(),
            now: (standing != Unreadable).then(|| "1 2 3".to_owned()),
            standing,
        };
        let holding = |broken_off, earlier_boot| Holding {
            goal: "10 Gbit/s over 200 ms".to_owned(),
            since_s: 0,
            journal: "/var/lib/longhaul/000001.journal".to_owned(),
            broken_off,
            earlier_boot,
            settings: [AsSet, AsBefore, Foreign, Gone, Unreadable].map(held).to_vec(),
            file: None,
        };
        let status = TuneStatus {
            schema: String::new(),
            version: String::new(),
            at_s: 7_200,
            applied: vec![holding(true, false), holding(false, true)],
        };
        for style in styles() {
            fits(&tune_status(&status, &style), &style);
        }
        let text = tune_status(&status, &Style { colour: false, width: 200, unicode: true });
        for part in [
            "1970-01-01 00:00 UTC, 2 h ago",
            "broken off before its end",
            "before the last boot",
            "+ net.ipv4.tcp_rmem = 7 8 9",
            "! net.ipv4.tcp_rmem = 1 2 3; 7 8 9 was set, 4 5 6 before",
            "! net.ipv4.tcp_rmem = nothing that can be read",
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
