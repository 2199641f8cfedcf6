//! iperf 2's text: the client's and the server's reports, with `-e` the sender's state.
//!
//! A line is `[ id] from-to sec  bytes  bits/s` and, of a sender with `-e`, `writes/errors
//! retries cwnd/RTT(variance) us power`; of datagrams `jitter ms lost/total` (iperf 2,
//! `src/ReportOutputs.c`).

use crate::{
    format::NotAResult,
    intervals::{self, Totals},
    iperf2_csv::sent_rate,
    text_row::{self, RowId, TextRow, bytes},
    transfer::{self, MOST_STREAMS, Transfer},
};
use record::{
    Datagrams, Direction, Interval, Measurement, Protocol, Stream, TestSpec, Unavailable,
};
use units::{BitRate, ByteCount, Rtt};

const WHAT: &str = "iperf 2's text";

/// Lines that are read.
const MOST_LINES: usize = 500_000;

/// iperf 2's port.
const PORT: u16 = 5001;

/// Datagrams that a sender counts and a receiver does not: that of the end.
const LAST_DATAGRAM: u64 = 1;

/// As many intervals with as many writes each are no coincidence.
const CLOCKED_INTERVALS: usize = 5;
const CLOCKED_WRITES: u64 = 10;

/// One flow.
#[derive(Debug, Default)]
struct FlowReports {
    id: u32,
    intervals: Vec<Interval>,
    totals: Totals,
    /// Jitter, lost and all datagrams, as the receiver counted them.
    datagrams: Option<(Rtt, u64, u64)>,
    /// Datagrams that the sender counted.
    sent: Option<u64>,
    received_bytes: u64,
    received_seconds: f64,
    irtt: Option<Rtt>,
    /// Writes of each interval, of a sender.
    writes: Vec<u64>,
}

/// What the lines before the reports say.
#[derive(Debug, Default)]
struct Head {
    is_server: bool,
    is_udp: bool,
    target: String,
    port: u16,
    window: Option<ByteCount>,
    length: u32,
}

/// The flows of all lines, as one test.
pub(crate) fn lines(text: &str) -> Result<Measurement, NotAResult> {
    let mut head = Head::default();
    let mut flows: Vec<FlowReports> = Vec::new();
    let mut reports_server = None;
    for line in text.lines().take(MOST_LINES) {
        let (id, rest) = match text_row::flow_of(line) {
            Some((RowId::Flow(id), _, rest)) => (id, rest),
            Some((RowId::Sum, ..)) => continue,
            None => {
                head.read(line);
                continue;
            }
        };
        let index = match flows.iter().position(|flow| flow.id == id) {
            Some(index) => index,
            None if flows.len() < MOST_STREAMS => {
                flows.push(FlowReports { id, ..FlowReports::default() });
                flows.len() - 1
            }
            None => continue,
        };
        let Some(flow) = flows.get_mut(index) else { continue };
        if rest.contains("Server Report") {
            reports_server = Some(id);
        } else if let Some(count) = rest.strip_prefix("Sent ") {
            flow.sent =
                count.strip_suffix(" datagrams").and_then(|count| count.trim().parse().ok());
        } else if rest.contains("connected with") {
            flow.connected(rest);
        } else if let Some(row) = Row::parse(line) {
            flow.add(&row, !head.is_server, reports_server == Some(id));
        }
    }
    flows.retain(|flow| !flow.intervals.is_empty() || flow.datagrams.is_some());
    if flows.is_empty() {
        return Err(NotAResult::empty(WHAT, "no interval: it is truncated, or the test failed"));
    }
    // Without the lines before the reports, losses tell.
    let is_known = head.is_server || !head.target.is_empty();
    head.is_udp |= !is_known && flows.iter().all(|flow| flow.datagrams.is_some());
    measurement(&head, &flows)
}

impl Head {
    fn read(&mut self, line: &str) {
        let after = |mark: &str| line.split_once(mark).map(|(_, rest)| rest.trim());
        if let Some(rest) = after("Client connecting to ") {
            let (target, rest) = rest.split_once(',').unwrap_or((rest, ""));
            self.target = transfer::name(target.trim());
            self.is_udp = rest.contains("UDP");
            self.port = port(rest).unwrap_or(0);
        } else if let Some(rest) = after("Server listening on ") {
            self.is_server = true;
            self.is_udp = rest.contains("UDP");
            self.port = port(rest).unwrap_or(0);
        } else if let Some(rest) = after("TCP window size:") {
            // What was asked for: the kernel doubles it.
            let requested = rest.split_once("requested ").map(|(_, rest)| rest);
            let given = (!rest.contains("(default)")).then_some(rest);
            self.window = requested.or(given).and_then(|text| {
                let mut words = text.split_whitespace();
                bytes(words.next()?, words.next()?.trim_end_matches(')'))
            });
        } else if let Some(rest) = after("Sending ") {
            self.length = rest.split_whitespace().next().and_then(|n| n.parse().ok()).unwrap_or(0);
        }
    }
}

/// The number after `port`.
fn port(text: &str) -> Option<u16> {
    text.split_once("port ")?.1.split_whitespace().next()?.parse().ok()
}

/// A report of one flow.
#[derive(Debug, Default)]
struct Row {
    from_s: f64,
    to_s: f64,
    bytes: ByteCount,
    writes: Option<u64>,
    retries: Option<u64>,
    cwnd: Option<ByteCount>,
    rtt: Option<Rtt>,
    rttvar: Option<Rtt>,
    datagrams: Option<(Rtt, u64, u64)>,
}

impl Row {
    fn parse(line: &str) -> Option<Row> {
        let text = TextRow::parse(line)?;
        let mut row =
            Row { from_s: text.from_s, to_s: text.to_s, bytes: text.bytes, ..Row::default() };
        row.datagrams =
            text.datagrams().map(|(ms, lost, total)| (Rtt::from_secs(ms / 1e3), lost, total));
        if let [writes, retries, state, "us", ..] = &*text.rest {
            row.writes = writes.split_once('/').and_then(|(count, _)| count.parse().ok());
            row.retries = retries.parse().ok();
            row.read_state(state);
        }
        Some(row)
    }

    /// `63K/104991(265)`, or without the variance.
    fn read_state(&mut self, state: &str) {
        let Some((cwnd, rtt)) = state.split_once('/') else { return };
        let kilobytes: Option<f64> = cwnd.trim_end_matches('K').parse().ok();
        self.cwnd = kilobytes.map(|k| ByteCount::from_f64(k * 1024.0));
        let (rtt, variance) = rtt.split_once('(').unwrap_or((rtt, ""));
        let us = |text: &str| text.parse().ok().map(Rtt::from_micros);
        self.rtt = us(rtt).filter(|rtt| *rtt > Rtt::ZERO);
        self.rttvar = us(variance.trim_end_matches(')'));
    }
}

impl FlowReports {
    /// `… (icwnd/mss/irtt=14/1448/100098) …`: the segment size and the handshake's RTT, in µs.
    fn connected(&mut self, text: &str) {
        let Some((_, rest)) = text.split_once("mss/irtt=") else { return };
        let end = rest.find(')').unwrap_or(rest.len());
        let mut parts = rest.get(..end).unwrap_or_default().rsplit('/');
        let irtt = parts.next().and_then(|us| us.parse().ok()).map(Rtt::from_micros);
        self.irtt = irtt.filter(|rtt| *rtt > Rtt::ZERO);
        let mss = parts.next().and_then(|mss| mss.parse().ok());
        self.totals.mss = mss.filter(|mss| (64..=65_535).contains(mss)).unwrap_or(0);
    }

    fn add(&mut self, row: &Row, sending: bool, is_server_report: bool) {
        let at_receiver = is_server_report || row.datagrams.is_some();
        let before = self.intervals.last().map_or(0.0, |last| last.to_s);
        // A total begins anew at 0.
        let is_total = row.from_s < before - 1e-6;
        if at_receiver {
            self.received_seconds = self.received_seconds.max(row.to_s);
            if is_total || is_server_report || self.datagrams.is_none() {
                self.datagrams = row.datagrams;
                self.received_bytes = row.bytes.bytes();
            } else if let (Some(all), Some(more)) = (&mut self.datagrams, row.datagrams) {
                *all = (more.0, all.1.saturating_add(more.1), all.2.saturating_add(more.2));
                self.received_bytes = self.received_bytes.saturating_add(row.bytes.bytes());
            }
        }
        if is_server_report {
            return;
        }
        if is_total {
            self.totals.sent = sending.then_some(row.bytes.bytes());
            self.totals.retransmits = row.retries;
            return;
        }
        self.writes.extend(row.writes);
        self.intervals.push(Interval {
            sending,
            from_s: row.from_s,
            to_s: row.to_s,
            bytes: row.bytes,
            retransmits: row.retries.filter(|_| sending),
            cwnd: row.cwnd,
            rtt: row.rtt,
            rttvar: row.rttvar,
            ..Interval::default()
        });
    }

    /// How many writes the intervals differ by, without the last one, which may be shorter; a
    /// clock gives at most one. `None` for too few intervals.
    fn spread_of_writes(&self) -> Option<u64> {
        let (_, whole) = self.writes.split_last()?;
        let is_enough = whole.len() >= CLOCKED_INTERVALS;
        let most = whole.iter().max().filter(|_| is_enough)?;
        Some(most - whole.iter().min()?)
    }

    /// The rate of a flow that writes as often in each interval: the clock of `-b`, which TCP's
    /// reports do not show.
    fn clocked_rate(&self) -> Option<BitRate> {
        let is_often = self.writes.first().is_some_and(|count| *count >= CLOCKED_WRITES);
        let one =
            self.intervals.first().filter(|_| is_often && self.spread_of_writes() == Some(0))?;
        let seconds = one.to_s - one.from_s;
        (seconds > 0.0).then(|| BitRate::from_bps_f64(one.bytes.as_f64() * 8.0 / seconds))
    }

    fn udp_stream(&self, id: u32, length: u32) -> Option<Stream> {
        let (jitter, lost, total) = self.datagrams?;
        let received = total.saturating_sub(lost);
        let fitting = self.received_bytes.checked_div(received).and_then(|n| u32::try_from(n).ok());
        let length = if length > 0 { length } else { fitting.unwrap_or(0) };
        // The one that ends the test has no number of its own.
        let sent = self.sent.map(|sent| sent.saturating_sub(LAST_DATAGRAM).max(total));
        let mut datagrams = Datagrams {
            length_bytes: length,
            sent,
            received,
            lost,
            jitter,
            ..Datagrams::default()
        };
        datagrams.count_unreceived();
        Some(Stream {
            id,
            sent_bytes: sent.unwrap_or(total).saturating_mul(u64::from(length)),
            received_bytes: self.received_bytes,
            sent_seconds: self.received_seconds,
            received_seconds: self.received_seconds,
            datagrams: Some(datagrams),
            ..Stream::default()
        })
    }
}

fn measurement(head: &Head, flows: &[FlowReports]) -> Result<Measurement, NotAResult> {
    let mut transfer = Transfer {
        tool: "iperf 2".to_owned(),
        unavailable: vec![Unavailable::CongestionControl, Unavailable::RequestedRate],
        ..Transfer::default()
    };
    for (id, flow) in (1..).zip(flows) {
        if head.is_udp {
            let stream = flow.udp_stream(id, head.length);
            transfer.streams.push(stream.ok_or_else(|| {
                NotAResult::empty(WHAT, "no loss report of the server; use the server's output")
            })?);
            continue;
        }
        let mss = if flow.totals.mss == 0 { 1448 } else { flow.totals.mss };
        let totals = Totals { mss, min_rtt: flow.irtt, ..flow.totals };
        let (mut stream, mut lacking) = intervals::stream(id, false, &flow.intervals, &totals);
        if let Some(irtt) = flow.irtt {
            // The handshake met no queue of the transfer's own.
            lacking.retain(|figure| *figure != Unavailable::IdleRtt);
            let us = u32::try_from(irtt.nanos() / 1000).ok();
            for sample in &mut stream.receiver {
                sample.min_rtt_us = us;
            }
        }
        transfer.unavailable.extend(lacking);
        transfer.streams.push(stream);
    }
    let clocked = flows.first().and_then(FlowReports::clocked_rate);
    // A rate that was requested and not reached is not what limits.
    let is_unclocked =
        |flow: &FlowReports| flow.spread_of_writes().is_some_and(|spread| spread > 1);
    if clocked.is_some() || flows.iter().all(is_unclocked) {
        transfer.unavailable.retain(|figure| *figure != Unavailable::RequestedRate);
    }
    if clocked.is_some() {
        transfer.notes.push(
            "every interval has as many writes: a rate was requested (-b), and reached".to_owned(),
        );
    }
    let seconds = transfer.streams.iter().map(|one| one.received_seconds).fold(0.0, f64::max);
    transfer.spec = TestSpec {
        target: head.target.clone(),
        // longhaul's own server has iperf3's port.
        port: if head.port == PORT { 0 } else { head.port },
        protocol: if head.is_udp { Protocol::Udp } else { Protocol::Tcp },
        direction: Direction::Forward,
        seconds,
        streams: u32::try_from(flows.len()).unwrap_or(1),
        window_bytes: head.window,
        rate_bps: if head.is_udp { sent_rate(&transfer.streams) } else { clocked },
        ..TestSpec::default()
    };
    Ok(transfer.into_measurement())
}
