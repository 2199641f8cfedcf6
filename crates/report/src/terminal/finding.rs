//! A finding: the limit, its explanation, and the figures it is based on.

use super::{
    Style,
    line::{Line, block, labelled, wrap},
    segments, shares, style,
};
use crate::{
    timeline::{self, Timeline},
    wording,
};
use record::{Finding, Remedy, RemedyPlace};

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
    block(lines)
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
