//! `calc overhead`.

use clap::Args;
use model::IpVersion;
use model::calc::{self, CalcError, OverheadQuestion, Sheet};
use units::BitRate;

/// Compute the payload of a line: what Ethernet, IP, TCP or UDP spend
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct OverheadArgs {
    /// Rate of the line, as Ethernet names it: 1gbit, 2.5gbit
    #[arg(long)]
    rate: BitRate,
    /// Largest IP packet, in bytes: 9000 on jumbo frames
    #[arg(long, value_name = "BYTES", default_value_t = 1500)]
    mtu: u32,
    /// Count IPv6's header instead of IPv4's
    #[arg(long, short = '6')]
    ipv6: bool,
    /// VLAN tags on each frame, 0 to 2
    #[arg(long, value_name = "N", default_value_t = 0)]
    vlan: u32,
    /// Count no TCP timestamps
    #[arg(long)]
    no_timestamps: bool,
    /// SACK blocks in every segment, 0 to 3; data of a one-way transfer has none
    #[arg(long, value_name = "N", default_value_t = 0, conflicts_with = "udp")]
    sack: u32,
    /// Count UDP instead of TCP
    #[arg(long, short, conflicts_with = "no_timestamps")]
    udp: bool,
}

const EXAMPLES: &str = "\
Examples:
  longhaul calc overhead --rate 2.5gbit                  with the cases that people quote
  longhaul calc overhead --rate 2.5gbit --ipv6 --sack 3
  longhaul calc overhead --rate 10gbit --mtu 9000 --vlan 1
  longhaul calc overhead --rate 1gbit --udp --json";

impl OverheadArgs {
    pub(super) fn sheet(&self) -> Result<Sheet, CalcError> {
        calc::overhead(&OverheadQuestion {
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
