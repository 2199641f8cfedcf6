//! A host tuned step by step: what will be tried, what each step came to, and
//! what stays.

use super::{
    Style, ink,
    line::{Line, block, labelled},
};
use crate::words;
use record::{
    Direction, Finding, Outcome, PlannedSetting, RepeatSummary, StepVerdict, StepWay, VerifyGoal,
    VerifyReport, VerifyStep,
};
use units::BitRate;

/// Where texts stand beside their labels.
const COLUMN: usize = 12;

fn row(style: &Style, label: &str, text: &str) -> Vec<Line> {
    labelled(style, 0, (ink::STRONG, label), COLUMN, (ink::PLAIN, text))
}

fn inner(style: &Style, label: &str, tone: anstyle::Style, text: &str) -> Vec<Line> {
    labelled(style, 2, (ink::DIM, label), COLUMN, (tone, text))
}

fn goal(goal: &VerifyGoal) -> String {
    let from = match goal.rate_from.as_str() {
        "asked" => String::new(),
        other => format!(" ({other})"),
    };
    let measured = if goal.rtt_from == "asked" { "" } else { " (measured)" };
    format!("{}{from} over {}{measured}", goal.rate_bps, goal.rtt)
}

/// What is to be tried: each step's name and settings. `tests` of `seconds` each.
#[must_use]
pub fn verify_plan(
    aim: &VerifyGoal,
    steps: &[(&str, &[PlannedSetting])],
    (tests, seconds): (u32, f64),
    style: &Style,
) -> String {
    let mut lines = row(style, "Goal", &goal(aim));
    let about = (f64::from(tests) * (seconds + 1.0) / 60.0).ceil();
    let count = match steps.len() {
        0 => "nothing to change; one test tells what holds the path".to_owned(),
        1 => "1 step".to_owned(),
        many => format!("{many} steps"),
    };
    let plural = if tests == 1 { "" } else { "s" };
    let time = format!("{count}; {tests} test{plural} of {seconds:.0} s, about {about:.0} min");
    lines.extend(row(style, "Takes", &time));
    for (number, (name, settings)) in (1..).zip(steps) {
        lines.extend(row(style, &format!("Step {number}"), name));
        for setting in *settings {
            lines.push(Line::new(style).to(2).put(ink::STRONG, &setting.key));
            lines.extend(labelled(style, 4, (ink::RUNS[0], "-"), 6, (ink::RUNS[0], &setting.now)));
            let planned = (ink::RUNS[1], &*setting.planned);
            lines.extend(labelled(style, 4, (ink::RUNS[1], "+"), 6, planned));
            lines.extend(labelled(style, 6, (ink::DIM, ""), 6, (ink::DIM, &setting.why)));
            let risk = format!("Risk: {}", setting.risk);
            lines.extend(labelled(style, 6, (ink::DIM, ""), 6, (ink::DIM, &risk)));
        }
    }
    block(lines)
}

/// A step that has been decided.
#[must_use]
pub fn verify_step(step: &VerifyStep, style: &Style) -> String {
    block(step_lines(step, style))
}

fn step_lines(step: &VerifyStep, style: &Style) -> Vec<Line> {
    let (tone, word) = match step.verdict {
        StepVerdict::Kept => (ink::GOOD, "kept"),
        StepVerdict::RolledBack => (ink::WARN, "rolled back"),
        StepVerdict::Skipped => (ink::WARN, "skipped"),
        StepVerdict::Interrupted => (ink::WARN, "interrupted, rolled back"),
        StepVerdict::Stuck => (ink::BAD, "not all put back"),
    };
    let mut lines =
        vec![Line::new(style).put(ink::STRONG, &step.name).put(ink::PLAIN, ": ").put(tone, word)];
    for one in &step.written {
        let (mark, colour) = match one.outcome {
            Outcome::Set => ("+", ink::RUNS[1]),
            Outcome::Bounded => ("~", ink::WARN),
            Outcome::Skipped => ("x", ink::WARN),
        };
        let text = match one.outcome {
            Outcome::Skipped => format!("{} left out: {}", one.key, one.note),
            _ => format!("{} = {}", one.key, one.now),
        };
        lines.extend(labelled(style, 2, (colour, mark), 4, (ink::PLAIN, &text)));
    }
    let several = step.ways.len() > 1;
    for way in &step.ways {
        lines.extend(way_lines(way, several, style));
    }
    lines.extend(inner(style, "because", ink::PLAIN, &step.because));
    lines
}

fn way_lines(way: &StepWay, several: bool, style: &Style) -> Vec<Line> {
    let mut lines = Vec::new();
    if several {
        lines.push(Line::new(style).to(2).put(ink::STRONG, direction(way.direction)));
    }
    lines.extend(inner(style, "without", ink::PLAIN, &summary(&way.before_summary)));
    lines.extend(inner(style, "with", ink::PLAIN, &summary(&way.after_summary)));
    if way.after_summary.count > 0 {
        let mut text = signed(way.comparison.difference_bps);
        if let Some(share) = way.comparison.difference_share {
            text += &format!(", {:+.1} %", share * 100.0);
        }
        text += &match (way.predicted_bps, way.of_predicted_gain) {
            (Some(_), Some(share)) => {
                let gain = way.comparison.difference_bps / share;
                format!("; predicted {}, {} of it", signed(gain), words::percent(share))
            }
            (Some(rate), None) => format!("; predicted {rate}"),
            (None, _) => "; none was predicted".to_owned(),
        };
        lines.extend(inner(style, "gain", ink::STRONG, &text));
    }
    for warning in way.before_summary.warnings.iter().chain(&way.after_summary.warnings) {
        lines.extend(inner(style, "warning", ink::WARN, warning));
    }
    lines
}

/// `3.02 Mbit/s, median of 3; mean 2.99 to 3.05 Mbit/s (95 %)`.
fn summary(of: &RepeatSummary) -> String {
    let Some(median) = of.median_bps else { return "not measured".to_owned() };
    let mut text = format!("{}, median of {}", rate(median), of.count);
    if let (Some(low), Some(high)) = (of.mean_low_bps, of.mean_high_bps) {
        let sure = of.confidence * 100.0;
        text += &format!("; the mean lies in {} to {} ({sure:.0} %)", rate(low), rate(high));
    }
    text
}

fn rate(bps: f64) -> String {
    BitRate::from_bps_f64(bps).to_string()
}

fn signed(bps: f64) -> String {
    let sign = if bps < 0.0 { "-" } else { "+" };
    format!("{sign}{}", rate(bps.abs()))
}

fn direction(direction: Direction) -> &'static str {
    match direction {
        Direction::Forward => "to the server",
        Direction::Reverse => "from the server",
        Direction::Both => "both ways",
    }
}

/// The end: before and now, what stays, what is left to the other end. `undo`
/// is the command that undoes a step that was kept.
#[must_use]
pub fn verified(report: &VerifyReport, undo: &str, style: &Style) -> String {
    let mut lines = Vec::new();
    let kept = report.steps.iter().filter(|step| step.verdict == StepVerdict::Kept).count();
    for (first, last) in report.first.iter().zip(&report.last) {
        let (before, now) = (first.throughput_bps, last.throughput_bps);
        let text = if kept == 0 {
            format!("{now}, as before")
        } else {
            let gain = now.as_f64() / before.as_f64().max(1.0);
            format!("{before} before, {now} now: {gain:.2} times as much")
        };
        lines.extend(row(style, "Goodput", &text));
        lines.extend(holds(last, style));
    }
    if report.first.is_empty() {
        lines.extend(row(style, "Goodput", "not measured"));
    }
    let count = format!("{kept} of {} steps", report.steps.len());
    let text = match kept {
        0 => format!("{count}; all settings are as they were"),
        _ => format!("{count}; until the next boot (longhaul tune apply --persist is for longer)"),
    };
    lines.extend(row(style, "Kept", &text));
    if kept > 0 {
        let each = if kept > 1 { ", once for each step, or --all" } else { "" };
        lines.extend(row(style, "Undo", &format!("{undo}{each}")));
    }
    for needs in &report.far_end {
        let promise = match needs.expects_bps {
            Some(rate) => format!("to be expected: {rate}, {}", needs.why),
            None => needs.why.clone(),
        };
        let text = format!("on {}: {}", report.target, needs.command);
        lines.extend(labelled(style, 0, (ink::WARN, "Far end"), COLUMN, (ink::STRONG, &text)));
        lines.extend(row(style, "", &promise));
    }
    for note in &report.notes {
        lines.extend(labelled(style, 0, (ink::DIM, "Note"), COLUMN, (ink::PLAIN, note)));
    }
    if report.interrupted {
        let text = "interrupted; what was not decided is as it was before";
        lines.extend(labelled(style, 0, (ink::WARN, "Ended"), COLUMN, (ink::PLAIN, text)));
    }
    block(lines)
}

fn holds(finding: &Finding, style: &Style) -> Vec<Line> {
    let name = words::limit_name(finding.limit);
    labelled(
        style,
        0,
        (ink::STRONG, "Limit"),
        COLUMN,
        (ink::PLAIN, &format!("{name}: {}", finding.sentence)),
    )
}
