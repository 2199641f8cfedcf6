//! The Ethernet link or the provisioned rate that a measured goodput identifies: a bulk
//! transfer that nothing else limits arrives at exactly the payload rate of the slowest
//! link, 94.1 Mbit/s over one of 100 Mbit/s.

use crate::payload::{IpVersion, Payload};
use units::BitRate;

/// Rates of Ethernet links and of the plans sold over them, bit/s, with what usually is
/// that slow.
pub const LINE_RATES: [(BitRate, &str); 6] = [
    (
        BitRate::from_bps(10_000_000),
        "a port or adapter that fell back to 10 Mbit/s, or a plan of that rate",
    ),
    (
        BitRate::from_bps(100_000_000),
        "an adapter or dongle with Fast Ethernet, a cable with only two connected pairs, or a plan \
         of that rate",
    ),
    (
        BitRate::from_bps(1_000_000_000),
        "a gigabit port: adapter, switch or gateway. If the plan is faster, look for the 1 Gbit/s \
         port in between",
    ),
    (BitRate::from_bps(2_500_000_000), "2.5GBASE-T, or a plan of that rate"),
    (BitRate::from_bps(5_000_000_000), "5GBASE-T, or a plan of that rate"),
    (BitRate::from_bps(10_000_000_000), "10 Gbit/s Ethernet, or a plan of that rate"),
];

/// How far below a link's payload rate a goodput may be and still identify it, share: the
/// next class of the same IP version is 60 % away, the same link over IPv6 1.4 %.
const BELOW: f64 = 0.012;

/// How far above, share: rates of an interval vary, and a transfer's first bytes may wait
/// in buffers that are counted.
const ABOVE: f64 = 0.005;

/// A link that a goodput identifies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LineClass {
    /// The link's rate, or the provisioned one.
    pub link: BitRate,
    /// TCP's payload of it: full frames of 1500 bytes with timestamps, no SACK blocks.
    pub goodput: BitRate,
    /// The device or plan that usually has this rate.
    pub means: &'static str,
}

/// The class of a link of `link`; `None` if it is none of [`LINE_RATES`].
fn class(link: BitRate, means: &'static str, ip: IpVersion) -> Option<LineClass> {
    let goodput = Payload::on_ethernet(1_500, ip).goodput(link)?;
    Some(LineClass { link, goodput, means })
}

/// The link that a goodput over this IP version identifies, if any.
#[must_use]
pub fn line_class(goodput: BitRate, ip: IpVersion) -> Option<LineClass> {
    LINE_RATES.iter().filter_map(|(link, means)| class(*link, means, ip)).find(|class| {
        let share = goodput.as_f64() / class.goodput.as_f64();
        (1.0 - BELOW..=1.0 + ABOVE).contains(&share)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mbit(rate: f64) -> BitRate {
        BitRate::from_bps_f64(rate * 1e6)
    }

    #[test]
    fn the_classes_follow_from_header_sizes() {
        // Preamble 8, header 14, FCS 4, gap 12; IPv4 20 or IPv6 40, TCP 20, timestamps 12.
        let wire = 8.0 + 14.0 + 1_500.0 + 4.0 + 12.0;
        for (link, ipv4, ipv6) in
            [(100.0, 94.1, 92.8), (1_000.0, 941.5, 928.5), (2_500.0, 2_353.7, 2_321.2)]
        {
            for (ip, header, published) in
                [(IpVersion::Ipv4, 20.0, ipv4), (IpVersion::Ipv6, 40.0, ipv6)]
            {
                let computed: f64 = link * (1_500.0 - header - 20.0 - 12.0) / wire;
                assert!((computed - published).abs() < 0.06, "{computed} {published}");
                let found = line_class(mbit(published), ip).unwrap();
                assert_eq!(found.link, mbit(link));
                assert!((found.goodput.as_f64() / 1e6 - computed).abs() < 1e-3);
            }
        }
    }

    #[test]
    fn figures_of_the_guide_on_switches() {
        // The smallest frame: 64 bytes, preamble 8, gap 12; the largest 1538.
        let per_gigabit: f64 = 1e9 / ((64.0 + 8.0 + 12.0) * 8.0);
        assert!((per_gigabit / 1e6 - 1.488).abs() < 5e-4);
        assert!((8.0 * 2.5 * per_gigabit / 1e6 - 29.8).abs() < 0.05);
        assert!((1_538.0 * 8.0 / 1e9 * 1e6 - 12.3_f64).abs() < 0.05);
    }

    #[test]
    fn the_edges_of_a_class() {
        let is = |rate: f64| line_class(mbit(rate), IpVersion::Ipv4).is_some();
        // 941.482 Mbit/s less 1.2 %, and 0.5 % more.
        assert!(!is(930.1) && is(930.3) && is(946.1) && !is(946.3));
        assert!(!is(0.0) && !is(500.0) && !is(1e12));
        assert_eq!(line_class(BitRate::MAX, IpVersion::Ipv6), None);
    }
}
