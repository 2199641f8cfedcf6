//! `calc udt`.

use clap::Args;
use longhaul::calc::{CalcRequest, UdtQuestion};
use units::{BitRate, LossRatio};

/// Compute UDT's rate increase and its recovery after a loss
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct UdtArgs {
    /// Link rate L: 1gbit
    #[arg(long)]
    rate: BitRate,
    /// Current sending rate C [default: 0]
    #[arg(long, value_name = "RATE")]
    sending: Option<BitRate>,
    /// Packet size S, in bytes
    #[arg(long, value_name = "BYTES", default_value_t = 1500)]
    packet: u32,
    /// Random loss, to compute the throughput: 0.1%
    #[arg(long, short)]
    loss: Option<LossRatio>,
}

const EXAMPLES: &str = "\
Examples:
  longhaul calc udt --rate 1gbit
  longhaul calc udt --rate 1gbit --sending 950mbit
  longhaul calc udt --rate 1gbit --loss 0.1%   independent of the RTT";

impl UdtArgs {
    pub(super) fn request(&self) -> CalcRequest {
        let &UdtArgs { rate, sending, packet, loss } = self;
        let sending = sending.unwrap_or(BitRate::ZERO);
        CalcRequest::Udt(UdtQuestion { rate, sending, packet, loss })
    }
}
