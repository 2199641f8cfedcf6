//! The protocol of a lane: one connection between the two boxes of a boosted path, which carries
//! one flow at a time and is used again for the next one.
//!
//! Pure: no I/O, no clock. Payload never passes through this crate: a header announces a run of
//! bytes, which the caller moves by itself, such as with splice(2).
//!
//! ```text
//!   preface   preface
//!   Open ───────────>                 the target, and the first bytes in the same flight
//!   Data … ─────────>   <── Opened    or Refused, which ends far's direction
//!                       <── Data …
//!   End | Reset ────>   <── End | Reset     each direction by itself
//!                       <── Closed          the lane is free
//! ```
//!
//! Only near opens flows.
//!
//! | module | contents |
//! |---|---|
//! | [`preface`] | the first bytes: protocol, version, mode |
//! | [`target`] | where far is to connect |
//! | [`refusal`] | why far did not |
//! | [`frame`] | headers and bodies of messages |
//! | [`reduction`] | which blocks of a flow are worth compressing |
//! | [`state`] | which message may come next, in each direction |

pub mod frame;
pub mod preface;
pub mod reduction;
pub mod refusal;
pub mod state;
pub mod target;

pub use frame::{Block, MAX_BLOCK, Message};
pub use preface::{Carries, Preface, PrefaceError};
pub use reduction::{Reduction, Uncompressed};
pub use refusal::Refusal;
pub use state::{Lane, LaneError, Role};
pub use target::{HostName, InvalidTarget, Target, TargetHost};
