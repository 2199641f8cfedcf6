//! By which device packets leave: `/proc/net/route` and `ipv6_route` (proc(5)).

use super::Root;
use std::net::{IpAddr, Ipv6Addr};

/// The route is usable (`RTF_UP`).
const UP: u32 = 1;
/// It rejects what takes it (`RTF_REJECT`).
const REJECT: u32 = 0x200;

/// The device towards an address; without one, that of the default route.
/// Rules of policy routing are not read.
pub(super) fn device(root: &Root, to: Option<IpAddr>) -> Option<String> {
    if to.is_some_and(|to| to.is_loopback()) {
        return Some("lo".to_owned());
    }
    let v4 = || root.text("proc/net/route").ok().and_then(|text| in_v4(&text, to));
    let v6 = || root.text("proc/net/ipv6_route").ok().and_then(|text| in_v6(&text, to));
    match to {
        Some(IpAddr::V4(_)) => v4(),
        Some(IpAddr::V6(_)) => v6(),
        None => v4().or_else(v6),
    }
}

/// The devices of all default routes, in any order.
pub(crate) fn default_devices(root: &Root) -> Vec<String> {
    let text = |name: &str| root.text(name).unwrap_or_default();
    let (v4, v6) = (text("proc/net/route"), text("proc/net/ipv6_route"));
    routes_v4(&v4, None).chain(routes_v6(&v6, None)).map(|(_, _, name)| name).collect()
}

/// The matching route: the longest prefix first, then the lowest metric.
type Found = (u32, std::cmp::Reverse<u32>, String);

fn in_v4(text: &str, to: Option<IpAddr>) -> Option<String> {
    routes_v4(text, to).max().map(|(_, _, name)| name)
}

fn routes_v4(text: &str, to: Option<IpAddr>) -> impl Iterator<Item = Found> {
    let to = match to {
        Some(IpAddr::V4(to)) => Some(u32::from_ne_bytes(to.octets())),
        _ => None,
    };
    text.lines().skip(1).filter_map(move |line| -> Option<Found> {
        let fields: Vec<&str> = line.split_whitespace().collect();
        let number = |at: usize| u32::from_str_radix(fields.get(at)?, 16).ok();
        let (prefix, flags, mask) = (number(1)?, number(3)?, number(7)?);
        let metric = fields.get(6)?.parse().ok()?;
        let leads = to.map_or(mask == 0, |to| to & mask == prefix);
        let sound = flags & UP != 0 && flags & REJECT == 0;
        let name = (*fields.first()?).to_owned();
        (leads && sound).then_some((mask.count_ones(), std::cmp::Reverse(metric), name))
    })
}

fn in_v6(text: &str, to: Option<IpAddr>) -> Option<String> {
    routes_v6(text, to).max().map(|(_, _, name)| name)
}

fn routes_v6(text: &str, to: Option<IpAddr>) -> impl Iterator<Item = Found> {
    let to = match to {
        Some(IpAddr::V6(to)) => Some(u128::from(to)),
        _ => None,
    };
    text.lines().filter_map(move |line| -> Option<Found> {
        let fields: Vec<&str> = line.split_whitespace().collect();
        let prefix = u128::from_str_radix(fields.first()?, 16).ok()?;
        let length = u32::from_str_radix(fields.get(1)?, 16).ok().filter(|bits| *bits <= 128)?;
        let metric = u32::from_str_radix(fields.get(5)?, 16).ok()?;
        let flags = u32::from_str_radix(fields.get(8)?, 16).ok()?;
        let name = (*fields.get(9)?).to_owned();
        let mask = u128::MAX.checked_shl(128 - length).unwrap_or(0);
        let leads = to.map_or(length == 0, |to| to & mask == prefix & mask);
        let sound = flags & UP != 0 && flags & REJECT == 0;
        let reaches = name != "lo" || to.is_some_and(|to| Ipv6Addr::from(to).is_loopback());
        (leads && sound && reaches).then_some((length, std::cmp::Reverse(metric), name))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const V4: &str = "Iface\tDestination\tGateway\tFlags\tRefCnt\tUse\tMetric\tMask\n\
        wlan0\t00000000\t0100A8C0\t0003\t0\t0\t600\t00000000\n\
        eth0\t00000000\t010200C0\t0003\t0\t0\t100\t00000000\n\
        eth1\t0000A8C0\t00000000\t0001\t0\t0\t0\t0000FFFF\n\
        dead\t0200A8C0\t00000000\t0201\t0\t0\t0\tFFFFFFFF\n";

    const V6: &str = "\
        20010db8000000000000000000000000 20 00000000000000000000000000000000 00 00000000000000000000000000000000 00000100 00000001 00000000 00000001     eth1\n\
        00000000000000000000000000000000 00 00000000000000000000000000000000 00 00000000000000000000000000000000 00000400 00000001 00000000 00000003     eth0\n\
        00000000000000000000000000000000 00 00000000000000000000000000000000 00 00000000000000000000000000000000 ffffffff 00000001 00000000 00200200       lo\n";

    #[test]
    fn the_longest_prefix_and_then_the_least_metric() {
        let v4 = |to: Option<&str>| in_v4(V4, to.map(|to| to.parse().unwrap()));
        if cfg!(target_endian = "little") {
            assert_eq!(v4(Some("192.168.0.2")).as_deref(), Some("eth1"));
        }
        assert_eq!(v4(Some("8.8.8.8")).as_deref(), Some("eth0"));
        assert_eq!(v4(None).as_deref(), Some("eth0"));
        let v6 = |to: Option<&str>| in_v6(V6, to.map(|to| to.parse().unwrap()));
        assert_eq!(v6(Some("2001:db8::7")).as_deref(), Some("eth1"));
        assert_eq!(v6(Some("2a00::1")).as_deref(), Some("eth0"));
        assert_eq!(v6(None).as_deref(), Some("eth0"));
    }

    proptest::proptest! {
        #[test]
        fn any_table_is_read(text in "([0-9a-f]{0,33}[ \t\n]{0,2}){0,40}", to: u32) {
            let _ = in_v4(&text, Some(IpAddr::V4(to.into())));
            let _ = (in_v4(&text, None), in_v6(&text, None));
            let _ = in_v6(&text, Some(IpAddr::V6(u128::from(to).into())));
        }
    }
}
