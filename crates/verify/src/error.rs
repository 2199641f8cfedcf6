//! Why the loop could not be closed.

use lab::LabError;
use probe::ProbeError;
use std::io;
use tune::{PlanError, TuneError};
use units::ByteCount;

/// Why the loop could not be closed.
#[derive(Debug, thiserror::Error)]
pub enum VerifyError {
    /// No lab.
    #[error(transparent)]
    Lab(#[from] LabError),
    /// A transfer failed.
    #[error(transparent)]
    Transfer(#[from] ProbeError),
    /// No setting reaches the path.
    #[error(transparent)]
    Plan(#[from] PlanError),
    /// A setting could not be changed.
    #[error(transparent)]
    Tune(#[from] TuneError),
    /// The hosts' settings could not be read.
    #[error("cannot read the lab hosts' settings: {0}")]
    Settings(#[source] io::Error),
    /// The receive buffer does not lead to the window.
    #[error(
        "the receiver does not advertise a window of {asked}: with the buffer meant for it, it advertised {seen}"
    )]
    Window {
        /// The window asked.
        asked: ByteCount,
        /// The window last seen.
        seen: ByteCount,
    },
    /// This kernel does not tell the window.
    #[error("this kernel does not tell the advertised window; Linux 5.4 and later do")]
    Blind,
    /// A path without a limit has nothing to be tuned for.
    #[error("the path's rate has no limit; give it one, such as rate=100mbit")]
    Unlimited,
    /// Stopped by the user.
    #[error("interrupted; nothing is left behind")]
    Interrupted,
}
