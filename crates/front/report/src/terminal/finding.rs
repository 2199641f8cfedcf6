//! A finding: the limit, its explanation, and the figures it is based on.

use super::{
    Style,
    line::{Line, block, columns, labelled, wrap},
    segments, shares, style,
};
use crate::{
    timeline::{self, Timeline},
    wording,
};
use record::{Finding, NextCommand, Remedy, RemedyPlace};

/// Column of the values.
const COLUMN: usize = 14;

/// The finding on one transfer.
#[must_use]
pub fn finding(finding: &Finding, style: &Style) -> String {
    let tone = style::tone(wording::tone(finding.limit));
    let name = wording::limit_with_confidence(finding);
    let mut lines = labelled(
        style,
        0,
        (style::DIM, "Limit"),
        7,
        (tone, &format!("{name}: {}", wording::verdict(finding.limit))),
    );
    let indent = if style.text_width() < 30 { 0 } else { 2 };
    let room = style.text_width().saturating_sub(indent);
    let mut first: Vec<Line> = Vec::new();
    for caveat in &finding.caveats {
        first.extend(labelled(
            style,
            0,
            (style::DIM, "Note"),
            7,
            (style::PLAIN, &caveat.sentence()),
        ));
    }
    lines.splice(0..0, first);
    for part in wrap(style, &finding.sentence, room) {
        lines.push(Line::new(style).to(indent).put(style::PLAIN, &part));
    }
    lines.push(Line::new(style));
    lines.extend(numbers(finding, style, indent));
    if let Some(shares) = &finding.shares {
        let width = style.text_width().saturating_sub(COLUMN + indent).max(1);
        let line = Line::new(style).to(indent).put(style::DIM, "time").to(COLUMN + indent);
        lines.push(shares::bar(line, shares, width, style));
        let say = |s: &[f64]| s.iter().map(|s| wording::whole_percent(*s)).collect::<String>();
        lines.extend(shares::legend(style, COLUMN + indent, &[shares], say));
    }
    if let Some(timeline) = Timeline::of(finding) {
        let label = Line::new(style).to(indent).put(style::DIM, "limits");
        lines.extend(segments::lines(&timeline, COLUMN + indent, label, style));
    }
    if let Some(next) = &finding.next {
        lines.push(Line::new(style));
        lines.extend(self::next(next, style));
    }
    block(lines)
}

/// The command to run next.
#[must_use]
pub fn next_command(command: &str, style: &Style) -> String {
    block(next_lines(command, style))
}

/// The command to run next, and below it where to run it and what it does.
pub(super) fn next(next: &NextCommand, style: &Style) -> Vec<Line> {
    let mut lines = next_lines(&next.command, style);
    let remark = next.remark();
    lines.extend(labelled(style, 0, (style::DIM, ""), NEXT.len(), (style::DIM, &remark)));
    lines
}

const NEXT: &str = "Next: ";

/// `Next: longhaul …`, in lines that a shell takes as one: each but the last ends with `\`. A
/// word that is longer than a line is left to the terminal to wrap.
fn next_lines(command: &str, style: &Style) -> Vec<Line> {
    let room = style.text_width().saturating_sub(NEXT.len() + 2);
    let mut parts: Vec<String> = Vec::new();
    for word in shell_words(command) {
        match parts.last_mut() {
            Some(last) if columns(last) + 1 + columns(word) <= room => {
                last.push(' ');
                last.push_str(word);
            }
            _ => parts.push(word.to_owned()),
        }
    }
    let last = parts.len().saturating_sub(1);
    let style = Style { width: usize::MAX, ..*style };
    let line = |(index, part): (usize, String)| {
        let label = if index == 0 { NEXT } else { "" };
        let more = if index < last { " \\" } else { "" };
        let line = Line::new(&style).put(style::STRONG, label).to(NEXT.len());
        line.put(style::PLAIN, &(part + more))
    };
    parts.into_iter().enumerate().map(line).collect()
}

/// The words of a command line; spaces between single quotes separate none.
fn shell_words(command: &str) -> Vec<&str> {
    let mut is_quoted = false;
    let words = command.split(|c: char| {
        is_quoted ^= c == '\'';
        c == ' ' && !is_quoted
    });
    words.filter(|word| !word.is_empty()).collect()
}

fn numbers(finding: &Finding, style: &Style, indent: usize) -> Vec<Line> {
    let row = |label: &str, text: &str| {
        labelled(style, indent, (style::DIM, label), COLUMN + indent, (style::PLAIN, text))
    };
    let mut lines = Vec::new();
    if let Some(text) = timeline::probabilities(&finding.posterior) {
        lines.extend(row(wording::confidence(finding), &text));
    }
    let achieved = finding.throughput_bps.to_string();
    let ratio = wording::of_predicted(finding)
        .map(|r| format!(", {} of predicted", wording::whole_percent(r)))
        .unwrap_or_default();
    let steady = format!(
        " from {} to {}",
        wording::seconds(finding.steady.from_s),
        wording::seconds(finding.steady.to_s)
    );
    lines.extend(row("achieved", &format!("{achieved}{steady}{ratio}")));
    if let Some(predicted) = finding.predicted_bps {
        lines.extend(row("predicted", &predicted.to_string()));
    }
    if let Some(equation) = &finding.equation {
        lines.extend(row("equation", equation));
    }
    match (finding.min_rtt, finding.loaded_rtt) {
        (Some(least), Some(loaded)) => {
            lines.extend(row("RTT", &format!("min {least}, {loaded} under load")));
        }
        (Some(least), None) => lines.extend(row("RTT", &format!("min {least}"))),
        (None, Some(loaded)) => lines.extend(row("RTT", &format!("{loaded} under load"))),
        (None, None) => {}
    }
    if let Some(estimate) = &finding.bottleneck {
        lines.extend(row("bottleneck", &timeline::bottleneck(estimate)));
    }
    lines.extend(finding.remedies.iter().flat_map(|one| row("remedy", &remedy(one))));
    lines
}

/// `on the receiver: sysctl …; expected: 96.5 Mbit/s, the path …`.
fn remedy(one: &Remedy) -> String {
    let place = match one.place {
        RemedyPlace::Sender => "on the sender: ",
        RemedyPlace::Receiver => "on the receiver: ",
        RemedyPlace::Call => "rerun the test with ",
        RemedyPlace::Boxes => "with boxes on the path: ",
    };
    let expectation = match one.expects_bps {
        Some(rate) => format!("expected: {rate}, {}", one.why),
        None => one.why.clone(),
    };
    format!("{place}{}; {expectation}", one.command)
}

/// Notes, one per paragraph; empty without notes.
#[must_use]
pub fn notes(notes: &[String], style: &Style) -> String {
    let each = |note: &String| labelled(style, 0, (style::WARN, "note:"), 6, (style::PLAIN, note));
    block(notes.iter().flat_map(each).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_is_broken_where_a_shell_joins_it_again() {
        let command = "longhaul lab run --link rate=100mbit,rtt=173ms,queue=1bdp,loss=0.1% \
                       --server 'longhaul server' -- longhaul test server --decide";
        for width in [10, 40, 80, 400] {
            let text = next_command(command, &Style { colour: false, width, unicode: true });
            let text = text.strip_prefix("Next: ").unwrap();
            let joined: Vec<&str> = text.split('\n').map(str::trim).collect();
            assert_eq!(joined.join(" ").replace(" \\ ", " ").trim_end(), command, "{text}");
            assert!(text.contains("'longhaul server'"), "{text}");
            let words = |line: &str| shell_words(line.trim().trim_end_matches('\\')).len();
            let is_long = |line: &&str| line.len() > width && words(line) > 1;
            assert_eq!(text.lines().skip(1).find(is_long), None, "{width}");
        }
    }
}
