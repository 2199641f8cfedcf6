//! The server's log: one line per event, as text or as JSON.

mod copies;
mod text;

use crate::failure::with_flags;
use longhaul::server::{ServerEvent, ServerLine};
use record::Protocol;
use report::terminal::{IntervalTable, Rows, Style};
use report::untrusted;
use std::collections::HashMap;

/// Format of the lines.
#[derive(Debug, Clone, Copy)]
pub(super) enum Form {
    Text { style: Style },
    Json,
}

/// Tests whose tables are kept: more than run at a time.
const MAX_TABLES: usize = 2048;

/// A test as text.
#[derive(Debug)]
struct Running {
    both: bool,
    table: IntervalTable,
}

impl Running {
    /// The interval reports of a test; the log line names the direction.
    fn new(streams: Vec<u32>, both: bool) -> Self {
        // The protocol chooses the header, which the log does not print.
        Running { both, table: IntervalTable::new(Protocol::Tcp, streams, false, Rows::Brief) }
    }
}

/// Makes the lines of events.
#[derive(Debug)]
pub(super) struct Lines {
    form: Form,
    running: HashMap<u64, Running>,
}

impl Lines {
    pub(super) fn new(form: Form) -> Self {
        Lines { form, running: HashMap::new() }
    }

    /// The lines of an event; none for a stream if only the sum is shown.
    pub(super) fn of(&mut self, event: &ServerEvent) -> Vec<String> {
        let event = printable(event);
        match self.form {
            Form::Json => json(&event).into_iter().collect(),
            Form::Text { style } => {
                let lines = self.text(&event, &style);
                // The only character of the units that is not ASCII.
                let plain =
                    |line: String| if style.unicode { line } else { line.replace('µ', "u") };
                lines.into_iter().map(plain).collect()
            }
        }
    }

    fn text(&mut self, event: &ServerEvent, style: &Style) -> Vec<String> {
        match event {
            ServerEvent::Listening(listening) => return text::listening(listening),
            ServerEvent::Started(started) => {
                if self.running.len() >= MAX_TABLES {
                    self.running.clear();
                }
                let running = Running::new(started.streams.clone(), started.direction == "both");
                self.running.insert(started.test, running);
            }
            ServerEvent::Interval { test, interval } => {
                let mut unknown = Running::new(Vec::new(), false);
                let running = self.running.get_mut(test).unwrap_or(&mut unknown);
                return text::interval(*test, interval, running, style).into_iter().collect();
            }
            ServerEvent::Finished(finished) => {
                self.running.remove(&finished.test);
            }
            ServerEvent::Failed { test: Some(test), .. } => {
                self.running.remove(test);
            }
            _ => {}
        }
        text::line(event).into_iter().collect()
    }
}

/// Messages printed once, before the log begins.
pub(super) fn remark(event: &ServerEvent) -> Option<String> {
    match event {
        ServerEvent::SharedSecret { file, what } => {
            let file = file.display();
            Some(format!(
                "warning: other users can read the {what} in {file}; run chmod 600 {file}"
            ))
        }
        ServerEvent::CopiesListening { root, writable, address } => {
            let access = if *writable { "read and write" } else { "read-only" };
            Some(format!("copies: {} ({access}) on TCP {address}", root.display()))
        }
        _ => None,
    }
}

/// One line of JSON with schema and time.
fn json(event: &ServerEvent) -> Option<String> {
    // The keys in order.
    let line = serde_json::to_value(ServerLine::now(event)).ok()?;
    Some(untrusted::json(&line.to_string()))
}

/// An event whose text from the network has no control characters and is limited in length.
fn printable(event: &ServerEvent) -> ServerEvent {
    let mut event = event.clone();
    match &mut event {
        ServerEvent::Started(started) => clean(&mut started.client),
        ServerEvent::Failed { why: text, .. }
        | ServerEvent::Refused { why: text, .. }
        | ServerEvent::CopyRefused { reason: text, .. }
        | ServerEvent::CopyFinished { error: Some(text), .. } => clean(text),
        _ => {}
    }
    event
}

fn clean(text: &mut String) {
    *text = untrusted::excerpt(&with_flags(text), 300);
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use longhaul::server::{DatagramTotals, HeldBack, TestFinished, TestStarted};
    use record::Interval;
    use serde_json::Value;
    use units::{BitRate, ByteCount};

    fn lines(json: bool) -> Lines {
        let style = Style { colour: false, width: 80, unicode: false };
        Lines::new(if json { Form::Json } else { Form::Text { style } })
    }

    fn started(test: u64, direction: &'static str) -> ServerEvent {
        ServerEvent::Started(TestStarted {
            test,
            peer: "192.0.2.1:5".parse().unwrap(),
            client: "iperf of unknown version".to_owned(),
            protocol: "udp",
            direction,
            streams: vec![1, 3],
            seconds: Some(2),
            bytes: None,
            stream_bps: None,
            notes: Vec::new(),
        })
    }

    pub(in crate::verbs::server) fn interval(test: u64, stream: Option<u32>) -> ServerEvent {
        let interval = Interval {
            stream,
            sending: true,
            to_s: 1.0,
            bytes: ByteCount::from_bytes(1000),
            rate: BitRate::from_bps(8000),
            ..Interval::default()
        };
        ServerEvent::Interval { test, interval }
    }

    fn finished(test: u64, received: u64, sent: u64, datagrams: DatagramTotals) -> ServerEvent {
        ServerEvent::Finished(TestFinished {
            test,
            peer: "192.0.2.1:5".parse().unwrap(),
            seconds: 2.0,
            sent_bytes: sent,
            received_bytes: received,
            sent_bps: sent as f64 * 4.0,
            received_bps: received as f64 * 4.0,
            datagrams: vec![datagrams],
        })
    }

    #[test]
    fn a_udp_test_reports_loss_in_both_directions() {
        for (sending, lost, jitter_s, ending) in [
            (
                false,
                5,
                0.003,
                "received 3 MB in 2.00 s, 12 Mbit/s, lost 5 of 200 (2.5 %), jitter 3 ms",
            ),
            (true, 100, 0.0, "sent 3 MB in 2.00 s, 12 Mbit/s, lost 100 of 200 (50 %), jitter 0 ms"),
        ] {
            let mut lines = lines(false);
            let (direction, word) =
                if sending { ("send", "sending") } else { ("receive", "receiving") };
            assert_eq!(
                lines.of(&started(4, direction)),
                [format!(
                    "test 4: 192.0.2.1:5 (iperf of unknown version), {word} over 2 UDP streams"
                )]
            );
            let bytes = 3_000_000;
            let (received, sent) = if sending { (0, bytes) } else { (bytes, 0) };
            let totals = DatagramTotals { sending, packets: 200, lost, jitter_s };
            let ended = lines.of(&finished(4, received, sent, totals));
            assert_eq!(ended, [format!("test 4: {ending}")]);
            assert!(lines.running.is_empty());
        }
    }

    #[test]
    fn json_is_a_document_a_line() {
        let mut lines = lines(true);
        let peer = "192.0.2.1:5".parse().unwrap();
        let why = "no\nroom\u{1b}[2J".to_owned();
        let totals = DatagramTotals { sending: true, packets: 200, lost: 100, jitter_s: 0.0 };
        let events = [
            started(1, "send"),
            interval(1, None),
            finished(1, 0, 5000, totals),
            ServerEvent::Refused { peer, reason: "busy", why },
            ServerEvent::Draining { tests: 2 },
            ServerEvent::HeldBack(HeldBack { count: 3, connections: 1, tests: 2, rows: 0 }),
            ServerEvent::Stopped,
        ];
        let names =
            ["started", "interval", "finished", "refused", "draining", "held_back", "stopped"];
        for (event, name) in events.iter().zip(names) {
            let lines = lines.of(event);
            assert_eq!(lines.len(), 1);
            let document: Value = serde_json::from_str(&lines[0]).unwrap();
            assert_eq!(document["schema"], "longhaul.server-event/1");
            assert_eq!(document["event"], name);
            assert!(document["time"].as_f64().unwrap() > 1.7e9);
            // As they were when they were written key by key.
            let keys: Vec<&str> =
                document.as_object().unwrap().keys().map(String::as_str).collect();
            let at = |key: &str| lines[0].find(&format!("\"{key}\":")).unwrap();
            assert!(keys.windows(2).all(|pair| at(pair[0]) < at(pair[1])), "{}", lines[0]);
            match name {
                "started" => assert_eq!(
                    keys,
                    [
                        "bytes",
                        "client",
                        "direction",
                        "event",
                        "notes",
                        "peer",
                        "protocol",
                        "schema",
                        "seconds",
                        "stream_bps",
                        "streams",
                        "test",
                        "time"
                    ]
                ),
                "interval" => assert_eq!(
                    keys,
                    [
                        "bps",
                        "bytes",
                        "cwnd_bytes",
                        "datagrams",
                        "event",
                        "from_s",
                        "omitted",
                        "retransmits",
                        "rtt_s",
                        "schema",
                        "sending",
                        "stream",
                        "test",
                        "time",
                        "to_s"
                    ]
                ),
                "finished" => {
                    assert_eq!(document["sent_bytes"], 5000);
                    assert_eq!(document["datagrams"][0]["lost"], 100);
                }
                "refused" => assert_eq!(
                    (&document["reason"], &document["why"]),
                    (&"busy".into(), &"no room[2J".into())
                ),
                _ => {}
            }
        }
    }

    #[test]
    fn a_client_reads_its_own_test() {
        let mut lines = lines(false);
        let ServerEvent::Started(mut begun) = started(1, "send") else { panic!() };
        begun.streams = (1..=5).collect();
        assert_eq!(lines.of(&ServerEvent::Started(begun)).len(), 1);
        // Only the sum of five streams is shown.
        assert_eq!(lines.of(&interval(1, Some(1))), Vec::<String>::new());
        let row = lines.of(&interval(1, None)).pop().unwrap();
        assert!(row.starts_with("test 1: ") && row.contains("8.00 kbit/s"), "{row}");
    }
}
