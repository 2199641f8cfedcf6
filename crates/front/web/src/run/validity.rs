//! What ends a step, and whether its figures say anything of the line.

use super::bulk::BulkFlow;
use super::interval::is_settled;
use super::message::{PageReport, Plan, StepKind};
use super::series::Series;
use std::sync::atomic::Ordering;

/// The share of a step after which it counts as complete.
const COMPLETE: f64 = 0.8;
/// The time, in seconds, after which a step that its bytes ended says something of the line.
const MIN_SECONDS: f64 = 1.0;
/// A pause of the browser that disturbs a measurement, ms.
const STALL_MS: f64 = 500.0;
/// The share of a core from which the browser's thread has no time left.
pub(super) const BUSY: f64 = 0.95;

/// What ends a step.
#[derive(Debug, Clone, Copy)]
pub(super) struct Bounds {
    pub(super) seconds: f64,
    /// Where the rate has not settled in `seconds`.
    pub(super) longest: f64,
    pub(super) bytes: u64,
}

/// What ended a step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Ending {
    Time,
    /// Its share of the run's bytes is used up.
    Bytes,
    /// A flow ended before it should.
    Broken,
}

/// Whether a transfer is over, and why. Flows end by themselves once the budget is used up.
pub(super) fn ending(
    bounds: Bounds,
    t: f64,
    flows: &[BulkFlow],
    series: &Series,
    is_used_up: bool,
) -> Option<Ending> {
    let is_broken = |flow: &BulkFlow| flow.state.broken.load(Ordering::Relaxed);
    let is_over =
        t >= bounds.longest || t >= bounds.seconds && is_settled(&series.total, bounds.seconds);
    if is_over {
        Some(Ending::Time)
    } else if is_used_up || series.bytes() >= bounds.bytes {
        Some(Ending::Bytes)
    } else {
        flows.iter().any(is_broken).then_some(Ending::Broken)
    }
}

/// The reasons a step's figures say nothing of the line.
pub(super) fn invalid(
    plan: &Plan,
    report: Option<PageReport>,
    ending: Ending,
    seconds: f64,
) -> Vec<String> {
    let mut reasons = Vec::new();
    let report = report.unwrap_or_default();
    if report.hidden {
        reasons.push("the page was hidden: browsers slow down hidden pages".to_owned());
    }
    if let Some(ms) = report.longest_stall_ms.filter(|ms| *ms >= STALL_MS) {
        let ms = units::significant(ms, 2);
        reasons.push(format!("the browser paused for {ms} ms: a busy or sleeping computer"));
    }
    if plan.kind == StepKind::Idle && report.busy.is_some_and(|busy| busy >= BUSY) {
        reasons.push("the browser was busy without a transfer".to_owned());
    }
    match ending {
        Ending::Broken if seconds < plan.seconds * COMPLETE => {
            reasons.push("a flow broke off".to_owned());
        }
        Ending::Bytes if seconds < MIN_SECONDS.min(plan.seconds * COMPLETE) => {
            let ms = units::significant(seconds * 1e3, 2);
            reasons.push(format!("at this rate the bytes of the run last for {ms} ms of a step"));
        }
        _ => {}
    }
    reasons
}

#[cfg(test)]
mod tests {
    use super::super::conductor::planned;
    use super::*;

    fn plan(kind: StepKind) -> Plan {
        planned(kind, 1, 1.0, "")
    }

    #[test]
    fn disturbed_steps_are_invalid() {
        let reasons = |report: PageReport, kind, ending, seconds| {
            invalid(&plan(kind), Some(report), ending, seconds).len()
        };
        let (good, time) = (PageReport::default(), Ending::Time);
        assert_eq!(reasons(good, StepKind::Download, time, 1.0), 0);
        assert_eq!(reasons(good, StepKind::Download, Ending::Broken, 0.5), 1);
        assert_eq!(reasons(good, StepKind::Download, Ending::Broken, 0.9), 0);
        assert_eq!(reasons(good, StepKind::Download, Ending::Bytes, 0.5), 1);
        assert_eq!(reasons(good, StepKind::Download, Ending::Bytes, 0.9), 0);
        assert_eq!(reasons(PageReport { hidden: true, ..good }, StepKind::Upload, time, 1.0), 1);
        let stalled = PageReport { longest_stall_ms: Some(600.0), ..good };
        assert_eq!(reasons(stalled, StepKind::Upload, time, 1.0), 1);
        // A busy browser under load is a limit, not a disturbance.
        let busy = PageReport { busy: Some(1.0), ..good };
        assert_eq!(reasons(busy, StepKind::Download, time, 1.0), 0);
        assert_eq!(reasons(busy, StepKind::Idle, time, 1.0), 1);
    }
}
