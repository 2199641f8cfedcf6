//! `calc window` and `calc scale`.

use clap::Args;
use longhaul::calc::{CalcRequest, ScaleQuestion, WindowQuestion};
use units::{BitRate, ByteCount, Rtt};

/// Compute rate, RTT or window from the other two
#[derive(Debug, Args)]
#[command(after_help = WINDOW_EXAMPLES)]
pub(super) struct WindowArgs {
    /// Total rate of all streams: 100mbit, 2.5gbit
    #[arg(long)]
    rate: Option<BitRate>,
    /// Round-trip time under load: 173ms
    #[arg(long)]
    rtt: Option<Rtt>,
    /// Window of each stream: 64KiB, 4MiB
    #[arg(long, short, value_name = "SIZE")]
    window: Option<ByteCount>,
    /// Parallel connections that share the rate
    #[arg(long, short = 'P', value_name = "N", default_value_t = 1)]
    streams: u32,
}

const WINDOW_EXAMPLES: &str = "\
Examples:
  longhaul calc window --rate 100mbit --rtt 173ms
  longhaul calc window --rtt 173ms --window 64KiB
  longhaul calc window --rate 2.5gbit --rtt 163.6ms -P 4
  longhaul calc window --rate 1gbit --window 4MiB   maximum RTT";

impl WindowArgs {
    pub(super) fn request(&self) -> CalcRequest {
        let &WindowArgs { rate, rtt, window, streams } = self;
        CalcRequest::Window(WindowQuestion { rate, rtt, window, streams })
    }
}

/// List TCP window scales, and find the smallest that suffices
#[derive(Debug, Args)]
#[command(after_help = SCALE_EXAMPLES)]
pub(super) struct ScaleArgs {
    /// Rate that the window must sustain: 100mbit, 2.5gbit
    #[arg(long)]
    rate: Option<BitRate>,
    /// Round-trip time under load: 173ms
    #[arg(long)]
    rtt: Option<Rtt>,
}

const SCALE_EXAMPLES: &str = "\
Examples:
  longhaul calc scale                              all window scales
  longhaul calc scale --rate 100mbit --rtt 173ms
  longhaul calc scale --rate 100gbit --rtt 200ms   exceeds the largest window";

impl ScaleArgs {
    pub(super) fn request(&self) -> CalcRequest {
        CalcRequest::Scale(ScaleQuestion { rate: self.rate, rtt: self.rtt })
    }
}
