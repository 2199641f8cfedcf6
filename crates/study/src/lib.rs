//! Studies: measurement campaigns that answer a question.
//!
//! ```text
//!  plan.toml ──> Plan ──> cells x repeats ──> runs, in order ──> tests
//! ```
//!
//! Pure: a plan as text in, what is to be run out. `campaign` runs it.

mod cells;
mod factor;
pub mod plan;

pub use cells::{Cell, Run, Test};
pub use factor::{Kind, Level, Setting};
pub use plan::{Factor, Plan, PlanError};
