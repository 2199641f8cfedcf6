//! The reports of one flow, and the line of its connection.

use crate::intervals::Totals;
use crate::text_row::TextRow;
use record::{Datagrams, Interval, Stream};
use units::{BitRate, ByteCount, Rtt};

/// Datagrams that a sender counts and a receiver does not: that of the end.
const LAST_DATAGRAM: u64 = 1;

/// As many intervals with as many writes each are no coincidence.
const CLOCKED_INTERVALS: usize = 5;
const CLOCKED_WRITES: u64 = 10;

/// The line `local … port … connected with … port …`.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Connection {
    /// The line's number in the text.
    pub(super) line: usize,
    /// Whether this end accepted it; `None`: no port is the server's, or both are.
    accepted: Option<bool>,
    is_starred: bool,
    /// The handshake's RTT.
    irtt: Option<Rtt>,
    mss: u32,
}

impl Connection {
    /// `local 10.0.0.1 port 47368 connected with 10.0.0.2 port 5001 (icwnd/mss/irtt=14/1448/100098)`,
    /// the RTT in µs.
    pub(super) fn read(line: usize, is_starred: bool, text: &str, server_port: u16) -> Self {
        let ports = text.split_once("connected with").and_then(|(local, remote)| {
            Some([port(local)? == server_port, port(remote)? == server_port])
        });
        let accepted = ports.filter(|[local, remote]| local != remote).map(|[local, _]| local);
        let (irtt, mss) = handshake(text).unwrap_or_default();
        Connection { line, accepted, is_starred, irtt, mss }
    }
}

/// The number after `port`.
pub(super) fn port(text: &str) -> Option<u16> {
    text.split_once("port ")?.1.split_whitespace().next()?.parse().ok()
}

/// The handshake's RTT and the segment size.
fn handshake(text: &str) -> Option<(Option<Rtt>, u32)> {
    let (_, rest) = text.split_once("mss/irtt=")?;
    let mut parts = rest.split(')').next()?.rsplit('/');
    let irtt = parts.next().and_then(|us| us.parse().ok()).map(Rtt::from_micros);
    let mss = parts.next().and_then(|mss| mss.parse().ok());
    let mss = mss.filter(|mss| (64..=65_535).contains(mss)).unwrap_or(0);
    Some((irtt.filter(|rtt| *rtt > Rtt::ZERO), mss))
}

/// One flow: the data of a connection in one direction.
#[derive(Debug, Default)]
pub(super) struct FlowReports {
    pub(super) connection: Option<Connection>,
    /// Whether this end sends.
    pub(super) is_sender: bool,
    /// The first line that belongs to it, and the last with a report.
    pub(super) first_line: usize,
    pub(super) last_line: usize,
    pub(super) intervals: Vec<Interval>,
    pub(super) totals: Totals,
    /// Jitter, lost and all datagrams, as the receiver counted them.
    pub(super) datagrams: Option<(Rtt, u64, u64)>,
    /// Datagrams that the sender counted.
    pub(super) sent: Option<u64>,
    received_bytes: u64,
    received_seconds: f64,
    pub(super) irtt: Option<Rtt>,
    /// The next report is the receiver's, which it sent to this end.
    pub(super) is_server_report: bool,
    /// Writes of each interval, of a sender.
    writes: Vec<u64>,
}

/// A report of one flow.
#[derive(Debug, Default)]
pub(super) struct Row {
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
    pub(super) fn parse(line: &str) -> Option<Row> {
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
    /// A flow whose first line has that number. Data flows to the end that accepted the connection,
    /// with a star of its own the other way.
    pub(super) fn new(
        line: usize,
        connection: Option<Connection>,
        is_starred: bool,
        is_server: bool,
    ) -> Self {
        let known = connection.unwrap_or_default();
        let is_turned = is_starred != known.is_starred;
        FlowReports {
            connection,
            is_sender: known.accepted.unwrap_or(is_server) == is_turned,
            first_line: connection.map_or(line, |connection| connection.line),
            last_line: line,
            irtt: known.irtt,
            totals: Totals { mss: known.mss, ..Totals::default() },
            ..FlowReports::default()
        }
    }

    pub(super) fn has_reports(&self) -> bool {
        !self.intervals.is_empty() || self.datagrams.is_some()
    }

    pub(super) fn add(&mut self, line: usize, row: &Row) {
        let (sending, is_server_report) = (self.is_sender, self.is_server_report);
        self.last_line = line;
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
    pub(super) fn spread_of_writes(&self) -> Option<u64> {
        let (_, whole) = self.writes.split_last()?;
        let is_enough = whole.len() >= CLOCKED_INTERVALS;
        let most = whole.iter().max().filter(|_| is_enough)?;
        Some(most - whole.iter().min()?)
    }

    /// The rate of a flow that writes as often in each interval: the clock of `-b`, which TCP's
    /// reports do not show.
    pub(super) fn clocked_rate(&self) -> Option<BitRate> {
        let is_often = self.writes.first().is_some_and(|count| *count >= CLOCKED_WRITES);
        let one =
            self.intervals.first().filter(|_| is_often && self.spread_of_writes() == Some(0))?;
        let seconds = one.to_s - one.from_s;
        (seconds > 0.0).then(|| BitRate::from_bps_f64(one.bytes.as_f64() * 8.0 / seconds))
    }

    pub(super) fn udp_stream(&self, id: u32, reverse: bool, length: u32) -> Option<Stream> {
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
            reverse,
            sent_bytes: sent.unwrap_or(total).saturating_mul(u64::from(length)),
            received_bytes: self.received_bytes,
            sent_seconds: self.received_seconds,
            received_seconds: self.received_seconds,
            datagrams: Some(datagrams),
            ..Stream::default()
        })
    }
}
