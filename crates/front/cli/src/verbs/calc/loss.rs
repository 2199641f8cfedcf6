//! `calc mathis`, `pftk`, `cubic` and `bbr`.

use super::MSS;
use clap::Args;
use longhaul::calc::{CalcRequest, Law, LossQuestion};
use units::{BitRate, ByteCount, LossRatio, Rtt};

#[derive(Debug, Args)]
struct PathArgs {
    /// Round-trip time: 100ms
    #[arg(long)]
    rtt: Rtt,
    /// Random loss, to compute the throughput: 1%, 0.001%
    #[arg(long, short)]
    loss: Option<LossRatio>,
    /// Link rate, to compute the tolerable loss: 10gbit
    #[arg(long)]
    rate: Option<BitRate>,
    /// Compute the tolerable loss for this rate instead
    #[arg(long, value_name = "RATE")]
    target: Option<BitRate>,
    /// Maximum segment size, in bytes
    #[arg(long, value_name = "BYTES", default_value_t = MSS.bytes())]
    mss: u64,
    /// Maximum receive window: 64KiB, 4MiB
    #[arg(long, short, value_name = "SIZE")]
    window: Option<ByteCount>,
}

impl PathArgs {
    fn question(&self, law: Law) -> LossQuestion {
        LossQuestion {
            law,
            rtt: self.rtt,
            loss: self.loss,
            link: self.rate,
            target: self.target,
            mss: ByteCount::from_bytes(self.mss),
            window: self.window,
            rto: None,
            packets_per_ack: 1,
        }
    }
}

/// Compute Reno's throughput under loss with the Mathis model
#[derive(Debug, Args)]
#[command(after_help = MATHIS_EXAMPLES)]
pub(super) struct MathisArgs {
    #[command(flatten)]
    path: PathArgs,
    /// Assume delayed ACKs: one for every second segment (b = 2)
    #[arg(long)]
    delayed_ack: bool,
}

const MATHIS_EXAMPLES: &str = "\
Examples:
  longhaul calc mathis --rtt 100ms --loss 1%
  longhaul calc mathis --rtt 200ms --rate 4mbit   loss tolerable at 4 Mbit/s
  longhaul calc mathis --rtt 100ms --loss 0.1% --mss 8948 --delayed-ack";

impl MathisArgs {
    pub(super) fn request(&self) -> CalcRequest {
        let question = self.path.question(Law::Mathis);
        CalcRequest::Loss(LossQuestion { packets_per_ack: packets(self.delayed_ack), ..question })
    }
}

/// Compute Reno's throughput with timeouts and window limit (PFTK)
#[derive(Debug, Args)]
#[command(after_help = PFTK_EXAMPLES)]
pub(super) struct PftkArgs {
    #[command(flatten)]
    path: PathArgs,
    /// Assume delayed ACKs: one for every second segment (b = 2)
    #[arg(long)]
    delayed_ack: bool,
    /// Initial retransmission timeout [default: RTT + 200 ms]
    #[arg(long, value_name = "TIME")]
    rto: Option<Rtt>,
}

const PFTK_EXAMPLES: &str = "\
Examples:
  longhaul calc pftk --rtt 100ms --loss 5%
  longhaul calc pftk --rtt 100ms --loss 1% --window 64KiB --rto 1s --delayed-ack
  longhaul calc pftk --rtt 50ms --rate 20mbit   loss tolerable at 20 Mbit/s";

impl PftkArgs {
    pub(super) fn request(&self) -> CalcRequest {
        let question = self.path.question(Law::Pftk);
        let packets_per_ack = packets(self.delayed_ack);
        CalcRequest::Loss(LossQuestion { packets_per_ack, rto: self.rto, ..question })
    }
}

/// Compute CUBIC's throughput under loss with the model of RFC 9438
#[derive(Debug, Args)]
#[command(after_help = CUBIC_EXAMPLES)]
pub(super) struct CubicArgs {
    #[command(flatten)]
    path: PathArgs,
}

const CUBIC_EXAMPLES: &str = "\
Examples:
  longhaul calc cubic --rtt 100ms --loss 1%
  longhaul calc cubic --rtt 100ms --rate 10gbit   loss tolerable at 10 Gbit/s
  longhaul calc cubic --rtt 163.6ms --loss 0.001% --rate 2.5gbit --json";

impl CubicArgs {
    pub(super) fn request(&self) -> CalcRequest {
        CalcRequest::Loss(self.path.question(Law::Cubic))
    }
}

/// Estimate the throughput of BBR version 1 under loss
#[derive(Debug, Args)]
#[command(after_help = BBR_EXAMPLES)]
pub(super) struct BbrArgs {
    #[command(flatten)]
    path: PathArgs,
}

const BBR_EXAMPLES: &str = "\
Examples:
  longhaul calc bbr --rtt 100ms --rate 10gbit --loss 1%
  longhaul calc bbr --rtt 100ms --rate 1gbit --target 900mbit";

impl BbrArgs {
    pub(super) fn request(&self) -> CalcRequest {
        CalcRequest::Loss(self.path.question(Law::Bbr))
    }
}

/// Segments per acknowledgement.
fn packets(delayed: bool) -> u32 {
    if delayed { 2 } else { 1 }
}
