//! `calc udt`.

use clap::Args;
use model::calc::{self, CalcError, Sheet, UdtQuestion};
use units::{BitRate, LossRatio};

/// Compute how UDT raises its rate, and how fast it comes back after a loss
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct UdtArgs {
    /// Rate of the link, L: 1gbit
    #[arg(long)]
    rate: BitRate,
    /// Sending rate C at which to tell the increase [default: none yet]
    #[arg(long, value_name = "RATE")]
    sending: Option<BitRate>,
    /// Packet size S, in bytes
    #[arg(long, value_name = "BYTES", default_value_t = 1500)]
    packet: u32,
    /// Random loss, for the rate it leaves: 0.1%
    #[arg(long, short)]
    loss: Option<LossRatio>,
}

const EXAMPLES: &str = "\
Examples:
  longhaul calc udt --rate 1gbit
  longhaul calc udt --rate 1gbit --sending 950mbit
  longhaul calc udt --rate 1gbit --loss 0.1%             it does not depend on the round trip";

impl UdtArgs {
    pub(super) fn sheet(&self) -> Result<Sheet, CalcError> {
        let &UdtArgs { rate, sending, packet, loss } = self;
        let sending = sending.unwrap_or(BitRate::ZERO);
        calc::udt(&UdtQuestion { rate, sending, packet, loss })
    }
}
