//! Step-by-step tuning with verification: the plan, the result of each step, and the
//! settings kept.

use super::{
    Style, finding,
    line::{Line, block, labelled},
    settings, style,
};
use crate::wording;
use record::{
    Direction, Finding, PlannedSetting, RepeatSummary, StepDirection, StepVerdict, VerifyGoal,
    VerifyReport, VerifyStep,
};
use units::BitRate;

/// Column of the texts.
const COLUMN: usize = 12;

fn row(style: &Style, label: &str, text: &str) -> Vec<Line> {
    labelled(style, 0, (style::STRONG, label), COLUMN, (style::PLAIN, text))
}

fn inner(style: &Style, label: &str, tone: anstyle::Style, text: &str) -> Vec<Line> {
    labelled(style, 2, (style::DIM, label), COLUMN, (tone, text))
}

fn goal(goal: &VerifyGoal) -> String {
    let from = match goal.rate_from.as_str() {
        "asked" => String::new(),
        other => format!(" ({other})"),
    };
    let measured = if goal.rtt_from == "asked" { "" } else { " (measured)" };
    format!("{}{from} over {}{measured}", goal.rate_bps, goal.rtt)
}

/// The plan: the name and settings of each step; `tests` runs of `seconds` each.
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
        0 => "nothing to change; one test identifies the limit".to_owned(),
        1 => "1 step".to_owned(),
        many => format!("{many} steps"),
    };
    let plural = if tests == 1 { "" } else { "s" };
    let time = format!("{count}; {tests} test{plural} of {seconds:.0} s, about {about:.0} min");
    lines.extend(row(style, "Duration", &time));
    for (number, (name, settings)) in (1..).zip(steps) {
        lines.extend(row(style, &format!("Step {number}"), name));
        for setting in *settings {
            lines.extend(settings::planned(setting, style));
        }
    }
    block(lines)
}

/// The result of a step.
#[must_use]
pub fn verify_step(step: &VerifyStep, style: &Style) -> String {
    block(step_lines(step, style))
}

fn step_lines(step: &VerifyStep, style: &Style) -> Vec<Line> {
    let (tone, word) = match step.verdict {
        StepVerdict::Kept => (style::GOOD, "kept"),
        StepVerdict::RolledBack => (style::WARN, "rolled back"),
        StepVerdict::Skipped => (style::WARN, "skipped"),
        StepVerdict::Interrupted => (style::WARN, "interrupted, rolled back"),
        StepVerdict::Stuck => (style::BAD, "not all settings restored"),
    };
    let mut lines = vec![
        Line::new(style).put(style::STRONG, &step.name).put(style::PLAIN, ": ").put(tone, word),
    ];
    for one in &step.written {
        lines.extend(settings::written(one, style));
    }
    let several = step.directions.len() > 1;
    for direction in &step.directions {
        lines.extend(direction_lines(direction, several, style));
    }
    lines.extend(inner(style, "reason", style::PLAIN, &step.because));
    lines
}

fn direction_lines(of: &StepDirection, several: bool, style: &Style) -> Vec<Line> {
    let mut lines = Vec::new();
    if several {
        lines.push(Line::new(style).to(2).put(style::STRONG, direction_name(of.direction)));
    }
    lines.extend(inner(style, "before", style::PLAIN, &summary(&of.before_summary)));
    lines.extend(inner(style, "after", style::PLAIN, &summary(&of.after_summary)));
    if of.after_summary.count > 0 {
        let mut text = signed(of.comparison.difference_bps);
        if let Some(share) = of.comparison.difference_share {
            text += &format!(", {}", units::change(share));
        }
        text += &match (of.predicted_bps, of.of_predicted_gain) {
            (Some(_), Some(share)) => {
                let gain = of.comparison.difference_bps / share;
                format!(
                    "; predicted {}, {} of it achieved",
                    signed(gain),
                    wording::whole_percent(share)
                )
            }
            (Some(rate), None) => format!("; predicted {rate}"),
            (None, _) => "; no prediction".to_owned(),
        };
        lines.extend(inner(style, "gain", style::STRONG, &text));
    }
    for warning in of.before_summary.warnings.iter().chain(&of.after_summary.warnings) {
        lines.extend(inner(style, "warning", style::WARN, warning));
    }
    lines
}

/// `3.02 Mbit/s, median of 3; mean 2.99 Mbit/s to 3.05 Mbit/s (95 % confidence)`.
fn summary(of: &RepeatSummary) -> String {
    let Some(median) = of.median_bps else { return "not measured".to_owned() };
    let mut text = format!("{}, median of {}", rate(median), of.count);
    if let (Some(low), Some(high)) = (of.mean_low_bps, of.mean_high_bps) {
        let confidence = units::percent(of.confidence);
        text += &format!("; mean {} to {} ({confidence} confidence)", rate(low), rate(high));
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

fn direction_name(direction: Direction) -> &'static str {
    match direction {
        Direction::Forward => "to the server",
        Direction::Reverse => "from the server",
        Direction::Both => "both directions",
    }
}

/// The final result: goodput before and now, the settings kept, the changes needed at
/// the far end. `undo` is the command that reverts a kept step.
#[must_use]
pub fn verify_report(report: &VerifyReport, undo: &str, style: &Style) -> String {
    let mut lines = Vec::new();
    let kept = report.steps.iter().filter(|step| step.verdict == StepVerdict::Kept).count();
    for (first, last) in report.first.iter().zip(&report.last) {
        let (before, now) = (first.throughput_bps, last.throughput_bps);
        let text = if kept == 0 {
            format!("{now}, unchanged")
        } else {
            let gain = now.as_f64() / before.as_f64().max(1.0);
            format!("{before} before, {now} now: {gain:.2} times as fast")
        };
        lines.extend(row(style, "Goodput", &text));
        lines.extend(limit(last, style));
    }
    if report.first.is_empty() {
        lines.extend(row(style, "Goodput", "not measured"));
    }
    let plural = if report.steps.len() == 1 { "" } else { "s" };
    let count = format!("{kept} of {} step{plural}", report.steps.len());
    let text = match kept {
        0 => format!("{count}; all settings have their original values"),
        _ => format!("{count}; until the next boot (longhaul tune apply --persist keeps settings)"),
    };
    lines.extend(row(style, "Kept", &text));
    if kept > 0 {
        let each = if kept > 1 { ", once per step, or --all" } else { "" };
        lines.extend(row(style, "Undo", &format!("{undo}{each}")));
    }
    for needs in &report.far_end {
        let expectation = match needs.expects_bps {
            Some(rate) => format!("expected: {rate}, {}", needs.why),
            None => needs.why.clone(),
        };
        let text = format!("on {}: {}", report.target, needs.command);
        lines.extend(labelled(style, 0, (style::WARN, "Far end"), COLUMN, (style::STRONG, &text)));
        lines.extend(row(style, "", &expectation));
    }
    for note in &report.notes {
        lines.extend(labelled(style, 0, (style::DIM, "Note"), COLUMN, (style::PLAIN, note)));
    }
    if report.interrupted {
        let text = "interrupted; settings of undecided steps were restored";
        lines.extend(labelled(style, 0, (style::WARN, "Stopped"), COLUMN, (style::PLAIN, text)));
    }
    block(lines)
}

fn limit(last: &Finding, style: &Style) -> Vec<Line> {
    let name = wording::limit_name(last.limit);
    let mut lines = row(style, "Limit", &format!("{name}: {}", last.sentence));
    if let Some(next) = &last.next {
        lines.extend(finding::next(next, style));
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::super::fit::{assert_fits, styles};
    use super::*;
    use record::{
        Comparison, FarEndChange, Limit, Outcome, Shares, Steady, VERIFY_SCHEMA, VerifyReport,
        Written,
    };
    use units::Rtt;

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
            limit: None,
            limits: Vec::new(),
            limit_sentence: String::new(),
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
            posterior: vec![],
            segments: vec![],
            bottleneck: None,
            caveats: Vec::new(),
            next: None,
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
        let step_in = |direction| StepDirection {
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
            not_reverted: vec![],
            directions: vec![step_in(Direction::Forward), step_in(direction)],
            verdict,
            because: "It is really faster … by µ.".to_owned(),
            journal: None,
        }
    }

    #[test]
    fn every_verdict_on_a_step_is_shown_and_fits() {
        use StepVerdict::{Interrupted, Kept, RolledBack, Skipped, Stuck};
        let wide = Style { colour: false, width: 200, unicode: true };
        for (verdict, heading) in [
            (Kept, "buffers: kept"),
            (RolledBack, "buffers: rolled back"),
            (Skipped, "buffers: skipped"),
            (Interrupted, "buffers: interrupted, rolled back"),
            (Stuck, "buffers: not all settings restored"),
        ] {
            let step = step(verdict, Direction::Reverse);
            for style in styles() {
                assert_fits(&verify_step(&step, &style), &style);
            }
            let text = verify_step(&step, &wide);
            assert!(text.starts_with(heading) && text.contains("from the server"), "{text}");
            assert!(text.contains("predicted +93 Mbit/s, 94 % of it achieved"), "{text}");
        }
    }

    #[test]
    fn the_result_lists_kept_settings_and_far_end_changes() {
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
            far_end: vec![FarEndChange {
                direction: Direction::Forward,
                command: "sysctl -w net.ipv4.tcp_rmem=\"4 5 6\"".to_owned(),
                expects_bps: None,
                why: "it is not known".to_owned(),
            }],
            interrupted: true,
            notes: vec!["a note that is long enough to be wrapped at forty columns".to_owned()],
        };
        for style in styles() {
            assert_fits(&verify_report(&report, "longhaul tune rollback", &style), &style);
            assert_fits(&verify_plan(&goal, &[("buffers", &[])], (6, 18.0), &style), &style);
        }
        let wide = Style { colour: false, width: 200, unicode: true };
        let text = verify_report(&report, "longhaul tune rollback", &wide);
        for part in [
            "3 Mbit/s before, 90 Mbit/s now: 30.00 times as fast",
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
