//! The second test, which decides between two causes.

use super::report::TestResult;
use super::{TestEvent, TestRun, udp_impact};
use crate::{Problem, StopFlag};
use perf::client::ClientConfig;
use verify::decide::decide;

impl TestRun<'_> {
    /// Runs the test that decides between the likely limits of the first, if there is one, and adds
    /// its answer. The error that ended it.
    pub(super) fn decide(
        &self,
        result: &mut TestResult,
        on_event: &mut dyn FnMut(TestEvent),
        stop: &StopFlag,
    ) -> Option<Problem> {
        let mut second = |announcement: &str, config: &ClientConfig| {
            if stop.is_raised() {
                return Ok(None);
            }
            let (announcement, impact) = (announcement.to_owned(), udp_impact::of(config));
            on_event(TestEvent::SecondTest { announcement, impact });
            match Self::carried(config, None, on_event, stop) {
                _ if stop.is_raised() => Ok(None),
                measured => measured.map(|measured| Some(measured.measurement)),
            }
        };
        let answer = decide(&result.measurement, &self.transfer, &mut second);
        let (decided, failed) = match answer {
            Ok(decided) => (decided, None),
            Err((decided, error)) => (decided, Some(error)),
        };
        let ran = decided.throughput_bps.is_some();
        result.decide(decided, ran);
        failed
    }
}
