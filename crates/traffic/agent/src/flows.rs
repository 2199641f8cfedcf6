//! The flows of a run: tests against servers, each at its time.

use crate::input::Requests;
use host::clock;
use host::resolve::Family;
use host::stop::StopFlag;
use perf::client::{self, ClientConfig, EndAfter};
use perf::{Event, PerfError};
use record::Protocol;
use remote::protocol::{FlowReply, FlowRequest, Reply, Secret};
use std::sync::OnceLock;
use std::thread;
use std::time::{Duration, Instant};

/// Maximum time between the request for a flow and its start: that of the longest test.
const LATEST: Duration = Duration::from_secs(25 * 3600);
/// Accuracy of a flow's start: the rest of its wait is slept in one piece.
const STEP: Duration = Duration::from_millis(20);

/// The work of one request.
pub(crate) struct Flows {
    /// Where the agent's clock begins.
    pub(crate) began: Instant,
    pub(crate) token: Option<Secret>,
    pub(crate) requests: Vec<FlowRequest>,
}

impl Flows {
    /// Runs them until the last one has ended; a request to stop ends them early, as the end of
    /// the input does.
    pub(crate) fn run(&self, requests: &Requests, stop: &StopFlag) -> Reply {
        let end = StopFlag::new();
        let flows = thread::scope(|scope| {
            let threads: Vec<_> = self
                .requests
                .iter()
                .map(|flow| thread::Builder::new().spawn_scoped(scope, || self.one(flow, &end)))
                .collect();
            while threads.iter().flatten().any(|thread| !thread.is_finished()) {
                let stopped = match requests.poll(STEP) {
                    Ok(None) => stop.is_raised(),
                    // Any request but that to stop is a mistake, and ends the run as well.
                    Ok(Some(_)) => true,
                    Err(_) => {
                        // The channel has ended: do not spin on it.
                        thread::sleep(STEP);
                        true
                    }
                };
                if stopped {
                    end.raise();
                }
            }
            let flow = |thread: std::io::Result<thread::ScopedJoinHandle<'_, _>>| match thread {
                Ok(thread) => thread.join().unwrap_or_else(|_| failed("its thread failed")),
                Err(error) => failed(&error),
            };
            threads.into_iter().map(flow).collect()
        });
        Reply::Ran { flows }
    }

    fn one(&self, flow: &FlowRequest, stop: &StopFlag) -> FlowReply {
        let wait = Duration::from_nanos(flow.at_ns).saturating_sub(self.began.elapsed());
        if wait > LATEST {
            return failed("its start is more than 25 hours ahead");
        }
        if !wait_until(clock::now() + wait, stop) {
            return failed("interrupted");
        }
        let config = self.config(flow);
        let omit = Duration::from_secs(flow.omit_s.into());
        let connected = OnceLock::new();
        let mut progress = |event| {
            if let Event::Connected(_) = event {
                // Samples and figures begin after the warm-up.
                let _ = connected.set(clock::now() + omit);
            }
        };
        let measured: Result<_, PerfError> = client::run(&config, &mut progress, stop);
        let began = connected.into_inner().unwrap_or_else(clock::now);
        let since = began.saturating_duration_since(self.began).as_nanos();
        match measured {
            _ if stop.is_raised() => failed("interrupted"),
            Err(error) => failed(&error),
            Ok(report) => FlowReply::Measured {
                began_ns: u64::try_from(since).unwrap_or(u64::MAX),
                measurement: Box::new(report.measurement),
            },
        }
    }

    fn config(&self, flow: &FlowRequest) -> ClientConfig {
        ClientConfig {
            ports: flow.port..=flow.port,
            family: match flow.ip {
                Some(4) => Family::V4,
                Some(6) => Family::V6,
                _ => Family::Any,
            },
            transport: flow.protocol.into(),
            direction: flow.direction,
            end: EndAfter::Seconds(flow.seconds),
            omit_seconds: flow.omit_s,
            streams: flow.streams,
            rate: flow.rate_bps,
            fq_rate: flow.pacing_bps,
            block: flow.block_bytes,
            congestion: flow.congestion.clone().filter(|_| flow.protocol != Protocol::Udp),
            window: flow.window_bytes,
            receive_timeout: Duration::from_secs(30),
            // It would delay the beginning, differently at each host.
            watch_load: Duration::ZERO,
            token: self.token.as_ref().map(|token| token.0.clone()),
            ..ClientConfig::new(flow.server.clone())
        }
    }
}

fn failed(reason: &(impl ToString + ?Sized)) -> FlowReply {
    FlowReply::Failed { reason: reason.to_string() }
}

/// `false`: stopped before.
fn wait_until(due: Instant, stop: &StopFlag) -> bool {
    loop {
        let left = due.saturating_duration_since(clock::now());
        if stop.is_raised() || left.is_zero() {
            return !stop.is_raised();
        }
        thread::sleep(left.min(STEP));
    }
}
