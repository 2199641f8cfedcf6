//! `calc line`.

use clap::Args;
use longhaul::calc::IpVersion;
use longhaul::calc::{CalcRequest, LineQuestion};
use units::BitRate;

/// Identify the Ethernet link from a measured TCP goodput
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct LineArgs {
    /// Goodput of a bulk transfer: 941mbit, 94.1mbit
    #[arg(value_name = "RATE")]
    goodput: BitRate,
    /// The transfer used IPv4 [default: try both]
    #[arg(long, short = '4', conflicts_with = "ipv6")]
    ipv4: bool,
    /// The transfer used IPv6
    #[arg(long, short = '6')]
    ipv6: bool,
    /// Rate that the provider sells: also compute the share of it
    #[arg(long, value_name = "RATE")]
    plan: Option<BitRate>,
}

const EXAMPLES: &str = "\
Examples:
  longhaul calc line 94.1mbit         a link of 100 Mbit/s
  longhaul calc line 941mbit          a gigabit link, whatever the plan
  longhaul calc line 2.32gbit         2.5 Gbit/s over IPv6
  longhaul calc line 978.75mbit --plan 1gbit";

impl LineArgs {
    pub(super) fn request(&self) -> CalcRequest {
        let ip = match (self.ipv4, self.ipv6) {
            (true, _) => Some(IpVersion::Ipv4),
            (_, true) => Some(IpVersion::Ipv6),
            (false, false) => None,
        };
        CalcRequest::Line(LineQuestion { goodput: self.goodput, ip, plan: self.plan })
    }
}
