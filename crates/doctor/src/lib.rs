//! A host held against a target, as NPAD did with paths: pass, warn, fail, each
//! with the value seen, the value needed, why, and the remedy.
//!
//! [`gather()`] reads what there is to see into [`Facts`], from a tree that may be
//! a made-up one; [`path()`] asks the far end, [`disk()`] moves a file.
//! [`examine()`] is pure: facts and a [`Target`] in, checks out. What a target
//! needs of the kernel's settings is `tune`'s to say and is not said again here.
//!
//! [`commands`](commands()) is the same knowledge for systems that longhaul does
//! not run on.

mod checks;
mod commands;
mod disk;
mod facts;
mod gather;
mod path;
mod target;

pub use checks::{examine, report};
pub use commands::{System, commands};
pub use disk::{BLOCK, disk};
pub use facts::{
    Cpu, Device, DiskFacts, Fact, Facts, Interrupts, Memory, Mtu, Nic, PathFacts, Pci, Settings,
    Shook, Usb, Wireless,
};
pub use gather::{Asked, Root, gather, link_rate, this_nic};
pub use path::{Course, path};
pub use target::Target;
