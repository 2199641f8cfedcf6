//! Tuning the route to one destination: the plan, and the results of applying and reverting it.
//! What `longhaul tune … --route --json` prints.

use crate::{Outcome, RevertOutcome, RouteMetrics, RoutePrefix, SettingStatus};
use serde::{Deserialize, Serialize};
use units::{BitRate, ByteCount};

/// The version of [`TuneRoutePlan`] in JSON.
pub const TUNE_ROUTE_PLAN_SCHEMA: &str = "longhaul.tune-route-plan/1";
/// The version of [`TuneRouteApplied`] in JSON.
pub const TUNE_ROUTE_APPLY_SCHEMA: &str = "longhaul.tune-route-apply/1";

/// The change of the routing table that carries the metrics.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum RouteChange {
    /// The prefix has no route of its own: a copy of the route in force is added.
    Copy,
    /// The metrics of the prefix's own route change.
    Metrics,
}

/// A metric of [`RouteMetrics`].
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum RouteMetric {
    /// The congestion control.
    Congctl,
    /// The initial congestion window.
    Initcwnd,
    /// The initial receive window.
    Initrwnd,
}

impl RouteMetric {
    /// Its name in ip-route(8).
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            RouteMetric::Congctl => "congctl",
            RouteMetric::Initcwnd => "initcwnd",
            RouteMetric::Initrwnd => "initrwnd",
        }
    }
}

/// A metric to set.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PlannedMetric {
    /// The metric.
    pub metric: RouteMetric,
    /// Its value in force, with its source.
    pub now: String,
    /// The value to set.
    pub planned: String,
    /// Why, with the numbers it was computed from.
    pub why: String,
    /// Its risk.
    pub risk: String,
}

/// A metric that is left as it is.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SkippedMetric {
    /// The metric.
    pub metric: RouteMetric,
    /// Why, and what changes that.
    pub why: String,
}

/// The goodput of a transfer that this host sends, predicted without and with the plan.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RoutePrediction {
    /// Bytes of the transfer; `null` for a long one, whose slow start does not matter.
    pub bytes: Option<ByteCount>,
    /// The mean goodput now.
    pub before_bps: BitRate,
    /// The mean goodput with the plan.
    pub after_bps: BitRate,
    /// The equations, with their numbers.
    pub why: String,
}

impl RoutePrediction {
    /// Goodput with the plan over goodput without it; 1 if there is no gain.
    #[must_use]
    pub fn gain(&self) -> f64 {
        match self.before_bps.bps() {
            0 => 1.0,
            _ => self.after_bps.as_f64() / self.before_bps.as_f64(),
        }
    }
}

/// The metrics to set on the route to one destination.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TuneRoutePlan {
    /// [`TUNE_ROUTE_PLAN_SCHEMA`].
    pub schema: String,
    /// The version of longhaul.
    pub version: String,
    /// The target in words.
    pub goal: String,
    /// The destination.
    pub prefix: RoutePrefix,
    /// How the routing table changes.
    pub change: RouteChange,
    /// The route that packets to the destination take now, as ip-route(8) shows it.
    pub in_force: String,
    /// The values to set; what is absent keeps its value.
    pub metrics: RouteMetrics,
    /// Each of them, with its reason.
    pub settings: Vec<PlannedMetric>,
    /// Metrics that are left as they are.
    pub left_out: Vec<SkippedMetric>,
    /// The goodput of transfers that this host sends, without and with the plan.
    pub predictions: Vec<RoutePrediction>,
    /// Commands of ip-route(8) that do the same on this host.
    pub commands: Vec<String>,
    /// The same on another host, whose gateway and device are filled in there.
    pub other_hosts: Vec<String>,
    /// What no metric of a route changes.
    pub limits: Vec<String>,
    /// Notes for the user.
    pub notes: Vec<String>,
}

/// A route that was changed, or would be.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct WrittenRoute {
    /// The destination.
    pub prefix: RoutePrefix,
    /// The route's own metric (priority), which tells routes to one prefix apart.
    pub priority: u32,
    /// How it was changed.
    pub change: RouteChange,
    /// Its metrics before; those of the copied route for a copy.
    pub before: RouteMetrics,
    /// Its metrics read back.
    pub now: RouteMetrics,
    /// The result.
    pub outcome: Outcome,
    /// An explanation, if it is not as planned.
    pub note: String,
}

/// The result of applying a [`TuneRoutePlan`].
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TuneRouteApplied {
    /// [`TUNE_ROUTE_APPLY_SCHEMA`].
    pub schema: String,
    /// The version of longhaul that applied it.
    pub version: String,
    /// The plan.
    pub plan: TuneRoutePlan,
    /// The journal that `rollback` reads; `null` if nothing was written.
    pub journal: Option<String>,
    /// Each route of the prefix.
    pub routes: Vec<WrittenRoute>,
    /// Whether nothing was written because of `--dry-run`.
    pub dry_run: bool,
}

/// A route of an applied plan.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AppliedRoute {
    /// The destination.
    pub prefix: RoutePrefix,
    /// The route's own metric (priority).
    pub priority: u32,
    /// How it was changed.
    pub change: RouteChange,
    /// Its metrics before; none for a copy.
    pub before: RouteMetrics,
    /// The metrics that were set.
    pub set: RouteMetrics,
    /// Its metrics now; `null` if there is no such route.
    pub now: Option<RouteMetrics>,
    /// The status.
    #[serde(rename = "standing")]
    pub status: SettingStatus,
    /// Why a copy no longer follows the route in force: the gateway or the device of that one
    /// changed.
    pub stale: Option<String>,
}

/// A route when reverted.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RevertedRoute {
    /// The destination.
    pub prefix: RoutePrefix,
    /// The route's own metric (priority).
    pub priority: u32,
    /// How it had been changed.
    pub change: RouteChange,
    /// Its metrics found; `null` if there is no such route.
    pub found: Option<RouteMetrics>,
    /// Its metrics before tuning; none for a copy, which is deleted.
    pub before: RouteMetrics,
    /// The result.
    pub state: RevertOutcome,
    /// What remains to be done, if anything.
    pub note: String,
}
