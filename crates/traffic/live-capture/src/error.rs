//! The reasons a capture cannot begin: one line each, with the remedy.

use bpf::FilterError;
use std::io;
use std::path::PathBuf;

/// The reason a capture cannot begin.
#[derive(Debug, thiserror::Error)]
pub enum CaptureError {
    /// No such interface.
    #[error("no interface '{name}'; available: {known}, any")]
    NoInterface {
        /// Its name.
        name: String,
        /// The interfaces that there are.
        known: String,
    },
    /// The caller may not capture.
    #[error(
        "no permission to capture on {interface}: run as root (sudo longhaul ...), or grant \
         cap_net_raw once: sudo setcap cap_net_raw+ep \"$(command -v longhaul)\""
    )]
    NotPermitted {
        /// The interface.
        interface: String,
    },
    /// The filter is refused.
    #[error(transparent)]
    Filter(#[from] FilterError),
    /// The adapter does not timestamp all packets.
    #[error(
        "{interface} has no hardware timestamps for all packets: enable them where the adapter \
         can (sudo hwstamp_ctl -i {interface} -r 1), or use software timestamps"
    )]
    NoHardwareTimestamps {
        /// The interface.
        interface: String,
    },
    /// A file cannot be created.
    #[error("cannot write {}: {source}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// The system error.
        source: io::Error,
    },
    /// Files in turn would be too small, too many or have no name.
    #[error("{0}")]
    Rotation(String),
    /// Anything else.
    #[error("cannot capture on {interface} ({step}): {source}")]
    System {
        /// The interface.
        interface: String,
        /// The step that failed.
        step: &'static str,
        /// The system error.
        source: io::Error,
    },
}
