//! A test on one screen: rate, RTT idle and under load, latency grade, cause and fix.

use super::doctor::{SHELL, pasted};
use super::{
    Style,
    line::{Line, block, labelled},
    style,
};
use crate::wording;
use record::{Finding, Measurement};

/// Column of the texts.
const COLUMN: usize = 12;

/// Lines of a terminal of 24 lines beside the prompts before and after.
const MAX_LINES: usize = 22;

/// Lines of the finding's sentence.
const MAX_OF_SENTENCE: usize = 6;

/// What to do about the limit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fix {
    /// Where the command runs, or why there is none: `on the server`.
    pub text: String,
    /// The command, as a shell takes it.
    pub command: Option<String>,
}

/// The result of a test in at most 22 lines, wherever the terminal has 80 columns; `notes` as far
/// as they fit.
#[must_use]
pub fn one_screen(
    m: &Measurement,
    finding: &Finding,
    fix: &Fix,
    notes: &[String],
    style: &Style,
) -> String {
    let row = |label: &str, tone, text: &str| {
        labelled(style, 0, (style::DIM, label), COLUMN, (tone, text))
    };
    let whole = finding.average_bps;
    let rate = format!("{} (whole test {whole}) to {}", finding.throughput_bps, m.spec.target);
    let mut lines = row("Rate", style::STRONG, &rate);
    let [idle, loaded] = round_trips(m, finding);
    lines.extend(row("RTT idle", style::PLAIN, &idle));
    lines.extend(row("RTT loaded", style::PLAIN, &loaded));
    let grade = m.latency.as_ref().and_then(wording::bufferbloat);
    let grade = grade.unwrap_or_else(|| "unknown: the RTT under load was not measured".to_owned());
    lines.extend(row("Grade", style::STRONG, &grade));
    let tone = style::tone(wording::tone(finding.limit));
    let name = wording::limit_with_confidence(finding);
    let cause = format!("{name}: {}", wording::verdict(finding.limit));
    lines.extend(row("Cause", tone, &cause));
    let mut sentence = row("", style::PLAIN, &finding.sentence);
    if sentence.len() > MAX_OF_SENTENCE {
        sentence.truncate(MAX_OF_SENTENCE - 1);
        sentence.push(Line::new(style).to(COLUMN).put(style::DIM, "... without --brief"));
    }
    lines.extend(sentence);
    lines.extend(row("Fix", style::STRONG, &fix.text));
    lines.extend(fix.command.iter().flat_map(|command| pasted(command, SHELL, style)));
    add_notes(&mut lines, notes, style);
    block(lines)
}

/// The RTT before the load and under it, with their sources.
fn round_trips(m: &Measurement, finding: &Finding) -> [String; 2] {
    let probed = m.latency.as_ref();
    let ms = |ms: Option<f64>| ms.map(|ms| format!("{ms:.1} ms, mean of probes"));
    let idle = ms(probed.and_then(|latency| latency.before.mean_ms));
    let loaded = ms(probed.and_then(|latency| latency.during.mean_ms));
    let least = || finding.min_rtt.map(|rtt| format!("{rtt}, minimum of the transfer"));
    let smoothed = || finding.loaded_rtt.map(|rtt| format!("{rtt}, median of the transfer"));
    let or_unknown = |text: Option<String>| text.unwrap_or_else(|| "unknown".to_owned());
    [or_unknown(idle.or_else(least)), or_unknown(loaded.or_else(smoothed))]
}

/// Adds the notes that fit, and the number of the others.
fn add_notes(lines: &mut Vec<Line>, notes: &[String], style: &Style) {
    for (number, note) in notes.iter().enumerate() {
        let text = (style::PLAIN, note.as_str());
        let more = labelled(style, 0, (style::WARN, "Note"), COLUMN, text);
        // Further notes need a line of their own.
        let last = usize::from(number + 1 < notes.len());
        if lines.len() + more.len() + last > MAX_LINES {
            let left = notes.len() - number;
            let text = format!("{left} more without --brief");
            lines.extend(labelled(style, 0, (style::WARN, "Notes"), COLUMN, (style::DIM, &text)));
            return;
        }
        lines.extend(more);
    }
}
