//! One direction: a connection is added in each interval; once the goodput is stable, the
//! responsiveness is measured until it is stable as well (section 4.3 of the draft).

use super::figures::{Confidence, Round, Series, rpm};
use super::load::{self, Loaded};
use super::probes::Probes;
use super::{LoadDirection, ResponsivenessEvent, Targets, wrong};
use crate::Problem;
use crate::http_client::Server;
use host::clock;
use record::Measurement;
use std::time::Duration;
use tokio::time::{Instant, sleep_until, timeout};
use units::BitRate;

/// An interval: 1 s, as in the clients in use; the draft has 5 s since version 9.
const INTERVAL: Duration = Duration::from_secs(1);
/// Ticks of an interval: in each a sample is taken, and two probes are sent.
const TICKS: u32 = 10;
/// Most connections.
const MAX_CONNECTIONS: usize = 16;
/// The time for a further connection.
const OPEN_TIME: Duration = Duration::from_secs(2);
/// What a probe on a connection of its own takes of the path, with TLS's handshake, and the share of
/// the capacity that probes may take.
const PROBE_BITS: f64 = 8.0 * 6000.0;
const PROBE_SHARE: f64 = 0.05;

/// A direction to measure.
pub(super) struct Run<'a> {
    pub(super) direction: LoadDirection,
    pub(super) server: &'a Server,
    pub(super) targets: &'a Targets,
    pub(super) seconds: u32,
}

impl Run<'_> {
    /// Measures it.
    pub(super) async fn run(
        &self,
        on_event: &mut dyn FnMut(ResponsivenessEvent),
    ) -> Result<(Round, Measurement), Problem> {
        let &Run { direction, server, targets, seconds } = self;
        let (started, began) = (clock::unix_seconds(), Instant::from_std(clock::now()));
        let mut loaded = vec![Loaded::open(direction, server, targets).await?];
        let (mut goodput, mut responsiveness) = (Series::default(), Series::default());
        let probes = Probes::default();
        let (mut bytes, mut from) = (0, 0.0);
        let mut last = None;
        for interval in 0..seconds as usize {
            if began.elapsed() >= Duration::from_secs(u64::from(seconds)) {
                break;
            }
            if interval > 0 && loaded.len() < MAX_CONNECTIONS {
                let further = Loaded::open(direction, server, targets);
                // A server may limit them: the load is what it admits.
                if let Ok(Ok(one)) = timeout(OPEN_TIME, further).await {
                    loaded.push(one);
                }
            }
            self.load(interval, &mut loaded, &probes, began, goodput.average()).await;
            let t_s = began.elapsed().as_secs_f64();
            let total = loaded.iter().map(Loaded::bytes).sum::<u64>();
            let rate = total.saturating_sub(bytes) as f64 * 8.0 / (t_s - from).max(1e-3);
            (bytes, from) = (total, t_s);
            if loaded.iter().all(|one| one.failed().is_some()) {
                let why = loaded.iter().find_map(Loaded::failed);
                return Err(why.unwrap_or_else(|| wrong("the load ended")));
            }
            goodput.push(rate);
            let (foreign, on_loaded) = probes.latencies(interval);
            let figure = rpm(&foreign, &on_loaded);
            if let Some(figure) = figure.filter(|_| goodput.is_stable()) {
                responsiveness.push(figure);
            }
            let connections = u32::try_from(loaded.len()).unwrap_or(u32::MAX);
            let rate = BitRate::from_bps_f64(rate);
            on_event(ResponsivenessEvent::Interval {
                direction,
                t_s,
                connections,
                rate,
                rpm: figure,
            });
            let round = Round {
                rpm: figure,
                confidence: match (goodput.is_stable(), responsiveness.is_stable()) {
                    (_, true) => Confidence::High,
                    (true, false) => Confidence::Medium,
                    (false, false) => Confidence::Low,
                },
                rate: BitRate::from_bps_f64(goodput.average()),
                connections,
                seconds: t_s,
                foreign,
                loaded: on_loaded,
                failed: probes.failed(),
            };
            let is_done = round.confidence == Confidence::High;
            last = Some(round);
            if is_done {
                break;
            }
        }
        let round = last.ok_or_else(|| wrong("there was no time"))?;
        let seconds = round.seconds;
        Ok((round, load::measurement(direction, loaded, server, started, seconds)))
    }

    /// One interval of load, with samples and probes.
    async fn load(
        &self,
        interval: usize,
        loaded: &mut [Loaded],
        probes: &Probes,
        began: Instant,
        rate: f64,
    ) {
        let start = Instant::from_std(clock::now());
        // Probes take at most their share of a slow path.
        let every = (PROBE_BITS / (PROBE_SHARE * rate.max(1e6)) * f64::from(TICKS)).ceil() as u32;
        for tick in 1..=TICKS {
            if tick % every.clamp(1, TICKS) == 0
                && let Some(one) = loaded.get((interval + tick as usize) % loaded.len().max(1))
            {
                probes.send(interval, self.server, self.targets, &one.connection);
            }
            sleep_until(start + INTERVAL * tick / TICKS).await;
            let t_s = began.elapsed().as_secs_f64();
            loaded.iter_mut().for_each(|one| one.sample(t_s));
        }
    }
}
