//! `calc mathis`, `pftk`, `cubic` and `bbr`.

use super::MSS;
use clap::Args;
use model::calc::{self, CalcError, Law, LossQuestion, Sheet};
use units::{BitRate, ByteCount, LossRatio, Rtt};

#[derive(Debug, Args)]
struct PathArgs {
    /// Round trip: 100ms
    #[arg(long)]
    rtt: Rtt,
    /// Random loss, for the rate it leaves: 1%, 0.001%
    #[arg(long, short)]
    loss: Option<LossRatio>,
    /// Rate of the link, which no model passes, and for which to tell the loss it bears
    #[arg(long)]
    rate: Option<BitRate>,
    /// Rate for which to tell the loss it bears, where it is not the link's
    #[arg(long, value_name = "RATE")]
    target: Option<BitRate>,
    /// Payload of a full segment, in bytes (1460 without timestamps, 8948 on jumbo frames)
    #[arg(long, value_name = "BYTES", default_value_t = MSS.bytes())]
    mss: u64,
    /// Largest window of the receiver: 64KiB, 4MiB
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

/// Compute Reno's rate under loss after Mathis et al., and the loss a rate bears
#[derive(Debug, Args)]
#[command(after_help = MATHIS_EXAMPLES)]
pub(super) struct MathisArgs {
    #[command(flatten)]
    path: PathArgs,
    /// Count an acknowledgement every second packet (b = 2)
    #[arg(long)]
    delayed_ack: bool,
}

const MATHIS_EXAMPLES: &str = "\
Examples:
  longhaul calc mathis --rtt 100ms --loss 1%
  longhaul calc mathis --rtt 200ms --rate 4mbit          the loss that 4 Mbit/s bear
  longhaul calc mathis --rtt 100ms --loss 0.1% --rate 1gbit --mss 8948 --delayed-ack";

impl MathisArgs {
    pub(super) fn sheet(&self) -> Result<Sheet, CalcError> {
        let question = self.path.question(Law::Mathis);
        calc::loss(&LossQuestion { packets_per_ack: packets(self.delayed_ack), ..question })
    }
}

/// Compute Reno's rate with timeouts and window after Padhye et al. (PFTK)
#[derive(Debug, Args)]
#[command(after_help = PFTK_EXAMPLES)]
pub(super) struct PftkArgs {
    #[command(flatten)]
    path: PathArgs,
    /// Count an acknowledgement every second packet (b = 2)
    #[arg(long)]
    delayed_ack: bool,
    /// First timeout [default: the round trip + 200 ms, as on Linux]
    #[arg(long, value_name = "TIME")]
    rto: Option<Rtt>,
}

const PFTK_EXAMPLES: &str = "\
Examples:
  longhaul calc pftk --rtt 100ms --loss 5%
  longhaul calc pftk --rtt 100ms --loss 1% --window 64KiB --rto 1s --delayed-ack
  longhaul calc pftk --rtt 50ms --rate 20mbit            the loss that 20 Mbit/s bear";

impl PftkArgs {
    pub(super) fn sheet(&self) -> Result<Sheet, CalcError> {
        let question = self.path.question(Law::Pftk);
        let packets_per_ack = packets(self.delayed_ack);
        calc::loss(&LossQuestion { packets_per_ack, rto: self.rto, ..question })
    }
}

/// Compute CUBIC's rate under loss after RFC 9438, and the loss a rate bears
#[derive(Debug, Args)]
#[command(after_help = CUBIC_EXAMPLES)]
pub(super) struct CubicArgs {
    #[command(flatten)]
    path: PathArgs,
}

const CUBIC_EXAMPLES: &str = "\
Examples:
  longhaul calc cubic --rtt 100ms --loss 1%
  longhaul calc cubic --rtt 100ms --rate 10gbit          the loss that 10 Gbit/s bear
  longhaul calc cubic --rtt 163.6ms --loss 0.001% --rate 2.5gbit --json";

impl CubicArgs {
    pub(super) fn sheet(&self) -> Result<Sheet, CalcError> {
        calc::loss(&self.path.question(Law::Cubic))
    }
}

/// Tell what loss leaves of BBR version 1, as far as a model is known
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
    pub(super) fn sheet(&self) -> Result<Sheet, CalcError> {
        calc::loss(&self.path.question(Law::Bbr))
    }
}

/// Packets for each acknowledgement.
fn packets(delayed: bool) -> u32 {
    if delayed { 2 } else { 1 }
}
