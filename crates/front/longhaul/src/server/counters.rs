//! Metrics of a server. Pure: events in, page out.

use super::event::kind;
use crate::metrics::Page;
use perf::{RefusalReason, ServerEvent};
use std::collections::{BTreeMap, HashMap};

const PROTOCOLS: [&str; 2] = ["tcp", "udp"];
const DIRECTIONS: [&str; 3] = ["receive", "send", "both"];
const OUTCOMES: [&str; 2] = ["finished", "failed"];

/// Protocol, direction.
type Kind = (&'static str, &'static str);

/// A running test.
#[derive(Debug)]
struct Running {
    kind: Kind,
    /// Bytes received and sent that its interval reports have already counted.
    counted: [u64; 2],
}

/// A server's counters.
#[derive(Debug)]
pub(super) struct Counters {
    /// Start of the server, seconds since 1970-01-01 UTC.
    began_unix_s: f64,
    running: HashMap<u64, Running>,
    tests: BTreeMap<(Kind, &'static str), u64>,
    /// Received, sent.
    bytes: [u64; 2],
    refused: BTreeMap<&'static str, u64>,
    lost_connections: u64,
    /// Bytes per second of the last finished test, received and sent.
    last_rate: [f64; 2],
}

impl Counters {
    pub(super) fn new(began_unix_s: f64) -> Self {
        let kinds = PROTOCOLS.iter().flat_map(|p| DIRECTIONS.iter().map(move |d| (*p, *d)));
        Counters {
            began_unix_s,
            running: HashMap::new(),
            // A series that begins at its first event hides that event from rate().
            tests: kinds.flat_map(|kind| OUTCOMES.map(|outcome| ((kind, outcome), 0))).collect(),
            bytes: [0; 2],
            refused: RefusalReason::ALL.iter().map(|reason| (reason.name(), 0)).collect(),
            lost_connections: 0,
            last_rate: [0.0; 2],
        }
    }

    pub(super) fn take(&mut self, event: &ServerEvent) {
        match event {
            ServerEvent::Started { session, started } => {
                let running = Running { kind: kind(started), counted: [0; 2] };
                self.running.insert(*session, running);
            }
            // Sums would count their streams twice.
            ServerEvent::Interval { session, interval } if interval.stream.is_some() => {
                let (direction, bytes) = (usize::from(interval.sending), interval.bytes.bytes());
                self.bytes[direction] = self.bytes[direction].saturating_add(bytes);
                if let Some(running) = self.running.get_mut(session).filter(|_| !interval.omitted) {
                    running.counted[direction] = running.counted[direction].saturating_add(bytes);
                }
            }
            ServerEvent::Interval { .. } => {}
            ServerEvent::Finished { session, summary, .. } => {
                let Some(running) = self.end(*session, "finished") else { return };
                let moved = [summary.received, summary.sent].map(units::ByteCount::bytes);
                for (direction, bytes) in moved.into_iter().enumerate() {
                    // The rest since the last interval report.
                    let rest = bytes.saturating_sub(running.counted[direction]);
                    self.bytes[direction] = self.bytes[direction].saturating_add(rest);
                    self.last_rate[direction] = bytes as f64 / summary.seconds.max(1e-3);
                }
            }
            ServerEvent::Failed { session, .. } => {
                let ran = session.and_then(|session| self.end(session, "failed"));
                if ran.is_none() {
                    self.lost_connections += 1;
                }
            }
            ServerEvent::Refused { reason, .. } => {
                *self.refused.entry(reason.name()).or_default() += 1;
            }
            ServerEvent::Draining { .. } => {}
        }
    }

    fn end(&mut self, session: u64, outcome: &'static str) -> Option<Running> {
        let running = self.running.remove(&session)?;
        *self.tests.entry((running.kind, outcome)).or_default() += 1;
        Some(running)
    }

    /// Adds them to a page; `half_open` connections have not completed their handshake.
    pub(super) fn add(&self, page: &mut Page, half_open: usize) {
        page.family(
            "longhaul_tests_total",
            "counter",
            "Tests, by protocol, direction and outcome.",
        );
        for (((protocol, direction), outcome), count) in &self.tests {
            let labels = [("protocol", *protocol), ("direction", direction), ("outcome", outcome)];
            page.sample("longhaul_tests_total", &labels, *count as f64);
        }
        page.family("longhaul_tests_running", "gauge", "Running tests.");
        page.sample("longhaul_tests_running", &[], self.running.len() as f64);
        let help = "Payload in bytes, including warm-ups, up to the last report interval.";
        page.family("longhaul_bytes_total", "counter", help);
        for (direction, bytes) in DIRECTIONS.iter().zip(self.bytes) {
            page.sample("longhaul_bytes_total", &[("direction", direction)], bytes as f64);
        }
        page.family("longhaul_refused_total", "counter", "Refused clients, by reason.");
        for (reason, count) in &self.refused {
            page.sample("longhaul_refused_total", &[("reason", reason)], *count as f64);
        }
        let name = "longhaul_failed_connections_total";
        page.family(name, "counter", "Connections that failed before their test started.");
        page.sample(name, &[], self.lost_connections as f64);
        let name = "longhaul_half_open_connections";
        page.family(name, "gauge", "Half-open connections (handshake not complete).");
        page.sample(name, &[], half_open as f64);
        let name = "longhaul_last_test_bytes_per_second";
        page.family(name, "gauge", "Payload rate of the last finished test.");
        for (direction, rate) in DIRECTIONS.iter().zip(self.last_rate) {
            page.sample(name, &[("direction", direction)], rate);
        }
        page.process(self.began_unix_s);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::server::observer::samples::{finished, interval, started};

    impl Counters {
        fn text(&self, half_open: usize) -> String {
            let mut page = Page::default();
            self.add(&mut page, half_open);
            page.into_text()
        }
    }

    fn value(page: &str, series: &str) -> f64 {
        let line = page.lines().find_map(|line| line.strip_prefix(series)?.strip_prefix(' '));
        line.unwrap_or_else(|| panic!("no {series} in\n{page}")).parse().unwrap()
    }

    #[test]
    fn a_test_is_counted_once_with_all_its_bytes() {
        let mut counters = Counters::new(1.5e9);
        counters.take(&started(1, true, true));
        assert_eq!(value(&counters.text(3), "longhaul_tests_running"), 1.0);
        counters.take(&interval(1, Some(1), 50, true));
        for stream in [Some(1), Some(3), None] {
            counters.take(&interval(1, stream, 100, false));
        }
        let page = counters.text(3);
        assert_eq!(value(&page, "longhaul_bytes_total{direction=\"send\"}"), 250.0);
        counters.take(&finished(1, 0, 230));
        let page = counters.text(3);
        let series =
            "longhaul_tests_total{protocol=\"udp\",direction=\"send\",outcome=\"finished\"}";
        assert_eq!(value(&page, series), 1.0);
        assert_eq!(value(&page, "longhaul_tests_running"), 0.0);
        assert_eq!(value(&page, "longhaul_bytes_total{direction=\"send\"}"), 280.0);
        assert_eq!(value(&page, "longhaul_bytes_total{direction=\"receive\"}"), 0.0);
        assert_eq!(value(&page, "longhaul_last_test_bytes_per_second{direction=\"send\"}"), 115.0);
        assert_eq!(value(&page, "longhaul_half_open_connections"), 3.0);
        assert_eq!(value(&page, "process_start_time_seconds"), 1.5e9);
    }

    #[test]
    fn what_never_ran_is_no_test() {
        let mut counters = Counters::new(0.0);
        let peer = "192.0.2.1:5".parse().unwrap();
        let why = String::new();
        for session in [None, Some(7)] {
            counters.take(&ServerEvent::Failed { session, peer, why: why.clone() });
        }
        counters.take(&ServerEvent::Refused { peer, reason: RefusalReason::Busy, why });
        let page = counters.text(0);
        assert_eq!(value(&page, "longhaul_failed_connections_total"), 2.0);
        assert_eq!(value(&page, "longhaul_refused_total{reason=\"busy\"}"), 1.0);
        assert_eq!(value(&page, "longhaul_refused_total{reason=\"limit\"}"), 0.0);
        let tests = page.lines().filter(|line| line.starts_with("longhaul_tests_total"));
        assert_eq!(tests.filter(|line| line.ends_with(" 0")).count(), 12);
    }

    #[test]
    fn every_family_says_what_it_is() {
        let page = Counters::new(0.0).text(0);
        for line in page.lines().filter(|line| !line.starts_with('#')) {
            let name = line.split(['{', ' ']).next().unwrap();
            assert!(page.contains(&format!("# HELP {name} ")), "{name}");
            let kind = if name.ends_with("_total") { "counter" } else { "gauge" };
            assert!(page.contains(&format!("# TYPE {name} {kind}\n")), "{name}");
        }
        assert!(page.ends_with('\n'));
    }
}
