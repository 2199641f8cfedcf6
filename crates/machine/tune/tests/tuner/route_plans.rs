//! Plans for routes: what is set and why, and what is refused with its remedy.

use crate::fake::Fake;
use crate::fake_routes::{Body, metrics};
use record::{RouteChange, RouteMetric, RouteMetrics, TuneRoutePlan};
use tune::{RouteError, RouteGoal, advise_route};

fn goal(prefix: &str) -> RouteGoal {
    let (rate, rtt) = ("100mbit".parse().unwrap(), "173ms".parse().unwrap());
    RouteGoal::new(prefix.parse().unwrap(), rate, rtt)
}

fn plan(fake: &Fake, goal: &RouteGoal) -> TuneRoutePlan {
    advise_route(fake, fake, goal).unwrap()
}

fn why(plan: &TuneRoutePlan, metric: RouteMetric) -> String {
    let set = plan.settings.iter().find(|one| one.metric == metric).map(|one| one.why.clone());
    let left = || plan.left_out.iter().find(|one| one.metric == metric).map(|one| one.why.clone());
    set.or_else(left).unwrap()
}

#[test]
fn the_initial_window_fills_the_receivers_first_one() {
    let fake = Fake::with_routes();
    let long = plan(&fake, &goal("198.51.100.0/24"));
    assert_eq!(long.metrics, RouteMetrics { initcwnd: Some(45), ..RouteMetrics::default() });
    let text = why(&long, RouteMetric::Initcwnd);
    for part in ["100 Mbit/s x 173 ms = 2.16 MB", "RFC 6928", "RFC 5681", "2.2"] {
        assert!(text.contains(part), "{part}: {text}");
    }
    assert!(long.predictions[1].gain() > 1.2 && long.predictions[0].gain() == 1.0);
    // A path that holds 16 segments needs no more; one of a LAN keeps ten.
    for (rtt, segments) in [("2ms", Some(17)), ("1ms", None)] {
        let goal = RouteGoal { rtt: rtt.parse().unwrap(), ..goal("198.51.100.0/24") };
        assert_eq!(plan(&fake, &goal).metrics.initcwnd, segments, "{rtt}");
    }
    // Nothing is lowered, unless the goal names it.
    fake.routes.borrow_mut()[2] =
        Body { prefix: "203.0.113.0/24", ..Body::default() }.with(&metrics("cubic", 100));
    assert!(plan(&fake, &goal("203.0.113.0/24")).metrics.is_empty());
    let asked = RouteGoal { initcwnd: Some(20), ..goal("203.0.113.0/24") };
    assert_eq!(plan(&fake, &asked).metrics.initcwnd, Some(20));
}

#[test]
fn a_congestion_control_is_set_where_it_gains() {
    let fake = Fake::with_routes();
    let with = |loss: &str, congestion: Option<&str>| RouteGoal {
        loss: Some(loss.parse().unwrap()),
        congestion: congestion.map(str::to_owned),
        ..goal("198.51.100.0/24")
    };
    let lossy = plan(&fake, &with("0.1%", None));
    assert_eq!(lossy.metrics.congctl.as_deref(), Some("bbr"));
    assert!(lossy.predictions[0].gain() > 20.0, "{:?}", lossy.predictions);
    assert!(why(&lossy, RouteMetric::Congctl).contains("Cardwell"));
    assert_eq!(plan(&fake, &with("0%", None)).metrics.congctl, None);
    assert_eq!(plan(&fake, &with("0%", Some("reno"))).metrics.congctl.as_deref(), Some("reno"));
    assert_eq!(plan(&fake, &with("0%", Some("cubic"))).metrics.congctl, None);
    // The route's own is in force, not the host's.
    let own = RouteGoal { congestion: Some("reno".into()), ..goal("203.0.113.0/24") };
    assert_eq!(plan(&fake, &own).metrics.congctl, None);
    let error = advise_route(&fake, &fake, &with("0%", Some("htcp"))).unwrap_err().to_string();
    assert!(error.starts_with("htcp is not available; available: reno cubic bbr;"), "{error}");
    // Without BBR in the kernel.
    fake.put("net.ipv4.tcp_available_congestion_control", "reno cubic");
    let without = plan(&fake, &with("0.1%", None));
    assert!(without.metrics.congctl.is_none());
    assert!(why(&without, RouteMetric::Congctl).contains("modprobe tcp_bbr"));
}

#[test]
fn a_receive_window_that_has_no_effect_is_not_set() {
    let fake = Fake::with_routes();
    for (asked, set) in [(None, None), (Some(100), None), (Some(45), None), (Some(44), Some(44))] {
        let plan = plan(&fake, &RouteGoal { initrwnd: asked, ..goal("198.51.100.0/24") });
        assert_eq!(plan.metrics.initrwnd, set);
        assert!(!why(&plan, RouteMetric::Initrwnd).is_empty());
    }
}

#[test]
fn commands_are_those_of_ip_route() {
    let fake = Fake::with_routes();
    let copy = plan(&fake, &goal("198.51.100.0/24"));
    let device = host::interfaces::name(2);
    assert_eq!(
        copy.commands,
        [format!(
            "sudo ip route add 198.51.100.0/24 via 10.0.0.254 dev {device} metric 100 initcwnd 45"
        )]
    );
    assert_eq!(copy.other_hosts.len(), 2);
    let own = plan(&fake, &goal("203.0.113.0/24"));
    assert_eq!(
        own.commands,
        [format!(
            "sudo ip route replace 203.0.113.0/24 via 10.0.0.253 dev {device} congctl reno initcwnd \
             48"
        )]
    );
    assert!(own.notes.iter().any(|note| note.contains("MTU")), "{:?}", own.notes);
    for command in &copy.other_hosts {
        assert!(command.contains(" proto 76"), "{command}");
    }
    // Metrics come before next hops: two of struct rtnexthop, with a gateway each.
    let hop = |last: u8| [16, 0, 4, 0, 2, 0, 0, 0, 8, 0, 5, 0, 10, 0, 0, last];
    let paths = [hop(9), hop(8)].concat();
    let route = Body { prefix: "203.0.113.0/24", more: vec![(9, paths)], ..Body::default() };
    fake.routes.borrow_mut()[2] = route.route();
    let command = plan(&fake, &goal("203.0.113.0/24")).commands.remove(0);
    let [metric, hop] = ["initcwnd", "nexthop via"].map(|word| command.find(word).unwrap());
    assert!(metric < hop && command.matches("nexthop via").count() == 2, "{command}");
}

#[test]
fn what_a_prefix_means_is_said() {
    let fake = Fake::with_routes();
    let default = plan(&fake, &goal("0.0.0.0/0"));
    assert_eq!(default.change, RouteChange::Metrics);
    assert!(default.notes[0].contains("every destination"), "{:?}", default.notes);
    assert!(default.other_hosts.is_empty());
    let shorter = plan(&fake, &goal("203.0.112.0/22"));
    assert!(shorter.notes.iter().any(|note| note.contains("keep their own")), "{shorter:?}");
    assert!(shorter.notes.iter().any(|note| note.contains("VPN")), "{shorter:?}");
}

#[test]
fn routes_that_cannot_be_changed_are_refused_with_the_reason() {
    let refused = |routes: Vec<host::kernel_route::KernelRoute>, prefix: &str| {
        let fake = Fake::new();
        fake.routes.replace(routes);
        advise_route(&fake, &fake, &goal(prefix)).unwrap_err()
    };
    let default = || Body::default().route();
    let of = |prefix, kind, more| Body { prefix, kind, more, ..Body::default() }.route();
    let four = 0u32.to_ne_bytes().to_vec();
    let six = |protocol| Body {
        prefix: "2001:db8::/32",
        gateway: "fd00::1",
        protocol,
        ..Body::default()
    };
    for (routes, prefix, says) in [
        (vec![], "192.0.2.0/24", "no route leads to 192.0.2.0/24"),
        (vec![default()], "2001:db8::/32", "no route leads to"),
        (vec![of("192.0.2.0/24", 6, vec![])], "192.0.2.0/24", "of type blackhole"),
        (vec![of("192.0.2.0/24", 7, vec![])], "192.0.2.0/25", "cannot copy the route in force"),
        (vec![of("192.0.2.0/24", 1, vec![(30, four.clone())])], "192.0.2.0/24", "nhid"),
        (vec![of("192.0.2.0/24", 1, vec![(22, four.clone())])], "192.0.2.0/24", "encap"),
        (vec![of("192.0.2.0/24", 1, vec![(99, four)])], "192.0.2.0/24", "attribute 99"),
        (vec![six(9).route()], "2001:db8::/32", "proto ra"),
        (vec![six(2).route()], "2001:db8::/32", "give a longer prefix"),
        (
            vec![of("192.0.2.0/24", 1, vec![]), of("192.0.2.0/24", 1, vec![])],
            "192.0.2.0/24",
            "with the same metric",
        ),
        (
            vec![default(), Body { table: 100, ..Body::default() }.route()],
            "192.0.2.0/24",
            "routing table 100 (ip rule)",
        ),
        (
            vec![
                default(),
                Body { table: 255, kind: 2, prefix: "192.0.2.7/32", ..Body::default() }.route(),
            ],
            "192.0.2.7",
            "an address of this host",
        ),
    ] {
        let error = refused(routes, prefix).to_string();
        assert!(error.contains(says) && error.lines().count() == 1, "{says}: {error}");
    }
    // A copy of a route that routers advertise is a route like any other.
    let fake = Fake::new();
    fake.routes.replace(vec![six(9).route()]);
    assert_eq!(plan(&fake, &goal("2001:db8:1::/48")).change, RouteChange::Copy);
    assert!(matches!(refused(vec![], "192.0.2.0/24"), RouteError::NoRoute(_)));
}
