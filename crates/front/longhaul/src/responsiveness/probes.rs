//! Probes: a request for a byte, on a connection of its own or on a loaded one.

use super::figures::{AVERAGED, Latencies};
use super::http2::Http2;
use super::{Targets, wrong};
use crate::Problem;
use crate::http_client::Server;
use host::clock;
use host::lock::lock;
use std::future::Future;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::time::timeout;

/// Most bytes of a probe's answer, which has one.
const MAX_ANSWER: usize = 1024;
/// The time after which a probe has failed.
const PROBE_TIME: Duration = Duration::from_secs(10);
/// Probes that may wait for answers.
const MAX_WAITING: u32 = 64;

/// The times of a probe on a connection of its own, in milliseconds.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct ForeignProbe {
    pub(super) tcp_ms: f64,
    pub(super) tls_ms: Option<f64>,
    pub(super) http_ms: f64,
}

fn ms(time: Duration) -> f64 {
    time.as_secs_f64() * 1e3
}

/// A probe on a connection of its own.
pub(super) async fn foreign(server: &Server, targets: &Targets) -> Result<ForeignProbe, Problem> {
    let connected = server.connect().await?;
    let (tcp_ms, tls_ms) = (ms(connected.tcp), connected.tls.map(ms));
    let (connection, _socket) = Http2::open(connected).await?;
    let http_ms = loaded(&connection, targets).await?;
    Ok(ForeignProbe { tcp_ms, tls_ms, http_ms })
}

/// A probe on an open connection.
async fn loaded(connection: &Http2, targets: &Targets) -> Result<f64, Problem> {
    let began = clock::now();
    connection.get(targets, &targets.small, MAX_ANSWER).await?;
    Ok(ms(began.elapsed()))
}

/// Probes of a direction, each by the interval in which it was sent.
#[derive(Debug, Clone, Default)]
pub(super) struct Probes(Arc<Mutex<Answers>>);

#[derive(Debug, Default)]
struct Answers {
    foreign: Vec<(usize, ForeignProbe)>,
    loaded: Vec<(usize, f64)>,
    waiting: u32,
    failed: u32,
}

impl Probes {
    /// Sends a probe of each kind, unless too many wait.
    pub(super) fn send(&self, interval: usize, server: &Server, targets: &Targets, on: &Http2) {
        let (to, with) = (server.clone(), targets.clone());
        self.spawn(async move { foreign(&to, &with).await }, move |answers, probe| {
            answers.foreign.push((interval, probe));
        });
        let (on, with) = (on.clone(), targets.clone());
        self.spawn(async move { loaded(&on, &with).await }, move |answers, http_ms| {
            answers.loaded.push((interval, http_ms));
        });
    }

    fn spawn<T: Send + 'static>(
        &self,
        probe: impl Future<Output = Result<T, Problem>> + Send + 'static,
        store: impl FnOnce(&mut Answers, T) + Send + 'static,
    ) {
        {
            let mut answers = lock(&self.0);
            if answers.waiting >= MAX_WAITING {
                return;
            }
            answers.waiting += 1;
        }
        let shared = self.0.clone();
        tokio::spawn(async move {
            let late = |_| Err(wrong("a probe has no answer"));
            let result = timeout(PROBE_TIME, probe).await.unwrap_or_else(late);
            let mut answers = lock(&shared);
            answers.waiting -= 1;
            match result {
                Ok(times) => store(&mut answers, times),
                Err(_) => answers.failed += 1,
            }
        });
    }

    /// Latencies of the probes that were sent in the last intervals up to `interval`.
    pub(super) fn latencies(&self, interval: usize) -> (Latencies, Latencies) {
        let answers = lock(&self.0);
        let is_recent = |sent: usize| sent + AVERAGED > interval;
        let recent = answers.foreign.iter().filter(|(sent, _)| is_recent(*sent));
        let foreign: Vec<ForeignProbe> = recent.map(|(_, probe)| *probe).collect();
        let recent = answers.loaded.iter().filter(|(sent, _)| is_recent(*sent));
        let loaded: Vec<f64> = recent.map(|(_, http_ms)| *http_ms).collect();
        (Latencies::of(&foreign), Latencies::of_loaded(&loaded))
    }

    pub(super) fn failed(&self) -> u32 {
        lock(&self.0).failed
    }
}
