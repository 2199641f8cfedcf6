//! The choice of the driver that carries a lab's packets.

use link::{Fifo, LinkConfig, Loss, ProtocolFilter, Queue, Rate};
use record::PathDriver;
use topology::{PathSpec, Plan};
use units::{BitRate, LossRatio};

/// The driver of a lab, and why it has that one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ChosenDriver {
    pub(crate) driver: PathDriver,
    pub(crate) reason: String,
}

impl ChosenDriver {
    pub(crate) fn tun(reason: impl Into<String>) -> Self {
        ChosenDriver { driver: PathDriver::Tun, reason: reason.into() }
    }

    pub(crate) fn nfqueue() -> Self {
        let reason = "every setting can be applied to packets held in the kernel";
        ChosenDriver { driver: PathDriver::Nfqueue, reason: reason.to_owned() }
    }
}

/// Lowest rate at which trains may leave whole: below, the spacing of single packets matters to
/// congestion control.
const LOWEST_RATE: BitRate = BitRate::from_bps(1_000_000_000);

/// Headers of a train, and a margin: the device's limit bounds its payload.
const TRAIN_HEADERS: u64 = 320;

/// The kernel's default limit of a train, bytes.
const LONGEST_TRAIN: u64 = 65_536;

/// Why the links of a plan need TUN, now or after a change that the plan has; `None` if they do
/// not.
pub(crate) fn needs_tun(plan: &Plan) -> Option<String> {
    (0..plan.links.len()).find_map(|link| {
        let reason = plan.paths_of(link).find_map(path_needs_tun)?;
        let name = &plan.links[link].name;
        Some(if plan.links.len() > 1 { format!("link {name}: {reason}") } else { reason })
    })
}

/// The same of one path.
pub(crate) fn path_needs_tun(path: &PathSpec) -> Option<String> {
    let mut states = path.states().flat_map(|(_, directions)| directions);
    states.find_map(|direction| setting_needs_tun(direction.config()))
}

fn setting_needs_tun(config: &LinkConfig) -> Option<String> {
    match config.rate {
        Rate::Constant(rate) if rate >= LOWEST_RATE => {}
        Rate::Constant(rate) => return Some(format!("at {rate}, packets are spaced one by one")),
        Rate::Unlimited => return Some("the rate is unlimited".to_owned()),
        Rate::TokenBucket(_) => return Some("the rate is that of a token bucket".to_owned()),
        Rate::Trace(_) => return Some("the rate is that of a trace".to_owned()),
    }
    let effect = if config.loss != Loss::None || config.bursts.is_some() {
        "loss"
    } else if config.jitter.is_some() {
        "jitter"
    } else if config.blackhole.is_some() {
        "outages"
    } else if config.reorder.is_some() {
        "reordering"
    } else if config.duplicate != LossRatio::NONE {
        "duplicates"
    } else if config.corrupt != LossRatio::NONE {
        "corruption"
    } else if config.window_scale.is_some() {
        "a rewritten window scale"
    } else if config.mtu.is_some() {
        "an MTU of one direction"
    } else if config.policer.is_some() || config.filters != [ProtocolFilter::NONE; 2] {
        "a policer or filter"
    } else if !matches!(config.queue, Queue::DropTail(Fifo { mark: None, .. })) {
        "a queue other than drop-tail"
    } else {
        return None;
    };
    Some(format!("{effect} acts on single packets"))
}

/// The longest train that a host may send into a link of these paths in turn, so that at none of
/// their rates a train takes more than [`link::COALESCE`]; `None`: any.
pub(crate) fn longest_train<'a>(paths: impl Iterator<Item = &'a PathSpec>) -> Option<u32> {
    let (mut slowest, mut mtu) = (None, 0);
    for path in paths {
        let directions = path.states().flat_map(|(_, directions)| directions);
        slowest = directions.filter_map(topology::PathDirection::rate).chain(slowest).min();
        mtu = path.mtu();
    }
    let slowest = slowest?;
    let least = 2 * u64::from(mtu) + TRAIN_HEADERS;
    let bytes = slowest.bytes_in(link::COALESCE).bytes() + TRAIN_HEADERS;
    let bytes = bytes.max(least);
    (bytes < LONGEST_TRAIN).then(|| u32::try_from(bytes).unwrap_or(u32::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn path(spec: &str) -> PathSpec {
        spec.parse().unwrap_or_else(|error| panic!("{spec}: {error}"))
    }

    #[test]
    fn only_settings_that_spare_single_packets_are_held() {
        for held in ["rate=1gbit,rtt=1ms", "rate=10gbit,rtt=100ms,queue=500p,overhead=38"] {
            assert_eq!(path_needs_tun(&path(held)), None, "{held}");
        }
        for (spec, why) in [
            ("rate=999mbit,rtt=1ms", "spaced one by one"),
            ("rate=10gbit,down.rate=100mbit,rtt=1ms", "spaced one by one"),
            ("rate=unlimited,rtt=1ms", "unlimited"),
            ("rate=1gbit,rtt=1ms,loss=1%", "loss"),
            ("rate=1gbit,rtt=10ms,jitter=1ms", "jitter"),
            ("rate=1gbit,rtt=1ms,duplicate=1%", "duplicates"),
            ("rate=1gbit,rtt=1ms,corrupt=1%", "corruption"),
            ("rate=1gbit,rtt=1ms,queue=fq_codel", "drop-tail"),
            ("rate=1gbit,rtt=1ms,up.mtu=1400", "MTU"),
        ] {
            let reason = path_needs_tun(&path(spec)).unwrap_or_default();
            assert!(reason.contains(why), "{spec}: {reason}");
        }
    }

    #[test]
    fn a_train_lasts_no_longer_than_packets_are_merged() {
        let longest = |specs: &[&str]| {
            let paths: Vec<_> = specs.iter().map(|spec| path(spec)).collect();
            longest_train(paths.iter())
        };
        assert_eq!(longest(&["rate=10gbit,rtt=1ms"]), None);
        // 60 µs at 2 Gbit/s, and the headers.
        assert_eq!(longest(&["rate=2gbit,rtt=1ms"]), Some(15_320));
        assert_eq!(longest(&["rate=1gbit,rtt=1ms,mtu=9000"]), Some(18_320));
        // After a change of the plan.
        assert_eq!(longest(&["rate=10gbit,rtt=1ms", "rate=2gbit,rtt=1ms"]), Some(15_320));
    }
}
