//! Studies: measurement campaigns that answer a question.
//!
//! ```text
//!  plan.toml ──> Plan ──> cells x repeats ──> runs, in order ──> tests
//! ```
//!
//! Pure: a plan as text in, what is to be run out. `campaign` runs it.

mod built_in;
mod cells;
mod compare;
mod factor;
mod level_pairs;
mod level_words;
mod mean_ratio;
pub mod plan;
mod predict;
pub mod program;
mod real_hosts;
mod results;
mod study;
mod traffic;

pub use built_in::{BUILT_IN, BuiltIn, trends};
pub use cells::{Buffers, Cell, Hosts, Run, Sysctl, Test};
pub use compare::{StudyRuns, compare};
pub use factor::{Kind, Level, Setting, Side};
pub use plan::{Factor, Plan, PlanError};
pub use predict::Prediction;
pub use program::Program;
pub use real_hosts::{RealHosts, RemoteHost, Servers};
pub use study::{Part, Study};
pub use traffic::Traffic;
