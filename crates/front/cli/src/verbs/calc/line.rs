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
    /// The transfer used IPv6 [default: IPv4]
    #[arg(long, short = '6')]
    ipv6: bool,
}

const EXAMPLES: &str = "\
Examples:
  longhaul calc line 94.1mbit         a link of 100 Mbit/s
  longhaul calc line 941mbit          a gigabit link, whatever the plan
  longhaul calc line 2321mbit --ipv6";

impl LineArgs {
    pub(super) fn request(&self) -> CalcRequest {
        let ip = if self.ipv6 { IpVersion::Ipv6 } else { IpVersion::Ipv4 };
        CalcRequest::Line(LineQuestion { goodput: self.goodput, ip })
    }
}
