//! Checks of a host against a target, as NPAD does for paths: pass, warn or
//! fail, each with the value seen, the value needed, the reason and the fix.
//!
//! Pure: [`Facts`], which the caller reads, and a [`Target`] in, checks out: [`examine`].
//! Which settings a target needs is decided by `tune` alone.
//!
//! [`commands`](commands()) lists the same checks as commands for other hosts;
//! [`pasted()`] explains the counters that other tools print there, [`pasted_settings()`] checks
//! the settings that sysctl(8) prints.

mod checks;
mod commands;
mod document;
mod facts;
mod pasted;
mod target;

pub use checks::{examine, report};
pub use commands::{System, commands};
pub use document::{
    DOCTOR_COMMANDS_SCHEMA, DOCTOR_SCHEMA, DoctorCommands, DoctorDocument, DoctorReport,
    DoctorTarget, Recipe,
};
pub use facts::{
    Cpu, Device, DiskFacts, Fact, Facts, HandshakeFacts, Interrupts, MAX_PORTS, Memory, Mtu, Nic,
    PathFacts, Pci, Settings, Usb, Wireless, link_rate,
};
pub use pasted::{
    PASTED_SCHEMA, PastedConnection, PastedCounter, PastedReport, UnknownText, is_sysctl, pasted,
    pasted_settings,
};
pub use target::Target;
