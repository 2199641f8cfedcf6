//! iperf 2's text: the client's and the server's reports, with `-e` the sender's state.
//!
//! A line is `[ id] from-to sec  bytes  bits/s` and, of a sender with `-e`, `writes/errors
//! retries cwnd/RTT(variance) us power`; of datagrams `jitter ms lost/total` (iperf 2,
//! `src/ReportOutputs.c`).

mod reports;

use crate::{
    intervals::{self, Totals},
    iperf2::{self, MAX_FLOWS, MAX_LINES, PORT},
    not_a_result::NotAResult,
    text_row::{self, RowId, bytes},
    transfer,
};
use record::{Measurement, TestSpec, Unavailable};
use reports::{Connection, FlowReports, Row, port};
use std::collections::HashMap;
use units::ByteCount;

const WHAT: &str = "iperf 2's text";

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

/// The tests of all lines, in order: flows that follow each other, as with `-r` or in a server's
/// log, are no streams of one test.
pub(crate) fn lines(text: &str) -> Result<Vec<Measurement>, NotAResult> {
    let (mut head, flows, has_sum) = read(text);
    if flows.is_empty() {
        return Err(NotAResult::empty(WHAT, "no interval: it is truncated, or the test failed"));
    }
    // Without the lines before the reports, losses tell.
    let is_known = head.is_server || head.is_client();
    head.is_udp |= !is_known && flows.iter().all(|flow| flow.datagrams.is_some());
    tests(flows, has_sum).iter().map(|flows| measurement(&head, flows)).collect()
}

/// What the lines before the reports say, the flows, and whether a line has the sum of several.
fn read(text: &str) -> (Head, Vec<FlowReports>, bool) {
    let (mut head, mut has_sum) = (Head::default(), false);
    let mut flows: Vec<FlowReports> = Vec::new();
    // Numbers are used again by later connections.
    let mut connections: HashMap<u32, Connection> = HashMap::new();
    let mut current: HashMap<(u32, bool), usize> = HashMap::new();
    for (number, line) in text.lines().enumerate().take(MAX_LINES) {
        let (id, is_starred, rest) = match text_row::flow_of(line) {
            Some((RowId::Flow(id), role, rest)) => (id, role.is_some(), rest),
            Some((RowId::Sum, ..)) => {
                has_sum = true;
                continue;
            }
            None => {
                // A server that connects to its client, as `-r` and `-d` ask, is no client.
                if connections.is_empty() || !head.is_server || head.is_client() {
                    head.read(line);
                }
                continue;
            }
        };
        if rest.contains("connected with") {
            let server_port = if head.port == 0 { PORT } else { head.port };
            connections.insert(id, Connection::read(number, is_starred, rest, server_port));
            current.remove(&(id, false));
            current.remove(&(id, true));
            continue;
        }
        let row = Row::parse(line);
        let is_report = rest.contains("Server Report");
        let sent = rest.strip_prefix("Sent ").and_then(|count| count.strip_suffix(" datagrams"));
        if row.is_none() && !is_report && sent.is_none() {
            continue;
        }
        let place = match current.get(&(id, is_starred)) {
            Some(place) => *place,
            None if flows.len() < MAX_FLOWS => {
                let is_server = head.is_server && !head.is_client();
                let connection = connections.get(&id).copied();
                flows.push(FlowReports::new(number, connection, is_starred, is_server));
                current.insert((id, is_starred), flows.len() - 1);
                flows.len() - 1
            }
            None => continue,
        };
        let Some(flow) = flows.get_mut(place) else { continue };
        flow.is_server_report |= is_report;
        flow.sent = sent.and_then(|count| count.trim().parse().ok()).or(flow.sent);
        if let Some(row) = row {
            flow.add(number, &row);
        }
    }
    flows.retain(FlowReports::has_reports);
    (head, flows, has_sum)
}

/// The flows of each test. Those of one test have reports between each other's, or a line with
/// their sum.
fn tests(mut flows: Vec<FlowReports>, has_sum: bool) -> Vec<Vec<FlowReports>> {
    flows.sort_by_key(|flow| flow.first_line);
    let mut last_line = 0;
    iperf2::tests(flows, |flow, _| {
        let is_later = flow.first_line > last_line && (flow.connection.is_some() || !has_sum);
        last_line = last_line.max(flow.last_line);
        is_later
    })
}

impl Head {
    fn is_client(&self) -> bool {
        !self.target.is_empty()
    }

    /// Whether the data of a flow goes from the server to the client.
    fn is_reverse(&self, flow: &FlowReports) -> bool {
        flow.is_sender != (self.is_client() || !self.is_server)
    }

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

fn measurement(head: &Head, flows: &[FlowReports]) -> Result<Measurement, NotAResult> {
    let mut transfer = iperf2::transfer();
    let mut unreported = 0;
    for (id, flow) in (1..).zip(flows) {
        let reverse = head.is_reverse(flow);
        if head.is_udp {
            match flow.udp_stream(id, reverse, head.length) {
                Some(stream) => transfer.streams.push(stream),
                None => unreported += 1,
            }
            continue;
        }
        let mss = if flow.totals.mss == 0 { 1448 } else { flow.totals.mss };
        let totals = Totals { mss, min_rtt: flow.irtt, ..flow.totals };
        let (mut stream, mut lacking) = intervals::stream(id, reverse, &flow.intervals, &totals);
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
    if transfer.streams.is_empty() {
        let why = "no loss report of the server; use the server's output";
        return Err(NotAResult::empty(WHAT, why));
    }
    if unreported > 0 {
        transfer.notes.push(format!(
            "without a report of the receiver, and left out: {unreported} of {} flows",
            flows.len()
        ));
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
    let spec = iperf2::spec(&transfer.streams, head.port, head.is_udp);
    transfer.spec = TestSpec {
        target: head.target.clone(),
        window_bytes: head.window,
        rate_bps: spec.rate_bps.or(clocked.filter(|_| !head.is_udp)),
        ..spec
    };
    Ok(transfer.into_measurement())
}
