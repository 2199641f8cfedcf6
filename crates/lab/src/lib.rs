//! The lab: hosts on this machine with emulated links between them.
//!
//! ```text
//!    client                                            server
//!  namespace                                          namespace
//!   lab0 (TUN) ──> driver: link::Link (up)   ──> (TUN) lab0
//!              <── driver: link::Link (down) <──
//! ```
//!
//! Two hosts and one link are the usual lab; there may be hundreds. Each link
//! ends in a device of its own on either host, and a few threads drive the
//! directions of all.
//!
//! Real programs over real kernel TCP; only the wire is emulated. Every run
//! ends with a certificate: what was asked of the path, what it did, and
//! whether the run can be trusted. Nothing here has a name under the file
//! system; all of it goes when the process goes.

mod buffers;
pub mod capture;
mod certificate;
pub mod check;
pub mod control;
mod drive;
mod error;
mod hosts;
mod idle;
mod listen;
pub mod log;
mod packet;
pub mod relay;
mod running;
mod session;
mod watch;
mod way;

pub use error::LabError;
pub use hosts::{LabHost, PREFER_IPV4};

pub use running::{Lab, LabReport, LinkReport, Options};
pub use session::{End, Ending, Job, Session, SessionEnd, SessionEvent, Streams, Why};
pub use watch::{QueueSample, Seen, Watch, Way, fate_in_a_word};
