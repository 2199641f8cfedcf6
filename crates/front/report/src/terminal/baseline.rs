//! A baseline: its conditions, what differs, what limits each, and what to do first.

mod comparison;
mod progress;

pub use progress::{BaselineProgress, baseline_progress, baseline_start, baseline_test};

use super::{
    Style,
    doctor::mark,
    line::{Line, block, labelled, notes, wrap},
    style,
};
use crate::{calendar, wording};
use record::{
    AddressFamily, BaselineCondition, BaselineDifference, BaselinePath, BaselineReport, Check,
    Limit, RttSource, ServerChoice, Verdict,
};

/// Column of the texts.
const COLUMN: usize = 10;

/// Right ends of the figures of a condition: median, interval, RTT under load, grade.
const FIGURES: [usize; 4] = [36, 60, 74, 80];

/// Servers of a list that are shown; JSON and the page have all.
const MAX_SERVERS: usize = 8;

/// The report.
#[must_use]
pub fn baseline(report: &BaselineReport, style: &Style) -> String {
    let mut lines = head(report, style);
    lines.extend(checks(&report.checks, style));
    lines.extend(conditions(report, style));
    lines.extend(differences(&report.differences, style));
    lines.extend(findings(&report.conditions, style));
    lines.extend(links(report, style));
    if let Some(found) = &report.comparison {
        lines.extend(comparison::comparison(found, style));
    }
    if let Some(choice) = &report.choice {
        lines.extend(servers(choice, style));
    }
    lines.extend(steps(report, style));
    lines.extend(notes(style, COLUMN, &report.notes));
    block(lines)
}

fn row(style: &Style, label: &str, text_style: anstyle::Style, text: &str) -> Vec<Line> {
    labelled(style, 0, (style::STRONG, label), COLUMN, (text_style, text))
}

/// A heading after an empty line.
fn heading(style: &Style, text: &str) -> [Line; 2] {
    [Line::new(style), Line::new(style).put(style::STRONG, text)]
}

fn head(report: &BaselineReport, style: &Style) -> Vec<Line> {
    let server = match report.peer.as_str() {
        "" => report.target.clone(),
        peer => format!("{} ({peer})", report.target),
    };
    let mut lines = row(style, "Baseline", style::STRONG, &server);
    let tests: usize = report.conditions.iter().map(|one| one.runs.len()).sum();
    let rounds = if report.rounds == 1 { "round" } else { "rounds" };
    let text = format!(
        "{} tests of {} in {} {rounds} in random order, {} in all, started {}; seed {}",
        tests,
        wording::seconds(report.duration_s),
        report.rounds,
        wording::long_time(report.took_s),
        calendar::utc(report.started_unix_s),
        report.seed
    );
    lines.extend(row(style, "Tests", style::PLAIN, &text));
    for path in &report.paths {
        let tone = if path.skipped.is_some() { style::WARN } else { style::PLAIN };
        lines.extend(row(style, path.family.name(), tone, &path_text(path)));
        for warning in &path.warnings {
            lines.extend(row(style, "", style::WARN, warning));
        }
    }
    for note in &report.architecture {
        lines.extend(row(style, &note.part, style::PLAIN, &note.text));
    }
    lines
}

/// An IP version's path in one line.
fn path_text(path: &BaselinePath) -> String {
    let mut parts: Vec<String> = path.address.iter().cloned().collect();
    if let Some(why) = &path.skipped {
        parts.push(format!("not tested: {why}"));
        return parts.join(", ");
    }
    if let (Some(rtt), Some(from)) = (path.rtt_ms, path.rtt_from) {
        let from = match from {
            RttSource::Icmp => "ICMP",
            RttSource::Handshake => "TCP handshake",
        };
        parts.push(format!("RTT {rtt:.1} ms ({from})"));
    }
    parts.extend(path.mtu_bytes.map(|mtu| format!("MTU {mtu}")));
    parts.join(", ")
}

/// The findings about this host before the tests.
fn checks(checks: &[Check], style: &Style) -> Vec<Line> {
    if checks.is_empty() {
        return Vec::new();
    }
    let mut lines = heading(style, "Before the tests: power saving, other traffic").to_vec();
    for check in checks {
        let (mark, colour, _) = mark(check.verdict, style);
        let text = match check.verdict {
            Verdict::Pass | Verdict::Unknown => check.seen.clone(),
            _ => format!("{}; {}", check.seen, check.why),
        };
        let tone = if check.verdict == Verdict::Unknown { style::DIM } else { style::PLAIN };
        let label = format!("{mark} {}", check.id);
        lines.extend(labelled(style, 2, (colour, &label), 20, (tone, &text)));
    }
    lines
}

/// Medians, by IP version.
fn conditions(report: &BaselineReport, style: &Style) -> Vec<Line> {
    let Some(first) = report.conditions.first() else {
        return heading(style, "No test completed").to_vec();
    };
    let interval = wording::interval_heading(&report.conditions);
    let mut head = Line::new(style).put(style::STRONG, "Goodput");
    for (name, column) in ["median", interval.as_str(), "median RTT", "bloat"].iter().zip(FIGURES) {
        head = head.right(style::DIM, name, column);
    }
    let mut lines = vec![Line::new(style), head];
    let mut family: Option<AddressFamily> = None;
    let count = first.runs.len();
    for one in &report.conditions {
        if family.replace(one.condition.family) != Some(one.condition.family) {
            lines.push(Line::new(style).to(2).put(style::PLAIN, one.condition.family.name()));
        }
        lines.push(figures(one, count, style));
    }
    lines.extend(warnings(&report.conditions, style));
    for part in wrap(style, wording::MEDIAN_INTERVAL, style.text_width().saturating_sub(2)) {
        lines.push(Line::new(style).to(2).put(style::DIM, &part));
    }
    lines
}

fn figures(one: &BaselineCondition, usual_count: usize, style: &Style) -> Line {
    let dash = || "-".to_owned();
    let condition = &one.condition;
    let mut label = format!("{}, {}", condition.direction_name(), condition.streams_name());
    if one.runs.len() != usual_count {
        label += &format!(" ({})", one.runs.len());
    }
    let median = one.summary.median_bps.map_or_else(dash, wording::bps);
    let interval = one.median_low_bps.zip(one.median_high_bps);
    let interval = interval.map_or_else(dash, |(low, high)| wording::rates(low, high));
    let latency = one.latency.as_ref();
    let rtt = latency.and_then(wording::rtt_under_load).unwrap_or_else(dash);
    let grade = latency.and_then(|latency| latency.grade.clone()).unwrap_or_else(dash);
    let tone = match grade.as_str() {
        "C" | "D" | "F" => style::WARN,
        _ => style::PLAIN,
    };
    Line::new(style)
        .to(4)
        .put(style::PLAIN, &label)
        .right(style::STRONG, &median, FIGURES[0])
        .right(style::PLAIN, &interval, FIGURES[1])
        .right(style::PLAIN, &rtt, FIGURES[2])
        .right(tone, &grade, FIGURES[3])
}

/// The disagreements between the tests of a condition; the first of equal warnings.
fn warnings(conditions: &[BaselineCondition], style: &Style) -> Vec<Line> {
    let mut lines = Vec::new();
    for one in conditions {
        for warning in &one.summary.warnings {
            let text = format!("{}: {warning}", one.condition);
            lines.extend(labelled(style, 2, (style::WARN, "!"), 4, (style::PLAIN, &text)));
        }
    }
    lines
}

/// Each pair that differs significantly; the others in one line.
fn differences(all: &[BaselineDifference], style: &Style) -> Vec<Line> {
    if all.is_empty() {
        return Vec::new();
    }
    let mut lines = heading(style, "Differences in mean goodput").to_vec();
    let significant = |one: &&BaselineDifference| one.significant == Some(true);
    for one in all.iter().filter(significant) {
        let (what, within) = wording::difference(one);
        let share = wording::relative(one.comparison.difference_share);
        let tone = if one.matters { style::WARN } else { style::DIM };
        let verdict = if one.matters { "significant" } else { "significant, small" };
        lines.push(
            Line::new(style)
                .to(2)
                .put(style::PLAIN, &what)
                .to(30)
                .put(style::PLAIN, &within)
                .right(tone, &share, 59)
                .to(61)
                .put(tone, verdict),
        );
    }
    let rest = all.iter().filter(|one| one.significant != Some(true)).count();
    if rest > 0 {
        let pairs = if rest == 1 { "pair does" } else { "pairs do" };
        let text = format!("{rest} of {} {pairs} not differ significantly", all.len());
        lines.push(Line::new(style).to(2).put(style::DIM, &text));
    }
    lines
}

/// Each limit with its conditions, and the sentence of the first of them.
fn findings(conditions: &[BaselineCondition], style: &Style) -> Vec<Line> {
    let mut limits: Vec<(Option<Limit>, Vec<&BaselineCondition>)> = Vec::new();
    for one in conditions {
        match limits.iter_mut().find(|(limit, _)| *limit == one.limit) {
            Some((_, all)) => all.push(one),
            None => limits.push((one.limit, vec![one])),
        }
    }
    if limits.is_empty() {
        return Vec::new();
    }
    let mut lines = heading(style, "Limit of each condition").to_vec();
    for (limit, all) in limits {
        let tone = style::tone(wording::tone(limit));
        let name = format!("{}: {}", wording::limit_name(limit), wording::verdict(limit));
        lines.push(Line::new(style).to(2).put(tone, &name));
        let named = |one: &&BaselineCondition| {
            let (count, runs) = (one.limit_runs, one.runs.len());
            match usize::try_from(count) == Ok(runs) {
                true => one.condition.to_string(),
                false => format!("{} ({count} of {runs} tests)", one.condition),
            }
        };
        let names: Vec<String> = all.iter().map(named).collect();
        lines.extend(labelled(style, 4, (style::DIM, ""), 4, (style::DIM, &names.join("; "))));
        let sentence = all.iter().find_map(|one| one.finding.as_ref());
        if let Some(finding) = sentence {
            let text = (style::PLAIN, finding.sentence.as_str());
            lines.extend(labelled(style, 4, (style::PLAIN, ""), 4, text));
        }
    }
    lines
}

fn links(report: &BaselineReport, style: &Style) -> Vec<Line> {
    let mut lines = Vec::new();
    let mut told = Vec::new();
    for link in &report.links {
        if told.contains(&link.link_bps) {
            continue;
        }
        told.push(link.link_bps);
        let of_link = report.links.iter().filter(|other| other.link_bps == link.link_bps);
        let names: Vec<String> = of_link.map(|other| other.condition.to_string()).collect();
        let text = format!(
            "{} ({}): the goodput matches its payload rate, {}; {}",
            link.link_bps,
            names.join("; "),
            link.goodput_bps,
            link.means
        );
        if lines.is_empty() {
            lines.push(Line::new(style));
        }
        lines.extend(row(style, "Link", style::PLAIN, &text));
    }
    lines
}

/// The servers of a list, the chosen one first.
fn servers(choice: &ServerChoice, style: &Style) -> Vec<Line> {
    let title = format!("Servers in {}", choice.list);
    let mut lines = heading(style, &title).to_vec();
    let needed = format!("needed: {} ({})", choice.needed_bps, choice.needed_from);
    lines.extend(labelled(style, 2, (style::DIM, ""), 2, (style::DIM, &needed)));
    for server in choice.servers.iter().take(MAX_SERVERS) {
        let (tone, text) = match &server.rejected {
            None => (
                style::GOOD,
                server.rtt_ms.map_or("chosen".to_owned(), |rtt| {
                    format!("chosen: {rtt:.1} ms, the nearest server that is fast enough")
                }),
            ),
            Some(why) => (style::DIM, why.clone()),
        };
        lines.extend(labelled(style, 2, (style::PLAIN, &server.host), 36, (tone, &text)));
    }
    if choice.servers.len() > MAX_SERVERS {
        let more = format!("{} more: see the page", choice.servers.len() - MAX_SERVERS);
        lines.push(Line::new(style).to(2).put(style::DIM, &more));
    }
    lines
}

fn steps(report: &BaselineReport, style: &Style) -> Vec<Line> {
    if report.steps.is_empty() {
        return Vec::new();
    }
    let mut lines = heading(style, "Next steps").to_vec();
    for (number, step) in (1..).zip(&report.steps) {
        let label = format!("{number}.");
        lines.extend(labelled(style, 2, (style::STRONG, &label), 5, (style::PLAIN, &step.text)));
        if let Some(command) = &step.command {
            // Not wrapped: it is pasted.
            lines.push(Line::new(style).to(5).put(style::GOOD, command));
        }
    }
    lines
}
