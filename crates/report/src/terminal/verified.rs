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
    let plural = if report.steps.len() == 1 { "" } else { "s" };
    let count = format!("{kept} of {} step{plural}", report.steps.len());
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

#[cfg(test)]
mod tests {
    use super::*;
    use record::{
        Comparison, FarEndNeeds, Limit, Shares, Steady, VERIFY_SCHEMA, VerifyReport, Written,
    };
    use units::Rtt;

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

    fn summed(mbit: f64) -> RepeatSummary {
        RepeatSummary {
            count: 3,
            median_bps: Some(mbit * 1e6),
            mean_bps: Some(mbit * 1e6),
            min_bps: None,
            max_bps: None,
            mean_low_bps: Some(mbit * 0.99e6),
            mean_high_bps: Some(mbit * 1.01e6),
            confidence: 0.95,
            variation: None,
            two_groups: false,
            warnings: vec!["the runs disagree".to_owned()],
        }
    }

    fn finding(mbit: f64) -> Finding {
        Finding {
            throughput_bps: BitRate::from_bps_f64(mbit * 1e6),
            average_bps: BitRate::ZERO,
            steady: Steady { from_s: 0.0, to_s: 1.0 },
            predicted_bps: None,
            equation: None,
            limit: Some(Limit::SendBuffer),
            confidence: None,
            shares: Some(Shares::default()),
            min_rtt: None,
            loaded_rtt: None,
            sentence: "Send buffer limited … of the time.".to_owned(),
            remedies: vec![],
        }
    }

    fn step(verdict: StepVerdict, direction: Direction) -> VerifyStep {
        let comparison = Comparison {
            method: "runs".to_owned(),
            baseline_count: 3,
            baseline_bps: 3e6,
            count: 3,
            now_bps: 90e6,
            difference_bps: 87e6,
            difference_share: Some(29.0),
            low_bps: None,
            high_bps: None,
            confidence: 0.95,
            p: None,
            real: Some(true),
            sentence: "It is really faster.".to_owned(),
        };
        let way = |direction| StepWay {
            direction,
            before: vec![],
            before_summary: summed(3.0),
            after: vec![],
            after_summary: summed(90.0),
            comparison: comparison.clone(),
            predicted_bps: Some(BitRate::from_bps(96_000_000)),
            prediction: String::new(),
            of_predicted_gain: Some(87.0 / 93.0),
        };
        VerifyStep {
            name: "buffers".to_owned(),
            settings: vec![],
            written: vec![Written {
                key: "net.ipv4.tcp_wmem".to_owned(),
                before: "1 2 3".to_owned(),
                now: "4 5 6".to_owned(),
                outcome: Outcome::Set,
                note: String::new(),
            }],
            not_put_back: vec![],
            ways: vec![way(Direction::Forward), way(direction)],
            verdict,
            because: "It is really faster … by µ.".to_owned(),
            journal: None,
        }
    }

    #[test]
    fn every_end_of_a_step_is_told_and_fits() {
        use StepVerdict::{Interrupted, Kept, RolledBack, Skipped, Stuck};
        let wide = Style { colour: false, width: 200, unicode: true };
        for (verdict, says) in [
            (Kept, "buffers: kept"),
            (RolledBack, "buffers: rolled back"),
            (Skipped, "buffers: skipped"),
            (Interrupted, "buffers: interrupted, rolled back"),
            (Stuck, "buffers: not all put back"),
        ] {
            let step = step(verdict, Direction::Reverse);
            for style in styles() {
                fits(&verify_step(&step, &style), &style);
            }
            let text = verify_step(&step, &wide);
            assert!(text.starts_with(says) && text.contains("from the server"), "{text}");
            assert!(text.contains("predicted +93 Mbit/s, 94 % of it"), "{text}");
        }
    }

    #[test]
    fn the_end_says_what_stays_and_what_is_left_to_others() {
        let goal = VerifyGoal {
            rate_bps: BitRate::from_bps(100_000_000),
            rate_from: "the speed of eth0".to_owned(),
            rtt: Rtt::from_micros(173_000),
            rtt_from: "measured".to_owned(),
        };
        let report = VerifyReport {
            schema: VERIFY_SCHEMA.to_owned(),
            version: String::new(),
            target: "far.example".to_owned(),
            goal: goal.clone(),
            repeats: 3,
            seconds: 18.0,
            first: vec![finding(3.0)],
            last: vec![finding(90.0)],
            steps: vec![step(StepVerdict::Kept, Direction::Forward)],
            far_end: vec![FarEndNeeds {
                direction: Direction::Forward,
                command: "sysctl -w net.ipv4.tcp_rmem=\"4 5 6\"".to_owned(),
                expects_bps: None,
                why: "it is not known".to_owned(),
            }],
            interrupted: true,
            notes: vec!["a note that is long enough to be wrapped at forty columns".to_owned()],
        };
        for style in styles() {
            fits(&verified(&report, "longhaul tune rollback", &style), &style);
            fits(&verify_plan(&goal, &[("buffers", &[])], (6, 18.0), &style), &style);
        }
        let wide = Style { colour: false, width: 200, unicode: true };
        let text = verified(&report, "longhaul tune rollback", &wide);
        for part in [
            "3 Mbit/s before, 90 Mbit/s now: 30.00 times as much",
            "1 of 1 step;",
            "on far.example: sysctl -w net.ipv4.tcp_rmem=",
            "longhaul tune rollback",
            "interrupted",
        ] {
            assert!(text.contains(part), "{part}: {text}");
        }
        let text = verify_plan(&goal, &[("buffers", &[])], (6, 18.0), &wide);
        assert!(text.contains("100 Mbit/s (the speed of eth0) over 173 ms (measured)"), "{text}");
        assert!(text.contains("1 step; 6 tests of 18 s, about 2 min"), "{text}");
    }
}
