//! What can go wrong with a lab.

use host::tun::TunError;
use std::io;
use units::ByteCount;

/// Why a lab cannot be, or could not go on.
#[derive(Debug, thiserror::Error)]
pub enum LabError {
    /// The congestion control is not in this kernel.
    #[error("this kernel has no congestion control '{name}'; it has: {available}")]
    Congestion {
        /// As it was asked.
        name: String,
        /// Those there are.
        available: String,
    },
    /// A setting that no lab host has for itself.
    #[error(
        "{key} belongs to the whole machine; a lab host has only settings that begin with net."
    )]
    Setting {
        /// The setting.
        key: String,
    },
    /// A setting was refused.
    #[error("cannot set {key} to '{value}' in a lab host: {source}{}", remedy(key, source))]
    Sysctl {
        /// The setting.
        key: String,
        /// The value asked.
        value: String,
        /// What the kernel said.
        source: io::Error,
    },
    /// The packets in flight would not fit.
    #[error(
        "this path can hold {needed} in flight and in its queues, more than half of the {available} of memory that are free; lower rate, rtt, jitter or queue"
    )]
    Memory {
        /// Most bytes on the wire and in the queues.
        needed: ByteCount,
        /// Memory free.
        available: ByteCount,
    },
    /// A host that is not there.
    #[error("there is no host '{name}' in this lab; it has: {known}")]
    NoHost {
        /// As it was asked.
        name: String,
        /// Those there are.
        known: String,
    },
    /// A link that is not there.
    #[error("there is no link '{name}' in this lab; it has: {known}")]
    NoLink {
        /// As it was asked.
        name: String,
        /// Those there are.
        known: String,
    },
    /// Another lab has that name.
    #[error("a lab named '{name}' is running already; choose another with --name")]
    NameTaken {
        /// The name.
        name: String,
    },
    /// No lab of that name.
    #[error("no lab named '{name}' is running; running: {known}")]
    NoLab {
        /// The name.
        name: String,
        /// Those that run.
        known: String,
    },
    /// No lab at all.
    #[error("no lab is running; start one with `longhaul lab up` or `longhaul lab shell`")]
    NoneRuns,
    /// More than one.
    #[error("several labs are running: {known}; choose one with --lab")]
    SeveralRun {
        /// Their names.
        known: String,
    },
    /// The lab said no.
    #[error("{why}")]
    Refused {
        /// Its words.
        why: String,
    },
    /// The hosts' devices keep their MTU.
    #[error("mtu= is the hosts' own and stays while a lab runs; up.mtu= and down.mtu= can change")]
    FixedMtu,
    /// Settings that no path can have.
    #[error(transparent)]
    Path(#[from] topology::PathError),
    /// A plan that cannot be.
    #[error(transparent)]
    Plan(#[from] topology::PlanError),
    /// No TUN device.
    #[error(transparent)]
    Tun(#[from] TunError),
    /// The program on a host could not be started.
    #[error("cannot start '{program}' on the {host}: {source}")]
    Start {
        /// What was to be started.
        program: String,
        /// Where.
        host: String,
        /// What the system said.
        source: io::Error,
    },
    /// A program that must listen ended instead.
    #[error(
        "the program on {host} ended with exit code {code} before it listened: {command}{}{last}",
        if last.is_empty() { "" } else { "; its last words: " }
    )]
    NeverListened {
        /// Where.
        host: String,
        /// What was started.
        command: String,
        /// How it ended.
        code: i32,
        /// The last line it wrote, where that is known.
        last: String,
    },
    /// The emulation broke off.
    #[error("the emulated path broke off: {0}")]
    Emulator(#[source] io::Error),
    /// Anything else of the system.
    #[error("the lab failed ({step}): {source}")]
    System {
        /// The step that failed.
        step: &'static str,
        /// What the system said.
        source: io::Error,
    },
}

impl LabError {
    pub(crate) fn system(step: &'static str) -> impl Fn(io::Error) -> Self {
        move |source| LabError::System { step, source }
    }
}

fn remedy(key: &str, source: &io::Error) -> &'static str {
    match source.kind() {
        io::ErrorKind::NotFound => "; sysctl -a lists the names",
        io::ErrorKind::PermissionDenied if key.starts_with("net.ipv4.tcp_congestion") => {
            "; choose it with --cc"
        }
        io::ErrorKind::PermissionDenied => "; it belongs to the whole machine, not to a lab host",
        io::ErrorKind::InvalidInput => "; the kernel does not take that value",
        _ => "",
    }
}
