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
//! Programs and kernel TCP are real; only the wire is emulated. Every run ends
//! with a report: the configured and the measured path, and whether the run is
//! valid. Nothing has a name in the file system; all of it ends with the process.

mod arrivals;
mod at_once;
mod buffers;
pub mod capture;
mod carried;
mod carrier;
mod catch_up;
pub mod check;
pub mod control;
mod cores;
mod direction;
mod driver;
mod driver_choice;
mod error;
mod forwarding;
mod held_queue;
mod hosts;
mod idle;
mod interval_log;
mod listen;
pub mod log;
mod packet;
mod queue_carrier;
pub mod relay;
mod running;
mod session;
mod time_order;
mod tun_carrier;
mod validity;
mod watch;

pub use error::LabError;
pub use hosts::{LabHost, PREFER_IPV4};
pub use interval_log::{FlowInterval, IntervalLog, LinkInterval};
pub use listen::{Listening, wait_until_listening, waiting_sockets};
pub use packet::change::FlowKey;
pub use running::{Lab, LabReport, LinkReport, Options};
pub use session::{End, EndReason, EndSignal, Job, Session, SessionEnd, SessionEvent, Streams};
pub use watch::{LinkDirection, PacketRecord, QueueSample, Watch, fate_name};
