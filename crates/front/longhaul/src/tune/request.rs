//! Requests to tune this host.

use super::TuneVerifyRequest;
use crate::{Field, Problem};
use record::{PlannedSetting, RoutePrefix, TunePlan, TuneRoutePlan, is_tuned_value};
use serde::{Deserialize, Serialize};
use tune::{Goal, RouteGoal};
use units::{BitRate, ByteCount, Rtt};

/// An operation on this host's settings.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum TuneRequest {
    /// Computes a plan; changes nothing.
    Plan(TuneGoal),
    /// Applies a plan, and writes the previous values to a journal first.
    Apply {
        /// The plan.
        plan: TunePlan,
        /// True to apply it at each boot as well.
        #[serde(default)]
        persist: bool,
        /// True to change nothing, and only report what would be set.
        #[serde(default)]
        dry_run: bool,
    },
    /// Computes a plan for the route to one destination; changes nothing.
    PlanRoute(RouteGoal),
    /// Applies such a plan, and writes the previous metrics to a journal first.
    ApplyRoute {
        /// The plan.
        plan: Box<TuneRoutePlan>,
        /// True to change nothing, and only report what would be set.
        #[serde(default)]
        dry_run: bool,
    },
    /// Restores the values from before the last apply.
    Rollback {
        /// The destination of a route, to revert its metrics alone.
        #[serde(default)]
        route: Option<RoutePrefix>,
        /// True to revert every apply, the last one first.
        #[serde(default)]
        all: bool,
        /// True to overwrite values that others have changed since.
        #[serde(default)]
        force: bool,
    },
    /// Applied plans, and values that differ now.
    Status,
    /// Applies settings step by step, measures each, and keeps those that help.
    Verify(TuneVerifyRequest),
}

/// The goal of a plan.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TuneGoal {
    /// A rate over an RTT, or a profile.
    pub goal: Goal,
    /// A congestion control to set as well, by the kernel's name.
    #[serde(default)]
    pub congestion: Option<String>,
}

impl TuneGoal {
    /// A rate over an RTT, in one connection.
    #[must_use]
    pub const fn target(rate: BitRate, rtt: Rtt) -> Self {
        TuneGoal { goal: Goal::Target { rate, rtt, streams: 1 }, congestion: None }
    }

    /// Checks the fields.
    ///
    /// # Errors
    /// The invalid field, and the values that it accepts.
    pub fn check(&self) -> Result<(), Problem> {
        let Goal::Target { rate, rtt, streams } = self.goal else { return Ok(()) };
        check_target(Some(rate), Some(rtt))?;
        if !(1..=65_535).contains(&streams) {
            return Err(Problem::field(Field::Streams, format!("{streams} streams"), "1 to 65535"));
        }
        Ok(())
    }
}

/// Checks the known values of a path.
pub(super) fn check_target(rate: Option<BitRate>, rtt: Option<Rtt>) -> Result<(), Problem> {
    if rate == Some(BitRate::ZERO) {
        return Err(Problem::field(Field::Rate, "the rate cannot be zero", "one such as 10gbit"));
    }
    if rtt == Some(Rtt::ZERO) {
        let accepted = "one above 0; ping measures it";
        return Err(Problem::field(Field::Rtt, "an RTT of zero needs no window", accepted));
    }
    Ok(())
}

/// Checks the fields of a route's goal.
///
/// # Errors
/// The invalid field, and the values that it accepts.
pub(super) fn check_route_goal(goal: &RouteGoal) -> Result<(), Problem> {
    let &RouteGoal { rate, rtt, streams, initcwnd, initrwnd, bytes, .. } = goal;
    TuneGoal { goal: Goal::Target { rate, rtt, streams }, congestion: None }.check()?;
    let windows = [
        (Field::InitialWindow, initcwnd, 1..=1000),
        (Field::InitialReceiveWindow, initrwnd, 1..=65_535),
    ];
    for (field, asked, accepted) in windows {
        if let Some(asked) = asked.filter(|segments| !accepted.contains(segments)) {
            let (least, most) = accepted.into_inner();
            let accepted = format!("{least} to {most} segments");
            return Err(Problem::field(field, format!("a window of {asked} segments"), accepted));
        }
    }
    if bytes == Some(ByteCount::ZERO) {
        return Err(Problem::field(Field::Bytes, "a transfer of no bytes", "1 or more"));
    }
    Ok(())
}

/// Checks that a plan for a route, which may have come from anywhere, has metrics of plans.
fn check_route_plan(plan: &TuneRoutePlan) -> Result<(), Problem> {
    match plan.metrics.is_valid() {
        true => Ok(()),
        false => {
            let what = format!("{} is not part of any plan", plan.metrics);
            Err(Problem::field(Field::Plan, what, "one that was computed for a goal"))
        }
    }
}

/// Checks that a plan, which may have come from anywhere, has settings of plans alone.
fn check_plan(plan: &TunePlan) -> Result<(), Problem> {
    let is_of_plans = |one: &&PlannedSetting| is_tuned_value(&one.key, &one.planned);
    match plan.settings.iter().find(|one| !is_of_plans(one)) {
        None => Ok(()),
        Some(PlannedSetting { key, planned, .. }) => {
            let what = format!("{key} = {planned} is not part of any plan");
            Err(Problem::field(Field::Plan, what, "one that was computed for a goal"))
        }
    }
}

impl TuneRequest {
    /// Checks the fields.
    ///
    /// # Errors
    /// The invalid field, and the values that it accepts.
    pub fn check(&self) -> Result<(), Problem> {
        match self {
            TuneRequest::Plan(goal) => goal.check(),
            TuneRequest::Verify(request) => request.check(),
            TuneRequest::Apply { plan, .. } => check_plan(plan),
            TuneRequest::PlanRoute(goal) => check_route_goal(goal),
            TuneRequest::ApplyRoute { plan, .. } => check_route_plan(plan),
            TuneRequest::Rollback { .. } | TuneRequest::Status => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wrong_field_is_named() {
        let (rate, rtt) = (BitRate::from_bps(1_000_000_000), Rtt::from_micros(100_000));
        assert_eq!(TuneGoal::target(rate, rtt).check(), Ok(()));
        let field =
            |goal: TuneGoal| TuneRequest::Plan(goal).check().unwrap_err().remedy.unwrap().field;
        assert_eq!(field(TuneGoal::target(BitRate::ZERO, rtt)), Field::Rate);
        assert_eq!(field(TuneGoal::target(rate, Rtt::ZERO)), Field::Rtt);
        for streams in [0, 65_536] {
            let goal = Goal::Target { rate, rtt, streams };
            assert_eq!(field(TuneGoal { goal, congestion: None }), Field::Streams);
        }
    }

    #[test]
    fn a_wrong_field_of_a_route_is_named() {
        let (rate, rtt) = (BitRate::from_bps(1_000_000_000), Rtt::from_micros(100_000));
        let right = RouteGoal::new("192.0.2.0/24".parse().unwrap(), rate, rtt);
        let check = |goal: &RouteGoal| TuneRequest::PlanRoute(goal.clone()).check();
        assert_eq!(check(&RouteGoal { initcwnd: Some(1000), ..right.clone() }), Ok(()));
        let new = || right.clone();
        for (goal, field) in [
            (RouteGoal { rate: BitRate::ZERO, ..new() }, Field::Rate),
            (RouteGoal { rtt: Rtt::ZERO, ..new() }, Field::Rtt),
            (RouteGoal { streams: 0, ..new() }, Field::Streams),
            (RouteGoal { initcwnd: Some(0), ..new() }, Field::InitialWindow),
            (RouteGoal { initcwnd: Some(1001), ..new() }, Field::InitialWindow),
            (RouteGoal { initrwnd: Some(65_536), ..new() }, Field::InitialReceiveWindow),
            (RouteGoal { bytes: Some(ByteCount::ZERO), ..new() }, Field::Bytes),
        ] {
            assert_eq!(check(&goal).unwrap_err().remedy.unwrap().field, field);
        }
    }

    #[test]
    fn a_plan_has_no_other_settings() {
        let (rate, rtt) = (BitRate::from_bps(1_000_000_000), Rtt::from_micros(100_000));
        let mut plan = super::super::plan(&TuneGoal::target(rate, rtt)).unwrap();
        let apply = |plan: &TunePlan| {
            TuneRequest::Apply { plan: plan.clone(), persist: false, dry_run: true }.check()
        };
        assert_eq!(apply(&plan), Ok(()));
        for (key, planned) in [("kernel.core_pattern", "|/tmp/x"), ("net.ipv4.tcp_sack", "1\n2")] {
            let (key, planned) = (key.to_owned(), planned.to_owned());
            let (now, why, risk) = (String::new(), String::new(), String::new());
            plan.settings = vec![PlannedSetting { key, now, planned, why, risk }];
            let problem = apply(&plan).unwrap_err();
            assert_eq!(problem.remedy.unwrap().field, Field::Plan);
        }
    }
}
