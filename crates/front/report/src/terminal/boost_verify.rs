//! Direct and boosted runs: a line for each, then the gain.

use super::finding::next;
use super::tune::row;
use super::{
    Style,
    line::{Line, block, labelled},
    style,
};
use record::{BoostRun, BoostVerdict, BoostVerification};
use units::significant;

/// One run: `boosted 3.1 s, 90 Mbit/s, 100 MB, CPU 0.4 s, set up in 0.6 s`.
#[must_use]
pub fn boost_run(run: &BoostRun) -> String {
    let seconds = |time: f64| format!("{} s", significant(time, 3));
    let mut parts = vec![seconds(run.seconds)];
    parts.extend(run.goodput_bps.map(|rate| rate.to_string()));
    parts.extend(run.bytes.map(|bytes| bytes.decimal().to_string()));
    parts.push(format!("CPU {}", seconds(run.cpu_s)));
    parts.extend(run.setup_s.map(|setup| format!("connected to far in {}", seconds(setup))));
    parts.extend(run.failed.as_ref().map(|why| format!("failed: {why}")));
    format!("{} {}", run.way.name(), parts.join(", "))
}

/// The whole comparison.
#[must_use]
pub fn boost_verification(of: &BoostVerification, style: &Style) -> String {
    let mut lines = row(style, "Command", style::PLAIN, &of.command);
    for (label, text) in [("Far", &of.far), ("Path", &of.path)] {
        if let Some(text) = text {
            lines.extend(row(style, label, style::PLAIN, text));
        }
    }
    for (number, run) in (1..).zip(&of.runs) {
        let tone = if run.failed.is_some() { style::WARN } else { style::PLAIN };
        let label = format!("{number:>3}");
        lines.extend(labelled(style, 2, (style::DIM, &label), 10, (tone, &boost_run(run))));
    }
    lines.push(Line::new(style));
    let tone = match of.verdict {
        BoostVerdict::Gain | BoostVerdict::NoGain => style::STRONG,
        BoostVerdict::CannotTell => style::WARN,
    };
    lines.extend(row(style, "Result", tone, &of.sentence));
    for note in &of.notes {
        lines.extend(row(style, "Note", style::DIM, note));
    }
    if of.interrupted {
        lines.extend(row(style, "Note", style::WARN, "interrupted; the runs before it count"));
    }
    if let Some(command) = &of.next {
        lines.push(Line::new(style));
        lines.extend(next(command, style));
    }
    block(lines)
}

#[cfg(test)]
mod tests {
    use super::*;
    use record::{BoostMeasure, BoostWay, BoostWaySummary, CommandHost, NextCommand};
    use units::ByteCount;

    #[test]
    fn runs_are_rows_and_hostile_text_is_shown() {
        let run = |way, failed: Option<&str>| BoostRun {
            way,
            seconds: 3.24159,
            setup_s: (way == BoostWay::Boosted).then_some(0.51),
            bytes: Some(ByteCount::from_bytes(100_000_000)),
            goodput_bps: None,
            cpu_s: 0.4,
            failed: failed.map(str::to_owned),
        };
        let summary = BoostWaySummary {
            completed: 1,
            failed: 0,
            median_s: Some(3.24),
            median_bps: None,
            cpu_s_per_gb: None,
        };
        let of = BoostVerification {
            schema: String::new(),
            version: String::new(),
            command: "rclone copy a\u{1b}[2J b:".to_owned(),
            far: Some("far.example".to_owned()),
            path: None,
            measure: BoostMeasure::Time,
            runs: vec![
                run(BoostWay::Direct, None),
                run(BoostWay::Boosted, Some("exit code 1: \u{7}")),
            ],
            direct: summary,
            boosted: summary,
            gain: None,
            verdict: BoostVerdict::CannotTell,
            harm: None,
            sentence: "Cannot tell.".to_owned(),
            interrupted: true,
            notes: vec!["a note".to_owned()],
            next: Some(NextCommand {
                command: "longhaul boost plan HOST".to_owned(),
                on: CommandHost::Here,
                why: "predicts".to_owned(),
            }),
        };
        let text = boost_verification(&of, &Style { colour: false, width: 90, unicode: true });
        for shown in [
            "direct 3.24 s, 100 MB, CPU 0.4 s",
            "connected to far in 0.51 s, failed: exit",
            "Cannot tell.",
            "interrupted",
            "longhaul boost plan HOST",
        ] {
            assert!(text.contains(shown), "{shown}: {text}");
        }
        assert!(!text.contains(['\u{1b}', '\u{7}']), "{text:?}");
    }
}
