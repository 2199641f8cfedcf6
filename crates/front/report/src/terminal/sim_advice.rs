//! Congestion controls compared over a path: the table, the answer, its price.

use super::sim_table::{Row, has_ranges, table};
use super::tune::row;
use super::{
    Style,
    finding::next,
    line::{Line, block},
    style,
};
use crate::wording::spread;
use record::{AdvisedControl, RunRange, SimAdvice};
use units::{BitRate, percent, significant};

/// Columns of the controls.
const HEAD: [&str; 6] = ["control", "goodput", "queue p95", "retr", "with cubic", "harm"];

/// The answer to which congestion control a path is best used with.
#[must_use]
pub fn sim_advice(advice: &SimAdvice, style: &Style) -> String {
    let mut lines = row(style, "Path", style::PLAIN, &advice.link);
    let best = advice.best.as_deref();
    let rows: Vec<Row> = advice.controls.iter().map(|one| control(one, best)).collect();
    let ranges = if has_ranges(&HEAD, &rows, style) { ", ranges in parentheses" } else { "" };
    let runs = format!(
        "{} of {} s each, alone and beside a CUBIC flow; medians{ranges}",
        advice.seeds.len(),
        significant(advice.seconds, 3)
    );
    lines.extend(row(style, "Runs", style::PLAIN, &runs));
    lines.push(Line::new(style));
    lines.extend(table(&HEAD, &rows, style));
    lines.push(Line::new(style));
    lines.extend(row(style, "Answer", style::STRONG, &advice.sentence));
    if !advice.price.is_empty() {
        lines.extend(row(style, "Price", style::PLAIN, &advice.price));
    }
    if let Some(setting) = &advice.setting {
        lines.extend(row(style, "Setting", style::PLAIN, setting));
    }
    for note in &advice.notes {
        lines.extend(row(style, "Note", style::DIM, note));
    }
    if let Some(command) = &advice.next {
        lines.push(Line::new(style));
        lines.extend(next(command, style));
    }
    block(lines)
}

fn control(one: &AdvisedControl, best: Option<&str>) -> Row {
    let ends = |range: &RunRange, shown: &dyn Fn(f64) -> String| {
        spread([range.median, range.low, range.high].map(shown), '-')
    };
    let is_best = best == Some(one.control.as_str());
    Row {
        cells: vec![
            if is_best { format!("> {}", one.control) } else { format!("  {}", one.control) },
            ends(&one.goodput_bps, &|bps| BitRate::from_bps_f64(bps).to_string()),
            ends(&one.queueing_ms, &|ms| format!("{} ms", significant(ms, 2))),
            percent(one.retransmitted.median),
            BitRate::from_bps_f64(one.beside_cubic_bps.median).to_string(),
            percent(one.harm.median),
        ],
        tone: if is_best { style::GOOD } else { style::STRONG },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_best_is_marked_and_ranges_share_a_unit() {
        let range = |median, low, high| RunRange { median, low, high };
        let control = |name: &str, mbit: f64| AdvisedControl {
            control: name.to_owned(),
            goodput_bps: range(mbit * 1e6, mbit * 9e5, mbit * 1.1e6),
            queueing_ms: range(5.0, 5.0, 5.0),
            retransmitted: range(0.01, 0.01, 0.02),
            beside_cubic_bps: range(1e6, 1e6, 1e6),
            harm: range(0.5, 0.4, 0.6),
        };
        let advice = SimAdvice {
            schema: String::new(),
            version: String::new(),
            link: "rate=100mbit,rtt=40ms".to_owned(),
            seconds: 20.0,
            seeds: vec![1, 2],
            packets: 10,
            controls: vec![control("cubic", 50.0), control("bbr", 90.0)],
            best: Some("bbr".to_owned()),
            sentence: "bbr: 90 Mbit/s.".to_owned(),
            price: "bbr takes 50 %.".to_owned(),
            setting: Some("sysctl -w x=bbr".to_owned()),
            notes: Vec::new(),
            next: None,
        };
        let text = sim_advice(&advice, &Style { colour: false, width: 100, unicode: true });
        for shown in ["> bbr", "90 Mbit/s (81-99)", "50 %", "5 ms", "sysctl -w x=bbr"] {
            assert!(text.contains(shown), "{shown}: {text}");
        }
        let narrow = sim_advice(&advice, &Style { colour: false, width: 50, unicode: true });
        assert!(narrow.contains("> bbr") && narrow.contains("harm"), "{narrow}");
        assert!(!narrow.contains("(81-99)") && !narrow.contains("parentheses"), "{narrow}");
        assert!(!narrow.contains('…'), "{narrow}");
    }
}
