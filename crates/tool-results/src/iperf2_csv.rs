//! iperf 2's CSV (`-y C`): `time,address,port,address,port,id,from-to,bytes,bit/s`, and for
//! datagrams `,jitter ms,lost,total,lost %,out of order` (iperf 2, `src/ReportOutputs.c`).
//!
//! The columns are the same at both ends, so TCP's bytes may be those written or those read.

use crate::{
    format::NotAResult,
    intervals::{self, Totals},
    ndt7::unix_seconds,
    transfer::{self, MOST_STREAMS, Transfer},
};
use record::{Datagrams, Interval, Measurement, Protocol, Stream, TestSpec, Unavailable};
use units::{BitRate, ByteCount, Rtt};

const WHAT: &str = "iperf 2's CSV output";

/// Lines that are read.
const MOST_LINES: usize = 500_000;

/// iperf 2's port.
const PORT: u16 = 5001;

/// The id of the sum over streams.
const SUM: &str = "-1";

/// One line.
#[derive(Debug)]
struct Row<'a> {
    time: &'a str,
    ends: [(&'a str, u16); 2],
    id: &'a str,
    from_s: f64,
    to_s: f64,
    bytes: u64,
    /// Jitter in ms, lost, total, out of order.
    datagrams: Option<(f64, u64, u64, u64)>,
}

impl<'a> Row<'a> {
    fn parse(line: &'a str) -> Option<Row<'a>> {
        let columns: Vec<&str> = line.trim().split(',').take(32).collect();
        let [time, host, port, far, far_port, id, span, bytes, _rate, rest @ ..] = &*columns else {
            return None;
        };
        // 20261125083629, with milliseconds or a time zone after it.
        let digits = time.chars().take_while(char::is_ascii_digit).count();
        let (from, to) = span.split_once('-')?;
        let (from_s, to_s) = (seconds(from)?, seconds(to)?);
        if digits != 14 || from_s > to_s {
            return None;
        }
        let datagrams = match rest {
            [jitter, lost, total, _share, disordered, ..] => {
                let count = |text: &str| text.trim().parse::<u64>().ok();
                jitter.parse().ok().zip(count(lost)).zip(count(total)).map(
                    |((jitter, lost), total)| (jitter, lost, total, count(disordered).unwrap_or(0)),
                )
            }
            _ => None,
        };
        Some(Row {
            time,
            ends: [(host, port.parse().ok()?), (far, far_port.parse().ok()?)],
            id,
            from_s,
            to_s,
            bytes: bytes.parse().ok()?,
            datagrams,
        })
    }
}

fn seconds(text: &str) -> Option<f64> {
    let seconds: f64 = text.parse().ok()?;
    (0.0..1e7).contains(&seconds).then_some(seconds)
}

/// Whether a text begins with such a line, after at most a line of column names.
pub(crate) fn is_csv(text: &str) -> bool {
    text.lines().take(2).any(|line| Row::parse(line).is_some())
}

/// The streams of all lines, as one test.
pub(crate) fn lines(text: &str) -> Result<Vec<Measurement>, NotAResult> {
    let mut streams: Vec<(&str, Vec<Row<'_>>)> = Vec::new();
    let mut first: Option<([(&str, u16); 2], &str)> = None;
    for (number, line) in (1..).zip(text.lines()).take(MOST_LINES) {
        let Some(row) = Row::parse(line) else {
            if number == 1 || line.trim().is_empty() {
                continue;
            }
            let why = format!("line {number} is truncated or not valid");
            return Err(NotAResult::Damaged { what: WHAT, why });
        };
        if row.id == SUM {
            continue;
        }
        first.get_or_insert((row.ends, row.time));
        match streams.iter().position(|(id, _)| *id == row.id) {
            Some(at) => streams[at].1.push(row),
            None if streams.len() < MOST_STREAMS => streams.push((row.id, vec![row])),
            None => {}
        }
    }
    let Some((ends, time)) = first else { return Err(NotAResult::empty(WHAT, "no interval")) };
    let is_udp = streams.iter().any(|(_, rows)| rows.iter().any(|row| row.datagrams.is_some()));
    let [near, far] = ends;
    let (host, port) = if near.1 == PORT && far.1 != PORT { near } else { far };
    let mut transfer = Transfer {
        tool: "iperf 2".to_owned(),
        started_unix_s: started(time).unwrap_or(0),
        unavailable: vec![Unavailable::CongestionControl, Unavailable::RequestedRate],
        ..Transfer::default()
    };
    for (id, (_, rows)) in (1..).zip(&streams) {
        if is_udp {
            transfer.streams.push(datagrams(id, rows)?);
        } else {
            let intervals: Vec<Interval> =
                without_total(rows).iter().map(|r| interval(r)).collect();
            let (stream, lacking) = intervals::stream(id, false, &intervals, &Totals::default());
            transfer.unavailable.extend(lacking);
            transfer.streams.push(stream);
        }
    }
    let seconds = transfer.streams.iter().map(|one| one.received_seconds).fold(0.0, f64::max);
    transfer.spec = TestSpec {
        target: transfer::name(host),
        // longhaul's own server has iperf3's port.
        port: if port == PORT { 0 } else { port },
        protocol: if is_udp { Protocol::Udp } else { Protocol::Tcp },
        seconds,
        streams: u32::try_from(transfer.streams.len()).unwrap_or(1),
        rate_bps: is_udp.then(|| sent_rate(&transfer.streams)).flatten(),
        ..TestSpec::default()
    };
    Ok(vec![transfer.into_measurement()])
}

/// The intervals, or the total if there is nothing else.
fn without_total<'a, 'b>(rows: &'b [Row<'a>]) -> &'b [Row<'a>] {
    match rows {
        [intervals @ .., last] if !intervals.is_empty() && last.from_s <= 0.0 => intervals,
        _ => rows,
    }
}

fn interval(row: &Row<'_>) -> Interval {
    Interval {
        sending: true,
        from_s: row.from_s,
        to_s: row.to_s,
        bytes: ByteCount::from_bytes(row.bytes),
        ..Interval::default()
    }
}

/// The server's counts; the client's lines have no losses.
fn datagrams(id: u32, rows: &[Row<'_>]) -> Result<Stream, NotAResult> {
    // The total has what arrived after the last interval.
    let rows = match rows {
        [_, .., total] if total.from_s <= 0.0 => std::slice::from_ref(total),
        _ => rows,
    };
    let (mut lost, mut total, mut late, mut jitter, mut bytes) = (0_u64, 0_u64, 0_u64, 0.0, 0_u64);
    for row in rows {
        bytes = bytes.saturating_add(row.bytes);
        if let Some((its_jitter, its_lost, its_total, its_late)) = row.datagrams {
            lost = lost.saturating_add(its_lost);
            total = total.saturating_add(its_total);
            late = late.saturating_add(its_late);
            jitter = its_jitter;
        }
    }
    // A client writes its own lines with a jitter of 0.000 and no losses.
    if total == 0 || (jitter <= 0.0 && lost == 0) {
        return Err(NotAResult::empty(
            WHAT,
            "no loss report: it is the client's; use the server's",
        ));
    }
    let seconds = rows.iter().map(|row| row.to_s).fold(0.0, f64::max);
    let received = total.saturating_sub(lost);
    let length = u32::try_from(bytes.checked_div(received).unwrap_or(0)).unwrap_or(0);
    Ok(Stream {
        id,
        sent_bytes: total.saturating_mul(u64::from(length)),
        received_bytes: bytes,
        sent_seconds: seconds,
        received_seconds: seconds,
        datagrams: Some(Datagrams {
            length_bytes: length,
            // The server's line has the numbers up to the last arrival.
            sent: None,
            received,
            lost,
            reordered: late,
            jitter: Rtt::from_secs(jitter / 1e3),
            ..Datagrams::default()
        }),
        ..Stream::default()
    })
}

/// The rate of one stream's datagrams, sent or lost.
pub(crate) fn sent_rate(streams: &[Stream]) -> Option<BitRate> {
    let one = streams.first().filter(|one| one.sent_seconds > 0.0)?;
    Some(BitRate::from_bps_f64(one.sent_bytes as f64 * 8.0 / one.sent_seconds))
}

/// Seconds since 1970 of `20261125083629`, as if it were UTC.
fn started(time: &str) -> Option<u64> {
    let part = |from, to| time.get(from..to);
    unix_seconds(&format!(
        "{}-{}-{}T{}:{}:{}Z",
        part(0, 4)?,
        part(4, 6)?,
        part(6, 8)?,
        part(8, 10)?,
        part(10, 12)?,
        part(12, 14)?
    ))
}
