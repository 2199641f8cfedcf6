//! A doctor report: the verdict, each check with its value, and the remedies as
//! commands that can be pasted.

use super::{
    Style,
    line::{Line, block, columns, labelled, notes, shown},
    style,
};
use ::doctor::{DoctorCommands, DoctorReport, DoctorTarget, Recipe};
use record::{Area, Check, CheckCommand, Verdict};
use units::{Rtt, percent};

/// Column of the texts.
const COLUMN: usize = 10;
/// Line continuation of a POSIX shell, and of PowerShell.
pub(super) const SHELL: &str = "\\";
const POWERSHELL: &str = "`";
/// Column of a check's name, after its mark and verdict.
const NAME: usize = 12;
/// Longer names get a line of their own.
const MAX_NAME: usize = 22;

/// The report on a host: what is not in order and a line for the rest, or `all`.
#[must_use]
pub fn doctor(report: &DoctorReport, all: bool, style: &Style) -> String {
    let mut lines = goal(&report.target, report.to.as_deref(), style);
    let counts = [
        (report.fail, "fail"),
        (report.warn, "warn"),
        (report.unknown, "unknown"),
        (report.pass, "pass"),
    ];
    let counts: Vec<String> =
        counts.iter().filter(|(n, _)| *n > 0).map(|(n, word)| format!("{n} {word}")).collect();
    lines.extend(row(style, "Verdict", mark(report.verdict, style).1, &counts.join(", ")));
    for (verdict, label) in [(Verdict::Fail, "Fail"), (Verdict::Warn, "Warn")] {
        let names: Vec<&str> =
            report.checks.iter().filter(|c| c.verdict == verdict).map(|c| c.id.as_str()).collect();
        if !names.is_empty() {
            lines.extend(row(style, label, mark(verdict, style).1, &names.join(", ")));
        }
    }
    for area in Area::ALL {
        let of_area = |check: &&Check| check.area == area && (all || is_open(check));
        if !report.checks.iter().any(|check| of_area(&check)) {
            continue;
        }
        lines.push(Line::new(style));
        lines.push(Line::new(style).put(style::STRONG, heading(area)));
        for one in report.checks.iter().filter(of_area) {
            lines.extend(check(one, style));
        }
    }
    if !all && report.pass + report.unknown > 0 {
        lines.push(Line::new(style));
        lines.extend(row(style, "Rest", style::DIM, &rest(report)));
    }
    lines.extend(remedies(&report.checks, style));
    lines.extend(notes(style, COLUMN, &report.notes));
    block(lines)
}

/// Returns true if there is something to do about it.
fn is_open(check: &Check) -> bool {
    matches!(check.verdict, Verdict::Fail | Verdict::Warn)
}

/// The checks that are not shown, in a line.
fn rest(report: &DoctorReport) -> String {
    let parts = [(report.pass, "passed"), (report.unknown, "could not be run")];
    let parts = parts.iter().filter(|(count, _)| *count > 0);
    let parts: Vec<String> = parts.map(|(count, what)| format!("{count} {what}")).collect();
    format!("{} (--all shows them)", parts.join(", "))
}

fn row(style: &Style, label: &str, text_style: anstyle::Style, text: &str) -> Vec<Line> {
    labelled(style, 0, (style::STRONG, label), COLUMN, (text_style, text))
}

/// Where a figure of the target is from; the document says `asked` of an option.
fn origin(from: &str) -> &str {
    if from == "asked" { "requested" } else { from }
}

fn goal(target: &DoctorTarget, to: Option<&str>, style: &Style) -> Vec<Line> {
    let mut text = format!("{} ({})", target.rate_bps, origin(&target.rate_from));
    if let Some(ms) = target.rtt_ms {
        text += &format!(" over {} ({})", Rtt::from_secs(ms / 1e3), origin(&target.rtt_from));
    }
    if let Some(to) = to {
        text += &format!(" to {to}");
    }
    if target.streams > 1 {
        text += &format!(", {} streams", target.streams);
    }
    let mut lines = row(style, "Target", style::PLAIN, &text);
    let (Some(bdp), Some(window)) = (target.bdp_bytes, target.window_bytes) else { return lines };
    let mut text = format!("BDP {bdp}, window {window} per stream");
    if let Some(scale) = target.window_scale {
        text += &format!(", window scale {scale}");
    }
    lines.extend(row(style, "Needs", style::PLAIN, &text));
    if let Some(mathis) = target.loss_budget_mathis {
        let mut text = format!("loss below {} for Reno (Mathis)", percent(mathis));
        if let Some(cubic) = target.loss_budget_cubic {
            text += &format!(", below {} for CUBIC (RFC 9438)", percent(cubic));
        }
        text += &format!("; MSS {} B", target.mss_bytes);
        lines.extend(row(style, "Budget", style::PLAIN, &text));
    }
    lines
}

fn heading(area: Area) -> &'static str {
    match area {
        Area::Path => "Path",
        Area::Settings => "Settings",
        Area::Kernel => "Kernel",
        Area::Nic => "Network interface",
        Area::Cpu => "CPU",
        Area::Memory => "Memory",
        Area::Disk => "Disk",
    }
}

/// A verdict's mark, colour and word.
pub(super) fn mark(
    verdict: Verdict,
    style: &Style,
) -> (&'static str, anstyle::Style, &'static str) {
    let (unicode, ascii, text_style, word) = match verdict {
        Verdict::Fail => ("✗", "x", style::BAD, "fail"),
        Verdict::Warn => ("!", "!", style::WARN, "warn"),
        Verdict::Unknown => ("?", "?", style::DIM, "unknown"),
        Verdict::Pass => ("✓", "+", style::GOOD, "pass"),
    };
    (if style.unicode { unicode } else { ascii }, text_style, word)
}

/// Returns true if any value is acceptable.
fn any_value(needed: &str) -> bool {
    needed.is_empty() || needed == "any" || needed.starts_with("any at")
}

/// The last part of a check's id; the heading names its area.
fn name(id: &str) -> &str {
    id.rsplit('.').next().unwrap_or(id)
}

fn check(check: &Check, style: &Style) -> Vec<Line> {
    let (mark, colour, word) = mark(check.verdict, style);
    let name = name(&check.id);
    let head = Line::new(style).to(2).put(colour, mark).to(4).put(colour, word);
    let column = NAME + MAX_NAME + 2;
    let text = match check.verdict {
        Verdict::Pass | Verdict::Unknown if any_value(&check.needed) => check.seen.clone(),
        Verdict::Pass | Verdict::Unknown => format!("{} (needs {})", check.seen, check.needed),
        _ => format!("{}; needs {}", check.seen, check.needed),
    };
    let text_style = match check.verdict {
        Verdict::Fail | Verdict::Warn => style::PLAIN,
        _ => style::DIM,
    };
    let mut lines = Vec::new();
    // Next to the name if there is room, else below it.
    if style.text_width() < column + 20 {
        lines.push(head.to(NAME).put(style::STRONG, name));
        lines.extend(labelled(style, 4, (text_style, ""), 4, (text_style, &text)));
    } else {
        let name_style = if text_style == style::DIM { style::PLAIN } else { style::STRONG };
        let mut first = head.to(NAME).put(name_style, name);
        if first.used() + 1 > column {
            lines.push(first);
            first = Line::new(style);
        }
        for part in super::line::wrap(style, &text, style.text_width() - column) {
            lines.push(first.to(column).put(text_style, &part));
            first = Line::new(style);
        }
    }
    if is_open(check) {
        let indent = if style.text_width() < column + 20 { 4 } else { column };
        let why = format!("{} [{}]", check.why, check.source);
        lines.extend(labelled(style, indent, (style::DIM, ""), indent, (style::DIM, &why)));
    }
    lines
}

/// Each remedy once, with the checks that it fixes, failures first.
fn remedies(checks: &[Check], style: &Style) -> Vec<Line> {
    let mut todo: Vec<(&str, Option<&CheckCommand>, Verdict, Vec<&str>)> = Vec::new();
    for verdict in [Verdict::Fail, Verdict::Warn] {
        let open = |check: &&Check| check.verdict == verdict && !check.remedy.is_empty();
        for check in checks.iter().filter(open) {
            let (words, command) = (check.remedy.as_str(), check.command.as_ref());
            let same = |one: &&mut (&str, Option<&CheckCommand>, Verdict, Vec<&str>)| match command
            {
                Some(_) => one.1 == command,
                None => one.1.is_none() && one.0 == words,
            };
            match todo.iter_mut().find(same) {
                Some(one) => one.3.push(name(&check.id)),
                None => todo.push((words, command, verdict, vec![name(&check.id)])),
            }
        }
    }
    if todo.is_empty() {
        return Vec::new();
    }
    let mut lines = vec![Line::new(style), Line::new(style).put(style::STRONG, "Remedies")];
    for (words, command, verdict, ids) in todo {
        let (mark, colour, _) = mark(verdict, style);
        let text = format!("{}: {words}", ids.join(", "));
        lines.extend(labelled(style, 2, (colour, mark), 4, (style::PLAIN, &text)));
        lines.extend(
            command.into_iter().flat_map(|command| pasted(&command.to_string(), SHELL, style)),
        );
    }
    lines
}

/// A command that can be pasted, on several lines if it is long; `continuation` is the
/// shell's line continuation.
pub(super) fn pasted(command: &str, continuation: &str, style: &Style) -> Vec<Line> {
    const INDENT: usize = 6;
    let room = style.text_width().saturating_sub(INDENT + 2).max(1);
    let mut lines: Vec<String> = vec![String::new()];
    for word in shown(style, command).split(' ') {
        let last = lines.last().map_or(0, |line| columns(line));
        // Quoted text must not be broken.
        let quoted = lines.concat().matches('\'').count() % 2 == 1;
        match lines.last_mut() {
            Some(line) if line.is_empty() => line.push_str(word),
            Some(line) if quoted || last + 1 + columns(word) <= room => {
                line.push(' ');
                line.push_str(word);
            }
            _ => lines.push(word.to_owned()),
        }
    }
    let count = lines.len();
    let line = |(index, text): (usize, String)| {
        let text = if index + 1 < count { format!("{text} {continuation}") } else { text };
        Line::new(style).to(INDENT).put(style::RUNS[1], &text)
    };
    lines.into_iter().enumerate().map(line).collect()
}

/// One check: the value needed, the reason, and the commands of its parts.
fn recipe(one: &Recipe, continuation: &str, style: &Style) -> Vec<Line> {
    let dim = |text: &str| labelled(style, 4, (style::DIM, ""), 4, (style::DIM, text));
    let mut lines = vec![Line::new(style).to(2).put(style::STRONG, &one.id)];
    lines.extend(labelled(
        style,
        4,
        (style::PLAIN, ""),
        4,
        (style::PLAIN, &format!("needs {}", one.needed)),
    ));
    lines.extend(dim(&format!("{} [{}]", one.why, one.source)));
    for (part, commands) in [
        ("Inspect", &one.inspect),
        ("Back up", &one.back_up),
        ("Apply now", &one.apply),
        ("Apply at every boot", &one.persist),
        ("Undo", &one.undo),
    ] {
        if part == "Apply at every boot" && one.is_persistent {
            lines.extend(labelled(
                style,
                4,
                (style::PLAIN, part),
                4,
                (style::DIM, " nothing: the setting persists"),
            ));
        }
        if commands.is_empty() {
            continue;
        }
        lines.push(Line::new(style).to(4).put(style::PLAIN, part));
        lines.extend(commands.iter().flat_map(|command| pasted(command, continuation, style)));
    }
    if !one.remark.is_empty() {
        lines.extend(dim(&one.remark));
    }
    lines
}

/// Commands to check and to change settings on another host.
#[must_use]
pub fn doctor_commands(commands: &DoctorCommands, style: &Style) -> String {
    let continuation = if commands.system == "Windows" { POWERSHELL } else { SHELL };
    let mut lines = row(style, "System", style::PLAIN, &commands.system);
    lines.extend(goal(&commands.target, None, style));
    for area in Area::ALL {
        let mut of_area = commands.recipes.iter().filter(|one| one.area == area).peekable();
        if of_area.peek().is_none() {
            continue;
        }
        lines.push(Line::new(style));
        lines.push(Line::new(style).put(style::STRONG, heading(area)));
        for one in of_area {
            lines.extend(recipe(one, continuation, style));
        }
    }
    block(lines)
}

#[cfg(test)]
mod tests {
    use super::super::fit::{assert_fits, styles};
    use super::*;
    use ::doctor::{DOCTOR_COMMANDS_SCHEMA, DOCTOR_SCHEMA};
    use units::{BitRate, ByteCount};

    const APPLY: &str = "sudo longhaul tune apply --rate 10gbit --rtt 200ms --yes";

    fn target() -> DoctorTarget {
        DoctorTarget {
            rate_bps: BitRate::from_bps(10_000_000_000),
            rate_from: "asked".to_owned(),
            rtt_ms: Some(200.0),
            rtt_from: "measured".to_owned(),
            streams: 2,
            mss_bytes: 1_448,
            bdp_bytes: Some(ByteCount::from_bytes(250_000_000)),
            window_bytes: Some(ByteCount::from_bytes(125_000_000)),
            window_scale: Some(11),
            loss_budget_mathis: Some(5e-11),
            loss_budget_cubic: Some(3e-8),
        }
    }

    fn made(id: &str, area: Area, verdict: Verdict, command: Option<&str>) -> Check {
        Check {
            id: id.to_owned(),
            area,
            verdict,
            seen: "4096 131072 16777216".to_owned(),
            needed: "1000341504 (954 MiB)".to_owned(),
            why: "10 Gbit/s x 200 ms = 250 MB in flight, \u{1b}[31mand µs … more".to_owned(),
            remedy: "raise them; it can be taken back".to_owned(),
            command: command.map(CheckCommand::from),
            source: "RFC 7323".to_owned(),
        }
    }

    fn report() -> DoctorReport {
        let checks = vec![
            made("path.window-scale", Area::Path, Verdict::Pass, None),
            made("net.ipv4.tcp_wmem", Area::Settings, Verdict::Warn, Some(APPLY)),
            made("net.ipv4.tcp_rmem", Area::Settings, Verdict::Fail, Some(APPLY)),
            made("net.ipv4.a_name_that_is_far_too_long", Area::Settings, Verdict::Unknown, None),
            made("disk.write", Area::Disk, Verdict::Fail, None),
        ];
        DoctorReport {
            schema: DOCTOR_SCHEMA.to_owned(),
            version: "1".to_owned(),
            at_unix_s: 0,
            host: None,
            to: Some("server".to_owned()),
            target: target(),
            verdict: Verdict::Fail,
            fail: 2,
            warn: 1,
            unknown: 1,
            pass: 1,
            checks,
            notes: vec!["settings cannot be changed from here: only root may set them".into()],
        }
    }

    #[test]
    fn failures_come_first_and_each_remedy_once() {
        for style in styles() {
            assert_fits(&doctor(&report(), true, &style), &style);
            assert_fits(&doctor(&report(), false, &style), &style);
        }
        let text = doctor(&report(), true, &Style { colour: false, width: 80, unicode: true });
        let line = |start: &str| {
            text.lines()
                .position(|line| line.starts_with(start))
                .unwrap_or_else(|| panic!("{text}"))
        };
        assert!(line("Verdict   2 fail, 1 warn, 1 unknown, 1 pass") < line("Fail "));
        assert!(line("Fail      net.ipv4.tcp_rmem, disk.write") < line("Path"));
        assert!(line("Path") < line("Settings") && line("Disk") < line("Remedies"));
        assert!(
            text.contains("✗ fail    tcp_rmem") && text.contains("✓ pass    window-scale"),
            "{text}"
        );
        assert_eq!(text.matches(APPLY).count(), 1, "{text}");
        assert!(text.contains("✗ tcp_rmem, tcp_wmem: raise them"), "{text}");
        let ascii = doctor(&report(), true, &Style { colour: false, width: 80, unicode: false });
        assert!(ascii.contains("x fail    tcp_rmem") && ascii.contains("+ pass"), "{ascii}");
    }

    #[test]
    fn what_is_not_in_order_is_shown_and_the_rest_is_a_line() {
        let text = doctor(&report(), false, &Style { colour: false, width: 80, unicode: true });
        for shown in ["✗ fail    tcp_rmem", "! warn    tcp_wmem", "✗ fail    write", "Remedies"]
        {
            assert!(text.contains(shown), "{shown}: {text}");
        }
        for hidden in ["✓ pass", "? unknown", "window-scale"] {
            assert!(!text.contains(hidden), "{hidden}: {text}");
        }
        assert!(text.contains("Rest      1 passed, 1 could not be run (--all"), "{text}");
    }

    #[test]
    fn a_report_without_failures_has_no_remedies() {
        let mut all = report();
        all.checks.retain(|check| check.verdict == Verdict::Pass);
        (all.verdict, all.fail, all.warn, all.unknown) = (Verdict::Pass, 0, 0, 0);
        all.target.rtt_ms = None;
        all.target.bdp_bytes = None;
        let style = Style { colour: false, width: 80, unicode: true };
        let short = doctor(&all, false, &style);
        assert!(short.contains("Rest      1 passed (--all shows them)"), "{short}");
        assert!(!short.contains("window-scale") && !short.contains("Path"), "{short}");
        let text = doctor(&all, true, &style);
        assert!(!text.contains("Remedies") && text.contains("Verdict   1 pass"), "{text}");
    }

    #[test]
    fn broken_commands_can_be_pasted() {
        let quoted = "sudo tcpdump -ni any 'tcp[tcpflags] & tcp-syn != 0 and port 5201' -c 100";
        for width in [40, 60, 80] {
            let style = Style { colour: false, width, unicode: true };
            for command in [APPLY, quoted] {
                let lines = pasted(command, SHELL, &style).into_iter().map(Line::finish);
                let text: Vec<String> = lines.collect();
                let joined = text.join("\n").replace(" \\\n", " ");
                let words: Vec<&str> = joined.split_whitespace().collect();
                // Quoted text that does not fit is truncated with a mark.
                if width > 60 || command == APPLY {
                    assert_eq!(words.join(" "), command, "{width}");
                }
            }
        }
    }

    #[test]
    fn commands_for_other_systems_fit() {
        let command = |text: &str| vec![text.to_owned()];
        let recipe = Recipe {
            id: "tcp.autotuning".to_owned(),
            area: Area::Settings,
            needed: "Receive Window Auto-Tuning Level: normal".to_owned(),
            why: "a reason that goes on for a while, so that it has to be wrapped".to_owned(),
            inspect: command("netsh int tcp show global"),
            back_up: command("netsh int tcp show global > tcp.before"),
            apply: command("netsh int tcp set global autotuninglevel=normal"),
            persist: Vec::new(),
            is_persistent: true,
            undo: command("netsh int tcp set global autotuninglevel=disabled"),
            remark: "and a remark".to_owned(),
            source: "netsh".to_owned(),
        };
        let all = DoctorCommands {
            schema: DOCTOR_COMMANDS_SCHEMA.to_owned(),
            version: "1".to_owned(),
            system: "Windows".to_owned(),
            target: target(),
            recipes: vec![recipe],
        };
        for style in styles() {
            assert_fits(&doctor_commands(&all, &style), &style);
        }
        let text = doctor_commands(&all, &Style { colour: false, width: 80, unicode: true });
        assert!(text.contains("System    Windows\n") && text.contains("=normal\n"), "{text}");
    }
}
