//! Flags of `test` for more than one plain transfer.

use crate::regression::RegressionArgs;
use clap::{Args, value_parser};
use std::path::PathBuf;
use units::LossRatio;

/// Latency under load, repetitions, a comparison, a second test, a rate search.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Measurement modes")]
pub(crate) struct ModeArgs {
    /// Measure RTT before, during and after the transfer
    ///
    /// Adds 2 s before and 2 s after the transfer. Reports the queueing delay under load
    /// (bufferbloat) and the responsiveness in round trips per minute.
    #[arg(long)]
    pub(super) latency: bool,
    /// TCP port of the RTT probes [default: 443]
    ///
    /// A closed port works as well: it answers with a reset.
    #[arg(long, value_name = "PORT", requires = "latency")]
    #[arg(value_parser = value_parser!(u16).range(1..))]
    pub(super) latency_port: Option<u16>,
    /// Print one screen: rate, RTT, grade, cause, fix
    ///
    /// The RTT is measured idle and under load, as with --latency. No interval reports.
    #[arg(long, conflicts_with_all = ["json", "repeat", "find_rate", "decide", "bidir"])]
    pub(super) brief: bool,
    /// Run N tests; report mean with confidence interval
    #[arg(long, value_name = "N")]
    #[arg(value_parser = value_parser!(u32).range(1..=1000))]
    pub(super) repeat: Option<u32>,
    /// Compare with an earlier result
    ///
    /// FILE is from --save; the result says whether the difference is significant.
    #[arg(long, value_name = "FILE", visible_alias = "baseline")]
    pub(super) compare: Option<PathBuf>,
    #[command(flatten)]
    pub(super) regression: RegressionArgs,
    /// Run a second test to decide between two causes
    ///
    /// By default, the finding names both causes and the options of the test that distinguishes
    /// them: another congestion control, more streams, UDP, or more time. With --decide, that
    /// test runs after the first one. A train of UDP datagrams of at most 2 s and 6 MB
    /// distinguishes a policer from a shallow queue, with longhaul at both ends.
    #[arg(long, conflicts_with_all = ["repeat", "find_rate", "udp", "bidir"])]
    pub(super) decide: bool,
    /// Find the highest UDP rate that meets --loss-target
    ///
    /// -b limits the rates tried.
    #[arg(long, conflicts_with_all = ["latency", "repeat", "compare", "html", "save"])]
    #[arg(conflicts_with_all = ["time", "bytes", "omit", "window", "congestion"])]
    pub(super) find_rate: bool,
    /// Maximum loss for --find-rate
    #[arg(long, value_name = "LOSS", requires = "find_rate", default_value = "0.1%")]
    pub(super) loss_target: LossRatio,
    /// Seconds per try of --find-rate
    #[arg(long, value_name = "SECONDS", requires = "find_rate", default_value = "2")]
    #[arg(value_parser = crate::verbs::probe_args::seconds)]
    pub(super) try_time: f64,
}
