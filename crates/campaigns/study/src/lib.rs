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
mod documents;
mod level;
mod level_pairs;
mod level_words;
mod mean_ratio;
pub mod plan;
mod predict;
pub mod program;
mod real_hosts;
mod results;
mod setting;
mod shard;
mod study;
mod test;
mod test_error;
mod totals;
mod traffic;
mod value;
mod written;

pub use built_in::{BUILT_IN, BuiltIn, BuiltInError, Trend, trends};
pub use cells::CellRun;
pub use compare::{NoCommonCell, StudyRuns, compare};
pub use documents::{DOCUMENTS, Document};
pub use level::Level;
pub use plan::{Cell, Factor, Plan, PlanError};
pub use predict::Prediction;
pub use program::Program;
pub use real_hosts::{RealHosts, RemoteHost, Servers};
pub use setting::{Setting, Side, ValueKind};
pub use shard::{Shard, ShardError};
pub use study::{Part, Study};
pub use test::{Memory, Sysctl, Test};
pub use test_error::TestError;
pub use traffic::Traffic;
pub use value::{Buffers, CacheState, Hosts, Value, ValueError};
