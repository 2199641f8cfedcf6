//! Round trips beside a transfer (`--latency`).
//!
//! The probes go on flows of their own and must not disturb: a server of iperf3
//! takes every connection to its port for a client, so nothing is ever sent
//! there. ICMP echoes give the latency; TCP connects to another port give the
//! responsiveness, and the latency too where echoes are not allowed. A closed
//! port answers with a reset, which is a round trip like any other.

use diagnose::latency::{Load, ProbeFlow, under_load};
use host::clock;
use probe::client::{self, ClientConfig, Family, Report};
use probe::{Event, ProbeError, StopFlag};
use reach::{PingConfig, PingMethod, ReachError};
use record::{LatencyProbe, LatencyUnderLoad, PingReport};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

/// Where TCP connects go that were not sent elsewhere: through most firewalls.
pub(super) const PORT: u16 = 443;

/// How long round trips are taken without load, on either side of it.
const IDLE: Duration = Duration::from_secs(2);

/// How long the last answers are waited for.
const TAIL: Duration = Duration::from_millis(500);

/// A probe this young at the end may still be answered: it is not lost.
const YOUNG: f64 = 1.0;

/// Time between echoes: 50 a second are 34 kbit/s.
const ECHOES: Duration = Duration::from_millis(20);

/// Time between connects.
const CONNECTS: Duration = Duration::from_millis(50);

/// A ping remembers 65 536 probes; in a long test they are further apart.
const MOST_PROBES: f64 = 60_000.0;

/// One flow's probes, and when the first was sent.
type Flow = Result<(Instant, PingReport), ReachError>;

/// Runs the test with round trips before, during and after it, which go into
/// its measurement. Where no probe can be sent a note says why.
pub(super) fn around(
    config: &ClientConfig,
    port: u16,
    progress: &mut dyn FnMut(Event),
    stop: &StopFlag,
) -> Result<Report, ProbeError> {
    let ended = AtomicBool::new(false);
    let ended = &ended;
    let seconds = config.seconds + f64::from(config.omit_seconds) + 10.0;
    let spaced = |least: Duration| least.max(Duration::from_secs_f64(seconds / MOST_PROBES));
    let echo = asked(config, PingMethod::IcmpOrTcp, spaced(ECHOES));
    let connect = asked(config, PingMethod::Tcp(port), spaced(CONNECTS));
    thread::scope(|scope| {
        let echoes = scope.spawn(move || flow(&echo, ended));
        let connects = scope.spawn(move || flow(&connect, ended));
        pause(IDLE, stop);
        let mut marks = Marks::default();
        let measured = client::run(
            config,
            &mut |event| {
                marks.see(&event);
                progress(event);
            },
            stop,
        );
        let quiet = clock::now();
        if measured.is_ok() {
            pause(IDLE + TAIL, stop);
        }
        ended.store(true, Ordering::Relaxed);
        let flows = (echoes.join(), connects.join());
        let mut report = measured?;
        match flows {
            (Ok(echoes), Ok(connects)) => match seen(echoes, connects, marks, quiet) {
                Ok(latency) => report.measurement.latency = Some(latency),
                Err(error) => {
                    report.measurement.notes.push(format!("no round trips were taken: {error}"));
                }
            },
            _ => report.measurement.notes.push("no round trips: their thread failed".to_owned()),
        }
        Ok(report)
    })
}

/// The moments of the load.
#[derive(Debug, Clone, Copy, Default)]
struct Marks {
    began: Option<Instant>,
    /// When the warm-up was over.
    counts: Option<Instant>,
    ended: Option<Instant>,
}

impl Marks {
    fn see(&mut self, event: &Event) {
        let now = Some(clock::now());
        match event {
            Event::Connected(_) => (self.began, self.counts) = (now, now),
            Event::Interval(interval) => {
                if interval.omitted {
                    self.counts = now;
                }
                self.ended = now;
            }
        }
    }
}

/// Sleeps, but wakes up at Ctrl-C.
fn pause(length: Duration, stop: &StopFlag) {
    let until = clock::now() + length;
    while clock::now() < until && !stop.is_raised() {
        let left = until.saturating_duration_since(clock::now());
        thread::sleep(left.min(Duration::from_millis(50)));
    }
}

fn asked(config: &ClientConfig, method: PingMethod, interval: Duration) -> PingConfig {
    PingConfig {
        host: config.host.clone(),
        family: match config.family {
            Family::Any => reach::Family::Any,
            Family::V4 => reach::Family::V4,
            Family::V6 => reach::Family::V6,
        },
        method,
        count: 0,
        interval,
        payload: 56,
        timeout: Duration::from_secs(2),
        bind: config.bind,
        tos: config.tos,
        ttl: None,
    }
}

fn flow(config: &PingConfig, ended: &AtomicBool) -> Flow {
    let mut begun = clock::now();
    let tell = &mut |event| {
        if let reach::Event::Begun { .. } = event {
            begun = clock::now();
        }
    };
    let report = reach::ping(config, tell, &|| ended.load(Ordering::Relaxed))?;
    Ok((begun, report))
}

fn seen(
    echoes: Flow,
    connects: Flow,
    marks: Marks,
    quiet: Instant,
) -> Result<LatencyUnderLoad, ReachError> {
    let began = marks.began.unwrap_or(quiet);
    let since = |at: Instant| at.saturating_duration_since(began).as_secs_f64();
    let load = Load {
        from_s: marks.counts.map_or(0.0, since),
        to_s: marks.ended.map_or(0.0, since),
        quiet_s: since(quiet),
    };
    let (begun, echoes) = echoes?;
    let notes = echoes.notes.clone();
    let connects = connects.map(|(begun, report)| probes(&report, begun, began));
    let mut latency = under_load(probes(&echoes, begun, began), connects.as_ref().ok(), load);
    latency.notes.extend(notes);
    if let Err(error) = connects {
        latency.notes.push(format!("no TCP round trips: {error}"));
    }
    Ok(latency)
}

/// A flow's probes by the time since the load began.
fn probes(report: &PingReport, begun: Instant, load: Instant) -> ProbeFlow {
    let shift = if load >= begun {
        -load.duration_since(begun).as_secs_f64()
    } else {
        begun.duration_since(load).as_secs_f64()
    };
    let end = report.probes.last().map_or(0.0, |probe| probe.sent_s);
    let known = report.probes.iter().filter(|p| p.rtt_ms.is_some() || p.sent_s <= end - YOUNG);
    ProbeFlow {
        method: report.method.to_owned(),
        port: report.port,
        interval_ms: report.interval_ms,
        probes: known
            .map(|probe| LatencyProbe { at_s: probe.sent_s + shift, rtt_ms: probe.rtt_ms })
            .collect(),
    }
}
