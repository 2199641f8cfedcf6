use super::*;
use proptest::prelude::*;

/// An IPv4 route of table main, as the kernel sends it.
fn body(length: u8, attributes: &[Vec<u8>]) -> Vec<u8> {
    let head = [libc::AF_INET as u8, length, 0, 0, 254, 4, 0, 1, 16, 0, 0, 0];
    [&head[..], &attributes.concat()].concat()
}

fn destination(octets: [u8; 4]) -> Vec<u8> {
    attribute(libc::RTA_DST, &octets)
}

fn number(kind: u16, value: u32) -> Vec<u8> {
    attribute(kind, &value.to_ne_bytes())
}

fn hop(flags: u8, device: u32, more: &[Vec<u8>]) -> Vec<u8> {
    let more = more.concat();
    let length = u16::try_from(8 + more.len()).unwrap();
    [&length.to_ne_bytes()[..], &[flags, 2], &device.to_ne_bytes(), &more].concat()
}

fn metrics(congctl: Option<&str>, initcwnd: Option<u32>) -> RouteMetrics {
    RouteMetrics { congctl: congctl.map(str::to_owned), initcwnd, initrwnd: None }
}

#[test]
fn only_the_three_metrics_change() {
    let lock = number(1, 1 << 2);
    let others = [lock, number(RTAX_MTU, 1400), number(RTAX_INITCWND, 20), number(13, 200)];
    let attributes = [
        number(libc::RTA_TABLE, 254),
        destination([192, 0, 2, 0]),
        nest(libc::RTA_METRICS, &others),
        number(libc::RTA_OIF, 2),
    ];
    let route = KernelRoute::parse(&body(24, &attributes)).unwrap();
    assert_eq!(route.tcp_metrics(), metrics(None, Some(20)));
    assert_eq!((route.mtu(), route.has_other_metrics()), (Some(1400), true));
    let tuned = route.with_tcp_metrics(&metrics(Some("bbr"), Some(44)));
    assert_eq!(tuned.tcp_metrics(), metrics(Some("bbr"), Some(44)));
    assert!(tuned.mtu() == Some(1400) && tuned.is_same_path(&route));
    assert!(!tuned.is_same_request(&route));
    let back = tuned.with_tcp_metrics(&route.tcp_metrics());
    assert_eq!((back.body(), back.is_same_request(&route)), (route.body(), true));
    // A route without metrics gets the attribute, and loses it again.
    let bare = KernelRoute::parse(&body(0, &[number(libc::RTA_OIF, 2)])).unwrap();
    assert!(bare.prefix().is_default() && !bare.has_other_metrics());
    let tuned = bare.with_tcp_metrics(&metrics(Some("cubic"), None));
    assert_eq!(tuned.with_tcp_metrics(&RouteMetrics::default()).body(), bare.body());
}

#[test]
fn a_copy_is_marked_and_takes_the_same_way() {
    let gateway = attribute(libc::RTA_GATEWAY, &[10, 0, 0, 254]);
    let priority = number(libc::RTA_PRIORITY, 100);
    let default = KernelRoute::parse(&body(0, &[gateway, number(libc::RTA_OIF, 2), priority]));
    let default = default.unwrap();
    let copy = default.copied_to("192.0.2.0/24".parse().unwrap());
    assert!(copy.is_own() && !default.is_own() && copy.is_same_path(&default));
    let read = KernelRoute::parse(&copy.body()).unwrap();
    assert_eq!((read.prefix().to_string().as_str(), read.priority()), ("192.0.2.0/24", 100));
    // A deletion names the destination and Longhaul's protocol, and no next hop.
    let (head, keys) = default.copied_to("192.0.2.0/24".parse().unwrap()).deletion();
    assert_eq!((head[5], keys.len()), (ROUTE_PROTOCOL, 2));
    let (head, _) = default.deletion();
    assert_eq!(head[5], ROUTE_PROTOCOL, "also for a route of others");
}

#[test]
fn the_status_of_next_hops_is_not_requested() {
    let gateway = |last| attribute(libc::RTA_GATEWAY, &[10, 0, 0, last]);
    let hops = |flags| [hop(flags, 2, &[gateway(1)]), hop(4, 3, &[gateway(2)])].concat();
    let route = |flags| {
        let multipath = attribute(libc::RTA_MULTIPATH, &hops(flags));
        KernelRoute::parse(&body(24, &[destination([192, 0, 2, 0]), multipath])).unwrap()
    };
    let (down, up) = (route(16), route(0));
    assert!(down.is_same_path(&up) && down.is_same_request(&up) && down.unsupported().is_none());
    let (head, attributes) = down.request();
    assert_eq!(head[8..], [0; 4]);
    assert_eq!(attributes[1], attribute(libc::RTA_MULTIPATH, &hops(0)));
    let words = format!("nexthop via 10.0.0.2 dev {} weight 3 onlink", crate::interfaces::name(3));
    assert!(up.path_words().ends_with(&words), "{}", up.path_words());
    assert!(route(17).is_usable(), "one of two is down");
    // An encapsulation hides in a next hop.
    let hidden = attribute(libc::RTA_MULTIPATH, &hop(0, 2, &[number(22, 1)]));
    let route = KernelRoute::parse(&body(0, &[hidden])).unwrap();
    assert_eq!(route.not_copyable(), Some(Unsupported::Encapsulated));
}

#[test]
fn what_is_not_whole_is_no_route() {
    let whole = body(24, &[destination([192, 0, 2, 0]), number(libc::RTA_OIF, 2)]);
    assert!(KernelRoute::parse(&whole).is_some());
    for length in 0..whole.len() {
        // Without its last attribute it is another route.
        let cut = KernelRoute::parse(&whole[..length]);
        assert!(length == 20 || cut.is_none(), "{length}: {cut:?}");
    }
    let host_bits = body(24, &[destination([192, 0, 2, 1])]);
    let other_family = body(24, &[attribute(libc::RTA_DST, &[0; 16])]);
    for bad in [host_bits, other_family, body(33, &[])] {
        assert_eq!(KernelRoute::parse(&bad), None);
    }
}

proptest! {
    #[test]
    fn any_bytes_are_read_or_refused(bytes: Vec<u8>, congctl in "[a-z]{1,15}", initcwnd: u32) {
        let bodies = [bytes.clone(), [&body(0, &[])[..], &bytes].concat()];
        for route in bodies.iter().filter_map(|body| KernelRoute::parse(body)) {
            let _ = (route.unsupported(), route.path_words(), route.is_usable());
            let tuned = route.with_tcp_metrics(&metrics(Some(&congctl), Some(initcwnd)));
            let _ = (tuned.request(), tuned.deletion());
            prop_assert!(tuned.is_same_path(&route));
        }
    }
}
