//! From a target to the settings that reach it, and the settings themselves.
//!
//! [`plan`](plan()) is pure: buffers as they are and a [`Target`] in, the
//! least changes out, each with its reason in numbers. [`apply`](apply())
//! writes such changes under `/proc/sys`, in the network namespace of the
//! thread that calls it, reads each back, and leaves nothing half done: where
//! one fails, those before it are put back. That is for a lab's hosts, which
//! end with their settings.
//!
//! A host that stays is tuned by a [`Ledger`]: [`advise`] plans for a target or
//! a [`Profile`], and the ledger writes a journal of what was before, on disk,
//! before it writes the first value; [`Ledger::undo`] puts everything back from
//! it, whenever the run that applied the plan ended, and however.

mod advice;
mod apply;
mod journal;
mod ledger;
mod lock;
mod machine;
mod persist;
mod plan;
mod profile;
mod standing;
mod undo;

pub use advice::{Goal, advise};
pub use apply::{Applied, PROC_SYS, TuneError, apply, apply_under, restore, restore_under};
pub use journal::{Identity, JournalError};
pub use ledger::{Ledger, LedgerError};
pub use lock::{Lock, LockError};
pub use machine::{Disk, Settings, ThisHost};
pub use persist::PERSISTED;
pub use plan::{Buffers, MAX_BUFFER, PlanError, SEND_SHARE, Target, allowed_rate, plan};
pub use profile::Profile;
pub use undo::{Decision, Foreign};
