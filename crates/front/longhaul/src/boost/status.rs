//! What running boxes carry: their counters, as a document and as metrics, and who is asked for them.
//!
//! ```text
//! box ── Figures ──┬── control socket of its user ── boost status
//!                  └── page of metrics ── Prometheus, boost status URL
//! ```
//!
//! There is no figure of the time that a box saves: the window and the congestion control that a
//! connection would have had without it are unknown here. `boost verify` measures it.

mod client;
mod figures;
mod page;
mod served;

pub use client::{StatusRequest, status};
pub use record::{BoostStatus, BoxRole, BoxStatus};

pub(super) use served::Serving;
