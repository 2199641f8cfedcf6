//! Devices and routes of a host with several devices.

use host::kernel_route::KernelRoute;
use host::netlink::{DeviceDrops, Netlink, Route};
use host::netns::NetNs;
use host::route_table;
use host::tun::Tun;
use record::{RouteMetrics, RoutePrefix};
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::process::Command;
use std::time::Duration;

/// Routes of one family that 64 hosts need, with a margin.
const MANY: u32 = 8_000;

/// Limit for both families together; usually it takes a tenth of that.
const LIMIT: Duration = Duration::from_secs(3);

/// Two devices, `a` and `b`, each with addresses of both families.
struct Host {
    netlink: Netlink,
    devices: [u32; 2],
    #[expect(dead_code, reason = "a device goes with its file")]
    files: [Tun; 2],
}

const SOURCE: [IpAddr; 2] = [
    IpAddr::V4(Ipv4Addr::new(10, 0, 0, 1)),
    IpAddr::V6(Ipv6Addr::new(0xfd00, 0, 0, 0, 0, 0, 0, 1)),
];

impl Host {
    fn new() -> Self {
        let netlink = Netlink::open().unwrap();
        let files = ["a", "b"].map(|name| Tun::create(name).unwrap());
        let devices = ["a", "b"].map(|name| netlink.index(name).unwrap());
        for device in devices {
            netlink.bring_up(device, Some(1400), Some(1000)).unwrap();
            for address in SOURCE {
                netlink.add_address(device, address).unwrap();
            }
        }
        Host { netlink, devices, files }
    }

    fn route(&self, device: usize, prefix: &str, length: u8) -> Route<'static> {
        let prefix: IpAddr = prefix.parse().unwrap();
        let source = SOURCE.into_iter().find(|source| source.is_ipv4() == prefix.is_ipv4());
        Route { device: self.devices[device], prefix, length, source, congestion: Some("reno") }
    }
}

fn ip(arguments: &[&str]) -> String {
    let output = Command::new("ip").args(arguments).output().unwrap();
    String::from_utf8(output.stdout).unwrap()
}

/// Whether `ip` is installed, whose output we compare with.
pub(crate) fn has_ip() -> bool {
    Command::new("ip").arg("-V").output().is_ok()
}

/// Runs on a host in its own namespace.
pub(crate) fn run() -> i32 {
    NetNs::create().unwrap().run(routes).unwrap();
    NetNs::create().unwrap().run(many).unwrap();
    NetNs::create().unwrap().run(metrics_and_back).unwrap();
    0
}

fn routes() {
    let host = Host::new();
    let routes = [
        host.route(0, "10.0.1.1", 32),
        host.route(1, "10.0.2.0", 24),
        host.route(1, "0.0.0.0", 0),
        host.route(0, "fd00::1:1", 128),
        host.route(1, "::", 0),
        Route { source: None, congestion: None, ..host.route(0, "10.0.3.1", 32) },
    ];
    host.netlink.add_routes(routes).unwrap();
    let (v4, v6) = (ip(&["-4", "route"]), ip(&["-6", "route"]));
    for line in [
        "10.0.1.1 dev a proto static scope link src 10.0.0.1 congctl reno",
        "10.0.2.0/24 dev b proto static scope link src 10.0.0.1 congctl reno",
        "default dev b proto static scope link src 10.0.0.1 congctl reno",
        "10.0.3.1 dev a proto static scope link",
    ] {
        assert!(v4.lines().any(|shown| shown.trim() == line), "{line}\n{v4}");
    }
    for line in
        ["fd00::1:1 dev a proto static src fd00::1", "default dev b proto static src fd00::1"]
    {
        assert!(v6.lines().any(|shown| shown.starts_with(line)), "{line}\n{v6}");
    }
    assert!(ip(&["route", "get", "192.0.2.1"]).contains("dev b src 10.0.0.1"));

    let drops = host.netlink.drops(&["b", "lo", "a"]).unwrap();
    let names = || [0, 1].map(|_| Tun::create("lab%d").unwrap()).map(|tun| tun.name().unwrap());
    // Both exist at once, and the numbers are free again afterwards.
    assert_eq!([names(), names()], [["lab0", "lab1"]; 2]);
    assert_eq!(drops, [DeviceDrops::default(); 3]);
    assert_eq!(host.netlink.drops(&["none"]).unwrap_err().kind(), io::ErrorKind::NotFound);
    assert_eq!(host.netlink.index("none").unwrap_err().kind(), io::ErrorKind::NotFound);
}

fn many() {
    let host = Host::new();
    let address = |number: u32| IpAddr::V4(Ipv4Addr::from_bits(0x0a01_0000 + number));
    let to = |prefix: IpAddr| Route { prefix, ..host.route(0, "10.1.0.0", 32) };
    let before = host::clock::now();
    host.netlink.add_routes((0..MANY).map(|number| to(address(number)))).unwrap();
    let first = before.elapsed();
    let six = |number| IpAddr::V6(Ipv6Addr::from_bits((0xfd01 << 112) + u128::from(number)));
    let routes = (0..MANY).map(|number| Route { prefix: six(number), ..host.route(1, "::", 128) });
    host.netlink.add_routes(routes).unwrap();
    let took = before.elapsed();
    println!("{MANY} routes in {first:?}, and as many of IPv6 in {:?}", took - first);
    assert!(took < LIMIT, "{took:?}");
    assert_eq!(ip(&["-4", "route"]).lines().count(), usize::try_from(MANY).unwrap());

    // An error names the route, at any position in a batch, and ignores later ones.
    let refusal = |routes: Vec<Route<'static>>| {
        let error = host.netlink.add_routes(routes).unwrap_err();
        (error.kind(), error.to_string())
    };
    for place in [0, 1, 63, 64, 99] {
        let mut routes: Vec<_> =
            (0..100).map(|n| to(address(0x1_0000 * (place + 1) + n))).collect();
        routes[place as usize] = to(address(5));
        let (kind, text) = refusal(routes);
        assert_eq!(kind, io::ErrorKind::AlreadyExists, "{text}");
        assert!(text.starts_with("the route to 10.1.0.5/32: "), "{text}");
    }
    // All of them fail.
    let (kind, text) = refusal((0..1000).map(|number| to(address(number))).collect());
    assert_eq!(kind, io::ErrorKind::AlreadyExists);
    assert!(text.starts_with("the route to 10.1.0.0/32: "), "{text}");
    // Requests and acknowledgements are still in step.
    host.netlink.add_routes([host.route(1, "10.9.9.9", 32)]).unwrap();
    for wrong in [
        Route { congestion: Some("nosuchalgorithm"), ..host.route(1, "10.9.9.8", 32) },
        Route { source: Some(address(7)), ..host.route(1, "10.9.9.7", 32) },
    ] {
        let (kind, text) = refusal(vec![wrong]);
        assert_eq!(kind, io::ErrorKind::InvalidInput, "{text}");
    }
}

/// Routes of every kind whose metrics can be changed, and that come back to the byte.
const CHANGEABLE: [&str; 13] = [
    "default via 10.0.0.9 dev a onlink",
    "default via 10.0.0.8 dev b onlink metric 600 proto dhcp",
    "192.0.2.0/24 via 10.0.0.9 dev a onlink src 10.0.0.1 metric 50 mtu lock 1400 initcwnd 20 \
     rto_min 200ms features ecn quickack 1 congctl lock reno",
    "192.0.2.0/24 via 10.0.0.8 dev b onlink metric 60",
    "198.51.100.0/24 dev a scope link realms 7",
    "203.0.113.0/24 nexthop via 10.0.0.9 dev a weight 3 onlink nexthop via 10.0.0.8 dev b onlink",
    "203.0.114.0/24 via inet6 fd00::9 dev a onlink",
    "203.0.115.0/24 dev b proto kernel scope link initrwnd 14",
    "default via fd00::9 dev a onlink metric 100 pref high",
    "2001:db8::/32 via fd00::9 dev a onlink proto static initcwnd 12 congctl reno",
    "2001:db8::/32 via fd00::8 dev b onlink metric 2000",
    "2001:db9::/32 dev b src fd00::1 mtu 1300",
    "2001:dbb::1 dev a metric 7",
];

/// Routes that are refused.
const REFUSED: [(&str, &str); 7] = [
    (
        "2001:dba::/32 nexthop via fd00::9 dev a onlink nexthop via fd00::8 dev b onlink weight 4",
        "several next hops",
    ),
    ("blackhole 100.64.0.0/24", "type blackhole"),
    ("unreachable 2001:dbc::/32", "type unreachable"),
    ("100.64.1.0/24 dev a tos 0x10", "TOS"),
    ("2001:dbd::/32 via fd00::9 dev a onlink expires 500", "expires"),
    ("2001:dbe::/32 dev a proto ra", "proto ra"),
    ("2001:dbf::/32 dev a proto kernel", "proto kernel"),
];

fn add(route: &str) {
    let words: Vec<&str> = route.split_whitespace().collect();
    let six = if route.contains("::") && !route.contains("inet6") { "-6" } else { "-4" };
    let output = Command::new("ip").args([six, "route", "add"]).args(words).output().unwrap();
    assert!(output.status.success(), "{route}: {}", String::from_utf8_lossy(&output.stderr));
}

/// Both tables as `ip` shows them, without what counts down, and every byte of IPv4's, whose routes
/// have no counters.
fn tables() -> (String, Vec<Vec<u8>>) {
    let four = CHANGEABLE.map(prefix_of).into_iter().filter(RoutePrefix::is_ipv4);
    let bodies = four.flat_map(to).map(|route| route.body()).collect();
    let text = ip(&["-d", "-4", "route", "show", "table", "all"])
        + &ip(&["-d", "-6", "route", "show", "table", "all"]);
    let words = |line: &str| {
        let mut words: Vec<&str> = line.split(' ').collect();
        if let Some(at) = words.iter().position(|word| *word == "expires") {
            words.remove(at + 1);
        }
        words.join(" ")
    };
    (text.lines().map(words).collect::<Vec<_>>().join("\n"), bodies)
}

fn prefix_of(route: &str) -> RoutePrefix {
    let six = route.contains("::") && !route.contains("inet6");
    let words = || route.split_whitespace();
    let prefix = words().find(|word| word.contains(['/', ':'])).unwrap_or("");
    match (words().next(), six) {
        (Some("default"), true) => "::/0".parse().unwrap(),
        (Some("default"), false) => "0.0.0.0/0".parse().unwrap(),
        _ => prefix.parse().unwrap(),
    }
}

fn to(prefix: RoutePrefix) -> Vec<KernelRoute> {
    let all = route_table::around(prefix).unwrap().covering;
    all.into_iter().filter(|one| one.prefix() == prefix).collect()
}

/// IPv6 joins another program's route to a copy with the same metric: a deletion leaves it.
fn joined_by_another_program() {
    let prefix = "2001:db8:ffff::/48".parse().unwrap();
    let origins = to("2001:db8::/32".parse().unwrap());
    let origin = origins.iter().find(|one| one.priority() == 2000).unwrap();
    route_table::add(&origin.copied_to(prefix)).unwrap();
    let copy = to(prefix).remove(0);
    let metric = origin.priority().to_string();
    let other = ["via", "fd00::9", "dev", "a", "onlink", "metric", &metric, "proto", "99"];
    ip(&[&["-6", "route", "append", "2001:db8:ffff::/48"][..], &other].concat());
    let both = to(prefix).remove(0);
    assert!(both.not_copyable().unwrap().to_string().contains("several next hops"));
    route_table::delete(&copy).unwrap();
    let left = to(prefix);
    assert!(left.len() == 1 && !left[0].is_own() && left[0].not_copyable().is_none(), "{left:?}");
    ip(&["-6", "route", "del", "2001:db8:ffff::/48"]);
}

fn metrics_and_back() {
    let host = Host::new();
    CHANGEABLE.iter().for_each(|route| add(route));
    REFUSED.iter().for_each(|(route, _)| add(route));
    route_table::may_change().unwrap();
    let before = tables();
    let tuned =
        RouteMetrics { congctl: Some("cubic".to_owned()), initcwnd: Some(44), initrwnd: Some(33) };
    let mut changed = 0;
    for route in CHANGEABLE.map(prefix_of).iter().flat_map(|prefix| to(*prefix)) {
        assert_eq!(route.unsupported(), None, "{route:?}");
        let wanted = route.with_tcp_metrics(&tuned);
        route_table::replace(&wanted).unwrap();
        let now = to(route.prefix());
        let now = now.iter().find(|one| one.priority() == route.priority()).unwrap();
        assert!(now.is_same_request(&wanted) && now.is_same_path(&route), "{now:?} {wanted:?}");
        assert_ne!(tables(), before);
        route_table::replace(&now.with_tcp_metrics(&route.tcp_metrics())).unwrap();
        assert_eq!(tables(), before, "{}", route.path_words());
        // A copy, which alone may be deleted.
        let longer = if route.prefix().is_ipv4() { "192.88.99.0/24" } else { "2001:db8:ffff::/48" };
        let copy = route.copied_to(longer.parse().unwrap()).with_tcp_metrics(&tuned);
        route_table::add(&copy).unwrap();
        let read = to(copy.prefix());
        let Some(read) = read.first().filter(|one| one.is_own() && one.is_same_path(&route)) else {
            panic!("{copy:?} {read:?}");
        };
        assert_eq!(read.tcp_metrics(), tuned);
        assert_eq!(route_table::add(&copy).unwrap_err().kind(), io::ErrorKind::AlreadyExists);
        assert_eq!(route_table::delete(&route).unwrap_err().kind(), io::ErrorKind::NotFound);
        route_table::delete(read).unwrap();
        assert_eq!(tables(), before, "{}", route.path_words());
        changed += 1;
    }
    assert!(changed > CHANGEABLE.len(), "routes to a prefix count once for each mention");
    for (route, says) in REFUSED {
        let all = to(prefix_of(route));
        let why = all[0].unsupported().unwrap().to_string();
        assert!(all.len() == 1 && why.contains(says), "{route}: {why}");
    }
    joined_by_another_program();
    assert_eq!(tables(), before);
    let gone =
        to("2001:dbb::1".parse().unwrap()).remove(0).copied_to("2001:dbc:1::/48".parse().unwrap());
    assert_eq!(route_table::replace(&gone).unwrap_err().kind(), io::ErrorKind::NotFound);
    let lookup = |address: &str| route_table::lookup(address.parse().unwrap()).unwrap();
    assert_eq!(lookup("203.0.115.7").prefix().to_string(), "203.0.115.0/24");
    assert_eq!((lookup("2001:db9::1").table(), lookup("10.0.0.1").is_local()), (254, true));
    drop(host);
}
