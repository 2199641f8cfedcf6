//! `calc window` and `calc scale`.

use clap::Args;
use model::calc::{self, CalcError, ScaleQuestion, Sheet, WindowQuestion};
use units::{BitRate, ByteCount, Rtt};

/// Of rate, round trip and window, compute the third from the other two
#[derive(Debug, Args)]
#[command(after_help = WINDOW_EXAMPLES)]
pub(super) struct WindowArgs {
    /// Rate of all streams together: 100mbit, 2.5gbit
    #[arg(long)]
    rate: Option<BitRate>,
    /// Round trip under load: 173ms
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
  longhaul calc window --rate 1gbit --window 4MiB        the longest round trip it suffices for";

impl WindowArgs {
    pub(super) fn sheet(&self) -> Result<Sheet, CalcError> {
        let &WindowArgs { rate, rtt, window, streams } = self;
        calc::window(&WindowQuestion { rate, rtt, window, streams })
    }
}

/// List the window scales of TCP, and find the least that carries a rate
#[derive(Debug, Args)]
#[command(after_help = SCALE_EXAMPLES)]
pub(super) struct ScaleArgs {
    /// Rate that the window should carry: 100mbit, 2.5gbit
    #[arg(long)]
    rate: BitRate,
    /// Round trip under load: 173ms
    #[arg(long)]
    rtt: Rtt,
}

const SCALE_EXAMPLES: &str = "\
Examples:
  longhaul calc scale --rate 100mbit --rtt 173ms
  longhaul calc scale --rate 100gbit --rtt 200ms         more than one window announces";

impl ScaleArgs {
    pub(super) fn sheet(&self) -> Result<Sheet, CalcError> {
        calc::scale(&ScaleQuestion { rate: self.rate, rtt: self.rtt })
    }
}
