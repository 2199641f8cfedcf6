//! Round trips to one host: a row for each answer, and what they come to.

use super::{
    Style, ink,
    line::{Line, block, labelled, wrap},
    spark::steps,
};
use crate::words;
use record::{Ping, PingReport, RoundTrips};

/// Where the figures of the summary begin.
const COLUMN: usize = 14;
/// Room of the curve.
const CURVE: usize = 60;

/// What came back of one probe.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Answer<'a> {
    /// The probe's number.
    pub number: u64,
    /// Who answered; `None` for this host.
    pub from: Option<&'a str>,
    /// What it was.
    pub what: Answered<'a>,
}

/// An answer, or why there is none.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Answered<'a> {
    /// The round trip.
    In {
        /// Its length.
        rtt_ms: f64,
        /// Bytes of ICMP; 0 of a TCP connect.
        bytes: usize,
        /// Hops that the answer had left.
        ttl: Option<u8>,
        /// What is special about it.
        remarks: &'a [&'a str],
    },
    /// Why the probe came back.
    Unreached(&'a str),
}

/// One answer in a line, without newline.
#[must_use]
pub fn answer(answer: &Answer<'_>, is_tcp: bool, style: &Style) -> String {
    let from = answer.from.unwrap_or("this host");
    let number = if is_tcp { "tcp_seq" } else { "icmp_seq" };
    let number = format!("{number}={}", answer.number);
    let line = Line::new(style);
    match answer.what {
        Answered::Unreached(why) => {
            line.put(ink::PLAIN, &format!("from {from}: {number} ")).put(ink::BAD, why).finish()
        }
        Answered::In { rtt_ms, bytes, ttl, remarks } => {
            let size = if is_tcp { String::new() } else { format!("{bytes} bytes ") };
            let ttl = ttl.map_or(String::new(), |ttl| format!("ttl={ttl} "));
            let mut line = line
                .put(ink::PLAIN, &format!("{size}from {from}: {number} {ttl}"))
                .put(ink::STRONG, &format!("time={rtt_ms:.3} ms"));
            for remark in remarks {
                line = line.put(ink::WARN, &format!(" ({remark})"));
            }
            line.finish()
        }
    }
}

/// What all answers come to.
#[must_use]
pub fn round_trips(report: &PingReport, style: &Style) -> String {
    let lossy = if report.lost > 0 { ink::BAD } else { ink::GOOD };
    let mut lines = vec![
        Line::new(style)
            .put(ink::STRONG, &named(&report.target, &report.address))
            .put(ink::PLAIN, &format!(": {} sent, {} received, ", report.sent, report.received))
            .put(lossy, &format!("{} lost", words::lost(report.loss))),
    ];
    for text in wrap(style, &others(report), style.text_width().saturating_sub(2)) {
        if !text.is_empty() {
            lines.push(Line::new(style).to(2).put(ink::WARN, &text));
        }
    }
    if let Some(trips) = &report.round_trips {
        lines.extend(figures(trips, style));
        if trips.count > 1 {
            lines.push(curve(&report.probes, style));
        }
    }
    block(lines)
}

fn figures(trips: &RoundTrips, style: &Style) -> Vec<Line> {
    let row = |label: &str, figures: [(&str, f64); 4]| {
        let mut line = Line::new(style).to(2).put(ink::DIM, label).to(COLUMN);
        for (at, (name, ms)) in (0..).zip(figures) {
            line = line
                .to(COLUMN + at * 15)
                .put(ink::DIM, &format!("{name:<5}"))
                .put(ink::STRONG, &format!("{ms:.3}"));
        }
        line.put(ink::DIM, " ms")
    };
    let mut lines = vec![
        row(
            "round trip",
            [
                ("min", trips.min_ms),
                ("avg", trips.avg_ms),
                ("max", trips.max_ms),
                ("mdev", trips.mdev_ms),
            ],
        ),
        row(
            "percentiles",
            [
                ("p50", trips.p50_ms),
                ("p90", trips.p90_ms),
                ("p95", trips.p95_ms),
                ("p99", trips.p99_ms),
            ],
        ),
    ];
    if let Some(jitter) = trips.jitter_ms {
        let text = format!("{jitter:.3} ms, mean difference of consecutive round trips");
        lines.extend(labelled(style, 2, (ink::DIM, "jitter"), COLUMN, (ink::PLAIN, &text)));
    }
    lines
}

/// What is seldom there is said only where it is.
fn others(report: &PingReport) -> String {
    let plural = |count: u64, one: &str, many: &str| match count {
        0 => None,
        1 => Some(format!("1 {one}")),
        count => Some(format!("{count} {many}")),
    };
    let late = words::seconds(report.timeout_ms / 1e3);
    let parts = [
        plural(report.late, "late answer", "late answers").map(|n| format!("{n} (after {late})")),
        plural(report.duplicates, "duplicate", "duplicates"),
        plural(report.reordered, "answer out of order", "answers out of order"),
        plural(report.errors, "probe not delivered", "probes not delivered"),
        plural(report.waiting, "probe still on its way", "probes still on their way"),
    ];
    parts.into_iter().flatten().collect::<Vec<_>>().join(", ")
}

/// `server (10.0.0.2)`, or the address alone where it was named by that.
pub(super) fn named(name: &str, address: &str) -> String {
    if name == address { address.to_owned() } else { format!("{name} ({address})") }
}

/// One column of the curve.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Column {
    /// The longest round trip of its probes.
    Longest(f64),
    /// One of its probes at least has no answer.
    Lost,
}

/// Round trips over time, squeezed into what room there is.
fn columns(probes: &[Ping], room: usize) -> Vec<Column> {
    let each = probes.len().div_ceil(room.max(1)).max(1);
    let column = |chunk: &[Ping]| {
        chunk.iter().try_fold(0.0f64, |most, probe| probe.rtt_ms.map(|rtt| most.max(rtt)))
    };
    probes.chunks(each).map(|c| column(c).map_or(Column::Lost, Column::Longest)).collect()
}

pub(super) fn curve(probes: &[Ping], style: &Style) -> Line {
    let steps = steps(style);
    let room = style.text_width().saturating_sub(COLUMN).clamp(1, CURVE);
    let columns = columns(probes, room);
    let known = columns.iter().filter_map(|column| match column {
        Column::Longest(ms) => Some(*ms),
        Column::Lost => None,
    });
    let (least, most) =
        known.fold((f64::INFINITY, 0.0f64), |(least, most), ms| (least.min(ms), most.max(ms)));
    // A path whose round trips agree within a tenth is flat.
    let span = (most - least).max(most * 0.1).max(f64::MIN_POSITIVE);
    let mut line = Line::new(style).to(2).put(ink::DIM, "over time").to(COLUMN);
    for column in columns {
        line = match column {
            Column::Longest(ms) => {
                let level = ((ms - least) / span * 7.0).round().clamp(0.0, 7.0) as usize;
                let step = steps.get(level).copied().unwrap_or(' ');
                line.put(ink::run(1), &step.to_string())
            }
            Column::Lost => line.put(ink::BAD, if style.unicode { "×" } else { "!" }),
        };
    }
    line
}

#[cfg(test)]
mod tests {
    use super::*;

    const STYLE: Style = Style { colour: false, width: 80, unicode: true };

    fn report(rtts: &[Option<f64>]) -> PingReport {
        let probes = (1..)
            .zip(rtts)
            .map(|(number, rtt)| Ping { number, sent_s: 0.0, rtt_ms: *rtt })
            .collect();
        PingReport {
            schema: record::PING_SCHEMA,
            version: String::new(),
            started_unix_s: 0,
            target: "ser\u{1b}[2Jver".to_owned(),
            address: "10.0.0.2".to_owned(),
            method: "icmp",
            port: None,
            payload_bytes: 56,
            interval_ms: 1000.0,
            timeout_ms: 2000.0,
            sent: rtts.len() as u64,
            received: rtts.iter().flatten().count() as u64,
            late: 0,
            lost: rtts.iter().filter(|rtt| rtt.is_none()).count() as u64,
            waiting: 0,
            loss: 0.25,
            duplicates: 1,
            reordered: 0,
            errors: 2,
            round_trips: Some(RoundTrips {
                count: 3,
                min_ms: 10.0,
                avg_ms: 20.0,
                max_ms: 30.0,
                mdev_ms: 8.165,
                p50_ms: 20.0,
                p90_ms: 30.0,
                p95_ms: 30.0,
                p99_ms: 30.0,
                jitter_ms: Some(10.0),
            }),
            probes,
            notes: Vec::new(),
        }
    }

    #[test]
    fn a_summary_at_eighty_columns() {
        let text = round_trips(&report(&[Some(10.0), None, Some(20.0), Some(30.0)]), &STYLE);
        let expected = "\
ser[2Jver (10.0.0.2): 4 sent, 3 received, 25 % lost
  1 duplicate, 2 probes not delivered
  round trip  min  10.000    avg  20.000    max  30.000    mdev 8.165 ms
  percentiles p50  20.000    p90  30.000    p95  30.000    p99  30.000 ms
  jitter      10.000 ms, mean difference of consecutive round trips
  over time   ▁×▅█
";
        assert_eq!(text, expected);
        let ascii =
            round_trips(&report(&[Some(1.0), None]), &Style { unicode: false, width: 20, ..STYLE });
        assert!(ascii.is_ascii() && ascii.lines().all(|line| line.len() <= 20), "{ascii}");
    }

    #[test]
    fn a_row_says_who_and_how_long() {
        let from = Some("10.0.0.2");
        let what = Answered::In { rtt_ms: 50.1234, bytes: 64, ttl: Some(63), remarks: &["late"] };
        let text = answer(&Answer { number: 3, from, what }, false, &STYLE);
        assert_eq!(text, "64 bytes from 10.0.0.2: icmp_seq=3 ttl=63 time=50.123 ms (late)");
        let what = Answered::Unreached("host unreachable");
        let text = answer(&Answer { number: 3, from: None, what }, true, &STYLE);
        assert_eq!(text, "from this host: tcp_seq=3 host unreachable");
    }

    #[test]
    fn many_probes_share_columns_and_a_loss_shows() {
        let ping = |n: u64| {
            let rtt_ms = (n != 55).then_some(n as f64);
            Ping { number: n, sent_s: 0.0, rtt_ms }
        };
        let pings: Vec<Ping> = (0..100).map(ping).collect();
        let columns = columns(&pings, 10);
        assert_eq!(columns.len(), 10);
        assert_eq!((columns[0], columns[5]), (Column::Longest(9.0), Column::Lost));
        assert_eq!(super::columns(&[], 10), []);
    }
}
