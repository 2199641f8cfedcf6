//! The server's log: one line per event, as text or as JSON.
//!
//! Lines that clients cause are rate-limited separately for failed or refused
//! connections, for tests and for interval reports, so that a flood of one kind
//! does not suppress the others.

mod copies;
mod json;
mod text;

use super::observer::kind;
use crate::failure::with_flags;
use host::clock;
use host::log_limit::LogLimit;
use perf::server::{Limits, Server};
use perf::{ServerEvent, Summary};
use record::Protocol;
use report::terminal::{IntervalTable, Rows, Style};
use report::untrusted;
use serde_json::Value;
use std::collections::HashMap;
use std::net::SocketAddr;
use std::time::Instant;

/// Format of the lines.
#[derive(Debug, Clone, Copy)]
pub(super) enum Form {
    Text { style: Style },
    Json,
}

/// A running test.
#[derive(Debug)]
struct Running {
    udp: bool,
    both: bool,
    /// Each stream's id, and whether this end sends on it.
    streams: Vec<(u32, bool)>,
    table: IntervalTable,
    /// Lines for its client, if it asked for them (`--get-server-output`).
    client_lines: Option<Vec<String>>,
    /// Whether its start was logged; its other events are logged only then.
    logged: bool,
}

/// Maximum lines per second about failed or refused connections.
const MAX_CONNECTION_LINES: u32 = 20;

/// Maximum tests per second whose start and end are logged: two lines each.
const MAX_TESTS: u32 = 10;

/// Maximum interval reports per second (`--verbose`).
const MAX_INTERVAL_REPORTS: u32 = 200;

/// The limit of each kind of line.
#[derive(Debug)]
struct LogLimits {
    connections: LogLimit,
    tests: LogLimit,
    rows: LogLimit,
}

/// How many lines of each kind were suppressed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Suppressed {
    connections: u64,
    tests: u64,
    rows: u64,
}

impl LogLimits {
    fn new(now: Instant) -> Self {
        LogLimits {
            connections: LogLimit::new(MAX_CONNECTION_LINES, now),
            tests: LogLimit::new(MAX_TESTS, now),
            rows: LogLimit::new(MAX_INTERVAL_REPORTS, now),
        }
    }

    fn suppressed(&mut self, now: Instant, at_end: bool) -> Option<Suppressed> {
        let counts = Suppressed {
            connections: self.connections.suppressed(now, at_end),
            tests: self.tests.suppressed(now, at_end),
            rows: self.rows.suppressed(now, at_end),
        };
        (counts != Suppressed { connections: 0, tests: 0, rows: 0 }).then_some(counts)
    }
}

/// Maximum lines kept for a client that asks for the server's output.
const MAX_CLIENT_LINES: usize = 4096;

/// Their style, independent of the server's terminal.
const PLAIN: Style = Style { colour: false, width: 80, unicode: false };

/// Datagram totals of one direction.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Datagrams {
    sending: bool,
    packets: u64,
    lost: u64,
    /// Mean over the streams.
    jitter_s: f64,
}

/// A server's log.
#[derive(Debug)]
pub(super) struct Log {
    form: Form,
    verbose: bool,
    running: HashMap<u64, Running>,
    limits: LogLimits,
}

impl Log {
    pub(super) fn new(form: Form, verbose: bool) -> Self {
        Log { form, verbose, running: HashMap::new(), limits: LogLimits::new(clock::now()) }
    }

    pub(super) fn listening(
        &self,
        server: &Server,
        limits: &Limits,
        metrics: Option<SocketAddr>,
    ) -> Vec<String> {
        let (address, udp) = (server.local_addr(), server.has_udp());
        match self.form {
            Form::Text { .. } => text::listening(address, udp, limits, metrics),
            Form::Json => vec![stamped(json::listening(address, udp, limits, metrics))],
        }
    }

    pub(super) fn stopped(&mut self) -> Vec<String> {
        let mut lines = self.suppressed(clock::now(), true);
        match self.form {
            Form::Text { .. } => {}
            Form::Json => lines.push(stamped(json::stopped())),
        }
        lines
    }

    /// Reports that lines were dropped because the log's reader stalled.
    pub(super) fn dropped(&self, count: u64) -> String {
        match self.form {
            Form::Text { .. } => format!("dropped {count} log lines: the reader is too slow"),
            Form::Json => stamped(json::dropped(count)),
        }
    }

    /// The lines of an event, preceded by a count of suppressed ones.
    pub(super) fn lines(&mut self, event: &ServerEvent, now: Instant) -> Vec<String> {
        let mut lines = self.suppressed(now, false);
        if let ServerEvent::Started { session, started } = event {
            let streams = started.streams.iter().map(|stream| (stream.id, stream.sending));
            let (protocol, direction) = kind(started);
            let running = Running {
                udp: protocol == "udp",
                both: direction == "both",
                streams: streams.collect(),
                table: table(started.streams.iter().map(|stream| stream.id).collect()),
                client_lines: started.params.get_server_output.then(Vec::new),
                logged: self.limits.tests.admits(now, 1),
            };
            self.running.insert(*session, running);
        }
        if let ServerEvent::Started { session, .. } | ServerEvent::Interval { session, .. } = event
            && let Some(running) = self.running.get_mut(session)
            && let Some(kept) =
                running.client_lines.as_mut().filter(|kept| kept.len() < MAX_CLIENT_LINES)
        {
            kept.extend(text::line(event, running.both, &[], &mut running.table, &PLAIN));
        }
        if self.admits(event, now) {
            lines.extend(self.line(event));
        }
        if let ServerEvent::Finished { session, .. }
        | ServerEvent::Failed { session: Some(session), .. } = event
        {
            self.running.remove(session);
        }
        lines
    }

    /// The lines for a session's client, if it asked for them.
    pub(super) fn output(&self, session: u64) -> Option<String> {
        let lines = self.running.get(&session)?.client_lines.as_ref()?;
        Some(lines.iter().map(|line| format!("{line}\n")).collect())
    }

    /// The line of an event; `None` for a stream of which only the sum is shown.
    fn line(&mut self, event: &ServerEvent) -> Option<String> {
        let session = match event {
            ServerEvent::Interval { session, .. } | ServerEvent::Finished { session, .. } => {
                Some(session)
            }
            _ => None,
        };
        let mut running = session.and_then(|session| self.running.get_mut(session));
        let datagrams = match (event, &running) {
            (ServerEvent::Finished { summary, .. }, Some(running)) => {
                Datagrams::of(running, summary)
            }
            _ => Vec::new(),
        };
        match self.form {
            Form::Text { style } => {
                let both = running.as_ref().is_some_and(|running| running.both);
                let mut unknown = table(Vec::new());
                let table = running.as_mut().map_or(&mut unknown, |running| &mut running.table);
                text::line(event, both, &datagrams, table, &style)
            }
            Form::Json => Some(stamped(json::line(event, &datagrams))),
        }
    }

    /// Whether an event is logged, by the limit of its kind.
    fn admits(&mut self, event: &ServerEvent, now: Instant) -> bool {
        let logged = |session: &u64| self.running.get(session).map(|running| running.logged);
        match event {
            ServerEvent::Interval { session, .. } => {
                self.verbose && logged(session).unwrap_or(true) && self.limits.rows.admits(now, 1)
            }
            ServerEvent::Started { session, .. } | ServerEvent::Finished { session, .. } => {
                logged(session).unwrap_or(true)
            }
            // A session that never started is a failed connection.
            ServerEvent::Failed { session, .. } => match session.as_ref().and_then(logged) {
                Some(logged) => logged,
                None => self.limits.connections.admits(now, 1),
            },
            ServerEvent::Refused { .. } => self.limits.connections.admits(now, 1),
            ServerEvent::Draining { .. } => true,
        }
    }

    /// The line that says what was suppressed, once there is something to say.
    fn suppressed(&mut self, now: Instant, at_end: bool) -> Vec<String> {
        let Some(counts) = self.limits.suppressed(now, at_end) else { return Vec::new() };
        vec![match self.form {
            Form::Text { .. } => text::suppressed(counts),
            Form::Json => stamped(json::suppressed(counts)),
        }]
    }
}

/// The most datagrams of a stream: of 64 bytes at 100 Gbit/s, those of an hour.
const MAX_DATAGRAMS: u64 = 1 << 40;

impl Datagrams {
    /// What the receiving end counted in each direction; the client's word is
    /// taken within reason.
    fn of(running: &Running, summary: &Summary) -> Vec<Datagrams> {
        let of = |sending: bool| {
            let ids: Vec<u32> = running
                .streams
                .iter()
                .filter(|(_, sends)| *sends == sending)
                .map(|(id, _)| *id)
                .collect();
            let (from, to) = match sending {
                true => (&summary.ours, &summary.theirs),
                false => (&summary.theirs, &summary.ours),
            };
            let mut all = Datagrams { sending, packets: 0, lost: 0, jitter_s: 0.0 };
            for id in &ids {
                // Lost is what was sent and not received. A peer may claim any numbers: of what cannot
                // be a count only the losses are used.
                let valid = |count: i64| u64::try_from(count).ok().filter(|n| *n <= MAX_DATAGRAMS);
                let (sent, counted) = (from.stream(*id), to.stream(*id));
                let sent = sent.and_then(|stream| valid(stream.packets)).unwrap_or(0);
                let numbers = counted.and_then(|stream| valid(stream.packets));
                let missing = counted.map_or(0, |stream| u64::try_from(stream.errors).unwrap_or(0));
                let packets = if sending { sent } else { sent.max(numbers.unwrap_or(0)) };
                let lost = match numbers {
                    Some(numbers) => packets - numbers.min(packets).saturating_sub(missing),
                    None => missing.min(packets),
                };
                let jitter = counted.map_or(0.0, |stream| stream.jitter);
                all.packets = all.packets.saturating_add(packets);
                all.lost = all.lost.saturating_add(lost);
                // No jitter exceeds an hour.
                if jitter.is_finite() {
                    all.jitter_s += jitter.clamp(0.0, 3600.0) / ids.len() as f64;
                }
            }
            (!ids.is_empty()).then_some(all)
        };
        if !running.udp {
            return Vec::new();
        }
        [false, true].into_iter().filter_map(of).collect()
    }
}

/// The interval reports of a session; the log line names the direction.
fn table(streams: Vec<u32>) -> IntervalTable {
    // The protocol chooses the header, which the log does not print.
    IntervalTable::new(Protocol::Tcp, streams, false, Rows::Brief)
}

/// One line of JSON with schema and time.
fn stamped(mut event: Value) -> String {
    event["schema"] = "longhaul.server-event/1".into();
    event["time"] = clock::unix_time().as_secs_f64().into();
    untrusted::json(&event.to_string())
}

/// Text from the network, without control characters and limited in length.
fn printable(text: &str) -> String {
    untrusted::excerpt(&with_flags(text), 300)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::verbs::server::observer::samples::{finished, interval, started};
    use perf::RefusalReason;

    fn log(json: bool) -> Log {
        let style = Style { colour: false, width: 80, unicode: false };
        Log::new(if json { Form::Json } else { Form::Text { style } }, true)
    }

    #[test]
    fn a_udp_test_reports_loss_in_both_directions() {
        for (sending, ending) in [
            (false, "received 3 MB in 2.00 s, 12 Mbit/s, lost 5 of 200 (2.5 %), jitter 3 ms"),
            (true, "sent 3 MB in 2.00 s, 12 Mbit/s, lost 100 of 200 (50 %), jitter 0 ms"),
        ] {
            let mut log = log(false);
            let now = clock::now();
            let begun = log.lines(&started(4, true, sending), now).join("|");
            let direction = if sending { "sending" } else { "receiving" };
            assert_eq!(
                begun,
                format!(
                    "test 4: 192.0.2.1:5 (iperf of unknown version), {direction} over 2 UDP streams"
                )
            );
            let bytes = 3_000_000;
            let (received, sent) = if sending { (0, bytes) } else { (bytes, 0) };
            let ended = log.lines(&finished(4, received, sent), now).join("|");
            assert_eq!(ended, format!("test 4: {ending}"));
            assert!(log.running.is_empty());
        }
    }

    #[test]
    fn json_is_a_document_a_line() {
        let mut log = log(true);
        let now = clock::now();
        let peer = "192.0.2.1:5".parse().unwrap();
        let why = "no\nroom\u{1b}[2J".to_owned();
        let events = [
            started(1, true, true),
            interval(1, None, 1000, false),
            finished(1, 0, 5000),
            ServerEvent::Refused { peer, reason: RefusalReason::Busy, why },
            ServerEvent::Draining { sessions: 2 },
        ];
        let names = ["started", "interval", "finished", "refused", "draining"];
        for (event, name) in events.iter().zip(names) {
            let lines = log.lines(event, now);
            assert_eq!(lines.len(), 1);
            let document: Value = serde_json::from_str(&lines[0]).unwrap();
            assert_eq!(document["schema"], "longhaul.server-event/1");
            assert_eq!(document["event"], name);
            assert!(document["time"].as_f64().unwrap() > 1.7e9);
            if name == "finished" {
                assert_eq!(document["sent_bytes"], 5000);
                assert_eq!(document["datagrams"][0]["lost"], 100);
            }
            if name == "refused" {
                assert_eq!(
                    (&document["reason"], &document["why"]),
                    (&"busy".into(), &"no room[2J".into())
                );
            }
        }
    }

    #[test]
    fn a_client_gets_the_output_of_its_own_test_only() {
        let mut log = log(true);
        let ServerEvent::Started { session, mut started } = started(1, true, true) else {
            unreachable!()
        };
        started.params.get_server_output = true;
        let now = clock::now();
        log.lines(&ServerEvent::Started { session, started }, now);
        log.lines(&interval(1, Some(1), 1000, false), now);
        log.lines(&interval(2, Some(1), 1000, false), now);
        let output = log.output(1).unwrap();
        assert_eq!(output.lines().count(), 2);
        assert!(output.contains("8.00 kbit/s"), "{output}");
        assert_eq!(log.output(2), None);
    }

    #[test]
    fn a_flood_of_empty_tests_is_suppressed() {
        for as_json in [false, true] {
            let mut log = log(as_json);
            let now = clock::now();
            let mut lines = 0;
            for session in 1..=500 {
                lines += log.lines(&started(session, false, false), now).len();
                lines += log.lines(&interval(session, None, 0, false), now).len();
                lines += log.lines(&finished(session, 0, 0), now).len();
            }
            // Ten tests, each with its start, one interval report and its end.
            assert_eq!(lines, 30);
            // Connections have a limit of their own.
            let peer = "192.0.2.1:5".parse().unwrap();
            let why = "busy".to_owned();
            let refused = ServerEvent::Refused { peer, reason: RefusalReason::Busy, why };
            let lines: usize = (0..500).map(|_| log.lines(&refused, now).len()).sum();
            assert_eq!(lines, 20);
            let rest = log.stopped().remove(0);
            assert!(rest.contains("480") && rest.contains("490"), "{rest}");
        }
    }

    #[test]
    fn a_test_that_was_logged_is_logged_to_its_end() {
        let mut log = log(false);
        let now = clock::now();
        assert_eq!(log.lines(&started(1, false, false), now).len(), 1);
        for session in 2..=500 {
            log.lines(&started(session, false, false), now);
        }
        let rows: usize =
            (0..500).map(|_| log.lines(&interval(1, None, 1000, false), now).len()).sum();
        assert_eq!(rows, 200);
        assert_eq!(log.lines(&finished(499, 1, 0), now).len(), 0);
        assert_eq!(log.lines(&finished(1, 1, 0), now).len(), 1);
        assert_eq!(log.running.len(), 498);
    }

    #[test]
    fn interval_reports_need_verbose() {
        let mut log = log(false);
        let row = interval(1, Some(1), 1000, false);
        assert_eq!(log.lines(&row, clock::now()).len(), 1);
        log.verbose = false;
        assert_eq!(log.lines(&row, clock::now()).len(), 0);
    }
}
