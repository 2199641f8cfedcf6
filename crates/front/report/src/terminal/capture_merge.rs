//! Two captures of one transfer: clocks, delays, losses and what was changed in between.

use super::{
    Style, capture_changes, capture_delays,
    line::{Line, block, wrap},
    style,
};
use crate::wording;
use capture_merge::{ClockBasis, ClockSegment, Merge, PacketFate, Transit, TransitSummary};
use units::{ByteCount, percent_with};

/// A capture that was aligned with another.
#[derive(Debug, Clone, Copy)]
pub struct MergedCapture<'a> {
    /// Its name.
    pub name: &'a str,
    /// Where it was made, in words.
    pub point: Option<&'a str>,
}

/// Column of the values.
pub(super) const VALUES: usize = 20;
/// Width of a direction's column.
const COLUMN: usize = 24;
/// Numbers of packets that are listed.
const LISTED: usize = 20;

/// The alignment of two captures.
#[must_use]
pub fn capture_merge(
    merge: &Merge,
    captures: [MergedCapture<'_>; 2],
    notes: &[String],
    style: &Style,
) -> String {
    let mut lines = Vec::new();
    for (side, (capture, name)) in captures.iter().zip(["A", "B"]).enumerate() {
        let line = Line::new(style).put(style::STRONG, name).to(3);
        lines.push(line.put(style::STRONG, capture.name));
        lines.extend(indented(3, &contents(merge, side, capture.point), style));
    }
    lines.push(Line::new(style));
    let [both, a_alone, b_alone] = merge.flows;
    let flows = format!("{both} in both, {a_alone} in A only, {b_alone} in B only");
    lines.extend(labelled("flows", &flows, style));
    for (place, text) in clock(merge).iter().enumerate() {
        lines.extend(labelled(if place == 0 { "clock" } else { "" }, text, style));
    }
    lines.push(Line::new(style));
    lines.extend(table(merge, style));
    lines.extend(capture_delays::graph(merge, style));
    lines.extend(lost_numbers(merge, style));
    lines.extend(capture_changes::changes(merge, style));
    for note in notes {
        lines.extend(indented(0, note, style));
    }
    block(lines)
}

fn indented(column: usize, text: &str, style: &Style) -> Vec<Line> {
    let parts = wrap(style, text, style.text_width().saturating_sub(column).max(20));
    parts.iter().map(|part| Line::new(style).to(column).put(style::PLAIN, part)).collect()
}

pub(super) fn labelled(label: &str, text: &str, style: &Style) -> Vec<Line> {
    let parts = wrap(style, text, style.text_width().saturating_sub(VALUES).max(20));
    let mut label = Some(label);
    let each = parts.iter().map(|part| {
        let line = Line::new(style).put(style::DIM, label.take().unwrap_or_default());
        line.to(VALUES).put(style::PLAIN, part)
    });
    each.collect()
}

fn contents(merge: &Merge, side: usize, point: Option<&str>) -> String {
    let counts = merge.counts[side];
    let (first, last) = merge.spans[side];
    let mut text = format!(
        "{} in {:.3} s",
        wording::counted(counts.packets, "packet"),
        last.saturating_sub(first) as f64 / 1e9
    );
    let begins = first.saturating_sub(merge.spans[0].0) as f64 / 1e9;
    if side == 1 {
        let word = if begins < 0.0 { "before" } else { "after" };
        text += &format!(", starting {:.3} s {word} A", begins.abs());
    }
    if let Some(point) = point {
        text += &format!(", captured {point}");
    }
    for (count, what) in [
        (counts.outside, "while the other capture was not running"),
        (counts.without_partner, "of flows missing from the other capture"),
        (counts.not_compared, "not compared"),
    ] {
        if count > 0 {
            text += &format!("; {count} {what}");
        }
    }
    text
}

/// A time with three digits or so: `20.1 ms`, `850 µs`, `3.2 s`.
fn time(ns: f64) -> String {
    let (value, unit) = match ns.abs() {
        size if size >= 1e9 => (ns / 1e9, "s"),
        size if size >= 1e6 => (ns / 1e6, "ms"),
        size if size >= 1e3 || size == 0.0 => (ns / 1e3, "µs"),
        _ => (ns, "ns"),
    };
    let places = match value.abs() {
        size if size >= 100.0 || size == 0.0 => 0,
        size if size >= 10.0 => 1,
        _ => 2,
    };
    format!("{value:.places$} {unit}")
}

fn clock(merge: &Merge) -> Vec<String> {
    let clock = &merge.clock;
    let mut texts: Vec<String> = match (clock.basis, &clock.segments[..]) {
        (ClockBasis::Nothing, _) => {
            let text = "unknown, as no packet can be identified in both captures: timestamps are \
                        used unchanged";
            return vec![text.to_owned()];
        }
        (ClockBasis::SameClock, _) => return vec!["the same for both, as specified".to_owned()],
        (_, [first, rest @ ..]) => {
            let start = merge.spans[0].0;
            let later = rest.iter().map(|segment| {
                let at = segment.from_ns.saturating_sub(start) as f64 / 1e9;
                format!("a clock was set at {at:.3} s; after that {}", offset(segment))
            });
            std::iter::once(offset(first)).chain(later).collect()
        }
        (_, []) => Vec::new(),
    };
    match clock.basis {
        ClockBasis::OneDirection => texts.push(
            "Packets in one direction only: the minimum delay counts as 0, and delays are relative \
             to it."
                .to_owned(),
        ),
        ClockBasis::BothDirections => texts.push(
            "The estimate assumes equal minimum delays in both directions: it and every delay are \
             off by half of any difference. --same-clock uses the timestamps unchanged."
                .to_owned(),
        ),
        ClockBasis::SameClock | ClockBasis::Nothing => {}
    }
    texts
}

fn offset(segment: &ClockSegment) -> String {
    let word = if segment.offset_ns < 0 { "behind" } else { "ahead of" };
    let size = segment.offset_ns.unsigned_abs() as f64;
    let by = if size < 1e9 { time(size) } else { format!("{:.6} s", size / 1e9) };
    let mut text = format!("B is {by} {word} A");
    if let Some(ns) = segment.uncertainty_ns {
        text += &format!(", ± {}", time(ns as f64));
    }
    let uncertainty = segment.drift_uncertainty * 1e6;
    match segment.drift {
        Some(drift) => {
            text += &format!(", drift {:+.1} ppm, ± {uncertainty:.1}", drift * 1e6);
        }
        None if uncertainty < 1000.0 => {
            text += &format!(", drift below {:.1} ppm", uncertainty.max(0.1));
        }
        None => text += ", drift not measurable here",
    }
    text
}

/// Figures of both directions side by side.
fn table(merge: &Merge, style: &Style) -> Vec<Line> {
    let mut lines = Vec::new();
    let mut row = |label: &str, texts: [String; 2], style_of: anstyle::Style| {
        let mut line = Line::new(style).put(style::DIM, label);
        for (place, text) in texts.iter().enumerate() {
            line = line.to(VALUES + place * COLUMN).put(style_of, text);
        }
        lines.push(line);
    };
    let each =
        |text: &dyn Fn(&TransitSummary) -> String| [0, 1].map(|it| text(&merge.transits[it]));
    row("", Transit::ALL.map(|transit| transit.name().to_owned()), style::STRONG);
    row("packets", each(&|it| it.sent.to_string()), style::PLAIN);
    let any_lost = merge.transits.iter().any(|it| it.lost > 0);
    let loss_style = if any_lost { style::WARN } else { style::PLAIN };
    row(
        "lost",
        each(&|it| match it.lost {
            0 => "0".to_owned(),
            lost => format!("{lost} ({})", percent_with(it.loss_share(), 2)),
        }),
        loss_style,
    );
    if any_lost {
        row("  payload", each(&|it| ByteCount::from_bytes(it.lost_bytes).decimal()), style::PLAIN);
        if merge.transits.iter().any(|it| it.lost_segments != it.lost) {
            row("  segments", each(&|it| it.lost_segments.to_string()), style::PLAIN);
        }
        row(
            "  bursts",
            each(&|it| match it.bursts.count {
                0 => "-".to_owned(),
                count => format!("{count}, longest {}", it.bursts.longest),
            }),
            style::PLAIN,
        );
    }
    row("duplicated", each(&|it| it.duplicated.to_string()), style::PLAIN);
    row(
        "reordered",
        each(&|it| match it.reordering.packets {
            0 => "0".to_owned(),
            count => format!("{count} ({})", percent_with(count as f64 / it.sent.max(1) as f64, 2)),
        }),
        style::PLAIN,
    );
    if merge.transits.iter().any(|it| it.reordering.packets > 0) {
        row(
            "  at most",
            each(&|it| match it.reordering.max_extent {
                0 => "-".to_owned(),
                extent => {
                    format!(
                        "{}, {}",
                        wording::counted(extent, "packet"),
                        time(it.reordering.max_late_ns as f64)
                    )
                }
            }),
            style::PLAIN,
        );
    }
    let delay = |of: &dyn Fn(&capture_merge::DelaySummary) -> f64| {
        each(&|it| it.delays.map_or("-".to_owned(), |delays| time(of(&delays))))
    };
    row("one-way delay", [String::new(), String::new()], style::PLAIN);
    row("  min", delay(&|it| it.min_ns as f64), style::PLAIN);
    row("  median", delay(&|it| it.median_ns as f64), style::PLAIN);
    row("  p95", delay(&|it| it.p95_ns as f64), style::PLAIN);
    row("  p99", delay(&|it| it.p99_ns as f64), style::PLAIN);
    row("  max", delay(&|it| it.max_ns as f64), style::PLAIN);
    row("  jitter", delay(&|it| it.jitter_ns), style::PLAIN);
    lines
}

/// The first packets that were lost, by their numbers.
fn lost_numbers(merge: &Merge, style: &Style) -> Vec<Line> {
    let mut lines = Vec::new();
    for (transit, capture) in Transit::ALL.into_iter().zip(["A", "B"]) {
        let lost = merge.rows.iter().filter(|row| {
            row.transit == transit && matches!(row.fate, PacketFate::Lost | PacketFate::PartlyLost)
        });
        let mut numbers: Vec<u32> =
            lost.filter_map(|row| if transit == Transit::AToB { row.a } else { row.b }).collect();
        if numbers.is_empty() {
            continue;
        }
        numbers.sort_unstable();
        if lines.is_empty() {
            lines.push(Line::new(style));
        }
        let label = format!("lost {}", transit.name());
        lines.extend(labelled(&label, &format!("packets of {capture}: {}", runs(&numbers)), style));
    }
    lines
}

/// `3, 7 to 9, 20 and 5 more`.
fn runs(numbers: &[u32]) -> String {
    let runs: Vec<&[u32]> = numbers.chunk_by(|a, b| a.checked_add(1) == Some(*b)).collect();
    let texts = runs.iter().take(LISTED).filter_map(|run| match run {
        [] => None,
        [one] => Some(one.to_string()),
        [first, .., last] => Some(format!("{first} to {last}")),
    });
    let text = texts.collect::<Vec<_>>().join(", ");
    let rest: usize = runs.iter().skip(LISTED).map(|run| run.len()).sum();
    if rest > 0 { format!("{text} and {rest} more (all: --csv)") } else { text }
}

#[cfg(test)]
mod tests {
    use super::super::fit::{assert_fits, styles};
    use super::*;
    use capture_merge::{
        CaptureCounts, Change, Changes, Clock, DelaySummary, HandshakeChange, LossBursts,
        PacketRow, Reordering,
    };

    #[test]
    fn numbers_are_listed_as_runs() {
        assert_eq!(runs(&[1, 2, 3, 7, 9, 10]), "1 to 3, 7, 9 to 10");
        let many: Vec<u32> = (0..50).map(|number| number * 2).collect();
        assert!(runs(&many).ends_with("38 and 30 more (all: --csv)"));
    }

    fn summary(transit: Transit) -> TransitSummary {
        let delays = DelaySummary {
            count: 1_234_567,
            min_ns: 20_000_000,
            median_ns: 21_000_000,
            p95_ns: 95_000_000,
            p99_ns: 99_000_000,
            max_ns: 1_200_000_000,
            jitter_ns: 123_456.0,
        };
        TransitSummary {
            transit,
            sent: 123_456_789,
            lost: 12_345,
            partly_lost: 345,
            lost_segments: 23_456,
            lost_bytes: 98_765_432,
            bursts: LossBursts { count: 321, longest: 45 },
            duplicated: 17,
            only_after: 3,
            outside: 5,
            reordering: Reordering { packets: 99, max_extent: 12, max_late_ns: 5_000_000 },
            delays: Some(delays),
        }
    }

    /// Captures between which everything happened.
    fn merge() -> Merge {
        let segment = ClockSegment {
            from_ns: 1_000_000_000,
            offset_ns: 3_200_000_000,
            uncertainty_ns: Some(20_000_000),
            drift: Some(40e-6),
            drift_uncertainty: 2e-6,
        };
        let later = ClockSegment { drift: None, offset_ns: -5_000_000, ..segment };
        let rows = (0..500_u32).map(|number| PacketRow {
            transit: Transit::ALL[number as usize % 2],
            fate: if number % 7 == 0 { PacketFate::Lost } else { PacketFate::Delivered },
            a: Some(number),
            b: Some(number),
            time_ns: i64::from(number) * 10_000_000,
            delay_ns: (number % 7 != 0).then_some(20_000_000 + i64::from(number % 50) * 100_000),
            bytes: 1448,
            segments: 1,
            is_reordered: false,
        });
        let counts = CaptureCounts { packets: 123_456, outside: 9, ..CaptureCounts::default() };
        let change = Change {
            transit: Transit::BToA,
            field: "acknowledgement number",
            count: 5,
            first: (1, 2),
            values: ["1234567890".to_owned(), "987654321".to_owned()],
            is_routing: false,
        };
        let option = |values: [Option<&str>; 2]| HandshakeChange {
            transit: Transit::AToB,
            streams: (0, 0),
            is_syn_ack: true,
            packets: (1, 1),
            option: "window scale",
            values: values.map(|value| value.map(str::to_owned)),
        };
        let changes = Changes {
            fields: vec![change],
            handshakes: vec![
                option([Some("7"), None]),
                option([None, Some("2")]),
                option([Some("7"), Some("2")]),
            ],
            handshakes_compared: [2, 1],
        };
        Merge {
            clock: Clock {
                basis: ClockBasis::BothDirections,
                segments: vec![segment, later],
                unsuitable: None,
            },
            transits: Transit::ALL.map(summary),
            rows: rows.collect(),
            changes,
            counts: [counts; 2],
            flows: [3, 1, 2],
            streams: Vec::new(),
            is_direction_assumed: true,
            spans: [(0, 5_000_000_000), (1_000_000, 5_100_000_000)],
        }
    }

    #[test]
    fn it_fits_any_terminal() {
        let merge = merge();
        let captures = ["client.pcap", "server.pcap"]
            .map(|name| MergedCapture { name, point: Some("at the sender (0 % of the RTT)") });
        let notes = ["One-way delays are not reliable: a clock was set too often.".to_owned()];
        for style in styles() {
            assert_fits(&capture_merge(&merge, captures, &notes, &style), &style);
        }
        let style = Style { colour: false, width: 80, unicode: true };
        let text = capture_merge(&merge, captures, &notes, &style);
        for part in [
            "B is 3.200000 s ahead of A, ± 20.0 ms",
            "12345 (0.01 %)",
            "12 packets, 5.00 ms",
            "7, removed by a middlebox",
            "rewritten by a middlebox: 7 -> 2",
        ] {
            assert!(text.contains(part), "{part}: {text}");
        }
    }

    #[test]
    fn times_have_a_unit_that_fits() {
        let texts = [0.0, 850e3, 20.12e6, 3.2e9, -1.5e6, 12.0].map(time);
        assert_eq!(texts, ["0 µs", "850 µs", "20.1 ms", "3.20 s", "-1.50 ms", "12.0 ns"]);
    }
}
