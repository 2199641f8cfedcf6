//! The Ethernet links, or provisioned rates, that median goodputs identify.

use model::IpVersion;
use record::{AddressFamily, BaselineCondition, BaselineLink, BaselinePath};
use units::BitRate;

/// The MTU of the packets that the classes are computed for, bytes.
const MTU: u32 = 1_500;

/// The conditions whose median is the payload rate of a link. With another path MTU, headers
/// take another share, and no class applies.
#[must_use]
pub fn links(conditions: &[BaselineCondition], paths: &[BaselinePath]) -> Vec<BaselineLink> {
    let has_other_mtu = |family: AddressFamily| {
        let path = paths.iter().find(|path| path.family == family);
        path.and_then(|path| path.mtu_bytes).is_some_and(|mtu| mtu != MTU)
    };
    let link = |one: &BaselineCondition| {
        if has_other_mtu(one.condition.family) {
            return None;
        }
        let ip = match one.condition.family {
            AddressFamily::Ipv4 => IpVersion::Ipv4,
            AddressFamily::Ipv6 => IpVersion::Ipv6,
        };
        let median = BitRate::from_bps_f64(one.summary.median_bps?);
        let class = model::line_class(median, ip)?;
        Some(BaselineLink {
            condition: one.condition,
            median_bps: median,
            link_bps: class.link,
            goodput_bps: class.goodput,
            means: class.means.to_owned(),
        })
    };
    conditions.iter().filter_map(link).collect()
}

#[cfg(test)]
mod tests {
    use crate::synthetic::report;
    use record::AddressFamily::{Ipv4, Ipv6};
    use record::TestCondition;

    #[test]
    fn a_gigabit_port_is_identified_over_both_ip_versions() {
        let rate = |c: &TestCondition| match (c.family, c.streams) {
            (Ipv4, 4) => 941.0,
            (Ipv6, 4) => 928.0,
            // No class of IPv6, though one of IPv4.
            (Ipv6, _) => 941.0,
            _ => 500.0,
        };
        let found = report(&[Ipv4, Ipv6], rate, 0.0).links;
        assert_eq!(found.len(), 4, "{found:?}");
        assert!(found.iter().all(|link| link.condition.streams == 4));
        assert!(found.iter().all(|link| link.link_bps.bps() == 1_000_000_000));
        assert!(found[0].means.contains("gigabit port"), "{found:?}");
    }
}
