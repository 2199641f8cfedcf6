//! `calc wan`.

use super::MSS;
use crate::ratio::ratio;
use clap::Args;
use longhaul::calc::{CalcRequest, WanQuestion};
use units::{BitRate, ByteCount, LossRatio, Rtt};

/// Compute throughput with and without a pair of WAN optimisers
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct WanArgs {
    /// Link rate between the sites: 100mbit
    #[arg(long)]
    rate: BitRate,
    /// Round-trip time between the hosts: 173ms
    #[arg(long)]
    rtt: Rtt,
    /// Random loss between the sites: 0.1%
    #[arg(long, short, default_value = "0%")]
    loss: LossRatio,
    /// TCP window of the hosts
    #[arg(long, short, value_name = "SIZE", default_value = "64KiB")]
    window: ByteCount,
    /// Compression and deduplication ratio: 3:1
    #[arg(long, default_value = "1:1", value_parser = ratio)]
    ratio: f64,
    /// Rate of the local networks
    #[arg(long, value_name = "RATE", default_value = "1gbit")]
    lan: BitRate,
    /// Maximum segment size, in bytes
    #[arg(long, value_name = "BYTES", default_value_t = MSS.bytes())]
    mss: u64,
    /// Assume that the hosts use Reno rather than CUBIC
    #[arg(long)]
    reno: bool,
}

const EXAMPLES: &str = "\
Examples:
  longhaul calc wan --rate 100mbit --rtt 173ms
  longhaul calc wan --rate 100mbit --rtt 173ms --loss 0.1% --ratio 3:1
  longhaul calc wan --rate 10mbit --rtt 600ms --loss 1% --window 4MiB --reno";

impl WanArgs {
    pub(super) fn request(&self) -> CalcRequest {
        let &WanArgs { rate, rtt, loss, window, ratio, lan, mss, reno } = self;
        let mss = ByteCount::from_bytes(mss);
        CalcRequest::Wan(WanQuestion { rate, rtt, loss, window, ratio, lan, mss, reno })
    }
}
