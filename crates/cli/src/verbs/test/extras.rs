//! What a test may be asked beside one transfer.

use clap::{Args, value_parser};
use std::path::PathBuf;
use units::LossRatio;

/// Round trips, repeats, comparisons, the search for a rate.
#[derive(Debug, Args)]
#[command(next_help_heading = "More than one transfer")]
pub(crate) struct Extras {
    /// Take round trips 2 s before, during and 2 s after: bufferbloat, responsiveness
    #[arg(long)]
    pub(super) latency: bool,
    /// With --latency, the port for TCP round trips; a closed one serves (default: 443)
    #[arg(long, value_name = "PORT", requires = "latency")]
    #[arg(value_parser = value_parser!(u16).range(1..))]
    pub(super) latency_port: Option<u16>,
    /// Run so many tests, one after the other: median, mean with its confidence
    #[arg(long, value_name = "N", conflicts_with = "html")]
    #[arg(value_parser = value_parser!(u32).range(1..=1000))]
    pub(super) repeat: Option<u32>,
    /// Compare with what `--save` kept earlier, and say whether the difference is real
    #[arg(long, value_name = "FILE")]
    pub(super) baseline: Option<PathBuf>,
    /// Search the highest rate of datagrams (UDP) that loses no more than
    /// --loss-target; -b is the most that is tried
    #[arg(long, conflicts_with_all = ["latency", "repeat", "baseline", "html", "save"])]
    #[arg(conflicts_with_all = ["time", "bytes", "omit", "window", "congestion"])]
    pub(super) find_rate: bool,
    /// With --find-rate, the loss that counts as none: 0.1%, 0
    #[arg(long, value_name = "LOSS", requires = "find_rate", default_value = "0.1%")]
    pub(super) loss_target: LossRatio,
    /// With --find-rate, the length of one try
    #[arg(long, value_name = "SECONDS", requires = "find_rate", default_value = "2")]
    #[arg(value_parser = super::seconds)]
    pub(super) try_time: f64,
}
