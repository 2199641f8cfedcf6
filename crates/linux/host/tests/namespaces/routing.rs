//! Devices and routes of a host with several devices.

use host::netlink::{DeviceDrops, Netlink, Route};
use host::netns::NetNs;
use host::tun::Tun;
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
