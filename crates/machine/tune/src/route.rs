//! The settings of one destination: TCP metrics of its route, for unmodified programs.
//!
//! ```text
//! RouteGoal ──> advise_route ──> TuneRoutePlan ──> Tuner::apply_route ──> journal, then each route
//!                   ^                                    │
//!        RoutingTable (rtnetlink)                        └──> Tuner::undo, ::status
//! ```
//!
//! A prefix without a route of its own gets a copy of the route in force, marked by its protocol
//! number ([`host::kernel_route::ROUTE_PROTOCOL`]); its own route gets other metrics. A journal
//! names the prefix and the metrics only. Gateways and devices are always read from the kernel at
//! the moment of the change, and only marked routes are deleted, so whatever a journal says, no
//! packet takes another way.

mod apply;
mod commands;
mod find;
mod goal;
mod plan;
mod predict;
mod status;
mod undo;

pub(crate) use find::MAX_ROUTES;
pub use find::RouteError;
pub use goal::RouteGoal;
pub use plan::advise_route;
