//! Statistics of repeated tests, and the comparison of two results.

use super::{
    Style,
    line::{Line, block, labelled, wrap},
    style,
};
use record::{Comparison, Decided, RepeatSummary, RunFigures};
use units::{BitRate, percent};

/// Column of the texts.
const COLUMN: usize = 14;

/// Right ends of a run's goodputs: of the steady part, and of the whole test.
const RATES: [usize; 2] = [20, 34];

/// Column of the bars.
const BARS: usize = 36;

/// Columns of the longest bar.
const BAR: usize = 28;

/// The meaning of the columns.
const COLUMNS: &str = "Goodput is the payload received. steady: after the ramp-up, the basis of \
                       median, mean and std dev. whole test: as iperf3 and the server's log count \
                       it.";

fn rate(bps: f64) -> String {
    BitRate::from_bps_f64(bps).to_string()
}

/// The runs as bars, and their statistics.
#[must_use]
pub fn repeats(runs: &[RunFigures], summary: &RepeatSummary, style: &Style) -> String {
    let most = summary.max_bps.filter(|most| *most > 0.0).unwrap_or(1.0);
    let head = Line::new(style).right(style::DIM, "steady", RATES[0]);
    let head = head.right(style::DIM, "whole test", RATES[1]).to(BARS);
    let mut lines = vec![
        Line::new(style).put(style::STRONG, &format!("{} runs", runs.len())),
        head.put(style::DIM, "steady; retransmitted segments"),
    ];
    let mark = if style.unicode { "█" } else { "#" };
    for (number, run) in (1..).zip(runs) {
        let share = (run.throughput_bps.as_f64() / most).clamp(0.0, 1.0);
        let bar = ((share * BAR as f64).round() as usize).max(1);
        let retransmits = run.retransmits.map_or(String::new(), |count| format!("  {count} retr"));
        lines.push(
            Line::new(style)
                .right(style::DIM, &number.to_string(), 4)
                .right(style::STRONG, &run.throughput_bps.to_string(), RATES[0])
                .right(style::PLAIN, &run.average_bps.to_string(), RATES[1])
                .to(BARS)
                .put(style::run(1), &mark.repeat(bar))
                .put(style::DIM, &retransmits),
        );
    }
    let mut row = |label: &str, text: &str| {
        lines.extend(labelled(style, 2, (style::DIM, label), COLUMN, (style::STRONG, text)));
    };
    if !summary.limit_sentence.is_empty() {
        row("limit", &summary.limit_sentence);
    }
    if let Some(median) = summary.median_bps {
        row("median", &rate(median));
    }
    if let (Some(mean), Some(low), Some(high)) =
        (summary.mean_bps, summary.mean_low_bps, summary.mean_high_bps)
    {
        let text = format!(
            "{}, {} confidence interval {} to {} (Student's t)",
            rate(mean),
            percent(summary.confidence),
            rate(low),
            rate(high)
        );
        row("mean", &text);
    }
    if let Some(variation) = summary.variation {
        row("std dev", &format!("{} of the mean", percent(variation)));
    }
    for part in wrap(style, COLUMNS, style.text_width().saturating_sub(2)) {
        lines.push(Line::new(style).to(2).put(style::DIM, &part));
    }
    for warning in &summary.warnings {
        lines.extend(labelled(style, 2, (style::WARN, "warning"), COLUMN, (style::PLAIN, warning)));
    }
    block(lines)
}

/// Returns true if two results differ.
#[must_use]
pub fn comparison(found: &Comparison, style: &Style) -> String {
    let tone = match found.real {
        Some(true) if found.difference_bps < 0.0 => style::BAD,
        Some(true) => style::GOOD,
        _ => style::STRONG,
    };
    block(labelled(style, 0, (style::STRONG, "Baseline"), COLUMN, (tone, &found.sentence)))
}

/// The answer of a second test.
#[must_use]
pub fn decision(decided: &Decided, style: &Style) -> String {
    let tone = if decided.limit.is_some() { style::GOOD } else { style::STRONG };
    block(labelled(style, 0, (style::STRONG, "Decision"), COLUMN, (tone, &decided.sentence)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(mbit: u64) -> RunFigures {
        RunFigures {
            started_unix_s: 0,
            throughput_bps: BitRate::from_bps(mbit * 1_000_000),
            average_bps: BitRate::from_bps(mbit * 900_000),
            block_s: 1.0,
            blocks_bps: Vec::new(),
            received_bytes: 1,
            retransmits: Some(mbit),
            limit: None,
            min_rtt_ms: None,
            other_bytes: None,
            latency: None,
            sentence: String::new(),
            notes: Vec::new(),
        }
    }

    #[test]
    fn runs_are_bars_and_warnings_are_shown() {
        let summary = RepeatSummary {
            count: 2,
            median_bps: Some(75e6),
            mean_bps: Some(75e6),
            min_bps: Some(50e6),
            max_bps: Some(100e6),
            mean_low_bps: Some(0.0),
            mean_high_bps: Some(392e6),
            confidence: 0.95,
            variation: Some(0.47),
            two_groups: false,
            limit: None,
            limits: Vec::new(),
            limit_sentence: "loss in 2 of 2 runs".to_owned(),
            warnings: vec!["the runs disagree".to_owned()],
        };
        let style = Style { colour: false, width: 80, unicode: false };
        let text = repeats(&[run(100), run(50)], &summary, &style);
        assert!(text.is_ascii() && text.lines().all(|line| line.len() <= 80), "{text}");
        assert!(
            text.contains(&format!(" 100 Mbit/s     90 Mbit/s  {}  100 retr", "#".repeat(28))),
            "{text}"
        );
        assert!(text.contains(&format!(" {}  50 retr", "#".repeat(14))), "{text}");
        assert!(text.contains("  warning     the runs disagree"), "{text}");
        assert!(text.contains("  limit       loss in 2 of 2 runs\n"), "{text}");
        assert!(
            text.starts_with("2 runs\n              steady    whole test  steady; retr"),
            "{text}"
        );
        assert!(text.contains("median, mean and std"), "{text}");
        assert!(text.contains("95 % confidence interval 0 bit/s to 392"), "{text}");
    }
}
