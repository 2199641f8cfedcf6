//! `calc distance`.

use clap::Args;
use longhaul::calc::{CalcRequest, DistanceQuestion, Location};
use units::Rtt;

/// Compute the distance between two places and the least RTT in fibre
#[derive(Debug, Clone, Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct DistanceArgs {
    /// City with an airport, IATA code, or coordinates: Paris, CDG, 48.86,2.35
    #[arg(allow_hyphen_values = true)]
    from: Location,
    /// The other place
    #[arg(allow_hyphen_values = true)]
    to: Location,
    /// Measured RTT, to compare: 163.6ms
    #[arg(long)]
    rtt: Option<Rtt>,
}

const EXAMPLES: &str = "\
Examples:
  longhaul calc distance Eugene Paris
  longhaul calc distance Eugene Paris --rtt 163.6ms   how far from the least
  longhaul calc distance 'Portland, Maine' LHR
  longhaul calc distance 44.05,-123.09 -12.46,130.84";

impl DistanceArgs {
    pub(super) fn request(&self) -> CalcRequest {
        let DistanceArgs { from, to, rtt } = self.clone();
        CalcRequest::Distance(DistanceQuestion { from, to, rtt })
    }
}
