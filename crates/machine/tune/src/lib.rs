//! Plans settings for a target, and applies and reverts them.
//!
//! [`plan`](plan()) is pure: present buffers and a
//! [`BufferTarget`](model::BufferTarget) in, the least changes out, each with
//! its reason. [`apply`](apply()) writes them under `/proc/sys`, in the network
//! namespace of the calling thread, and reads each back; if one fails, those
//! before it are reverted. It is for a lab's hosts, whose settings end with
//! them.
//!
//! A permanent host is tuned by a [`Tuner`]: [`advise`] plans for a target or a
//! [`Profile`], and the tuner writes the previous values to a journal on disk
//! before it changes the first one. [`Tuner::undo`] restores them from the
//! journal, however the run that applied the plan ended.

mod adopt;
mod advice;
mod apply;
pub mod fuzz;
mod journal;
mod lock;
mod machine;
mod persist;
mod plan;
mod profile;
mod route;
mod routing_table;
pub mod short_path;
mod status;
mod tuner;
mod unchanged;
mod undo;

pub use adopt::{Adopted, has_journals};
pub use advice::{Goal, advise};
pub use apply::{Applied, PROC_SYS, TuneError, apply, apply_under, restore, restore_under};
pub use journal::{Damage, Identity, JournalError, is_journal_file};
pub use lock::{Lock, LockError};
pub use machine::{Disk, HostDisk, Settings, ThisHost};
pub use persist::{BootFileError, PERSISTED};
pub use plan::{Buffers, allowed_rate, autotuned_rates, plan};
pub use profile::Profile;
pub use route::{RouteError, RouteGoal, advise_route};
pub use routing_table::RoutingTable;
pub use tuner::{Tuner, TunerError};
pub use undo::{Decision, Foreign};
