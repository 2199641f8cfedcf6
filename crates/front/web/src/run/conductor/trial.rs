//! The trial of another congestion control.

use super::super::message::{Plan, StepKind};
use super::super::result::Steps;
use super::super::step::Outcome;
use super::{EXPERIMENT_SHARE, longest};
use record::Limit;

/// The congestion control that is tried: ndt7's, and a remedy where losses are the limit.
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

/// Whether a host limits a flow: another congestion control has the same then.
pub(in super::super) fn is_of_the_hosts(one: &Outcome) -> bool {
    let limit = one.finding().and_then(|finding| finding.limit);
    limit.is_some_and(|limit| OF_THE_HOSTS.contains(&limit))
}

/// The trial of another congestion control, unless it is tried already or a host is the limit. Where
/// one flow has all that several have, it gains nothing, but may lose: with a send buffer below 2.89
/// BDPs BBR does not end its Startup, and an eighth of what it sends is lost.
pub(super) fn of(outcomes: &[Outcome], step_seconds: f64) -> Option<Plan> {
    let mut downloads = outcomes.iter().filter(|outcome| outcome.plan.kind == StepKind::Download);
    let is_tried = |outcome: &Outcome| {
        let name = outcome.result.congestion.as_ref().or(outcome.plan.congestion.as_ref());
        name.is_some_and(|name| name.starts_with(CONGESTION))
    };
    let plan = || Plan {
        kind: StepKind::Download,
        flows: 1,
        seconds: step_seconds * EXPERIMENT_SHARE,
        longest: longest(step_seconds, Some(CONGESTION)),
        congestion: Some(CONGESTION.to_owned()),
        pacing: None,
        why: format!("one connection with {CONGESTION}, as ndt7 has it"),
    };
    let one = Steps(outcomes).of(StepKind::Download, false).filter(|one| one.result.valid)?;
    (!is_of_the_hosts(one) && !downloads.any(is_tried)).then(plan)
}

#[cfg(test)]
mod tests {
    use super::super::super::advice::outcome_of;
    use super::*;

    #[test]
    fn another_congestion_control_is_tried_once_unless_a_host_is_the_limit() {
        let plan =
            |outcomes: &[Outcome]| of(outcomes, 5.0).map(|plan| (plan.flows, plan.congestion));
        let both = || vec![outcome_of(1, None, 10e6), outcome_of(6, None, 50e6)];
        assert_eq!(plan(&both()), Some((1, Some("bbr".to_owned()))));
        let full = [outcome_of(1, None, 10e6), outcome_of(6, None, 10.5e6)];
        assert!(plan(&full).is_some(), "ndt7 may show less than a full path");
        assert_eq!(plan(&[outcome_of(6, None, 50e6)]), None);
        let mut tried = both();
        tried.insert(1, outcome_of(1, Some("bbr"), 12e6));
        assert_eq!(plan(&tried), None, "an experiment has tried it");
        let mut default = both();
        default[0].result.congestion = Some("bbr".to_owned());
        assert_eq!(plan(&default), None, "the server has it");
        let mut disturbed = both();
        disturbed[0].result.valid = false;
        assert_eq!(plan(&disturbed), None);
        let mut windowed = both();
        let mut finding = diagnose::explain(&record::Measurement::default());
        finding.limit = Some(Limit::ReceiveWindow);
        windowed[0].result.finding = Some(finding);
        assert!(is_of_the_hosts(&windowed[0]) && !is_of_the_hosts(&full[0]));
        assert_eq!(plan(&windowed), None);
    }
}
