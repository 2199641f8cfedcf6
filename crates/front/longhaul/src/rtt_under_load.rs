//! RTT before, during and after a transfer.
//!
//! ICMP echo requests measure the latency; TCP connects to another port measure
//! the responsiveness, and the latency as well where echoes are not permitted. A
//! closed port answers with a reset, which gives an RTT like any other. An iperf3
//! server takes every connection to its port for a client, so nothing is sent
//! there.

use crate::StopFlag;
use diagnose::latency::{Load, ProbeFlow, under_load};
use host::clock;
use perf::client::{self, ClientConfig, Report};
use perf::{Event, PerfError};
use probe::{PingConfig, PingMethod, ProbeError};
use record::{LatencyProbe, LatencyUnderLoad, PingReport};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

/// Default port of TCP probes: most firewalls let it pass.
pub(crate) const PORT: u16 = 443;

/// The time for which the RTT is measured without load, before and after it.
pub(crate) const IDLE: Duration = Duration::from_secs(2);

/// The time to wait for the last replies.
pub(crate) const TAIL: Duration = Duration::from_millis(500);

/// Seconds: a probe sent this shortly before the end may still be answered and is
/// not counted as lost.
const PENDING: f64 = 1.0;

/// Interval of echo requests: 50 a second are 34 kbit/s.
const ECHOES: Duration = Duration::from_millis(20);

/// Interval of TCP connects.
const CONNECTS: Duration = Duration::from_millis(50);

/// A ping keeps 65 536 probes; in long tests the interval is longer.
const MAX_PROBES: f64 = 60_000.0;

/// The probes of one flow, and when the first was sent.
type ProbeResult = Result<(Instant, PingReport), ProbeError>;

/// Runs the test with RTT probes before, during and after it, `idle` long on either side, and
/// adds them to its measurement, or a note where no probe could be sent.
pub(crate) fn around(
    config: &ClientConfig,
    port: u16,
    idle: Duration,
    progress: &mut dyn FnMut(Event),
    stop: &StopFlag,
) -> Result<Report, PerfError> {
    let ended = AtomicBool::new(false);
    let ended = &ended;
    let seconds = config.end.seconds().unwrap_or_default() + f64::from(config.omit_seconds) + 10.0;
    let spaced = |least: Duration| least.max(Duration::from_secs_f64(seconds / MAX_PROBES));
    let echo = ping_config(config, PingMethod::IcmpOrTcp, spaced(ECHOES));
    let connect = ping_config(config, PingMethod::Tcp(port), spaced(CONNECTS));
    thread::scope(|scope| {
        let echoes = scope.spawn(move || flow(&echo, ended));
        let connects = scope.spawn(move || flow(&connect, ended));
        pause(idle, stop);
        let mut marks = Marks::default();
        let measured = client::run(
            config,
            &mut |event| {
                marks.record(&event);
                progress(event);
            },
            stop,
        );
        let quiet = clock::now();
        if measured.is_ok() {
            pause(idle + TAIL.min(idle), stop);
        }
        ended.store(true, Ordering::Relaxed);
        let flows = (echoes.join(), connects.join());
        let mut report = measured?;
        match flows {
            (Ok(echoes), Ok(connects)) => match under_load_report(echoes, connects, marks, quiet) {
                Ok(latency) => report.measurement.latency = Some(latency),
                Err(error) => {
                    report
                        .measurement
                        .notes
                        .push(format!("the RTT under load was not measured: {error}"));
                }
            },
            _ => report
                .measurement
                .notes
                .push("the RTT under load was not measured: a probe thread failed".to_owned()),
        }
        Ok(report)
    })
}

/// Start and end of the load.
#[derive(Debug, Clone, Copy, Default)]
struct Marks {
    began: Option<Instant>,
    /// End of the warm-up.
    counts: Option<Instant>,
    ended: Option<Instant>,
}

impl Marks {
    fn record(&mut self, event: &Event) {
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

/// Sleeps; Ctrl-C ends it.
pub(crate) fn pause(length: Duration, stop: &StopFlag) {
    let until = clock::now() + length;
    while clock::now() < until && !stop.is_raised() {
        let left = until.saturating_duration_since(clock::now());
        thread::sleep(left.min(Duration::from_millis(50)));
    }
}

fn ping_config(config: &ClientConfig, method: PingMethod, interval: Duration) -> PingConfig {
    PingConfig {
        host: config.host.clone(),
        family: config.family,
        method,
        count: 0,
        interval,
        payload: 56,
        timeout: Duration::from_secs(2),
        waits_for_errors: false,
        bind: config.bind,
        tos: config.tos,
        ttl: None,
    }
}

fn flow(config: &PingConfig, ended: &AtomicBool) -> ProbeResult {
    let mut begun = clock::now();
    let tell = &mut |event| {
        if let probe::Event::Started { .. } = event {
            begun = clock::now();
        }
    };
    let report = probe::ping(config, tell, &|| ended.load(Ordering::Relaxed))?;
    Ok((begun, report))
}

fn under_load_report(
    echoes: ProbeResult,
    connects: ProbeResult,
    marks: Marks,
    quiet: Instant,
) -> Result<LatencyUnderLoad, ProbeError> {
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
        latency.notes.push(format!("the responsiveness was not measured (no TCP probes): {error}"));
    }
    Ok(latency)
}

/// A flow's probes, with times relative to the start of the load.
fn probes(report: &PingReport, begun: Instant, load: Instant) -> ProbeFlow {
    let shift = if load >= begun {
        -load.duration_since(begun).as_secs_f64()
    } else {
        begun.duration_since(load).as_secs_f64()
    };
    let end = report.probes.last().map_or(0.0, |probe| probe.sent_s);
    let known = report.probes.iter().filter(|p| p.rtt_ms.is_some() || p.sent_s <= end - PENDING);
    ProbeFlow {
        method: report.method.to_owned(),
        port: report.port,
        interval_ms: report.interval_ms,
        probes: known
            .map(|probe| LatencyProbe { at_s: probe.sent_s + shift, rtt_ms: probe.rtt_ms })
            .collect(),
    }
}
