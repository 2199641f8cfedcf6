//! Checks of a host against a target, as NPAD does for paths: pass, warn or
//! fail, each with the value seen, the value needed, the reason and the fix.
//!
//! [`gather()`] reads the host's state into [`Facts`], in tests from a
//! synthetic root; [`path()`] probes the far end, [`disk()`] measures a disk.
//! [`examine()`] is pure: facts and a [`Target`] in, checks out. Which settings
//! a target needs is decided by `tune` alone.
//!
//! [`commands`](commands()) lists the same checks as commands for other hosts;
//! [`pasted()`] explains the counters that other tools print there.

mod checks;
mod commands;
mod disk;
mod facts;
mod gather;
mod pasted;
mod path;
mod target;

pub use checks::{examine, report};
pub use commands::{System, commands};
pub use disk::{BLOCK, disk};
pub use facts::{
    Cpu, Device, DiskFacts, Fact, Facts, HandshakeFacts, Interrupts, MAX_PORTS, Memory, Mtu, Nic,
    PathFacts, Pci, Settings, Usb, Wireless,
};
pub use gather::{Asked, Root, gather, link_rate, this_nic};
pub use pasted::{UnknownText, pasted};
pub use path::{PathProbe, path};
pub use target::Target;
