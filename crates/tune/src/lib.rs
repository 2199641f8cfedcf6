//! From a target to the settings that reach it, and the settings themselves.
//!
//! [`plan`](plan()) is pure: buffers as they are and a [`Target`] in, the
//! least changes out, each with its reason in numbers. [`apply`](apply())
//! writes such changes under `/proc/sys`, in the network namespace of the
//! thread that calls it, reads each back, and leaves nothing half done: where
//! one fails, those before it are put back.

mod apply;
mod plan;

pub use apply::{Applied, PROC_SYS, TuneError, apply, apply_under, restore, restore_under};
pub use plan::{Buffers, MAX_BUFFER, PlanError, SEND_SHARE, Target, allowed_rate, plan};
