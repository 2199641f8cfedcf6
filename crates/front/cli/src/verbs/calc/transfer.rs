//! `calc transfer`.

use super::MSS;
use crate::congestion_name::CongestionName;
use clap::Args;
use longhaul::calc::Transfer;
use longhaul::calc::{CalcRequest, TransferQuestion};
use units::{BitRate, ByteCount, LossRatio, Rtt};

/// Compute transfer time: handshake, slow start, steady state
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct TransferArgs {
    /// Size of the transfer: 10GB, 700MiB
    size: ByteCount,
    /// Link rate: 1gbit
    #[arg(long)]
    rate: BitRate,
    /// Round-trip time: 100ms
    #[arg(long)]
    rtt: Rtt,
    /// Random loss: 0.01%
    #[arg(long, short, default_value = "0%")]
    loss: LossRatio,
    /// Initial window, in segments (RFC 6928)
    #[arg(long, value_name = "SEGMENTS", default_value_t = 10)]
    iw: u32,
    /// Maximum receive window: 64KiB, 4MiB
    #[arg(long, short, value_name = "SIZE")]
    window: Option<ByteCount>,
    /// Congestion control: reno, cubic, bbr [default: all]
    #[arg(long, short = 'C', value_enum, value_name = "NAME", hide_possible_values = true)]
    congestion: Option<CongestionName>,
    /// Maximum segment size, in bytes
    #[arg(long, value_name = "BYTES", default_value_t = MSS.bytes())]
    mss: u64,
}

const EXAMPLES: &str = "\
Examples:
  longhaul calc transfer 1GB --rate 100mbit --rtt 173ms
  longhaul calc transfer 10GB --rate 1gbit --rtt 100ms --loss 0.01%
  longhaul calc transfer 100KB --rate 1gbit --rtt 200ms --iw 4 -C reno
  longhaul calc transfer 1GB --rate 100mbit --rtt 173ms --window 64KiB --json";

impl TransferArgs {
    pub(super) fn request(&self) -> CalcRequest {
        let &TransferArgs { size, rate, rtt, loss, iw, window, congestion, mss } = self;
        let mss = ByteCount::from_bytes(mss);
        let transfer = Transfer { size, link: rate, rtt, loss, mss, window, initial: iw };
        let congestion = congestion.map(Into::into);
        CalcRequest::Transfer(TransferQuestion { transfer, congestion })
    }
}
