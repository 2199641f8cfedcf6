//! What running boxes carry: their counters, as a document and as metrics, and who is asked for them.
//!
//! ```text
//! box ── Figures ──┬── control socket of its user ── boost status
//!                  └── page of metrics ── Prometheus, boost status URL
//! ```
//!
//! The time that a box saves is a lower bound ([`model::least_transfer_time`]): the window and the
//! congestion control that a connection would have had without it are unknown here. `boost verify`
//! measures the gain.

mod client;
mod figures;
mod page;
mod served;

pub use client::{StatusRequest, status};
pub use record::{BoostStatus, BoxRole, BoxStatus};

pub(super) use served::Serving;
