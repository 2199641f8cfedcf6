//! The lab: two hosts on this machine with an emulated path between them.
//!
//! ```text
//!    client                                            server
//!  namespace                                          namespace
//!   lab0 (TUN) ──> driver: link::Link (up)   ──> (TUN) lab0
//!              <── driver: link::Link (down) <──
//! ```
//!
//! Real programs over real kernel TCP; only the wire is emulated. Every run
//! ends with a certificate: what was asked of the path, what it did, and
//! whether the run can be trusted. Nothing here has a name under the file
//! system; all of it goes when the process goes.

mod buffers;
mod certificate;
mod drive;
mod error;
mod hosts;
mod idle;
mod listen;
mod packet;
mod path;

pub use error::LabError;
pub use hosts::{DEVICE, Lab, LabHost, LabPlan, PREFER_IPV4};
pub use listen::{Listening, wait_until_listening};
pub use path::{MAX_MTU, MIN_MTU, PathError, PathSpec, QueueSpec};
