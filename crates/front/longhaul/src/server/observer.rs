//! Receives the events of sessions, counts them, and passes them on within limits.
//!
//! Events that clients cause are limited separately for failed or refused connections, for tests
//! and for interval reports, so that a flood of one kind does not suppress the others.

use super::counters::Counters;
use super::event::{DatagramTotals, HeldBack, ServerEvent, TestFinished, TestStarted, kind};
use super::{ClientLines, Front};
use host::clock;
use host::lock::lock;
use host::log_limit::LogLimit;
use perf::{Observer, ServerEvent as SessionEvent, ServerOutput, Summary};
use std::collections::HashMap;
use std::sync::mpsc::SyncSender;
use std::sync::{Arc, Mutex};
use std::time::Instant;

/// Maximum events per second about failed or refused connections.
const MAX_CONNECTION_EVENTS: u32 = 20;

/// Maximum tests per second whose start and end are reported: two events each.
const MAX_TESTS: u32 = 10;

/// Maximum interval reports per second.
const MAX_INTERVAL_REPORTS: u32 = 200;

/// Maximum lines kept for a client that asks for the server's output.
const MAX_CLIENT_LINES: usize = 4096;

/// Receives events in the sessions' threads.
pub(super) struct SessionObserver<'a> {
    log: Mutex<EventLog<'a>>,
    events: SyncSender<ServerEvent>,
    counters: Arc<Mutex<Counters>>,
}

impl<'a> SessionObserver<'a> {
    pub(super) fn new(
        log: EventLog<'a>,
        events: SyncSender<ServerEvent>,
        counters: Arc<Mutex<Counters>>,
    ) -> Self {
        SessionObserver { log: Mutex::new(log), events, counters }
    }

    /// Reports an event of a copy.
    pub(super) fn copy(&self, event: copy::Event) {
        let mut log = lock(&self.log);
        let events = log.of_copy(event, clock::now());
        self.pass(events);
    }

    /// Reports what was held back last.
    pub(super) fn stopped(&self) {
        let events = lock(&self.log).held_back(clock::now(), true);
        self.pass(events);
    }

    fn pass(&self, events: Vec<ServerEvent>) {
        for event in events {
            // The receiver lives longer.
            let _ = self.events.send(event);
        }
    }
}

impl Observer for SessionObserver<'_> {
    fn event(&self, event: SessionEvent) {
        lock(&self.counters).take(&event);
        let mut log = lock(&self.log);
        let events = log.take(&event, clock::now());
        self.pass(events);
    }

    fn output(&self, session: u64) -> Option<ServerOutput> {
        lock(&self.log).output(session).map(ServerOutput::Text)
    }
}

/// A running test.
struct Running {
    udp: bool,
    /// Each stream's id, and whether this end sends on it.
    streams: Vec<(u32, bool)>,
    /// Lines for its client, if requested (`--get-server-output`), and the code that makes them.
    client: Option<(ClientLines, Vec<String>)>,
    /// True if its start was reported; its other events are reported only then.
    reported: bool,
}

/// The limit of each kind of event.
#[derive(Debug)]
struct EventLimits {
    connections: LogLimit,
    tests: LogLimit,
    rows: LogLimit,
}

impl EventLimits {
    fn new(now: Instant) -> Self {
        EventLimits {
            connections: LogLimit::new(MAX_CONNECTION_EVENTS, now),
            tests: LogLimit::new(MAX_TESTS, now),
            rows: LogLimit::new(MAX_INTERVAL_REPORTS, now),
        }
    }

    fn held_back(&mut self, now: Instant, at_end: bool) -> Option<HeldBack> {
        let connections = self.connections.suppressed(now, at_end);
        let tests = self.tests.suppressed(now, at_end);
        let rows = self.rows.suppressed(now, at_end);
        let count = connections.saturating_add(tests).saturating_add(rows);
        (count > 0).then_some(HeldBack { count, connections, tests, rows })
    }
}

/// Decides which events are reported.
pub(super) struct EventLog<'a> {
    intervals: bool,
    front: &'a Front<'a>,
    running: HashMap<u64, Running>,
    limits: EventLimits,
}

impl<'a> EventLog<'a> {
    /// `intervals`: interval reports are reported, too.
    pub(super) fn new(intervals: bool, front: &'a Front<'a>) -> Self {
        let limits = EventLimits::new(clock::now());
        EventLog { intervals, front, running: HashMap::new(), limits }
    }

    /// An event as reported, preceded by a count of those held back.
    fn take(&mut self, event: &SessionEvent, now: Instant) -> Vec<ServerEvent> {
        let mut events = self.held_back(now, false);
        if let SessionEvent::Started { session, started } = event {
            let streams = started.streams.iter().map(|stream| (stream.id, stream.sending));
            let client_lines = self.front.client_lines;
            let lines = client_lines.filter(|_| started.params.get_server_output);
            let running = Running {
                udp: kind(started).0 == "udp",
                streams: streams.collect(),
                client: lines.map(|lines| (lines(), Vec::new())),
                reported: self.limits.tests.admits(now, 1),
            };
            self.running.insert(*session, running);
        }
        let reported = self.event(event);
        if let SessionEvent::Started { session, .. } | SessionEvent::Interval { session, .. } =
            event
            && let Some(running) = self.running.get_mut(session)
            && let Some((lines, kept)) =
                running.client.as_mut().filter(|(_, kept)| kept.len() < MAX_CLIENT_LINES)
        {
            kept.extend(lines(&reported));
        }
        if self.admits(event, now) {
            events.push(reported);
        }
        if let SessionEvent::Finished { session, .. }
        | SessionEvent::Failed { session: Some(session), .. } = event
        {
            self.running.remove(session);
        }
        events
    }

    /// The event of a copy, likewise.
    fn of_copy(&mut self, event: copy::Event, now: Instant) -> Vec<ServerEvent> {
        let mut events = self.held_back(now, false);
        let limit = match event {
            copy::Event::Refused { .. } => &mut self.limits.connections,
            copy::Event::Began { .. } | copy::Event::Ended { .. } => &mut self.limits.tests,
        };
        if limit.admits(now, 1) {
            events.push(event.into());
        }
        events
    }

    /// The lines for a session's client, if requested.
    fn output(&self, session: u64) -> Option<String> {
        let (_, lines) = self.running.get(&session)?.client.as_ref()?;
        Some(lines.iter().map(|line| format!("{line}\n")).collect())
    }

    fn event(&self, event: &SessionEvent) -> ServerEvent {
        match event {
            SessionEvent::Started { session, started } => {
                ServerEvent::Started(TestStarted::new(*session, started))
            }
            &SessionEvent::Interval { session, interval } => {
                ServerEvent::Interval { test: session, interval }
            }
            SessionEvent::Finished { session, peer, summary } => {
                let running = self.running.get(session);
                let datagrams = running.map(|running| DatagramTotals::of(running, summary));
                let datagrams = datagrams.unwrap_or_default();
                ServerEvent::Finished(TestFinished::new(*session, *peer, summary, datagrams))
            }
            &SessionEvent::Failed { session, peer, ref why } => {
                ServerEvent::Failed { test: session, peer, why: why.clone() }
            }
            &SessionEvent::Refused { peer, reason, ref why } => {
                ServerEvent::Refused { peer, reason: reason.name(), why: why.clone() }
            }
            &SessionEvent::Draining { sessions } => ServerEvent::Draining { tests: sessions },
        }
    }

    /// Returns true if an event is reported, by the limit of its kind.
    fn admits(&mut self, event: &SessionEvent, now: Instant) -> bool {
        let reported = |session: &u64| self.running.get(session).map(|running| running.reported);
        match event {
            SessionEvent::Interval { session, .. } => {
                self.intervals
                    && reported(session).unwrap_or(true)
                    && self.limits.rows.admits(now, 1)
            }
            SessionEvent::Started { session, .. } | SessionEvent::Finished { session, .. } => {
                reported(session).unwrap_or(true)
            }
            // A session that never started is a failed connection.
            SessionEvent::Failed { session, .. } => match session.as_ref().and_then(reported) {
                Some(reported) => reported,
                None => self.limits.connections.admits(now, 1),
            },
            SessionEvent::Refused { .. } => self.limits.connections.admits(now, 1),
            SessionEvent::Draining { .. } => true,
        }
    }

    /// The event that says what was held back, once there is something to say.
    fn held_back(&mut self, now: Instant, at_end: bool) -> Vec<ServerEvent> {
        let counts = self.limits.held_back(now, at_end);
        counts.map(ServerEvent::HeldBack).into_iter().collect()
    }
}

/// The most datagrams of a stream: of 64 bytes at 100 Gbit/s, those of an hour.
const MAX_DATAGRAMS: u64 = 1 << 40;

impl DatagramTotals {
    /// Totals that the receiving end counted in each direction; the client's word is
    /// taken within reason.
    fn of(running: &Running, summary: &Summary) -> Vec<DatagramTotals> {
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
            let mut all = DatagramTotals { sending, packets: 0, lost: 0, jitter_s: 0.0 };
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

#[cfg(test)]
mod tests {
    use super::samples::{finished, interval, started};
    use super::*;
    use perf::RefusalReason;

    static FRONT: Front<'static> = Front::PLAIN;

    fn log() -> EventLog<'static> {
        EventLog::new(true, &FRONT)
    }

    #[test]
    fn a_udp_test_reports_loss_in_both_directions() {
        for (sending, lost, jitter_s) in [(false, 5, 0.003), (true, 100, 0.0)] {
            let mut log = log();
            let now = clock::now();
            let begun = log.take(&started(4, true, sending), now);
            let [ServerEvent::Started(begun)] = &begun[..] else { panic!("{begun:?}") };
            let direction = if sending { "send" } else { "receive" };
            assert_eq!((begun.direction, begun.protocol), (direction, "udp"));
            let bytes = 3_000_000;
            let (received, sent) = if sending { (0, bytes) } else { (bytes, 0) };
            let ended = log.take(&finished(4, received, sent), now);
            let [ServerEvent::Finished(ended)] = &ended[..] else { panic!("{ended:?}") };
            assert_eq!((ended.received_bytes, ended.sent_bytes), (received, sent));
            let [totals] = ended.datagrams[..] else { panic!("{ended:?}") };
            assert_eq!((totals.sending, totals.packets, totals.lost), (sending, 200, lost));
            assert!((totals.jitter_s - jitter_s).abs() < 1e-12, "{totals:?}");
            assert!(log.running.is_empty());
        }
    }

    #[test]
    fn a_client_gets_the_output_of_its_own_test_only() {
        let lines = || -> ClientLines { Box::new(|event| Some(format!("{event:?}"))) };
        let front = Front { client_lines: Some(&lines), ..Front::PLAIN };
        let mut log = EventLog::new(true, &front);
        let SessionEvent::Started { session, mut started } = started(1, true, true) else {
            unreachable!()
        };
        started.params.get_server_output = true;
        let now = clock::now();
        log.take(&SessionEvent::Started { session, started }, now);
        log.take(&interval(1, Some(1), 1000, false), now);
        log.take(&interval(2, Some(1), 1000, false), now);
        let output = log.output(1).unwrap();
        assert_eq!(output.lines().count(), 2);
        assert!(output.contains("Started") && output.contains("Interval"), "{output}");
        assert_eq!(log.output(2), None);
    }

    #[test]
    fn a_flood_of_empty_tests_is_suppressed() {
        let mut log = log();
        let now = clock::now();
        let mut events = 0;
        for session in 1..=500 {
            events += log.take(&started(session, false, false), now).len();
            events += log.take(&interval(session, None, 0, false), now).len();
            events += log.take(&finished(session, 0, 0), now).len();
        }
        // Ten tests, each with its start, one interval report and its end.
        assert_eq!(events, 30);
        // Connections have a limit of their own.
        let peer = "192.0.2.1:5".parse().unwrap();
        let why = "busy".to_owned();
        let refused = SessionEvent::Refused { peer, reason: RefusalReason::Busy, why };
        let events: usize = (0..500).map(|_| log.take(&refused, now).len()).sum();
        assert_eq!(events, 20);
        let rest = log.held_back(now, true);
        let held = HeldBack { count: 970, connections: 480, tests: 490, rows: 0 };
        assert_eq!(rest, [ServerEvent::HeldBack(held)]);
    }

    #[test]
    fn a_test_that_was_reported_is_reported_to_its_end() {
        let mut log = log();
        let now = clock::now();
        assert_eq!(log.take(&started(1, false, false), now).len(), 1);
        for session in 2..=500 {
            log.take(&started(session, false, false), now);
        }
        let rows: usize =
            (0..500).map(|_| log.take(&interval(1, None, 1000, false), now).len()).sum();
        assert_eq!(rows, 200);
        assert_eq!(log.take(&finished(499, 1, 0), now).len(), 0);
        assert_eq!(log.take(&finished(1, 1, 0), now).len(), 1);
        assert_eq!(log.running.len(), 498);
    }

    #[test]
    fn interval_reports_are_on_request() {
        let row = interval(1, Some(1), 1000, false);
        let mut log = log();
        assert_eq!(log.take(&row, clock::now()).len(), 1);
        log.intervals = false;
        assert_eq!(log.take(&row, clock::now()).len(), 0);
    }
}

#[cfg(test)]
pub(super) mod samples {
    //! Sample events.

    use iperf3_proto::{Params, Results, StreamResult};
    use perf::{Interval, ServerEvent, Started, StreamAddress, Summary};
    use units::{BitRate, ByteCount};

    pub(in crate::server) fn started(session: u64, udp: bool, sending: bool) -> ServerEvent {
        let (peer, local) = ("192.0.2.1:5".parse().unwrap(), "192.0.2.2:6".parse().unwrap());
        let params = Params { udp, tcp: !udp, reverse: sending, time: 2, ..Params::default() };
        let streams = [1, 3].map(|id| StreamAddress { id, sending, local, peer });
        let started = Started {
            peer,
            local,
            cookie: String::new(),
            unix_s: 0.0,
            streams: streams.to_vec(),
            params,
            control_mss: 1448,
            send_buffer: ByteCount::ZERO,
            receive_buffer: ByteCount::ZERO,
            notes: Vec::new(),
        };
        ServerEvent::Started { session, started: Box::new(started) }
    }

    pub(in crate::server) fn interval(
        session: u64,
        stream: Option<u32>,
        bytes: u64,
        omitted: bool,
    ) -> ServerEvent {
        let interval = Interval {
            stream,
            sending: true,
            to_s: 1.0,
            bytes: ByteCount::from_bytes(bytes),
            rate: BitRate::from_bps(8 * bytes),
            omitted,
            ..Interval::default()
        };
        ServerEvent::Interval { session, interval }
    }

    /// Two seconds; streams 1 and 3 with results as a hostile client might report them.
    pub(in crate::server) fn finished(session: u64, received: u64, sent: u64) -> ServerEvent {
        let stream = |id, packets, errors, jitter| StreamResult {
            id,
            packets,
            errors,
            jitter,
            ..StreamResult::default()
        };
        let ours = Results {
            streams: vec![stream(1, 100, 2, 0.002), stream(3, 100, 3, 0.004)],
            ..Results::default()
        };
        let theirs = Results {
            streams: vec![stream(1, -7, i64::MIN, f64::NAN), stream(3, i64::MAX, i64::MAX, -1e308)],
            ..Results::default()
        };
        let summary = Summary {
            seconds: 2.0,
            sent: ByteCount::from_bytes(sent),
            received: ByteCount::from_bytes(received),
            ours,
            theirs,
        };
        let peer = "192.0.2.1:5".parse().unwrap();
        ServerEvent::Finished { session, peer, summary: Box::new(summary) }
    }
}
