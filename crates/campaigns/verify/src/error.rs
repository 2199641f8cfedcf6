//! Why a verification failed.

use lab::LabError;
use perf::PerfError;
use problem::Field;
use record::RevertedSetting;
use std::io;
use tune::{TuneError, TunerError};
use units::ByteCount;

/// Why a verification failed.
#[derive(Debug, thiserror::Error)]
pub enum VerifyError {
    /// No lab.
    #[error(transparent)]
    Lab(#[from] LabError),
    /// A transfer failed.
    #[error(transparent)]
    Transfer(#[from] PerfError),
    /// No setting reaches the path.
    #[error(transparent)]
    Plan(#[from] model::BufferTooLarge),
    /// A setting could not be changed.
    #[error(transparent)]
    Tune(#[from] TuneError),
    /// The hosts' settings could not be read.
    #[error("cannot read the lab hosts' settings: {0}")]
    Settings(#[source] io::Error),
    /// The receive buffer does not lead to the window.
    #[error(
        "the receiver does not advertise a window of {asked}: with the buffer computed for it, it \
         advertised {seen}"
    )]
    Window {
        /// The window asked.
        asked: ByteCount,
        /// The window last seen.
        seen: ByteCount,
    },
    /// This kernel does not report the window.
    #[error("this kernel does not report the advertised window; use Linux 5.4 or later")]
    WindowUnavailable,
    /// A path without a rate limit gives no target.
    #[error("the path has no rate limit; give one, such as rate=100mbit")]
    Unlimited,
    /// Stopped by the user.
    #[error("interrupted; the lab was removed")]
    Interrupted,
    /// Stopped by the user before a setting was touched.
    #[error("interrupted; nothing was changed")]
    InterruptedBefore,
    /// A test failed while steps were tried.
    #[error("{source}; {}", kept_words(*.kept))]
    Test {
        /// Why.
        source: PerfError,
        /// Steps that stay applied.
        kept: usize,
    },
    /// A setting could not be tried.
    #[error(transparent)]
    Tuner(#[from] TunerError),
    /// The previous values could not be restored.
    #[error("{0}; run longhaul tune rollback to retry")]
    Stuck(String),
    /// The sender is the server, and it does not report its RTT.
    #[error(
        "this server does not share its samples, so the RTT is unknown; give {} (longhaul ping \
         measures it)",
        Field::Rtt
    )]
    NoRoundTrip,
}

fn kept_words(kept: usize) -> String {
    match kept {
        0 => "all settings were reverted".to_owned(),
        1 => "one step that helped is kept, all other settings were reverted".to_owned(),
        many => format!("{many} steps that helped are kept, all other settings were reverted"),
    }
}

impl VerifyError {
    pub(crate) fn stuck(left: &[RevertedSetting]) -> Self {
        let each = |one: &RevertedSetting| format!("{} was not restored: {}", one.key, one.note);
        VerifyError::Stuck(left.iter().map(each).collect::<Vec<_>>().join("; "))
    }
}
