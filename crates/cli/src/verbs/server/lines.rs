//! A server's log: a line for each event, as text or as JSON.

mod flood;
mod json;
mod text;

use super::show::kind;
use flood::Flood;
use host::clock;
use probe::server::{Limits, Server};
use probe::{ServerEvent, Summary};
use report::terminal::Style;
use serde_json::Value;
use std::collections::HashMap;
use std::net::SocketAddr;
use std::time::Instant;

/// How lines look.
#[derive(Debug, Clone, Copy)]
pub(super) enum Form {
    Text { style: Style },
    Json,
}

/// A test that runs.
#[derive(Debug)]
struct Running {
    udp: bool,
    both: bool,
    /// Each stream's id, and whether this end sends on it.
    streams: Vec<(u32, bool)>,
    /// What its client is told of it, where it asked for that.
    told: Option<Vec<String>>,
}

/// Lines kept for a client that asks for our output.
const MOST_TOLD: usize = 4096;

/// How they look, whatever our own terminal shows.
const PLAIN: Style = Style { colour: false, width: 80, unicode: false };

/// What became of the datagrams of one direction.
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
    flood: Flood,
}

impl Log {
    pub(super) fn new(form: Form, verbose: bool) -> Self {
        Log { form, verbose, running: HashMap::new(), flood: Flood::new(clock::now()) }
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
        let mut lines = self.flood_told(clock::now(), true);
        match self.form {
            Form::Text { .. } => {}
            Form::Json => lines.push(stamped(json::stopped())),
        }
        lines
    }

    /// Says that lines could not be written.
    pub(super) fn left_out(&self, count: u64) -> String {
        match self.form {
            Form::Text { .. } => format!("{count} lines were left out: nobody read them in time"),
            Form::Json => stamped(json::left_out(count)),
        }
    }

    /// The lines of an event; what was held back comes first.
    pub(super) fn lines(&mut self, event: &ServerEvent, now: Instant) -> Vec<String> {
        let mut lines = self.flood_told(now, false);
        if let ServerEvent::Started { session, started } = event {
            let streams = started.streams.iter().map(|stream| (stream.id, stream.sending));
            let (protocol, direction) = kind(started);
            let running = Running {
                udp: protocol == "udp",
                both: direction == "both",
                streams: streams.collect(),
                told: started.params.get_server_output.then(Vec::new),
            };
            self.running.insert(*session, running);
        }
        if let ServerEvent::Started { session, .. } | ServerEvent::Interval { session, .. } = event
            && let Some(running) = self.running.get_mut(session)
            && let Some(told) = running.told.as_mut().filter(|told| told.len() < MOST_TOLD)
        {
            told.push(text::line(event, running.both, &[], &PLAIN));
        }
        let is_of_a_test = match event {
            // A session that never ran is a connection that came to nothing.
            ServerEvent::Failed { session, .. } => {
                session.is_some_and(|session| self.running.contains_key(&session))
            }
            ServerEvent::Refused { .. } => false,
            _ => true,
        };
        if (is_of_a_test || self.flood.admits(now))
            && (self.verbose || !matches!(event, ServerEvent::Interval { .. }))
        {
            lines.push(self.line(event));
        }
        if let ServerEvent::Finished { session, .. }
        | ServerEvent::Failed { session: Some(session), .. } = event
        {
            self.running.remove(session);
        }
        lines
    }

    /// What the client of a session is told of its test, where it asked.
    pub(super) fn output(&self, session: u64) -> Option<String> {
        let told = self.running.get(&session)?.told.as_ref()?;
        Some(told.iter().map(|line| format!("{line}\n")).collect())
    }

    fn line(&self, event: &ServerEvent) -> String {
        let session = match event {
            ServerEvent::Interval { session, .. } | ServerEvent::Finished { session, .. } => {
                Some(session)
            }
            _ => None,
        };
        let running = session.and_then(|session| self.running.get(session));
        let datagrams = match (event, running) {
            (ServerEvent::Finished { summary, .. }, Some(running)) => {
                Datagrams::of(running, summary)
            }
            _ => Vec::new(),
        };
        match self.form {
            Form::Text { style } => {
                let both = running.is_some_and(|running| running.both);
                text::line(event, both, &datagrams, &style)
            }
            Form::Json => stamped(json::line(event, &datagrams)),
        }
    }

    fn flood_told(&mut self, now: Instant, at_end: bool) -> Vec<String> {
        let Some(held) = self.flood.held(now, at_end) else { return Vec::new() };
        vec![match self.form {
            Form::Text { .. } => {
                format!("{held} more connections failed or were turned away meanwhile")
            }
            Form::Json => stamped(json::held_back(held)),
        }]
    }
}

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
            let results = if sending { &summary.theirs } else { &summary.ours };
            let mut all = Datagrams { sending, packets: 0, lost: 0, jitter_s: 0.0 };
            for id in &ids {
                // Sent packets are our own count; the far end tells what it missed.
                let packets = summary.ours.stream(*id).map_or(0, |stream| stream.packets);
                let packets = u64::try_from(packets).unwrap_or(0);
                let counted = results.stream(*id);
                let lost = counted.map_or(0, |stream| u64::try_from(stream.errors).unwrap_or(0));
                let jitter = counted.map_or(0.0, |stream| stream.jitter);
                all.packets = all.packets.saturating_add(packets);
                all.lost = all.lost.saturating_add(lost.min(packets));
                // An hour is beyond any clock's jitter.
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

/// A document of one line, with its schema and time.
fn stamped(mut event: Value) -> String {
    event["schema"] = "longhaul.server-event/1".into();
    event["time"] = clock::unix_time().as_secs_f64().into();
    event.to_string()
}

/// What came over the network may hold anything.
fn printable(text: &str) -> String {
    text.chars().filter(|c| !c.is_control()).take(300).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::verbs::server::show::samples::{finished, interval, started};
    use probe::RefusalReason;

    fn log(json: bool) -> Log {
        let style = Style { colour: false, width: 80, unicode: false };
        Log::new(if json { Form::Json } else { Form::Text { style } }, true)
    }

    #[test]
    fn a_udp_test_tells_its_loss_whoever_counted_it() {
        for (sending, ending) in [
            (false, "received 3 MB in 2.00 s, 12 Mbit/s, lost 5 of 200 (2.5 %), jitter 3 ms"),
            (true, "sent 3 MB in 2.00 s, 12 Mbit/s, lost 100 of 200 (50 %), jitter 0 ms"),
        ] {
            let mut log = log(false);
            let now = clock::now();
            let begun = log.lines(&started(4, true, sending), now).join("|");
            let way = if sending { "sending" } else { "receiving" };
            assert_eq!(
                begun,
                format!("test 4: 192.0.2.1:5 (iperf of unknown version), {way} over 2 UDP streams")
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
                    (&"busy".into(), &"noroom[2J".into())
                );
            }
        }
    }

    #[test]
    fn a_client_that_asks_is_told_of_its_own_test() {
        let mut log = log(true);
        let ServerEvent::Started { session, mut started } = started(1, true, true) else {
            unreachable!()
        };
        started.params.get_server_output = true;
        let now = clock::now();
        log.lines(&ServerEvent::Started { session, started }, now);
        log.lines(&interval(1, Some(1), 1000, false), now);
        log.lines(&interval(2, Some(1), 1000, false), now);
        let told = log.output(1).unwrap();
        assert_eq!(told.lines().count(), 2);
        assert!(told.contains("8 kbit/s"), "{told}");
        assert_eq!(log.output(2), None);
    }

    #[test]
    fn rows_are_for_those_who_ask() {
        let mut log = log(false);
        let row = interval(1, Some(1), 1000, false);
        assert_eq!(log.lines(&row, clock::now()).len(), 1);
        log.verbose = false;
        assert_eq!(log.lines(&row, clock::now()).len(), 0);
    }
}
