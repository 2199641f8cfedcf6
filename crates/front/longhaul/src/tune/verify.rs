//! Settings applied step by step over a real path, each measured, and kept where they help.

use super::request::check_target;
use super::{TuneEvent, TunedHost, failed};
use crate::{Fault, Field, Problem, StopFlag};
use host::identity;
pub use perf::client::Family;
use perf::client::{self, ClientConfig};
use perf::{Event, PerfError};
use record::{Direction, Measurement, RunFigures, StepVerdict, VerifyReport, VerifyStep};
use serde::{Deserialize, Serialize};
use std::thread;
use std::time::Duration;
use tune::Lock;
use units::{BitRate, ByteCount, Rtt};
use verify::VerifyError;
use verify::steps::{Environment, Job, Prepared, StepEvent};

/// Pause between tests: queues drain, and an iperf3 server listens again.
const PAUSE: Duration = Duration::from_millis(500);

/// A path over which settings are tried.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TuneVerifyRequest {
    /// The server to test against: longhaul or iperf3.
    pub host: String,
    /// Its port.
    #[serde(default = "port")]
    pub port: u16,
    /// The path's rate, in bit/s.
    pub rate: BitRate,
    /// Where the rate is from, for the report.
    #[serde(default = "asked")]
    pub rate_from: String,
    /// The path's RTT, in nanoseconds; `None` to measure it.
    #[serde(default)]
    pub rtt: Option<Rtt>,
    /// The directions to measure, one after the other.
    #[serde(default = "forward")]
    pub directions: Vec<Direction>,
    /// Tests without each step and with it, 2 to 20.
    #[serde(default = "repeat")]
    pub repeat: u32,
    /// Seconds per test; `None`: 100 RTTs, 10 to 60 s.
    #[serde(default)]
    pub seconds: Option<f64>,
    /// Parallel connections that share the rate, 1 to 128.
    #[serde(default = "streams")]
    pub streams: u32,
    /// A congestion control to try as well, by the kernel's name.
    #[serde(default)]
    pub congestion: Option<String>,
    /// The IP version.
    #[serde(default)]
    pub family: Family,
    /// The server's token.
    #[serde(default)]
    pub token: Option<String>,
}

const fn port() -> u16 {
    5201
}

fn asked() -> String {
    "asked".to_owned()
}

fn forward() -> Vec<Direction> {
    vec![Direction::Forward]
}

const fn repeat() -> u32 {
    3
}

const fn streams() -> u32 {
    1
}

/// Events, in order.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum TuneVerifyEvent {
    /// A short test for the RTT begins.
    MeasureRtt,
    /// A step begins.
    Begins {
        /// Its number, from 1.
        number: usize,
        /// Number of steps.
        of: usize,
        /// Its name.
        name: String,
    },
    /// A test begins.
    Test {
        /// True if the step is applied.
        with: bool,
        /// Direction of the data.
        direction: Direction,
        /// Its number within the step, from 1.
        number: u32,
        /// Number of tests of the step.
        of: u32,
        /// Its length in seconds.
        seconds: f64,
    },
    /// A report interval of a test has passed.
    Interval {
        /// Its end, in seconds since the test began.
        to_s: f64,
        /// The length of the test.
        of_s: f64,
        /// The rate at which data arrived, or was sent where that is unknown.
        rate: BitRate,
    },
    /// A test has ended.
    Tested(Box<RunFigures>),
    /// A step is decided.
    Ended(Box<VerifyStep>),
}

impl TuneVerifyRequest {
    /// Tests to a host, as many as by default, for a path of a rate.
    #[must_use]
    pub fn new(host: &str, rate: BitRate) -> Self {
        TuneVerifyRequest {
            host: host.to_owned(),
            port: port(),
            rate,
            rate_from: asked(),
            rtt: None,
            directions: forward(),
            repeat: repeat(),
            seconds: None,
            streams: streams(),
            congestion: None,
            family: Family::Any,
            token: None,
        }
    }

    /// Checks the fields.
    ///
    /// # Errors
    /// The invalid field, and the values that it accepts.
    pub fn check(&self) -> Result<(), Problem> {
        check_target(Some(self.rate), self.rtt)?;
        if self.host.is_empty() {
            return Err(Problem::field(Field::Host, "no host", "a name or an address"));
        }
        if self.port == 0 {
            return Err(Problem::field(Field::Port, "port 0", "1 to 65535"));
        }
        if !(2..=20).contains(&self.repeat) {
            let what = format!("{} tests without and with a step", self.repeat);
            return Err(Problem::field(Field::Repeat, what, "2 to 20"));
        }
        if !(1..=128).contains(&self.streams) {
            let what = format!("{} streams", self.streams);
            return Err(Problem::field(Field::Streams, what, "1 to 128"));
        }
        if !matches!(self.directions.len(), 1 | 2) {
            return Err(Problem::field(Field::Directions, "wrong directions", "one or both"));
        }
        if self.seconds.is_some_and(|seconds| !(seconds > 0.0 && seconds.is_finite())) {
            return Err(Problem::field(Field::Seconds, "length of a test", "a time above 0"));
        }
        Ok(())
    }

    fn job(&self) -> Job {
        Job {
            client: ClientConfig {
                ports: self.port..=self.port,
                family: self.family,
                streams: self.streams,
                token: self.token.clone(),
                ..ClientConfig::new(&self.host)
            },
            directions: self.directions.clone(),
            repeats: self.repeat,
            seconds: self.seconds,
            rate: (self.rate, self.rate_from.clone()),
            rtt: self.rtt,
            congestion: self.congestion.clone(),
            memory: identity::memory_bytes().map(ByteCount::from_bytes),
        }
    }
}

/// A verification whose path is known, and whose steps can be shown before any is tried.
pub struct Session<'a> {
    host: &'a TunedHost,
    /// Held from the first test on, so that no other plan is applied in between.
    lock: Lock,
    /// The path, the steps, and the length of a test.
    pub prepared: Prepared,
    here: Here<'a>,
}

impl<'a> Session<'a> {
    /// Measures the RTT unless it is known, and plans the steps. Changes nothing.
    ///
    /// # Errors
    /// An invalid field, a test that failed, no privilege to change a setting.
    pub fn prepare(
        request: &TuneVerifyRequest,
        host: &'a TunedHost,
        on_event: &'a mut dyn FnMut(TuneEvent),
        stop: &'a StopFlag,
    ) -> Result<Self, Problem> {
        request.check()?;
        let lock = host.lock(on_event)?;
        let mut here = Here { on_event, stop, begun: false, length: 0.0 };
        let tuner = host.tuner();
        let prepared = Prepared::new(request.job(), &tuner, &mut here).map_err(refused)?;
        prepared.dry_run(&tuner).map_err(failed)?;
        here.length = prepared.seconds;
        Ok(Session { host, lock, prepared, here })
    }

    /// Tries the steps, one after the other.
    ///
    /// # Errors
    /// A test that failed, or a setting that could not be restored.
    pub fn run(mut self) -> Result<VerifyReport, Problem> {
        self.prepared.run(&self.host.tuner(), &self.lock, &mut self.here).map_err(refused)
    }
}

/// Returns true if every step is decided, and every setting as its verdict says.
#[must_use]
pub fn is_complete(report: &VerifyReport) -> bool {
    let stuck = report.steps.iter().any(|step| step.verdict == StepVerdict::Stuck);
    !stuck && !report.interrupted
}

fn refused(error: VerifyError) -> Problem {
    let fault = match error {
        VerifyError::Test { ref source, .. } if source.is_usage() => Fault::Request,
        VerifyError::Test { .. } => Fault::Peer,
        VerifyError::Plan(_) | VerifyError::NoRoundTrip => Fault::Request,
        VerifyError::Interrupted | VerifyError::InterruptedBefore => Fault::Interrupted,
        VerifyError::Tuner(error) => return failed(error),
        _ => Fault::Internal,
    };
    Problem::new(fault, error)
}

/// This host, and whoever follows the events.
struct Here<'a> {
    on_event: &'a mut dyn FnMut(TuneEvent),
    stop: &'a StopFlag,
    /// True if a test has run.
    begun: bool,
    length: f64,
}

impl Environment for Here<'_> {
    fn measure(&mut self, config: &ClientConfig) -> Result<Measurement, PerfError> {
        if std::mem::replace(&mut self.begun, true) {
            thread::sleep(PAUSE);
        }
        let (on_event, of_s) = (&mut *self.on_event, config.end.seconds().unwrap_or_default());
        let mut observe = |event: Event| {
            if let Event::Interval(interval) = event {
                let rate = interval.arrival_rate.unwrap_or(interval.rate);
                let event = TuneVerifyEvent::Interval { to_s: interval.to_s, of_s, rate };
                on_event(TuneEvent::Verify(event));
            }
        };
        Ok(client::run(config, &mut observe, self.stop)?.measurement)
    }

    fn report(&mut self, event: &StepEvent<'_>) {
        (self.on_event)(TuneEvent::Verify(match *event {
            StepEvent::MeasureRtt => TuneVerifyEvent::MeasureRtt,
            StepEvent::Begins { number, of, name, .. } => {
                TuneVerifyEvent::Begins { number, of, name: name.to_owned() }
            }
            StepEvent::Test { with, direction, number, of } => {
                TuneVerifyEvent::Test { with, direction, number, of, seconds: self.length }
            }
            StepEvent::Tested(run) => TuneVerifyEvent::Tested(Box::new(run.clone())),
            StepEvent::Ended(step) => TuneVerifyEvent::Ended(Box::new(step.clone())),
        }));
    }

    fn is_stopped(&self) -> bool {
        self.stop.is_raised()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wrong_field_is_named() {
        let right = TuneVerifyRequest::new("192.0.2.1", BitRate::from_bps(1_000_000_000));
        assert_eq!(right.check(), Ok(()));
        let new = || right.clone();
        let cases = [
            (TuneVerifyRequest { host: String::new(), ..new() }, Field::Host),
            (TuneVerifyRequest { port: 0, ..new() }, Field::Port),
            (TuneVerifyRequest { rate: BitRate::ZERO, ..new() }, Field::Rate),
            (TuneVerifyRequest { rtt: Some(Rtt::ZERO), ..new() }, Field::Rtt),
            (TuneVerifyRequest { repeat: 1, ..new() }, Field::Repeat),
            (TuneVerifyRequest { streams: 0, ..new() }, Field::Streams),
            (TuneVerifyRequest { directions: Vec::new(), ..new() }, Field::Directions),
            (TuneVerifyRequest { seconds: Some(f64::NAN), ..new() }, Field::Seconds),
        ];
        for (request, field) in cases {
            assert_eq!(request.check().unwrap_err().remedy.unwrap().field, field);
        }
    }
}
