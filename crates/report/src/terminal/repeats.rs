//! Several tests side by side, and two results.

use super::{
    Style, ink,
    line::{Line, block, labelled},
};
use record::{Comparison, RepeatSummary, RunFigures};
use units::BitRate;

/// Where texts stand beside their labels.
const COLUMN: usize = 14;

/// Room of the longest bar.
const BAR: usize = 30;

fn rate(bps: f64) -> String {
    BitRate::from_bps_f64(bps).to_string()
}

/// The runs as bars, and what they come to.
#[must_use]
pub fn repeats(runs: &[RunFigures], summary: &RepeatSummary, style: &Style) -> String {
    let most = summary.max_bps.filter(|most| *most > 0.0).unwrap_or(1.0);
    let mut lines = vec![Line::new(style).put(ink::STRONG, &format!("{} runs", runs.len()))];
    let mark = if style.unicode { "█" } else { "#" };
    for (number, run) in (1..).zip(runs) {
        let share = (run.throughput_bps.as_f64() / most).clamp(0.0, 1.0);
        let bar = ((share * BAR as f64).round() as usize).max(1);
        let again = run.retransmits.map_or(String::new(), |count| format!("  {count} again"));
        lines.push(
            Line::new(style)
                .right(ink::DIM, &number.to_string(), 4)
                .right(ink::STRONG, &run.throughput_bps.to_string(), 20)
                .to(22)
                .put(ink::run(1), &mark.repeat(bar))
                .put(ink::DIM, &again),
        );
    }
    let mut said = |label: &str, text: &str| {
        lines.extend(labelled(style, 2, (ink::DIM, label), COLUMN, (ink::STRONG, text)));
    };
    if let Some(median) = summary.median_bps {
        said("median", &rate(median));
    }
    if let (Some(mean), Some(low), Some(high)) =
        (summary.mean_bps, summary.mean_low_bps, summary.mean_high_bps)
    {
        let sure = summary.confidence * 100.0;
        let text = format!(
            "{}; the true one lies between {} and {} ({sure:.0} %, Student's t)",
            rate(mean),
            rate(low),
            rate(high)
        );
        said("mean", &text);
    }
    if let Some(variation) = summary.variation {
        said("spread", &format!("{:.1} % of the mean", variation * 100.0));
    }
    for warning in &summary.warnings {
        lines.extend(labelled(style, 2, (ink::WARN, "warning"), COLUMN, (ink::PLAIN, warning)));
    }
    block(lines)
}

/// Whether two results differ.
#[must_use]
pub fn comparison(found: &Comparison, style: &Style) -> String {
    let tone = match found.real {
        Some(true) if found.difference_bps < 0.0 => ink::BAD,
        Some(true) => ink::GOOD,
        _ => ink::STRONG,
    };
    block(labelled(style, 0, (ink::STRONG, "Baseline"), COLUMN, (tone, &found.sentence)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(mbit: u64) -> RunFigures {
        RunFigures {
            started_unix_s: 0,
            throughput_bps: BitRate::from_bps(mbit * 1_000_000),
            average_bps: BitRate::ZERO,
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
    fn runs_are_bars_and_doubts_are_said() {
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
            warnings: vec!["the runs disagree".to_owned()],
        };
        let style = Style { colour: false, width: 80, unicode: false };
        let text = repeats(&[run(100), run(50)], &summary, &style);
        assert!(text.is_ascii() && text.lines().all(|line| line.len() <= 80), "{text}");
        assert!(text.contains(&format!("{}  100 again", "#".repeat(30))), "{text}");
        assert!(text.contains(&format!(" {}  50 again", "#".repeat(15))), "{text}");
        assert!(text.contains("  warning     the runs disagree"), "{text}");
        assert!(text.contains("between 0 bit/s and 392 Mbit/s (95 %"), "{text}");
    }
}
