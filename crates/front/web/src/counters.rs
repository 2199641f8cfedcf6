//! What a server counts for its page of metrics.

use crate::WebEvent;
use crate::connection::Connection;
use axum::http::StatusCode;
use host::lock::lock;
use longhaul::metrics::Page;
use record::Limit;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

const OUTCOMES: [&str; 2] = ["finished", "failed"];
const DIRECTIONS: [&str; 2] = ["receive", "send"];

/// The statuses of refusals, and the reasons they have.
const REFUSALS: [(StatusCode, &str); 12] = [
    (StatusCode::BAD_REQUEST, "malformed"),
    (StatusCode::UNAUTHORIZED, "token"),
    (StatusCode::FORBIDDEN, "origin"),
    (StatusCode::METHOD_NOT_ALLOWED, "method"),
    (StatusCode::REQUEST_TIMEOUT, "slow"),
    (StatusCode::CONFLICT, "unexpected"),
    (StatusCode::PAYLOAD_TOO_LARGE, "size"),
    (StatusCode::UNSUPPORTED_MEDIA_TYPE, "encoding"),
    (StatusCode::MISDIRECTED_REQUEST, "host"),
    (StatusCode::UPGRADE_REQUIRED, "protocol"),
    (StatusCode::TOO_MANY_REQUESTS, "limit"),
    (StatusCode::SERVICE_UNAVAILABLE, "draining"),
];
/// Connections that ended before their first request: without a word, or without a reason to be
/// told in a language that both ends speak.
const DROPPED: &str = "connection";
const HANDSHAKE: &str = "handshake";

/// A server's counters.
#[derive(Debug)]
pub(crate) struct Counters(Mutex<Counts>);

#[derive(Debug)]
struct Counts {
    connections: u64,
    running: u64,
    runs: BTreeMap<&'static str, u64>,
    refused: BTreeMap<&'static str, u64>,
    findings: BTreeMap<&'static str, u64>,
    /// Received, sent.
    bytes: [u64; 2],
}

impl Counters {
    pub(crate) fn new() -> Arc<Self> {
        // A series that begins at its first event hides that event from rate().
        let reasons = REFUSALS.iter().map(|(_, reason)| *reason).chain([DROPPED, HANDSHAKE]);
        Arc::new(Counters(Mutex::new(Counts {
            connections: 0,
            running: 0,
            runs: OUTCOMES.iter().map(|outcome| (*outcome, 0)).collect(),
            refused: reasons.map(|reason| (reason, 0)).collect(),
            findings: Limit::ALL.iter().map(|limit| (limit.name(), 0)).collect(),
            bytes: [0; 2],
        })))
    }

    pub(crate) fn take(&self, event: &WebEvent) {
        let mut counts = lock(&self.0);
        let outcome = match event {
            WebEvent::RunStarted { .. } => {
                counts.running += 1;
                return;
            }
            WebEvent::RunFinished { limit, .. } => {
                if let Some(limit) = limit {
                    *counts.findings.entry(limit.name()).or_default() += 1;
                }
                "finished"
            }
            WebEvent::RunFailed { .. } => "failed",
            _ => return,
        };
        counts.running = counts.running.saturating_sub(1);
        *counts.runs.entry(outcome).or_default() += 1;
    }

    /// Counts an answer, where it refuses something.
    pub(crate) fn answered(&self, status: StatusCode) {
        if let Some((_, reason)) = REFUSALS.iter().find(|(refusal, _)| *refusal == status) {
            self.refused(reason);
        }
    }

    /// Counts a connection that was closed without an answer.
    pub(crate) fn dropped(&self) {
        self.refused(DROPPED);
    }

    /// Counts a TLS handshake that came to nothing.
    pub(crate) fn handshake_failed(&self) {
        self.refused(HANDSHAKE);
    }

    fn refused(&self, reason: &'static str) {
        *lock(&self.0).refused.entry(reason).or_default() += 1;
    }

    /// Counts a connection until what is returned is dropped.
    pub(crate) fn open(self: &Arc<Self>, connection: &Connection) -> OpenConnection {
        lock(&self.0).connections += 1;
        OpenConnection { counters: Arc::clone(self), connection: connection.clone() }
    }

    /// Adds them to a page.
    pub(crate) fn add(&self, page: &mut Page) {
        let counts = lock(&self.0);
        let mut family = |name: &str, help: &str, label: &str, values: &mut Values<'_>| {
            page.family(name, "counter", help);
            for (value, count) in values {
                page.sample(name, &[(label, value)], count as f64);
            }
        };
        let of = |map: &BTreeMap<&'static str, u64>| -> Vec<(&'static str, u64)> {
            map.iter().map(|(name, count)| (*name, *count)).collect()
        };
        let name = "longhaul_web_runs_total";
        let help = "Runs of the speed test, by outcome.";
        family(name, help, "outcome", &mut of(&counts.runs).into_iter());
        let name = "longhaul_web_refused_total";
        let help = "Refused requests, connections and handshakes, by reason.";
        family(name, help, "reason", &mut of(&counts.refused).into_iter());
        let name = "longhaul_web_findings_total";
        let help = "Runs by what limited their downloads.";
        family(name, help, "limit", &mut of(&counts.findings).into_iter());
        let name = "longhaul_web_bytes_total";
        let help = "Bytes on connections that have ended, as TCP carried them.";
        family(name, help, "direction", &mut DIRECTIONS.into_iter().zip(counts.bytes));
        page.gauge("longhaul_web_runs_running", "Running speed tests.", counts.running as f64);
        let help = "Open connections.";
        page.gauge("longhaul_web_connections", help, counts.connections as f64);
    }
}

type Values<'a> = dyn Iterator<Item = (&'static str, u64)> + 'a;

/// A connection that is counted.
#[derive(Debug)]
pub(crate) struct OpenConnection {
    counters: Arc<Counters>,
    connection: Connection,
}

impl Drop for OpenConnection {
    fn drop(&mut self) {
        let info = self.connection.tcp_info().ok();
        let mut counts = lock(&self.counters.0);
        counts.connections = counts.connections.saturating_sub(1);
        if let Some(info) = info {
            let bytes = [info.bytes_received, info.bytes_acked].map(|bytes| bytes.unwrap_or(0));
            for (total, bytes) in counts.bytes.iter_mut().zip(bytes) {
                *total = total.saturating_add(bytes);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(counters: &Counters) -> String {
        let mut page = Page::default();
        counters.add(&mut page);
        page.into_text()
    }

    #[test]
    fn runs_and_refusals_are_counted() {
        let counters = Counters::new();
        let (run, client) = (String::new(), "192.0.2.1:5".parse().unwrap());
        let started = WebEvent::RunStarted { run: run.clone(), client };
        counters.take(&started);
        counters.take(&started);
        let page = text(&counters);
        assert!(page.contains("\nlonghaul_web_runs_running 2\n"), "{page}");
        counters.take(&WebEvent::RunFailed { run, client, why: String::new() });
        counters.answered(StatusCode::TOO_MANY_REQUESTS);
        counters.answered(StatusCode::OK);
        let page = text(&counters);
        for line in [
            "longhaul_web_runs_running 1",
            "longhaul_web_runs_total{outcome=\"failed\"} 1",
            "longhaul_web_runs_total{outcome=\"finished\"} 0",
            "longhaul_web_refused_total{reason=\"limit\"} 1",
            "longhaul_web_refused_total{reason=\"host\"} 0",
            "longhaul_web_findings_total{limit=\"loss\"} 0",
            "longhaul_web_bytes_total{direction=\"send\"} 0",
        ] {
            assert!(page.lines().any(|of| of == line), "{line} is not in\n{page}");
        }
        assert_eq!(page.lines().filter(|line| line.ends_with(" 1")).count(), 3);
    }
}
