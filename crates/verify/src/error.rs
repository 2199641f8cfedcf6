//! Why the loop could not be closed.

use lab::LabError;
use probe::ProbeError;
use record::Undone;
use std::io;
use tune::{LedgerError, PlanError, TuneError};
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
    /// Stopped by the user before a setting was touched.
    #[error("interrupted; nothing was changed")]
    Untouched,
    /// A test failed while steps were tried.
    #[error("{source}; {}", kept_words(*.kept))]
    Test {
        /// Why.
        source: ProbeError,
        /// Steps that stay applied.
        kept: usize,
    },
    /// A setting could not be tried.
    #[error(transparent)]
    Ledger(#[from] LedgerError),
    /// What was before could not be put back.
    #[error("{0}; longhaul tune rollback tries again")]
    Stuck(String),
    /// The server's end knows the round trip and does not tell.
    #[error(
        "the round trip cannot be had from this server, which does not share its samples; give \
         --rtt (longhaul ping measures it)"
    )]
    NoRoundTrip,
}

fn kept_words(kept: usize) -> String {
    match kept {
        0 => "all settings are as they were".to_owned(),
        1 => "one step that helped is kept, all else is as it was".to_owned(),
        many => format!("{many} steps that helped are kept, all else is as it was"),
    }
}

impl VerifyError {
    pub(crate) fn stuck(left: &[Undone]) -> Self {
        let each = |one: &Undone| format!("{} was not put back: {}", one.key, one.note);
        VerifyError::Stuck(left.iter().map(each).collect::<Vec<_>>().join("; "))
    }
}
