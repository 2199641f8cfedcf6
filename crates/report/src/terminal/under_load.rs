//! Round trips before, during and after a load: three rows and a curve.

use super::{
    Style, ink,
    latency::curve,
    line::{Line, block, labelled},
};
use crate::words;
use record::{LatencyPhase, LatencyUnderLoad, Ping};

/// Where the figures begin.
const COLUMN: usize = 14;

/// Columns of one figure.
const WIDE: usize = 10;

/// What a load added to round trips.
#[must_use]
pub fn under_load(seen: &LatencyUnderLoad, style: &Style) -> String {
    let how = words::probed_by(seen);
    let mut lines = vec![
        Line::new(style)
            .put(ink::STRONG, "Latency under load")
            .put(ink::DIM, &format!(", by {how}, in ms")),
    ];
    let names = ["min", "mean", "p50", "p95", "p99", "max", "lost"];
    let mut head = Line::new(style).to(COLUMN);
    for (at, name) in (1..).zip(names) {
        head = head.right(ink::DIM, name, COLUMN - 4 + at * WIDE);
    }
    lines.push(head);
    for (label, phase) in
        [("before", &seen.before), ("during", &seen.during), ("after", &seen.after)]
    {
        lines.push(row(label, phase, style));
    }
    let probes: Vec<Ping> = (1..)
        .zip(&seen.probes)
        .map(|(number, probe)| Ping { number, sent_s: probe.at_s, rtt_ms: probe.rtt_ms })
        .collect();
    if probes.len() > 1 {
        lines.push(curve(&probes, style));
    }
    for (label, text) in
        [("bufferbloat", words::bufferbloat(seen)), ("responds", words::responds(seen))]
    {
        if let Some(text) = text {
            lines.extend(labelled(style, 2, (ink::DIM, label), COLUMN, (ink::STRONG, &text)));
        }
    }
    for note in &seen.notes {
        lines.extend(labelled(style, 2, (ink::DIM, "note"), COLUMN, (ink::PLAIN, note)));
    }
    block(lines)
}

fn row(label: &str, phase: &LatencyPhase, style: &Style) -> Line {
    let figure = |value: Option<f64>| value.map_or("-".to_owned(), |ms| format!("{ms:.2}"));
    // Nothing sent is no share of it.
    let lost = words::lost(phase.lost as f64 / phase.count as f64);
    let mut line = Line::new(style).to(2).put(ink::PLAIN, label);
    let figures =
        [phase.min_ms, phase.mean_ms, phase.p50_ms, phase.p95_ms, phase.p99_ms, phase.max_ms];
    for (at, value) in (1..).zip(figures) {
        line = line.right(ink::STRONG, &figure(value), COLUMN - 4 + at * WIDE);
    }
    line.right(if phase.lost > 0 { ink::BAD } else { ink::PLAIN }, &lost, COLUMN - 4 + 7 * WIDE)
}

#[cfg(test)]
mod tests {
    use super::*;
    use record::LatencyProbe;

    fn phase(ms: f64) -> LatencyPhase {
        LatencyPhase {
            count: 100,
            lost: 1,
            min_ms: Some(ms),
            mean_ms: Some(ms),
            p50_ms: Some(ms),
            p90_ms: Some(ms),
            p95_ms: Some(ms),
            p99_ms: Some(ms),
            max_ms: Some(ms),
        }
    }

    fn seen() -> LatencyUnderLoad {
        LatencyUnderLoad {
            method: "icmp".to_owned(),
            port: None,
            interval_ms: 20.0,
            before: phase(40.0),
            during: phase(140.25),
            after: LatencyPhase::default(),
            rise_ms: Some(100.25),
            grade: Some("C".to_owned()),
            rpm_tcp: Some(428.2),
            rpm_word: Some("fair".to_owned()),
            rpm_port: Some(443),
            rpm_count: 200,
            probes: vec![
                LatencyProbe { at_s: -1.0, rtt_ms: Some(40.0) },
                LatencyProbe { at_s: 1.0, rtt_ms: Some(140.0) },
                LatencyProbe { at_s: 2.0, rtt_ms: None },
            ],
            notes: Vec::new(),
        }
    }

    #[test]
    fn three_rows_a_curve_and_two_words() {
        let style = Style { colour: false, width: 80, unicode: true };
        let text = under_load(&seen(), &style);
        let expected = "\
Latency under load, by ICMP echoes, in ms
                 min      mean       p50       p95       p99       max      lost
  before       40.00     40.00     40.00     40.00     40.00     40.00       1 %
  during      140.25    140.25    140.25    140.25    140.25    140.25       1 %
  after            -         -         -         -         -         -         -
  over time   ▁█×
  bufferbloat C: the load added 100.2 ms to the mean round trip
  responds    fair: 428 round trips a minute under load, at TCP level (connects
              to port 443)
";
        assert_eq!(text, expected);
        let narrow = under_load(&seen(), &Style { colour: false, width: 30, unicode: false });
        assert!(narrow.is_ascii() && narrow.lines().all(|line| line.len() <= 30), "{narrow}");
    }
}
