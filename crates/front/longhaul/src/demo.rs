//! Measure, explain, tune and verify one transfer, inside this machine.
//!
//! ```no_run
//! use longhaul::{Document, Request, StopFlag, demo::DemoRequest};
//!
//! // First in main: the lab runs in a process of its own, which is this program again.
//! longhaul::init();
//! match longhaul::run(Request::Demo(DemoRequest::default()), &mut |_| (), &StopFlag::new()) {
//!     Ok(Document::Demo(result)) => println!("gain: {:.1}", result.gain),
//!     Ok(_) => unreachable!("the document is the request's"),
//!     Err(problem) => eprintln!("{problem}"),
//! }
//! ```

use crate::{Fault, Field, Problem, StopFlag};
use lab::LabError;
use record::{Finding, PlanItem};
use serde::{Deserialize, Serialize};
use topology::{PathSpec, Plan};
use units::{BitRate, ByteCount, Rtt};
use verify::{Event, Experiment, VerifyError};
pub use verify::{LoopRun as DemoRun, Outcome as DemoOutcome};

/// A transfer that its receiver's window limits, and the same after tuning.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct DemoRequest {
    /// Rate of the path in bit/s.
    pub rate: BitRate,
    /// RTT of the path, in nanoseconds.
    pub rtt: Rtt,
    /// The window that the receiver advertises before tuning.
    pub window: ByteCount,
    /// Seconds of the first transfer.
    pub before_s: f64,
    /// Seconds of the second.
    pub after_s: f64,
}

/// Events, in order.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum DemoEvent {
    /// The lab is up; the receiver's buffer is being sized for the window.
    LabReady,
    /// A transfer begins.
    Begins(DemoRun),
    /// A report interval of a transfer has passed.
    Interval {
        /// The transfer.
        run: DemoRun,
        /// Its end, in seconds since the transfer began.
        to_s: f64,
        /// The rate at which data arrived, or was sent where that is unknown.
        rate: BitRate,
    },
    /// A transfer was explained.
    Explained(DemoRun, Box<Finding>),
    /// The plan was computed; it is applied next.
    Planned(Vec<PlanItem>),
}

impl Default for DemoRequest {
    /// A receive window of 64 KiB, the maximum without window scaling, over 100 Mbit/s and 173 ms
    /// (Germany to Australia), with a queue of one BDP.
    fn default() -> Self {
        DemoRequest {
            rate: BitRate::from_bps(100_000_000),
            rtt: Rtt::from_micros(173_000),
            window: ByteCount::from_bytes(64 << 10),
            // 64 KiB are reached within the first six round trips.
            before_s: 8.0,
            // Slow start overflows the queue, and the recovery takes some seconds;
            // after that the bottleneck is saturated.
            after_s: 20.0,
        }
    }
}

impl DemoRequest {
    /// Checks the fields.
    ///
    /// # Errors
    /// The invalid field, and the values that it accepts.
    pub fn check(&self) -> Result<(), Problem> {
        if self.rate == BitRate::ZERO {
            return Err(Problem::field(Field::Rate, "a rate of zero", "a rate above 0"));
        }
        if self.rtt == Rtt::ZERO {
            return Err(Problem::field(Field::Rtt, "an RTT of zero", "an RTT above 0"));
        }
        if [self.before_s, self.after_s].iter().any(|time| !(1.0..=3600.0).contains(time)) {
            return Err(Problem::field(Field::Seconds, "length of a transfer", "1 to 3600 s"));
        }
        Ok(())
    }
}

impl DemoEvent {
    fn of(event: &Event<'_>) -> Self {
        match event {
            Event::LabReady(_) => DemoEvent::LabReady,
            Event::Begins(run) => DemoEvent::Begins(*run),
            Event::Interval(run, interval) => DemoEvent::Interval {
                run: *run,
                to_s: interval.to_s,
                rate: interval.arrival_rate.unwrap_or(interval.rate),
            },
            Event::Explained(run, _, finding) => {
                DemoEvent::Explained(*run, Box::new((*finding).clone()))
            }
            Event::Planned(plan) => DemoEvent::Planned(plan.to_vec()),
        }
    }
}

/// Measures, explains, tunes and measures again. The document is the outcome's report.
///
/// To be called in a sandbox ([`host::sandbox::run`]) whose process has one thread;
/// [`crate::run`] does so.
///
/// # Errors
/// An invalid field, no privilege for a lab, an interruption.
pub fn run(
    request: &DemoRequest,
    on_event: &mut (dyn FnMut(DemoEvent) + Send),
    stop: &StopFlag,
) -> Result<DemoOutcome, Problem> {
    request.check()?;
    let path = PathSpec::new(request.rate, request.rtt);
    let experiment = Experiment {
        lab: Plan::pair(path, "cubic", &[], false),
        window: request.window,
        before_s: request.before_s,
        after_s: request.after_s,
    };
    let outcome = verify::run(&experiment, &mut |event| on_event(DemoEvent::of(&event)), stop);
    outcome.map_err(|error| {
        let fault = match &error {
            VerifyError::Interrupted => Fault::Interrupted,
            // The lab cannot be built for want of privileges or of kernel features.
            VerifyError::Lab(error) if !matches!(error, LabError::Emulator(_)) => Fault::Host,
            _ => Fault::Internal,
        };
        Problem::new(fault, error)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wrong_field_is_named() {
        let demo = DemoRequest::default();
        assert_eq!(demo.check(), Ok(()));
        let field = |request: DemoRequest| request.check().unwrap_err().remedy.unwrap().field;
        assert_eq!(field(DemoRequest { rate: BitRate::ZERO, ..demo.clone() }), Field::Rate);
        assert_eq!(field(DemoRequest { rtt: Rtt::ZERO, ..demo.clone() }), Field::Rtt);
        for after_s in [0.0, f64::NAN, 1e9] {
            assert_eq!(field(DemoRequest { after_s, ..demo.clone() }), Field::Seconds);
        }
    }
}
