//! RTT before, during and after a load: three rows and a curve.

use super::{
    Style,
    line::{Line, block, labelled},
    ping::curve,
    style,
};
use crate::wording;
use record::{LatencyPhase, LatencyUnderLoad, Ping};

/// Column of the figures.
const COLUMN: usize = 14;

/// Width of one figure.
const WIDE: usize = 10;

/// The rise of the RTT under load.
#[must_use]
pub fn under_load(latency: &LatencyUnderLoad, style: &Style) -> String {
    let how = wording::probed_by(latency);
    let mut lines = vec![
        Line::new(style)
            .put(style::STRONG, "Latency under load")
            .put(style::DIM, &format!(", from {how}, in ms")),
    ];
    let names = ["min", "mean", "p50", "p95", "p99", "max", "lost"];
    let mut head = Line::new(style).to(COLUMN);
    for (at, name) in (1..).zip(names) {
        head = head.right(style::DIM, name, COLUMN - 4 + at * WIDE);
    }
    lines.push(head);
    for (label, phase) in
        [("before", &latency.before), ("during", &latency.during), ("after", &latency.after)]
    {
        lines.push(row(label, phase, style));
    }
    let probes: Vec<Ping> = (1..)
        .zip(&latency.probes)
        .map(|(number, probe)| Ping { number, sent_s: probe.at_s, rtt_ms: probe.rtt_ms })
        .collect();
    if probes.len() > 1 {
        lines.push(curve(&probes, style));
    }
    for (label, text) in
        [("bufferbloat", wording::bufferbloat(latency)), ("RPM", wording::responsiveness(latency))]
    {
        if let Some(text) = text {
            lines.extend(labelled(style, 2, (style::DIM, label), COLUMN, (style::STRONG, &text)));
        }
    }
    for note in &latency.notes {
        lines.extend(labelled(style, 2, (style::DIM, "note"), COLUMN, (style::PLAIN, note)));
    }
    block(lines)
}

fn row(label: &str, phase: &LatencyPhase, style: &Style) -> Line {
    let figure = |value: Option<f64>| value.map_or("-".to_owned(), |ms| format!("{ms:.2}"));
    // NaN, shown as `-`, where nothing was sent.
    let lost = wording::probe_loss(phase).unwrap_or_else(|| "-".to_owned());
    let mut line = Line::new(style).to(2).put(style::PLAIN, label);
    let figures =
        [phase.min_ms, phase.mean_ms, phase.p50_ms, phase.p95_ms, phase.p99_ms, phase.max_ms];
    for (at, value) in (1..).zip(figures) {
        line = line.right(style::STRONG, &figure(value), COLUMN - 4 + at * WIDE);
    }
    line.right(if phase.lost > 0 { style::BAD } else { style::PLAIN }, &lost, COLUMN - 4 + 7 * WIDE)
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

    fn example() -> LatencyUnderLoad {
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
    fn three_rows_a_curve_and_two_grades() {
        let style = Style { colour: false, width: 80, unicode: true };
        let text = under_load(&example(), &style);
        let expected = "\
Latency under load, from ICMP echo requests, in ms
                 min      mean       p50       p95       p99       max      lost
  before       40.00     40.00     40.00     40.00     40.00     40.00       1 %
  during      140.25    140.25    140.25    140.25    140.25    140.25       1 %
  after            -         -         -         -         -         -         -
  over time   ▁█×
  bufferbloat C: mean RTT +100.2 ms under load
  RPM         428 (fair): round trips per minute under load, from TCP handshakes
              with port 443
";
        assert_eq!(text, expected);
        let narrow = under_load(&example(), &Style { colour: false, width: 30, unicode: false });
        assert!(narrow.is_ascii() && narrow.lines().all(|line| line.len() <= 30), "{narrow}");
    }
}
