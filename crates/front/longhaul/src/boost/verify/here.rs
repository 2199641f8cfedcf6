//! Runs on this host: the command as it is, and behind `boost run`.

use super::carried::Carried;
use super::private_directory::PrivateDirectory;
use super::request::BoostVerifyRequest;
use super::transfer::{Ended, Transfer};
use super::{BoostVerifyEvent, words};
use crate::{Fault, Problem, StopFlag};
use record::{BoostRun, BoostWay};
use serde::Deserialize;
use std::ffi::OsString;
use std::time::Duration;
use units::{BitRate, ByteCount};
use verify::boosted::{BoostProgress, BoostRunner};

pub(super) struct Here<'a> {
    request: &'a BoostVerifyRequest,
    command: Vec<OsString>,
    /// Of the near box's report.
    directory: PrivateDirectory,
    on_event: &'a mut dyn FnMut(BoostVerifyEvent),
    stop: &'a StopFlag,
}

impl<'a> Here<'a> {
    pub(super) fn new(
        request: &'a BoostVerifyRequest,
        command: Vec<OsString>,
        on_event: &'a mut dyn FnMut(BoostVerifyEvent),
        stop: &'a StopFlag,
    ) -> Result<Self, Problem> {
        let directory = PrivateDirectory::new()?;
        Ok(Here { request, command, directory, on_event, stop })
    }
}

impl BoostRunner for Here<'_> {
    fn run(&mut self, way: BoostWay) -> Result<BoostRun, Problem> {
        let report = self.directory.file("near.json");
        let words = match way {
            BoostWay::Direct => self.command.clone(),
            BoostWay::Boosted => words::boosted(self.request, &self.command, &report)?,
        };
        let limit = Duration::from_secs(self.request.timeout_s);
        let ended = Transfer::start(&words)?.wait(limit, self.stop)?;
        let mut run = measured(way, &ended, self.request.test().is_some());
        if way == BoostWay::Boosted && run.failed.is_none() && !self.stop.is_raised() {
            let carried = Carried::read(&report)?;
            if carried.bytes() == 0 {
                run.failed = Some("no connection of the command went through the boxes".to_owned());
            }
            run.bytes = Some(ByteCount::from_bytes(carried.bytes()));
            if let Some(program) = carried.program {
                (run.seconds, run.setup_s) = (program.delivered_s, Some(program.setup_s));
            }
        }
        Ok(run)
    }

    fn cubic(&mut self, _: Option<BoostWay>, _: f64) -> Result<BitRate, Problem> {
        Err(Problem::new(Fault::Internal, "harm is measured in a lab only"))
    }

    fn report(&mut self, progress: BoostProgress<'_>) {
        (self.on_event)(progress.into());
    }

    fn is_stopped(&self) -> bool {
        self.stop.is_raised()
    }
}

/// The members of a test's document that count here.
#[derive(Debug, Deserialize)]
pub(super) struct Tested {
    received_bytes: u64,
    seconds: f64,
}

impl Tested {
    pub(super) fn parse(output: &[u8]) -> Result<Self, String> {
        serde_json::from_slice(output).map_err(|error| format!("the test has no result: {error}"))
    }

    /// Goodput at the receiver.
    pub(super) fn goodput(&self) -> Option<BitRate> {
        let rate = self.received_bytes as f64 * 8.0 / self.seconds;
        (rate.is_finite() && rate > 0.0).then(|| BitRate::from_bps_f64(rate))
    }
}

/// The run of a process; `is_test`: its output is a test's document.
pub(super) fn measured(way: BoostWay, ended: &Ended, is_test: bool) -> BoostRun {
    let mut run = BoostRun {
        way,
        seconds: ended.seconds,
        setup_s: None,
        bytes: None,
        goodput_bps: None,
        cpu_s: ended.cpu.as_secs_f64(),
        failed: ended.failed.clone(),
    };
    if !is_test || run.failed.is_some() {
        return run;
    }
    match Tested::parse(&ended.output) {
        Ok(tested) => {
            run.bytes = Some(ByteCount::from_bytes(tested.received_bytes));
            run.goodput_bps = tested.goodput();
            if run.goodput_bps.is_none() {
                run.failed = Some("nothing arrived".to_owned());
            }
        }
        Err(why) => run.failed = Some(why),
    }
    run
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ended(output: &str, failed: Option<&str>) -> Ended {
        Ended {
            seconds: 11.0,
            cpu: Duration::from_millis(500),
            output: output.as_bytes().to_vec(),
            failed: failed.map(str::to_owned),
        }
    }

    #[test]
    fn a_test_reports_its_goodput() {
        let document = r#"{"schema": "x", "received_bytes": 1000000, "seconds": 8.0}"#;
        let run = measured(BoostWay::Direct, &ended(document, None), true);
        assert_eq!(run.goodput_bps, Some(BitRate::from_bps(1_000_000)));
        assert_eq!((run.failed, run.cpu_s), (None, 0.5));
        for (output, failed) in [("{", None), ("", Some("exit code 1")), ("{}", None)] {
            let run = measured(BoostWay::Direct, &ended(output, failed), true);
            assert!(run.failed.is_some() && run.goodput_bps.is_none(), "{output}");
        }
        let nothing = r#"{"received_bytes": 0, "seconds": 8.0}"#;
        let run = measured(BoostWay::Direct, &ended(nothing, None), true);
        assert_eq!(run.failed.as_deref(), Some("nothing arrived"));
        assert_eq!(measured(BoostWay::Direct, &ended("text", None), false).failed, None);
    }
}
