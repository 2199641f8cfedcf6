//! Direct and boosted runs of one command, compared. What `longhaul boost verify --json` prints.

use crate::NextCommand;
use serde::{Deserialize, Serialize};
use units::{BitRate, ByteCount};

/// The version of [`BoostVerification`] in JSON.
pub const BOOST_VERIFY_SCHEMA: &str = "longhaul.boost-verify/1";

/// How a run reaches its server.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum BoostWay {
    /// As without boxes.
    Direct,
    /// Through the boxes.
    Boosted,
}

impl BoostWay {
    /// The name in tables.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            BoostWay::Direct => "direct",
            BoostWay::Boosted => "boosted",
        }
    }
}

/// What the runs are compared by.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum BoostMeasure {
    /// The time that the command takes; the gain is direct over boosted.
    Time,
    /// The goodput at the receiver that a test reports; the gain is boosted over direct.
    Goodput,
}

/// One run of the command.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct BoostRun {
    /// The way.
    pub way: BoostWay,
    /// Seconds from the start of the command to its end; boosted, until near has also delivered
    /// what it held.
    pub seconds: f64,
    /// Seconds until the boxes were connected, before the command started.
    pub setup_s: Option<f64>,
    /// Payload that was carried, in both directions; `None` where nothing counts it.
    pub bytes: Option<ByteCount>,
    /// Goodput at the receiver that the command reports.
    pub goodput_bps: Option<BitRate>,
    /// CPU time of the command and, boosted, of the near box, in seconds.
    pub cpu_s: f64,
    /// Why the run does not count.
    pub failed: Option<String>,
}

/// The runs of one way that completed.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct BoostWaySummary {
    /// Their number.
    pub completed: u32,
    /// The number of those that failed.
    pub failed: u32,
    /// Median of their times, s.
    pub median_s: Option<f64>,
    /// Median of their goodput.
    pub median_bps: Option<BitRate>,
    /// CPU seconds for 10^9 bytes of payload: the medians of both. Bytes of direct runs of a command
    /// are those that boxes counted in boosted ones.
    pub cpu_s_per_gb: Option<f64>,
}

/// The ratio of the boosted to the direct rate.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct BoostGain {
    /// The geometric mean over pairs of neighbouring runs.
    pub ratio: f64,
    /// The lower end of its confidence interval (Student's t, of the logarithms); `None` for one
    /// pair.
    pub low: Option<f64>,
    /// The upper end.
    pub high: Option<f64>,
    /// The confidence level.
    pub confidence: f64,
    /// Pairs of which both runs completed.
    pub pairs: u32,
}

/// What the runs show.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum BoostVerdict {
    /// Boosted runs are faster, by at least [`crate::BOOST_WORTH`].
    Gain,
    /// The interval excludes a gain of that much.
    NoGain,
    /// The interval includes both, or too few runs completed.
    CannotTell,
}

/// The goodput of a CUBIC flow that shares the bottleneck.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct CubicHarm {
    /// Seconds of each of its tests.
    pub seconds: f64,
    /// Completed tests of each kind, at least.
    pub rounds: u32,
    /// Median of its goodput without another flow.
    pub alone_bps: BitRate,
    /// Beside the direct transfer.
    pub beside_direct_bps: BitRate,
    /// Beside the boosted transfer.
    pub beside_boosted_bps: BitRate,
    /// Harm of the direct transfer: the share of `alone_bps` that it takes away (Ware, Mukerjee,
    /// Seshan and Sherry 2019, section 4).
    pub direct: f64,
    /// Harm of the boosted transfer.
    pub boosted: f64,
}

/// Direct and boosted runs of a command, and the gain.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct BoostVerification {
    /// [`BOOST_VERIFY_SCHEMA`].
    pub schema: String,
    /// The version of Longhaul.
    pub version: String,
    /// The command line.
    pub command: String,
    /// The far box; `None`: this host connected to the targets itself.
    pub far: Option<String>,
    /// The emulated path between the boxes, in a lab.
    pub path: Option<String>,
    /// What the runs are compared by.
    pub measure: BoostMeasure,
    /// The runs in order.
    pub runs: Vec<BoostRun>,
    /// Of direct runs.
    pub direct: BoostWaySummary,
    /// Of boosted runs.
    pub boosted: BoostWaySummary,
    /// The gain; `None` if no pair completed.
    pub gain: Option<BoostGain>,
    /// What the runs show.
    pub verdict: BoostVerdict,
    /// What the transfer costs a CUBIC flow, in a lab.
    pub harm: Option<CubicHarm>,
    /// The result in a sentence.
    pub sentence: String,
    /// True if it was interrupted.
    pub interrupted: bool,
    /// What the figures leave out.
    pub notes: Vec<String>,
    /// The command to run next.
    pub next: Option<NextCommand>,
}
