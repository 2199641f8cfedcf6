//! A verdict: its name, its sentence, and the numbers it rests on.

use super::{
    Style, ink,
    line::{Line, block, labelled, wrap},
    shares,
};
use crate::words;
use record::{Finding, Remedy, RemedyPlace};

/// Where values stand beside their labels.
const COLUMN: usize = 14;

/// The verdict on one transfer.
#[must_use]
pub fn finding(finding: &Finding, style: &Style) -> String {
    let tone = ink::tone(words::tone(finding.limit));
    let name = words::limit_with_doubt(finding);
    let mut lines = labelled(
        style,
        0,
        (ink::DIM, "Limit"),
        7,
        (tone, &format!("{name}: {}", words::verdict(finding.limit))),
    );
    let indent = if style.text_width() < 30 { 0 } else { 2 };
    let room = style.text_width().saturating_sub(indent);
    for part in wrap(style, &finding.sentence, room) {
        lines.push(Line::new(style).to(indent).put(ink::PLAIN, &part));
    }
    lines.push(Line::new(style));
    lines.extend(numbers(finding, style, indent));
    if let Some(shares) = &finding.shares {
        let width = style.text_width().saturating_sub(COLUMN + indent).max(1);
        let line = Line::new(style).to(indent).put(ink::DIM, "time").to(COLUMN + indent);
        lines.push(shares::bar(line, shares, width, style));
        let say = |s: &[f64]| s.iter().map(|s| words::percent(*s)).collect::<String>();
        lines.extend(shares::legend(style, COLUMN + indent, &[shares], say));
    }
    block(lines)
}

fn numbers(finding: &Finding, style: &Style, indent: usize) -> Vec<Line> {
    let row = |label: &str, text: &str| {
        labelled(style, indent, (ink::DIM, label), COLUMN + indent, (ink::PLAIN, text))
    };
    let mut lines = Vec::new();
    let achieved = finding.throughput_bps.to_string();
    let ratio = words::of_predicted(finding)
        .map(|r| format!(", {} of what was predicted", words::percent(r)))
        .unwrap_or_default();
    let steady = format!(
        " from {} to {}",
        words::seconds(finding.steady.from_s),
        words::seconds(finding.steady.to_s)
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
            lines.extend(row("round trip", &format!("{least} at least, {loaded} under load")));
        }
        (Some(least), None) => lines.extend(row("round trip", &format!("{least} at least"))),
        (None, Some(loaded)) => lines.extend(row("round trip", &format!("{loaded} under load"))),
        (None, None) => {}
    }
    lines.extend(finding.remedies.iter().flat_map(|one| row("remedy", &remedy(one))));
    lines
}

/// `on the receiver: sysctl …; to be expected: 96.5 Mbit/s, the path …`.
fn remedy(one: &Remedy) -> String {
    let place = match one.place {
        RemedyPlace::Sender => "on the sender: ",
        RemedyPlace::Receiver => "on the receiver: ",
        RemedyPlace::Call => "test with ",
    };
    let promise = match one.expects_bps {
        Some(rate) => format!("to be expected: {rate}, {}", one.why),
        None => one.why.clone(),
    };
    format!("{place}{}; {promise}", one.command)
}

/// What the tool noticed, one note below the other; empty where there is none.
#[must_use]
pub fn notes(notes: &[String], style: &Style) -> String {
    let each = |note: &String| labelled(style, 0, (ink::WARN, "note:"), 6, (ink::PLAIN, note));
    block(notes.iter().flat_map(each).collect())
}
