//! Ping output: one line per reply, and the statistics.

use super::{
    Style,
    line::{Line, block, labelled, wrap},
    sparkline::steps,
    style,
};
use crate::wording;
use record::{Ping, PingError, PingReport, RoundTrips};

/// Column of the figures in the summary.
const COLUMN: usize = 14;
/// Most columns of the curve.
const CURVE: usize = 60;

/// The reply to one probe.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct PingReply<'a> {
    /// The probe's sequence number.
    pub number: u64,
    /// Address of the replying host; `None` for this host.
    pub from: Option<&'a str>,
    /// The RTT or the error.
    pub what: ReplyKind<'a>,
}

/// An echo reply, or an error.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum ReplyKind<'a> {
    /// A reply.
    Echo {
        /// RTT.
        rtt_ms: f64,
        /// Bytes of the ICMP message; 0 for a TCP handshake.
        bytes: usize,
        /// TTL of the reply.
        ttl: Option<u8>,
        /// Remarks, such as `duplicate`.
        remarks: &'a [&'a str],
    },
    /// The reason of the error.
    Unreachable(&'a str),
}

/// One reply, without newline.
#[must_use]
pub fn ping_reply(reply: &PingReply<'_>, is_tcp: bool, style: &Style) -> String {
    let from = reply.from.unwrap_or("this host");
    let number = if is_tcp { "tcp_seq" } else { "icmp_seq" };
    let number = format!("{number}={}", reply.number);
    let line = Line::new(style);
    match reply.what {
        ReplyKind::Unreachable(why) => {
            line.put(style::PLAIN, &format!("from {from}: {number} ")).put(style::BAD, why).finish()
        }
        ReplyKind::Echo { rtt_ms, bytes, ttl, remarks } => {
            let size = if is_tcp { String::new() } else { format!("{bytes} bytes ") };
            let ttl = ttl.map_or(String::new(), |ttl| format!("ttl={ttl} "));
            let mut line = line
                .put(style::PLAIN, &format!("{size}from {from}: {number} {ttl}"))
                .put(style::STRONG, &format!("time={rtt_ms:.3} ms"));
            for remark in remarks {
                line = line.put(style::WARN, &format!(" ({remark})"));
            }
            line.finish()
        }
    }
}

/// The statistics of all probes.
#[must_use]
pub fn ping_summary(report: &PingReport, style: &Style) -> String {
    let lossy = if report.lost > 0 { style::BAD } else { style::GOOD };
    let mut lines = vec![
        Line::new(style)
            .put(style::STRONG, &named(&report.target, &report.address))
            .put(style::PLAIN, &format!(": {} sent, {} received, ", report.sent, report.received))
            .put(lossy, &format!("{} lost", units::percent_with(report.loss, 3))),
    ];
    for text in wrap(style, &others(report), style.text_width().saturating_sub(2)) {
        if !text.is_empty() {
            lines.push(Line::new(style).to(2).put(style::WARN, &text));
        }
    }
    lines.extend(report.unreachable.iter().map(|error| unreachable(error, style)));
    if let Some(trips) = &report.round_trips {
        lines.extend(figures(trips, style));
        if trips.count > 1 {
            lines.push(curve(&report.probes, style));
        }
    }
    block(lines)
}

/// What a router said, and how often.
fn unreachable(error: &PingError, style: &Style) -> Line {
    let from = error.from.as_deref().unwrap_or("this host");
    let text = format!("{} from {from}: {}", error.reason, error.count);
    Line::new(style).to(4).put(style::PLAIN, &text)
}

fn figures(trips: &RoundTrips, style: &Style) -> Vec<Line> {
    let row = |label: &str, figures: [(&str, f64); 4]| {
        let mut line = Line::new(style).to(2).put(style::DIM, label).to(COLUMN);
        for (at, (name, ms)) in (0..).zip(figures) {
            line = line
                .to(COLUMN + at * 15)
                .put(style::DIM, &format!("{name:<5}"))
                .put(style::STRONG, &format!("{ms:.3}"));
        }
        line.put(style::DIM, " ms")
    };
    let mut lines = vec![
        row(
            "RTT",
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
        let text = format!("{jitter:.3} ms, mean difference of consecutive RTTs");
        lines.extend(labelled(style, 2, (style::DIM, "jitter"), COLUMN, (style::PLAIN, &text)));
    }
    lines
}

/// Rare events, listed only where they occurred.
fn others(report: &PingReport) -> String {
    let plural = |count: u64, one: &str, many: &str| match count {
        0 => None,
        1 => Some(format!("1 {one}")),
        count => Some(format!("{count} {many}")),
    };
    let late = wording::seconds(report.timeout_ms / 1e3);
    let parts = [
        plural(report.late, "late reply", "late replies").map(|n| format!("{n} (after {late})")),
        plural(report.duplicates, "duplicate", "duplicates"),
        plural(report.reordered, "reply out of order", "replies out of order"),
        plural(report.errors, "probe not delivered", "probes not delivered"),
        plural(report.waiting, "probe outstanding", "probes outstanding"),
    ];
    parts.into_iter().flatten().collect::<Vec<_>>().join(", ")
}

/// `server (10.0.0.2)`, or the address alone if it is the name.
pub(super) fn named(name: &str, address: &str) -> String {
    if name == address { address.to_owned() } else { format!("{name} ({address})") }
}

/// One column of the curve.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Column {
    /// The highest RTT of its probes.
    MaxRtt(f64),
    /// At least one of its probes was lost.
    Lost,
}

/// RTTs over time in at most `room` columns.
fn columns(probes: &[Ping], room: usize) -> Vec<Column> {
    let each = probes.len().div_ceil(room.max(1)).max(1);
    let column = |chunk: &[Ping]| {
        chunk.iter().try_fold(0.0f64, |most, probe| probe.rtt_ms.map(|rtt| most.max(rtt)))
    };
    probes.chunks(each).map(|c| column(c).map_or(Column::Lost, Column::MaxRtt)).collect()
}

pub(super) fn curve(probes: &[Ping], style: &Style) -> Line {
    let steps = steps(style);
    let room = style.text_width().saturating_sub(COLUMN).clamp(1, CURVE);
    let columns = columns(probes, room);
    let known = columns.iter().filter_map(|column| match column {
        Column::MaxRtt(ms) => Some(*ms),
        Column::Lost => None,
    });
    let (least, most) =
        known.fold((f64::INFINITY, 0.0f64), |(least, most), ms| (least.min(ms), most.max(ms)));
    // RTTs within 10 % are drawn flat.
    let span = (most - least).max(most * 0.1).max(f64::MIN_POSITIVE);
    let mut line = Line::new(style).to(2).put(style::DIM, "over time").to(COLUMN);
    for column in columns {
        line = match column {
            Column::MaxRtt(ms) => {
                let level = ((ms - least) / span * 7.0).round().clamp(0.0, 7.0) as usize;
                let step = steps.get(level).copied().unwrap_or(' ');
                line.put(style::run(1), &step.to_string())
            }
            Column::Lost => line.put(style::BAD, if style.unicode { "×" } else { "!" }),
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
            unreachable: vec![PingError {
                from: Some("10.0.0.9".to_owned()),
                reason: "host unreachable".to_owned(),
                count: 2,
            }],
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
        let text = ping_summary(&report(&[Some(10.0), None, Some(20.0), Some(30.0)]), &STYLE);
        let expected = "\
ser[2Jver (10.0.0.2): 4 sent, 3 received, 25 % lost
  1 duplicate, 2 probes not delivered
    host unreachable from 10.0.0.9: 2
  RTT         min  10.000    avg  20.000    max  30.000    mdev 8.165 ms
  percentiles p50  20.000    p90  30.000    p95  30.000    p99  30.000 ms
  jitter      10.000 ms, mean difference of consecutive RTTs
  over time   ▁×▅█
";
        assert_eq!(text, expected);
        let ascii = ping_summary(
            &report(&[Some(1.0), None]),
            &Style { unicode: false, width: 20, ..STYLE },
        );
        assert!(ascii.is_ascii() && ascii.lines().all(|line| line.len() <= 20), "{ascii}");
    }

    #[test]
    fn a_reply_shows_address_and_rtt() {
        let from = Some("10.0.0.2");
        let what =
            ReplyKind::Echo { rtt_ms: 50.1234, bytes: 64, ttl: Some(63), remarks: &["late"] };
        let text = ping_reply(&PingReply { number: 3, from, what }, false, &STYLE);
        assert_eq!(text, "64 bytes from 10.0.0.2: icmp_seq=3 ttl=63 time=50.123 ms (late)");
        let what = ReplyKind::Unreachable("host unreachable");
        let text = ping_reply(&PingReply { number: 3, from: None, what }, true, &STYLE);
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
        assert_eq!((columns[0], columns[5]), (Column::MaxRtt(9.0), Column::Lost));
        assert_eq!(super::columns(&[], 10), []);
    }
}
