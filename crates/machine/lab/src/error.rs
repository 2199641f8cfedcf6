//! Errors of a lab.

use host::tun::TunError;
use problem::Field;
use std::io;
use units::ByteCount;

/// The reason a lab could not start or continue.
#[derive(Debug, thiserror::Error)]
pub enum LabError {
    /// The kernel lacks the congestion control.
    #[error("congestion control '{name}' is not available in this kernel; available: {available}")]
    Congestion {
        /// As requested.
        name: String,
        /// Those that exist.
        available: String,
    },
    /// Something that only the simulator has.
    #[error("{reason}")]
    SimulatedOnly {
        /// What it is, and why no lab can have it.
        reason: String,
    },
    /// A setting outside the network namespace.
    #[error("{key} applies to the whole machine; a lab host has only net.* settings of its own")]
    Setting {
        /// The setting.
        key: String,
    },
    /// A setting was refused.
    #[error("cannot set {key} to '{value}' on a lab host: {source}{}", remedy(key, source))]
    Sysctl {
        /// The setting.
        key: String,
        /// The requested value.
        value: String,
        /// The error of the kernel.
        source: io::Error,
    },
    /// The packets in flight would not fit into memory.
    #[error(
        "packets in flight and in queues of this path can take {needed} of memory, more than half of the {available} available; lower rate, rtt, jitter or queue"
    )]
    Memory {
        /// Most bytes on the wire and in the queues.
        needed: ByteCount,
        /// Available memory.
        available: ByteCount,
    },
    /// No such host.
    #[error("no host '{name}' in this lab; its hosts are: {known}")]
    NoHost {
        /// As requested.
        name: String,
        /// Those that exist.
        known: String,
    },
    /// No such link.
    #[error("no link '{name}' in this lab; its links are: {known}")]
    NoLink {
        /// As requested.
        name: String,
        /// Those that exist.
        known: String,
    },
    /// Another lab has that name.
    #[error("a lab named '{name}' is already running; choose another name with {}", Field::Name)]
    NameTaken {
        /// The name.
        name: String,
    },
    /// No lab of that name.
    #[error("no lab named '{name}' is running; running labs: {known}")]
    NoLab {
        /// The name.
        name: String,
        /// Those running.
        known: String,
    },
    /// No lab at all.
    #[error("no lab is running; start one with `longhaul lab up` or `longhaul lab shell`")]
    NoneRuns,
    /// More than one.
    #[error("several labs are running: {known}; select one with {}", Field::Lab)]
    SeveralRun {
        /// Their names.
        known: String,
    },
    /// The lab refused the request.
    #[error("{why}")]
    Refused {
        /// Its reason.
        why: String,
    },
    /// The MTU of the hosts' devices is fixed.
    #[error(
        "mtu= cannot change while the lab runs, because it is the MTU of the hosts' devices; up.mtu= and down.mtu= can"
    )]
    FixedMtu,
    /// The driver cannot carry out a setting.
    #[error(
        "NFQUEUE cannot carry out these settings ({reason}); start the lab with {} tun",
        Field::Driver
    )]
    NeedsTun {
        /// The setting that the driver does not support.
        reason: String,
    },
    /// Invalid settings of a path.
    #[error(transparent)]
    Path(#[from] topology::PathError),
    /// An invalid plan.
    #[error(transparent)]
    Plan(#[from] topology::PlanError),
    /// A TUN device could not be created.
    #[error(transparent)]
    Tun(#[from] TunError),
    /// The program on a host could not be started.
    #[error("cannot start '{program}' on {host}: {source}")]
    Start {
        /// The program.
        program: String,
        /// Its host.
        host: String,
        /// The error of the system.
        source: io::Error,
    },
    /// A server exited before it listened.
    #[error(
        "the program on {host} ended with exit code {code} before it listened: {command}{}{last}",
        if last.is_empty() { "" } else { "; its last output: " }
    )]
    ExitedBeforeListening {
        /// Its host.
        host: String,
        /// Its command line.
        command: String,
        /// Its exit code.
        code: i32,
        /// The last line it wrote, if known.
        last: String,
    },
    /// The emulator failed.
    #[error("the path emulator failed: {0}")]
    Emulator(#[source] io::Error),
    /// Another system call failed.
    #[error("the lab failed ({step}): {source}")]
    System {
        /// The step that failed.
        step: &'static str,
        /// The error of the system.
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
            "; each test chooses it"
        }
        io::ErrorKind::PermissionDenied => "; it applies to the whole machine",
        io::ErrorKind::InvalidInput => "; the kernel rejects that value",
        _ => "",
    }
}
