//! A host held against a target: the verdict first, then what each check saw,
//! and what to do at the end, as lines that can be pasted.

use super::{
    Style, ink,
    line::{Line, block, columns, labelled, shown},
};
use record::{Area, Check, DoctorCommands, DoctorReport, DoctorTarget, Verdict};
use units::Rtt;

/// Where texts stand beside their labels.
const COLUMN: usize = 10;
/// What a shell takes at the end of a line that goes on, and what PowerShell does.
const SHELL: &str = "\\";
const POWERSHELL: &str = "`";
/// Where a check's name begins: behind its mark and its verdict.
const NAME: usize = 9;
/// Names longer than this stand on a line of their own.
const LONGEST: usize = 22;

/// A report on a host.
#[must_use]
pub fn doctor(report: &DoctorReport, style: &Style) -> String {
    let mut lines = goal(&report.target, report.to.as_deref(), style);
    let counts = [
        (report.fail, "fail"),
        (report.warn, "warn"),
        (report.unknown, "open"),
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
        let of_area = |check: &&Check| check.area == area;
        if !report.checks.iter().any(|check| of_area(&check)) {
            continue;
        }
        lines.push(Line::new(style));
        lines.push(Line::new(style).put(ink::STRONG, heading(area)));
        for one in report.checks.iter().filter(of_area) {
            lines.extend(check(one, style));
        }
    }
    lines.extend(remedies(&report.checks, style));
    if !report.notes.is_empty() {
        lines.push(Line::new(style));
    }
    for note in &report.notes {
        lines.extend(row(style, "Note", ink::PLAIN, note));
    }
    block(lines)
}

fn row(style: &Style, label: &str, ink: anstyle::Style, text: &str) -> Vec<Line> {
    labelled(style, 0, (ink::STRONG, label), COLUMN, (ink, text))
}

fn goal(target: &DoctorTarget, to: Option<&str>, style: &Style) -> Vec<Line> {
    let mut text = format!("{} ({})", target.rate_bps, target.rate_from);
    if let Some(ms) = target.rtt_ms {
        text += &format!(" over {} ({})", Rtt::from_secs(ms / 1e3), target.rtt_from);
    }
    if let Some(to) = to {
        text += &format!(" to {to}");
    }
    if target.streams > 1 {
        text += &format!(", {} streams", target.streams);
    }
    let mut lines = row(style, "Target", ink::PLAIN, &text);
    let (Some(bdp), Some(window)) = (target.bdp_bytes, target.window_bytes) else { return lines };
    let mut text = format!("{bdp} in flight: a window of {window} for each stream");
    if let Some(scale) = target.window_scale {
        text += &format!(", window scale {scale}");
    }
    lines.extend(row(style, "Needs", ink::PLAIN, &text));
    if let Some(mathis) = target.loss_budget_mathis {
        let mut text =
            format!("loss below {} (Mathis, {} B of payload)", share(mathis), target.mss_bytes);
        if let Some(cubic) = target.loss_budget_cubic {
            text += &format!("; {} for CUBIC", share(cubic));
        }
        lines.extend(row(style, "Budget", ink::PLAIN, &text));
    }
    lines
}

/// A share in percent with two digits that count; budgets of long paths are small.
fn share(share: f64) -> String {
    let value = share * 100.0;
    if !value.is_finite() || value <= 0.0 {
        return "0 %".to_owned();
    }
    if value < 1e-6 {
        return format!("{value:.1e} %");
    }
    // 0 to 7 places: bounded before it is converted.
    let places = (1.0 - value.log10().floor()).clamp(0.0, 7.0) as usize;
    format!("{value:.places$} %")
}

fn heading(area: Area) -> &'static str {
    match area {
        Area::Path => "Path",
        Area::Settings => "Settings",
        Area::Kernel => "Kernel",
        Area::Nic => "Network device",
        Area::Cpu => "Processors",
        Area::Memory => "Memory",
        Area::Disk => "Disk",
    }
}

/// A verdict's mark, colour and word.
fn mark(verdict: Verdict, style: &Style) -> (&'static str, anstyle::Style, &'static str) {
    let (unicode, ascii, ink, word) = match verdict {
        Verdict::Fail => ("✗", "x", ink::BAD, "fail"),
        Verdict::Warn => ("!", "!", ink::WARN, "warn"),
        Verdict::Unknown => ("?", "?", ink::DIM, "open"),
        Verdict::Pass => ("✓", "+", ink::GOOD, "pass"),
    };
    (if style.unicode { unicode } else { ascii }, ink, word)
}

/// Whether a value needed is none at all.
fn says_nothing(needed: &str) -> bool {
    needed.is_empty() || needed == "any" || needed.starts_with("any at")
}

/// The last part of a check's name; its area is said above it.
fn name(id: &str) -> &str {
    id.rsplit('.').next().unwrap_or(id)
}

fn check(check: &Check, style: &Style) -> Vec<Line> {
    let (mark, colour, word) = mark(check.verdict, style);
    let name = name(&check.id);
    let head = Line::new(style).to(2).put(colour, mark).to(4).put(colour, word);
    let column = NAME + LONGEST + 2;
    let text = match check.verdict {
        Verdict::Pass | Verdict::Unknown if says_nothing(&check.needed) => check.seen.clone(),
        Verdict::Pass | Verdict::Unknown => format!("{} (needs {})", check.seen, check.needed),
        _ => format!("{}; needs {}", check.seen, check.needed),
    };
    let ink = match check.verdict {
        Verdict::Fail | Verdict::Warn => ink::PLAIN,
        _ => ink::DIM,
    };
    let mut lines = Vec::new();
    // Beside the name where there is room, else beneath it.
    if style.text_width() < column + 20 {
        lines.push(head.to(NAME).put(ink::STRONG, name));
        lines.extend(labelled(style, 4, (ink, ""), 4, (ink, &text)));
    } else {
        let name_ink = if ink == ink::DIM { ink::PLAIN } else { ink::STRONG };
        let mut first = head.to(NAME).put(name_ink, name);
        if first.used() + 1 > column {
            lines.push(first);
            first = Line::new(style);
        }
        for part in super::line::wrap(style, &text, style.text_width() - column) {
            lines.push(first.to(column).put(ink, &part));
            first = Line::new(style);
        }
    }
    if matches!(check.verdict, Verdict::Fail | Verdict::Warn) {
        let indent = if style.text_width() < column + 20 { 4 } else { column };
        let why = format!("{} [{}]", check.why, check.source);
        lines.extend(labelled(style, indent, (ink::DIM, ""), indent, (ink::DIM, &why)));
    }
    lines
}

/// What to do: each remedy once, with the checks that it mends, failures first.
fn remedies(checks: &[Check], style: &Style) -> Vec<Line> {
    let mut todo: Vec<(&str, Option<&str>, Verdict, Vec<&str>)> = Vec::new();
    for verdict in [Verdict::Fail, Verdict::Warn] {
        let open = |check: &&Check| check.verdict == verdict && !check.remedy.is_empty();
        for check in checks.iter().filter(open) {
            let (words, command) = (check.remedy.as_str(), check.command.as_deref());
            let same = |one: &&mut (&str, Option<&str>, Verdict, Vec<&str>)| match command {
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
    let mut lines = vec![Line::new(style), Line::new(style).put(ink::STRONG, "What to do")];
    for (words, command, verdict, ids) in todo {
        let (mark, colour, _) = mark(verdict, style);
        let text = format!("{}: {words}", ids.join(", "));
        lines.extend(labelled(style, 2, (colour, mark), 4, (ink::PLAIN, &text)));
        lines.extend(command.into_iter().flat_map(|command| pasted(command, SHELL, style)));
    }
    lines
}

/// A command, on several lines where need be, so that it can be pasted: `goes_on`
/// is what its shell takes at the end of such a line.
fn pasted(command: &str, goes_on: &str, style: &Style) -> Vec<Line> {
    const INDENT: usize = 6;
    let room = style.text_width().saturating_sub(INDENT + 2).max(1);
    let mut lines: Vec<String> = vec![String::new()];
    for word in shown(style, command).split(' ') {
        let last = lines.last().map_or(0, |line| columns(line));
        // Between quotes a line may not be broken.
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
        let text = if index + 1 < count { format!("{text} {goes_on}") } else { text };
        Line::new(style).to(INDENT).put(ink::RUNS[1], &text)
    };
    lines.into_iter().enumerate().map(line).collect()
}

/// What to look at and to set on a system that longhaul does not run on.
#[must_use]
pub fn doctor_commands(commands: &DoctorCommands, style: &Style) -> String {
    let goes_on = if commands.system == "Windows" { POWERSHELL } else { SHELL };
    let mut lines = row(style, "System", ink::PLAIN, &commands.system);
    lines.extend(goal(&commands.target, None, style));
    for area in Area::ALL {
        let mut of_area = commands.recipes.iter().filter(|one| one.area == area).peekable();
        if of_area.peek().is_none() {
            continue;
        }
        lines.push(Line::new(style));
        lines.push(Line::new(style).put(ink::STRONG, heading(area)));
        for one in of_area {
            lines.push(Line::new(style).to(2).put(ink::STRONG, &one.id));
            lines.extend(pasted(&one.look, goes_on, style));
            lines.extend(labelled(
                style,
                4,
                (ink::PLAIN, ""),
                4,
                (ink::PLAIN, &format!("needs {}", one.needed)),
            ));
            lines.extend(labelled(style, 4, (ink::DIM, ""), 4, (ink::DIM, &one.why)));
            for command in &one.set {
                lines.extend(pasted(command, goes_on, style));
            }
            if !one.remark.is_empty() {
                lines.extend(labelled(style, 4, (ink::DIM, ""), 4, (ink::DIM, &one.remark)));
            }
        }
    }
    block(lines)
}

#[cfg(test)]
mod tests {
    use super::*;
    use record::{DOCTOR_COMMANDS_SCHEMA, DOCTOR_SCHEMA, Recipe};
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
            command: command.map(str::to_owned),
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

    fn styles() -> impl Iterator<Item = Style> {
        [1, 20, 40, 80, 200]
            .into_iter()
            .flat_map(|width| [true, false].map(|unicode| Style { colour: false, width, unicode }))
    }

    fn fits(text: &str, style: &Style) {
        for line in text.lines() {
            assert!(columns(line) <= style.width, "{}: {line}", style.width);
            assert!(style.unicode || line.is_ascii(), "{line}");
            assert!(line == line.trim_end() && !line.contains('\u{1b}'), "{line:?}");
        }
    }

    #[test]
    fn failures_come_first_and_each_remedy_once() {
        for style in styles() {
            fits(&doctor(&report(), &style), &style);
        }
        let text = doctor(&report(), &Style { colour: false, width: 80, unicode: true });
        let line = |start: &str| {
            text.lines()
                .position(|line| line.starts_with(start))
                .unwrap_or_else(|| panic!("{text}"))
        };
        assert!(line("Verdict   2 fail, 1 warn, 1 open, 1 pass") < line("Fail "));
        assert!(line("Fail      net.ipv4.tcp_rmem, disk.write") < line("Path"));
        assert!(line("Path") < line("Settings") && line("Disk") < line("What to do"));
        assert!(text.contains("✗ fail tcp_rmem") && text.contains("✓ pass window-scale"), "{text}");
        assert_eq!(text.matches(APPLY).count(), 1, "{text}");
        assert!(text.contains("✗ tcp_rmem, tcp_wmem: raise them"), "{text}");
        let ascii = doctor(&report(), &Style { colour: false, width: 80, unicode: false });
        assert!(ascii.contains("x fail tcp_rmem") && ascii.contains("+ pass"), "{ascii}");
    }

    #[test]
    fn what_passes_as_a_whole_says_nothing_of_remedies() {
        let mut all = report();
        all.checks.retain(|check| check.verdict == Verdict::Pass);
        (all.verdict, all.fail, all.warn, all.unknown) = (Verdict::Pass, 0, 0, 0);
        all.target.rtt_ms = None;
        all.target.bdp_bytes = None;
        let text = doctor(&all, &Style { colour: false, width: 80, unicode: true });
        assert!(!text.contains("What to do") && text.contains("Verdict   1 pass"), "{text}");
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
                // What is between quotes is cut where it does not fit, and marked.
                if width > 60 || command == APPLY {
                    assert_eq!(words.join(" "), command, "{width}");
                }
            }
        }
    }

    #[test]
    fn commands_for_other_systems_fit() {
        let recipe = Recipe {
            id: "tcp.autotuning".to_owned(),
            area: Area::Settings,
            look: "netsh int tcp show global".to_owned(),
            needed: "Receive Window Auto-Tuning Level: normal".to_owned(),
            why: "a reason that goes on for a while, so that it has to be wrapped".to_owned(),
            set: vec!["netsh int tcp set global autotuninglevel=normal".to_owned()],
            remark: "and a remark".to_owned(),
        };
        let all = DoctorCommands {
            schema: DOCTOR_COMMANDS_SCHEMA.to_owned(),
            version: "1".to_owned(),
            system: "Windows".to_owned(),
            target: target(),
            recipes: vec![recipe],
        };
        for style in styles() {
            fits(&doctor_commands(&all, &style), &style);
        }
        let text = doctor_commands(&all, &Style { colour: false, width: 80, unicode: true });
        assert!(text.contains("System    Windows\n") && text.contains("=normal\n"), "{text}");
    }
}
