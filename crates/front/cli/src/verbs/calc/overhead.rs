//! `calc overhead`.

use clap::Args;
use longhaul::calc::IpVersion;
use longhaul::calc::{CalcRequest, OverheadQuestion};
use units::BitRate;

/// Compute the payload rate of a link after protocol overhead
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct OverheadArgs {
    /// Nominal Ethernet rate: 1gbit, 2.5gbit
    #[arg(long)]
    rate: BitRate,
    /// MTU, in bytes; jumbo frames: 9000
    #[arg(long, value_name = "BYTES", default_value_t = 1500)]
    mtu: u32,
    /// Use IPv6 instead of IPv4 headers
    #[arg(long, short = '6')]
    ipv6: bool,
    /// VLAN tags per frame, 0 to 2
    #[arg(long, value_name = "N", default_value_t = 0)]
    vlan: u32,
    /// Assume that TCP timestamps are off
    #[arg(long)]
    no_timestamps: bool,
    /// SACK blocks in every segment, 0 to 3
    #[arg(long, value_name = "N", default_value_t = 0, conflicts_with = "udp")]
    sack: u32,
    /// Use UDP instead of TCP
    #[arg(long, short, conflicts_with = "no_timestamps")]
    udp: bool,
}

const EXAMPLES: &str = "\
Examples:
  longhaul calc overhead --rate 2.5gbit
  longhaul calc overhead --rate 2.5gbit --ipv6 --sack 3
  longhaul calc overhead --rate 10gbit --mtu 9000 --vlan 1
  longhaul calc overhead --rate 1gbit --udp --json";

impl OverheadArgs {
    pub(super) fn request(&self) -> CalcRequest {
        CalcRequest::Overhead(OverheadQuestion {
            rate: self.rate,
            mtu: self.mtu,
            ip: if self.ipv6 { IpVersion::Ipv6 } else { IpVersion::Ipv4 },
            vlan_tags: self.vlan,
            timestamps: !self.no_timestamps,
            sack_blocks: self.sack,
            udp: self.udp,
        })
    }
}
