//! The simulator: transfers over paths of every kind in virtual time, each with the limit
//! that it really had.
//!
//! [`Scenario::draw`] draws a path and its traffic from a seed, and [`Scenario::run`]
//! simulates it (`twin`): what a test between the two hosts measures, and the [`Truth`],
//! which no measurement has. [`Scenario::run_captured`] adds what captures at both hosts
//! show, and [`Vantage`] leaves out what an observer elsewhere does not see. Findings are
//! scored against the truth in [`score`], and their advice against what helps in
//! [`removal`]. Scenarios also run between real hosts, whose
//! records give a [`Truth`] by the same rules.
//!
//! ```text
//!   seed ──> Scenario ──> Run { measurement, truth }
//!                            │ Vantage        │
//!                            v                v
//!                         Finding ───────> score::Scored ──> Confusion, Calibration
//! ```
//!
//! ```
//! use simulator::{Scenario, ScenarioSet};
//!
//! let drawn = Scenario::draw(ScenarioSet::default(), 7, 1);
//! let again = Scenario::draw(ScenarioSet::default(), 7, 1);
//! assert_eq!(drawn, again);
//!
//! let run = Scenario::new("rate=10mbit,rtt=20ms,queue=1bdp", 2.0).run(7)?;
//! assert_eq!(run.truth.limit, record::Limit::PathRate);
//! assert!(run.measurement.received().bytes() > 2_000_000);
//! # Ok::<(), simulator::ScenarioError>(())
//! ```
//!
//! Pure: no I/O, no clock, no thread. A run takes no more than two million data packets.

mod captures;
pub mod draws;
mod families;
pub mod removal;
mod run;
mod scenario;
pub mod score;
mod truth;
mod vantage;

pub use captures::Captures;
pub use families::{Family, Hosts, Proportions, ScenarioSet, families};
pub use run::SimulatedRun;
pub use scenario::{CrossFlow, MAX_CROSS_FLOWS, MAX_SECONDS, MAX_STREAMS, Scenario, ScenarioError};
pub use truth::{TrueSegment, Truth};
pub use vantage::Vantage;
