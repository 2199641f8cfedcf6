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
/// Where a check's name begins: behind its mark and its verdict.
const NAME: usize = 9;
/// Names longer than this stand on a line of their own.
const LONGEST: usize = 19;

/// A report on a host.
#[must_use]
pub fn doctor(report: &DoctorReport, style: &Style) -> String {
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
        Verdict::Pass | Verdict::Unknown if check.needed.is_empty() => check.seen.clone(),
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
        let why = format!("{} ({})", check.why, check.source);
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
    let mut lines =
        vec![Line::new(style), Line::new(style).put(ink::STRONG, "What to do")];
    for (words, command, verdict, ids) in todo {
        let (mark, colour, _) = mark(verdict, style);
        let text = format!("{}: {words}", ids.join(", "));
        lines.extend(labelled(style, 2, (colour, mark), 4, (ink::PLAIN, &text)));
        lines.extend(command.into_iter().flat_map(|command| pasted(command, style)));
    }
    lines
}

/// A command, on several lines where need be, so that it can be pasted.
fn pasted(command: &str, style: &Style) -> Vec<Line> {
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
        let text = if index + 1 < count { text + " \\" } else { text };
        Line::new(style).to(INDENT).put(ink::RUNS[1], &text)
    };
    lines.into_iter().enumerate().map(line).collect()
}

/// What to look at and to set on a system that longhaul does not run on.
#[must_use]
pub fn doctor_commands(commands: &DoctorCommands, style: &Style) -> String {
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
            lines.extend(pasted(&one.look, style));
            lines.extend(labelled(style, 4, (ink::PLAIN, ""), 4, (ink::PLAIN, &format!("needs {}", one.needed))));
            lines.extend(labelled(style, 4, (ink::DIM, ""), 4, (ink::DIM, &one.why)));
            for command in &one.set {
                lines.extend(pasted(command, style));
            }
            if !one.remark.is_empty() {
                lines.extend(labelled(style, 4, (ink::DIM, ""), 4, (ink::DIM, &one.remark)));
            }
        }
    }
    block(lines)
}
