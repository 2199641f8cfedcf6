//! One test, and what follows it.

use super::capture::TestCapture;
use super::report::TestResult;
use super::{TestEvent, TestRun, line_class, path_mtu};
use crate::cross_traffic::InterfaceCounters;
use crate::rtt_under_load;
use crate::{Fault, Problem, StopFlag};
use diagnose::repeats;
use perf::client::{self, ClientConfig};
use perf::{Event, PerfError};
use record::Measurement;
use std::path::Path;

/// A measurement, and facts that are not part of it.
pub(super) struct Measured {
    pub(super) measurement: Measurement,
    /// Bytes of other traffic that passed the interface during the test.
    pub(super) cross_traffic: Option<u64>,
    /// The reason the server's results are missing, if the test failed.
    pub(super) incomplete: Option<Problem>,
}

impl Measured {
    /// The measurement, unless the test failed.
    pub(super) fn complete(self) -> Result<Self, Problem> {
        match self.incomplete {
            Some(problem) => Err(problem),
            None => Ok(self),
        }
    }
}

impl TestRun<'_> {
    /// One test, its packets captured, compared, and followed by one that decides.
    pub(super) fn once(
        &self,
        decide: bool,
        capture: Option<&Path>,
        on_event: &mut dyn FnMut(TestEvent),
        stop: &StopFlag,
    ) -> Result<TestResult, Problem> {
        let capture = capture.map(|file| TestCapture::start(&self.transfer, file, stop));
        let capture = capture.transpose()?;
        let measured = self.measure(on_event, stop);
        let captured = capture.map(TestCapture::finish);
        let Measured { mut measurement, incomplete, .. } = measured?;
        measurement.notes.extend(line_class::note(&measurement));
        let mut result = TestResult::new(measurement);
        if let Some(earlier) = &self.request.compare {
            let figures = repeats::figures(&result.measurement);
            result.report.comparison = Some(repeats::compare(&earlier.runs, &[figures]));
        }
        let (report, capture_failed) =
            captured.map_or((None, None), |it| (Some(it.report), it.failed));
        result.report.capture = report;
        let mut decide_failed = None;
        if decide {
            on_event(TestEvent::Measured(Box::new(result.clone())));
            decide_failed = self.decide(&mut result, on_event, stop);
        }
        if let Some(problem) = decide_failed.or(capture_failed).or(incomplete) {
            on_event(TestEvent::Incomplete(problem));
        }
        Ok(result)
    }

    /// One test, with RTT probes if requested.
    pub(super) fn measure(
        &self,
        on_event: &mut dyn FnMut(TestEvent),
        stop: &StopFlag,
    ) -> Result<Measured, Problem> {
        let probed = self.request.latency.map(|probes| probes.port);
        Self::carried(&self.transfer, probed, on_event, stop)
    }

    /// One transfer, with RTT probes to the port `probed`.
    pub(super) fn attempt(
        config: &ClientConfig,
        probed: Option<u16>,
        on_event: &mut dyn FnMut(TestEvent),
        stop: &StopFlag,
    ) -> Result<Measured, PerfError> {
        let (mut counters, mut server) = (None, None);
        let shortest = config.report_every.as_secs_f64() / 10.0;
        let progress = &mut |event| match event {
            Event::Connected(started) => {
                counters = InterfaceCounters::towards(started.peer, started.local);
                server = Some(started.peer);
                on_event(TestEvent::Connected {
                    peer: started.peer,
                    protocol: config.transport.protocol(),
                    streams: started.streams.iter().map(|stream| stream.id).collect(),
                    notes: started.notes,
                });
            }
            // The last interval may last a few milliseconds only: its rate means nothing.
            Event::Interval(interval) if interval.to_s - interval.from_s < shortest => {}
            Event::Interval(interval) => on_event(TestEvent::Interval(interval)),
        };
        let report = match probed {
            Some(port) => {
                rtt_under_load::around(config, port, rtt_under_load::IDLE, progress, stop)?
            }
            None => client::run(config, progress, stop)?,
        };
        let mut measurement = report.measurement;
        let incomplete = report.incomplete.map(|why| Problem::new(Fault::Peer, why));
        let cross_traffic =
            counters.and_then(|counters: InterfaceCounters| counters.cross_traffic(&measurement));
        if let Some(server) = server {
            path_mtu::examine(&mut measurement, incomplete.is_some(), (server, config.bind), stop);
        }
        Ok(Measured { measurement, cross_traffic, incomplete })
    }
}
