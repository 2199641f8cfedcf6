//! Flows over a path in virtual time: what each gets, what limited it, and which congestion
//! control a path is best used with.
//!
//! ```
//! use longhaul::StopFlag;
//! use longhaul::sim::{self, SimRequest};
//!
//! let mut request = SimRequest::over("rate=20mbit,rtt=40ms,queue=1bdp");
//! request.flows = vec!["2xcubic".to_owned(), "bbr,start=1s".to_owned()];
//! request.seconds = Some(3.0);
//! let result = sim::run(&request, &mut |_| (), &StopFlag::new())?;
//! for flow in &result.report.flows {
//!     println!("{} {}", flow.control, flow.goodput_bps);
//! }
//! # assert_eq!(result.report.flows.len(), 3);
//! # Ok::<(), longhaul::Problem>(())
//! ```
//!
//! ```text
//! request ── flows, path or plan ── prepared: links, connections, bounds
//!                                       │
//!                 ┌─────────────────────┼──────────────────────┐
//!              run: twin        compare: twin, lab      advise: twin, many controls
//! ```
//!
//! [`compare()`] makes labs; [`crate::run`] runs it in a helper process.

mod advise;
mod bounds;
mod compare;
mod event;
mod figures;
mod flow_group;
mod path_report;
mod plan;
mod plan_programs;
mod prepared;
mod request;
mod run;
mod schedule;

pub use advise::{AdviseRequest, advise};
pub use compare::{CompareRequest, compare};
pub use event::SimEvent;
pub use flow_group::FlowGroup;
pub use request::{SimPath, SimRequest};
pub use run::{SimResult, run};

use control::NamedControl;

/// The congestion controls that flows can have.
#[must_use]
pub fn control_names() -> Vec<&'static str> {
    NamedControl::names()
}
