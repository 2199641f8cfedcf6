//! The trial of another congestion control.

use super::super::advice::MIN_FACTOR;
use super::super::message::{Plan, StepKind};
use super::super::result::Steps;
use super::super::step::Outcome;
use record::Limit;

/// The congestion control that is tried where several flows are faster than one.
pub(super) const CONGESTION: &str = "bbr";
/// Limits that no congestion control lifts.
const OF_THE_HOSTS: [Limit; 6] = [
    Limit::ReceiveWindow,
    Limit::WindowScaling,
    Limit::SlowReceiver,
    Limit::SendBuffer,
    Limit::Application,
    Limit::Cpu,
];

/// Whether another congestion control may be faster than the server's: not where one flow has had all
/// that several had, nor where a window or the receiver is its limit. `None` where no step tells.
pub(in super::super) fn may_gain(steps: &Steps<'_>) -> Option<bool> {
    let one = steps.of(StepKind::Download, false)?;
    let several = steps.of(StepKind::Download, true)?;
    let rate = |outcome: &Outcome| outcome.result.rate.filter(|_| outcome.result.valid);
    let is_faster = rate(several)? >= MIN_FACTOR * rate(one)?;
    let limit = one.finding().and_then(|finding| finding.limit);
    Some(is_faster && !limit.is_some_and(|limit| OF_THE_HOSTS.contains(&limit)))
}

/// The trial of another congestion control, where it may gain and is not tried already.
pub(super) fn of(outcomes: &[Outcome], seconds: f64) -> Option<Plan> {
    let mut downloads = outcomes.iter().filter(|outcome| outcome.plan.kind == StepKind::Download);
    let is_tried = |outcome: &Outcome| {
        let name = outcome.result.congestion.as_ref().or(outcome.plan.congestion.as_ref());
        name.is_some_and(|name| name.starts_with(CONGESTION))
    };
    let plan = || Plan {
        kind: StepKind::Download,
        flows: 1,
        seconds,
        congestion: Some(CONGESTION.to_owned()),
        pacing: None,
        why: format!("several connections were faster: whether one with {CONGESTION} is as well"),
    };
    (may_gain(&Steps(outcomes))? && !downloads.any(is_tried)).then(plan)
}

#[cfg(test)]
mod tests {
    use super::super::super::advice::outcome_of;
    use super::*;

    #[test]
    fn another_congestion_control_is_tried_where_several_flows_are_faster() {
        let plan =
            |outcomes: &[Outcome]| of(outcomes, 3.5).map(|plan| (plan.flows, plan.congestion));
        let (one, several) = (outcome_of(1, None, 10e6), outcome_of(6, None, 50e6));
        let both = || vec![outcome_of(1, None, 10e6), outcome_of(6, None, 50e6)];
        assert_eq!(plan(&both()), Some((1, Some("bbr".to_owned()))));
        assert_eq!(plan(&[one, outcome_of(6, None, 10.5e6)]), None, "one flow fills the path");
        assert_eq!(plan(&[several]), None);
        let mut tried = both();
        tried.insert(1, outcome_of(1, Some("bbr"), 12e6));
        assert_eq!(plan(&tried), None, "an experiment has tried it");
        let mut default = both();
        default[0].result.congestion = Some("bbr".to_owned());
        assert_eq!(plan(&default), None, "the server has it");
        let mut disturbed = both();
        disturbed[1].result.valid = false;
        assert_eq!(plan(&disturbed), None);
        let mut windowed = both();
        let mut finding = diagnose::explain(&record::Measurement::default());
        finding.limit = Some(Limit::ReceiveWindow);
        windowed[0].result.finding = Some(finding);
        assert_eq!(plan(&windowed), None);
    }
}
