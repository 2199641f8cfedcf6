//! iperf 2's CSV (`-y C`): `time,address,port,address,port,id,from-to,bytes,bit/s`, and for
//! datagrams `,jitter ms,lost,total,lost %,out of order` (iperf 2, `src/ReportOutputs.c`).
//!
//! The first address is that of the data's source. The columns are the same at both ends, so TCP's bytes may be those written or those read.

use crate::{
    intervals::{self, Totals},
    iperf2::{self, MAX_FLOWS, MAX_LINES, MAX_TESTS, PORT},
    not_a_result::NotAResult,
    transfer::{self, Transfer},
    unix_seconds::unix_seconds,
};
use record::{Datagrams, Interval, Measurement, Stream, TestSpec};
use std::collections::{HashMap, hash_map::Entry};
use units::{ByteCount, Rtt};

const WHAT: &str = "iperf 2's CSV output";

/// Times are whole seconds, and those of the first day in 1970 are missing.
const RESOLUTION_S: f64 = 1.0;
const NO_TIME: u64 = 86_400;

/// What is said where lines have no times.
const NO_TIMES: &str = "the lines have no times (iperf 2 writes them with -i): which of the flows ran at the same time is unknown, and each is a test of its own";

/// The id of the sum over streams.
const SUM: &str = "-1";

/// Addresses and ports: the data's source, and its destination.
type Ends<'a> = [(&'a str, u16); 2];

/// One line.
#[derive(Debug)]
struct Row<'a> {
    time: &'a str,
    ends: Ends<'a>,
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

/// The data from one end to the other of one connection.
#[derive(Debug)]
struct FlowRows<'a> {
    rows: Vec<Row<'a>>,
    /// Numbers of its first and its last line.
    lines: [usize; 2],
}

impl<'a> FlowRows<'a> {
    fn source(&self) -> &'a str {
        self.rows.first().map_or("", |row| row.ends[0].0)
    }

    /// When it began and ended, in seconds since 1970; without `-i`, 2.1 has no times.
    fn times(&self) -> Option<[f64; 2]> {
        let last = self.rows.last()?;
        let end = started(last.time).filter(|end| *end > NO_TIME)? as f64;
        Some([end - last.to_s, end])
    }
}

/// The tests of all lines, in order: flows that follow each other, as with `-r` or in a server's
/// log, are no streams of one test.
pub(crate) fn lines(text: &str) -> Result<Vec<Measurement>, NotAResult> {
    let flows = flows(text)?;
    let first = flows.first().and_then(|flow| flow.rows.first());
    let Some(first) = first else { return Err(NotAResult::empty(WHAT, "no interval")) };
    let [near, far] = first.ends;
    let server = if near.1 == PORT && far.1 != PORT { near } else { far };
    let (tests, is_certain) = tests(flows);
    let mut all = Vec::new();
    for flows in &tests {
        let mut transfer = transfer(flows, server)?;
        if !is_certain {
            transfer.notes.push(NO_TIMES.to_owned());
        }
        all.push(transfer.into_measurement());
    }
    transfer::number(&mut all);
    Ok(all)
}

fn flows(text: &str) -> Result<Vec<FlowRows<'_>>, NotAResult> {
    let mut flows: Vec<FlowRows<'_>> = Vec::new();
    let mut places: HashMap<(Ends<'_>, &str), usize> = HashMap::new();
    for (number, line) in (1..).zip(text.lines()).take(MAX_LINES) {
        let Some(row) = Row::parse(line) else {
            // Column names, and headings of a server that connects to its client.
            if !line.starts_with(|first: char| first.is_ascii_digit()) {
                continue;
            }
            let why = format!("line {number} is truncated or not valid");
            return Err(NotAResult::Damaged { what: WHAT, why });
        };
        if row.id == SUM {
            continue;
        }
        match places.entry((row.ends, row.id)) {
            Entry::Occupied(place) => {
                if let Some(flow) = flows.get_mut(*place.get()) {
                    flow.lines[1] = number;
                    flow.rows.push(row);
                }
            }
            Entry::Vacant(place) if flows.len() < MAX_FLOWS => {
                place.insert(flows.len());
                flows.push(FlowRows { rows: vec![row], lines: [number; 2] });
            }
            Entry::Vacant(_) => {}
        }
    }
    Ok(flows)
}

/// The flows of each test, and whether the file shows which belong together.
fn tests(flows: Vec<FlowRows<'_>>) -> (Vec<Vec<FlowRows<'_>>>, bool) {
    let (mut is_certain, mut last_line, mut end) = (true, 0, None);
    let tests = iperf2::tests(flows, |flow, count| {
        let times = flow.times();
        let is_later = flow.lines[0] > last_line
            && match (times, end) {
                (Some([begin, _]), Some(end)) => begin + RESOLUTION_S >= end,
                _ => {
                    is_certain &= count == 0;
                    true
                }
            };
        last_line = last_line.max(flow.lines[1]);
        let its_end = times.map(|[_, end]| end);
        if !is_later && count > 0 {
            end = end.zip(its_end).map(|(a, b): (f64, f64)| a.max(b));
        } else if count < MAX_TESTS {
            end = its_end;
        }
        is_later
    });
    (tests, is_certain)
}

fn transfer(flows: &[FlowRows<'_>], (host, port): (&str, u16)) -> Result<Transfer, NotAResult> {
    let is_udp = flows.iter().any(|flow| flow.rows.iter().any(|row| row.datagrams.is_some()));
    let time = flows.first().and_then(|flow| flow.rows.first()).map_or("", |row| row.time);
    let mut transfer =
        Transfer { started_unix_s: started(time).unwrap_or(0), ..iperf2::transfer() };
    for (id, flow) in (1..).zip(flows) {
        // The first end of a line is where the data comes from.
        let reverse = flow.source() == host;
        if is_udp {
            transfer.streams.push(Stream { reverse, ..datagrams(id, &flow.rows)? });
        } else {
            let intervals: Vec<Interval> = without_total(&flow.rows).iter().map(interval).collect();
            let (stream, lacking) = intervals::stream(id, reverse, &intervals, &Totals::default());
            transfer.unavailable.extend(lacking);
            transfer.streams.push(stream);
        }
    }
    let spec = iperf2::spec(&transfer.streams, port, is_udp);
    transfer.spec = TestSpec { target: transfer::name(host), ..spec };
    Ok(transfer)
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
