//! iperf3's text: as much of the document of `-J` as it has.
//!
//! An interval is `[ id] from-to sec bytes rate` and, of a TCP sender, `retransmits cwnd`; of
//! datagrams their number at the sender, `jitter ms lost/total` at the receiver. The totals end in
//! `sender` or `receiver` (esnet/iperf, `src/iperf_locale.c`).

use super::document::{Address, Document, EndStream, MAX_REPORTS, Report, StreamReport};
use crate::not_a_result::NotAResult;
use crate::text_row::{RowId, TextRow, bytes, count, number};
use crate::transfer::MAX_STREAMS;
use record::Measurement;
use units::ByteCount;

const WHAT: &str = "iperf3's text";

/// Lengths of datagrams that iperf3 uses unless asked for others, and which MTUs lead to.
const USUAL_LENGTHS: [f64; 7] = [1448.0, 1460.0, 1440.0, 1472.0, 1400.0, 8192.0, 8948.0];
/// A length from figures of three digits is off by at most this share.
const ROUNDING: f64 = 0.006;

/// A flow with the reports of its receiver and sender.
#[derive(Debug, Default)]
struct FlowLines {
    id: u32,
    /// What its intervals add up to: datagrams, lost, bytes.
    packets: u64,
    lost: u64,
    bytes: f64,
    jitter_ms: Option<f64>,
    last_s: f64,
    /// Whether its intervals are those of a receiver of datagrams.
    at_receiver: bool,
    has_intervals: bool,
    sender: Option<StreamReport>,
    receiver: Option<StreamReport>,
}

/// What is read so far.
#[derive(Debug, Default)]
struct Lines {
    document: Document,
    flows: Vec<FlowLines>,
    is_udp: bool,
    is_reverse: bool,
    is_server: bool,
    /// Whether the heading of the intervals has retransmissions: this end sends.
    has_retransmits: bool,
    /// The flow of the last line, which may go on in the next one.
    last: Option<(u32, StreamReport)>,
}

/// A run's lines.
pub(crate) fn lines(text: &str) -> Result<Measurement, NotAResult> {
    let mut lines = Lines::default();
    for line in text.lines() {
        match TextRow::parse(line) {
            Some(row) => lines.add(&row),
            None => lines.read(line),
        }
    }
    lines.finish();
    super::measurement(&lines.document, WHAT)
}

impl Lines {
    /// A line that is no interval.
    fn read(&mut self, line: &str) {
        let start = &mut self.document.start;
        let after = |mark: &str| line.split_once(mark).map(|(_, rest)| rest.trim());
        let first = |text: &str| text.split([',', ' ']).next().unwrap_or_default().to_owned();
        let port = |text: &str| number(text.split_once("port ")?.1.split_whitespace().next()?);
        if let Some(rest) = after("Connecting to host ") {
            start.connecting_to = Some(Address { host: Some(first(rest)), port: port(rest) });
        } else if let Some(rest) = after("Accepted connection from ") {
            let rest = rest.split(',').next().unwrap_or_default();
            start.accepted_connection = Some(Address { host: Some(first(rest)), port: None });
            self.is_server = true;
        } else if line.contains("Reverse mode, remote host") {
            self.is_reverse = true;
        } else if line.contains("Total Datagrams") || line.contains("Lost/Total Datagrams") {
            self.is_udp = true;
        } else if line.contains("] Interval") && line.contains("Retr") {
            self.has_retransmits = true;
        } else if let Some(rest) = after("iperf3: error - ").or_else(|| after("iperf3: ")) {
            self.document.error = Some(rest.chars().take(200).collect());
        } else if let Some(rest) = after("snd_tcp_congestion ") {
            self.document.end.sender_tcp_congestion = Some(first(rest));
        } else if let Some(rest) = after("TCP MSS: ") {
            start.tcp_mss = number(&first(rest));
        } else if let Some(rest) = after("iperf 3.") {
            start.version = Some(format!("iperf 3.{}", first(rest)));
        } else if let Some(rest) = after("iperf3 -") {
            // The command.
            let words: Vec<&str> = rest.split_whitespace().collect();
            self.is_reverse |= words.iter().any(|word| ["-R", "--reverse"].contains(word));
        } else if matches!(line.trim().trim_start_matches(['>', ' ']), "sender" | "receiver") {
            // A mail program broke the line.
            if let Some((id, report)) = self.last.take() {
                self.total(id, report, line.contains("sender"));
            }
        }
    }

    fn add(&mut self, row: &TextRow<'_>) {
        let RowId::Flow(id) = row.id else { return };
        let datagrams = row.datagrams();
        let report = StreamReport {
            socket: Some(f64::from(id)),
            start: Some(row.from_s),
            end: Some(row.to_s),
            bytes: Some(row.bytes.as_f64()),
            omitted: row.rest.last() == Some(&"(omitted)"),
            jitter_ms: datagrams.map(|(jitter, ..)| jitter),
            lost_packets: datagrams.map(|(_, lost, _)| lost as f64),
            packets: datagrams.map(|(.., total)| total as f64),
            ..StreamReport::default()
        };
        self.is_udp |= datagrams.is_some();
        match row.rest.last() {
            Some(&"sender") => {
                let retransmits = row.rest.first().and_then(|it| count(it)).map(|it| it as f64);
                let retransmits = retransmits.filter(|_| datagrams.is_none());
                self.total(id, StreamReport { retransmits, ..report }, true);
            }
            Some(&"receiver") => self.total(id, report, false),
            _ => self.interval(id, row, report),
        }
    }

    fn interval(&mut self, id: u32, row: &TextRow<'_>, mut report: StreamReport) {
        let (is_reverse, is_server) = (self.is_reverse, self.is_server);
        let (has_retransmits, is_udp) = (self.has_retransmits, self.is_udp);
        if self.document.intervals.len() >= MAX_REPORTS {
            return;
        }
        let Some(flow) = self.flow(id) else { return };
        let is_total = flow.has_intervals && row.from_s < flow.last_s - 1e-6 && !report.omitted;
        if is_total && row.from_s == 0.0 && flow.last_s > 0.0 {
            // Without a word for whose: before 3.2, and where a mail program broke the line.
            self.last = Some((id, report));
            return;
        }
        let numbers: Vec<u64> = row.rest.iter().map_while(|word| count(word)).collect();
        let amount = |words: &[&str]| match words {
            [amount, unit, ..] => bytes(amount, unit),
            _ => None,
        };
        match (row.role, &numbers[..]) {
            (Some(role), _) => report.sender = Some(role.starts_with("TX")),
            (None, _) if report.packets.is_some() => report.sender = Some(false),
            (None, [_, ..]) if has_retransmits || is_udp => report.sender = Some(true),
            (None, _) if amount(row.rest.get(1..).unwrap_or_default()).is_some() => {
                report.sender = Some(true);
            }
            _ => report.sender = Some(is_server == is_reverse),
        }
        let is_datagrams = is_udp || report.packets.is_some();
        if report.sender == Some(true) && !is_datagrams {
            report.retransmits = numbers.first().map(|it| *it as f64);
            let cwnd = row.rest.get(1..).and_then(amount);
            report.snd_cwnd = cwnd.map(ByteCount::as_f64);
        }
        flow.has_intervals = true;
        flow.last_s = if report.omitted { 0.0 } else { row.to_s };
        if !report.omitted {
            let sent = numbers.first().copied().filter(|_| is_udp).unwrap_or(0);
            let packets = report.packets.map_or(sent, |it| it as u64);
            flow.packets = flow.packets.saturating_add(packets);
            flow.lost = flow.lost.saturating_add(report.lost_packets.map_or(0, |it| it as u64));
            flow.bytes += row.bytes.as_f64();
            flow.jitter_ms = report.jitter_ms.or(flow.jitter_ms);
            flow.at_receiver |= report.packets.is_some();
        }
        self.document.intervals.push(Report { streams: vec![report] });
    }

    fn flow(&mut self, id: u32) -> Option<&mut FlowLines> {
        let place = match self.flows.iter().position(|flow| flow.id == id) {
            Some(place) => place,
            None if self.flows.len() < MAX_STREAMS => {
                self.flows.push(FlowLines { id, ..FlowLines::default() });
                self.flows.len() - 1
            }
            None => return None,
        };
        self.flows.get_mut(place)
    }

    fn total(&mut self, id: u32, report: StreamReport, is_sender: bool) {
        let Some(flow) = self.flow(id) else { return };
        if is_sender {
            flow.sender = Some(report);
        } else {
            flow.receiver = Some(report);
        }
    }

    /// The totals, and what follows of the test from the lines.
    fn finish(&mut self) {
        if let Some((id, report)) = self.last.take() {
            let at_receiver = report.packets.is_some();
            self.total(id, report, !at_receiver);
        }
        let only_totals = self.document.intervals.is_empty();
        if only_totals {
            self.intervals_of_totals();
        }
        let first = self.document.intervals.first().and_then(|report| report.streams.first());
        let sends = first.and_then(|stream| stream.sender);
        let test = &mut self.document.start.test_start;
        test.reverse = sends.map_or(self.is_reverse, |sends| sends == self.is_server);
        // With both directions, as many in each.
        let senders = self.document.intervals.iter().flat_map(|report| &report.streams);
        let is_both = senders.clone().any(|it| it.sender == Some(true))
            && senders.clone().any(|it| it.sender == Some(false));
        let streams = if is_both { self.flows.len().div_ceil(2) } else { self.flows.len() };
        test.num_streams = Some(streams as f64);
        let ends = self.flows.iter().map(|flow| flow.last_s);
        test.duration = Some(ends.fold(0.0, f64::max));
        if self.is_udp {
            test.protocol = Some("UDP".to_owned());
            self.datagrams();
            return;
        }
        let flows = std::mem::take(&mut self.flows).into_iter();
        self.document.end.streams = flows
            .map(|flow| EndStream { sender: flow.sender, receiver: flow.receiver, udp: None })
            .collect();
    }

    /// An interval for each total, where a text has these alone.
    fn intervals_of_totals(&mut self) {
        let is_sender = self.is_server == self.is_reverse;
        for flow in &mut self.flows {
            let Some(total) = flow.sender.as_ref().or(flow.receiver.as_ref()) else { continue };
            flow.last_s = total.end.unwrap_or(0.0);
            flow.bytes = total.bytes.unwrap_or(0.0);
            let interval = StreamReport {
                socket: total.socket,
                start: total.start,
                end: total.end,
                bytes: total.bytes,
                retransmits: total.retransmits,
                sender: Some(is_sender),
                ..StreamReport::default()
            };
            self.document.intervals.push(Report { streams: vec![interval] });
        }
    }

    /// The totals of datagrams: those of the receiver, of as many as the sender counted.
    fn datagrams(&mut self) {
        let (mut all, mut lost, mut has_receiver) = (0.0, 0.0, false);
        for flow in &self.flows {
            let has_counts = |report: &&StreamReport| report.packets.is_some_and(|it| it > 0.0);
            let receiver = flow.receiver.as_ref().filter(has_counts);
            let sender = flow.sender.as_ref().filter(has_counts);
            let own = StreamReport {
                socket: Some(f64::from(flow.id)),
                packets: Some(flow.packets as f64),
                lost_packets: flow.at_receiver.then_some(flow.lost as f64),
                jitter_ms: flow.jitter_ms,
                bytes: Some(flow.bytes),
                ..StreamReport::default()
            };
            let counted = receiver.or(flow.at_receiver.then_some(&own));
            let largest = counted.or(sender).unwrap_or(&own);
            let of = |report: &StreamReport| report.packets.unwrap_or(0.0);
            let sent = sender.map_or(0.0, of).max(counted.map_or(0.0, of)).max(of(largest));
            if let Some(counted) = counted {
                has_receiver = true;
                all += of(counted);
                lost += counted.lost_packets.unwrap_or(0.0);
            }
            let length = largest.bytes.unwrap_or(0.0)
                / (of(largest) - largest.lost_packets.unwrap_or(0.0)).max(1.0);
            self.document.start.test_start.blksize.get_or_insert(length_of(length));
            let udp = StreamReport {
                socket: Some(f64::from(flow.id)),
                packets: Some(sent),
                lost_packets: counted.and_then(|counted| counted.lost_packets),
                jitter_ms: counted.and_then(|counted| counted.jitter_ms),
                ..StreamReport::default()
            };
            self.document.end.streams.push(EndStream { udp: Some(udp), ..EndStream::default() });
        }
        self.document.end.sum_received = has_receiver.then(|| StreamReport {
            packets: Some(all),
            lost_packets: Some(lost),
            ..StreamReport::default()
        });
    }
}

/// The length of a datagram: a usual one, if the figures agree with it.
fn length_of(bytes: f64) -> f64 {
    let usual = USUAL_LENGTHS.iter().find(|usual| (bytes / **usual - 1.0).abs() < ROUNDING);
    usual.copied().unwrap_or(bytes.round())
}
