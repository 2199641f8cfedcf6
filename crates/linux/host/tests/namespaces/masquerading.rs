//! Source addresses of masquerading: packets enter a router on one device and
//! are examined when they leave another.

use host::nat::Masquerade;
use host::netlink::{Netlink, Route};
use host::netns::NetNs;
use host::tun::{MAX_READ, Tun, VNET_HEADER};
use host::{sysctl, wait};
use std::io::{self, IoSlice};
use std::net::IpAddr;
use std::os::fd::AsFd;

use crate::role::TIMEOUT;

/// A router between a lab behind `inner` and a network behind `outer`.
struct Router {
    inner: Tun,
    outer: Tun,
}

fn address(text: &str) -> IpAddr {
    text.parse().unwrap()
}

impl Router {
    fn new() -> Self {
        let netlink = Netlink::open().unwrap();
        sysctl::write("net.ipv4.ip_forward", "1").unwrap();
        sysctl::write("net.ipv6.conf.all.forwarding", "1").unwrap();
        let device = |name, addresses: [&str; 2], prefixes: [(&str, u8); 2]| {
            let tun = Tun::create(name).unwrap();
            let device = netlink.index(name).unwrap();
            netlink.bring_up(device, None, None).unwrap();
            for own in addresses {
                netlink.add_address(device, address(own)).unwrap();
            }
            let routes = prefixes.map(|(prefix, length)| Route {
                device,
                prefix: address(prefix),
                length,
                source: None,
                congestion: None,
            });
            netlink.add_routes(routes).unwrap();
            tun
        };
        let lab = device("inner", ["10.0.0.1", "fd00::1"], [("10.0.0.0", 24), ("fd00::", 64)]);
        let network = device("outer", ["192.0.2.1", "2001:db8::1"], [("0.0.0.0", 0), ("::", 0)]);
        Router { inner: lab, outer: network }
    }

    /// Source address of a datagram of the lab once it is outside. Different `port`s
    /// are different flows.
    fn source_outside(&self, from: &str, to: &str, port: u16) -> IpAddr {
        let packet = datagram(address(from), address(to), port);
        self.inner.send(&[IoSlice::new(&[0; VNET_HEADER]), IoSlice::new(&packet)]).unwrap();
        let mut buffer = vec![0; MAX_READ];
        loop {
            let ready = wait::readable([self.outer.as_fd()], Some(TIMEOUT)).unwrap();
            assert_eq!(ready, [true], "nothing comes out for {from}");
            let Ok(length) = self.outer.receive(&mut buffer) else { continue };
            let packet = &buffer[VNET_HEADER..length];
            // The kernel sends packets of its own there, too.
            if packet.ends_with(&port.to_be_bytes()) {
                return source(packet);
            }
        }
    }
}

fn source(packet: &[u8]) -> IpAddr {
    if packet[0] >> 4 == 4 {
        IpAddr::from(<[u8; 4]>::try_from(&packet[12..16]).unwrap())
    } else {
        IpAddr::from(<[u8; 16]>::try_from(&packet[8..24]).unwrap())
    }
}

/// A UDP datagram whose payload is its port.
fn datagram(from: IpAddr, to: IpAddr, port: u16) -> Vec<u8> {
    let mut udp = [port.to_be_bytes(), [0, 9], [0, 10], [0, 0], port.to_be_bytes()].concat();
    let octets = |address| match address {
        IpAddr::V4(address) => address.octets().to_vec(),
        IpAddr::V6(address) => address.octets().to_vec(),
    };
    let addresses = [octets(from), octets(to)].concat();
    let pseudo = [&addresses[..], &[0, 17, 0, 10]].concat();
    let sum = checksum(&[&pseudo[..], &udp].concat());
    udp[6..8].copy_from_slice(&sum);
    let mut header = if from.is_ipv4() {
        [&[0x45, 0, 0, 30, 0, 0, 0, 0, 64, 17, 0, 0][..], &addresses].concat()
    } else {
        [&[0x60, 0, 0, 0, 0, 10, 17, 64][..], &addresses].concat()
    };
    if from.is_ipv4() {
        let sum = checksum(&header);
        header[10..12].copy_from_slice(&sum);
    }
    [header, udp].concat()
}

/// RFC 1071
fn checksum(bytes: &[u8]) -> [u8; 2] {
    let words = bytes.chunks(2).map(|pair| u32::from(u16::from_be_bytes([pair[0], pair[1]])));
    let sum: u32 = words.sum();
    let folded = (sum >> 16) + (sum & 0xffff);
    (!u16::try_from((folded >> 16) + (folded & 0xffff)).unwrap()).to_be_bytes()
}

/// Runs on a router in its own namespace.
pub(crate) fn run() -> i32 {
    NetNs::create().unwrap().run(masqueraded).unwrap();
    0
}

fn masqueraded() {
    const FOUR: (&str, &str) = ("10.0.0.2", "198.51.100.1");
    const SIX: (&str, &str) = ("fd00::2", "2001:db8:1::1");
    let router = Router::new();
    let outside = |(from, to), port| router.source_outside(from, to, port);
    assert_eq!([outside(FOUR, 1001), outside(SIX, 1002)], [FOUR.0, SIX.0].map(address));

    let lab = [(address("10.0.0.0"), 25), (address("fd00::"), 63)];
    let rules = Masquerade::start("longhaul0", &lab).unwrap();
    let own = ["192.0.2.1", "2001:db8::1"].map(address);
    assert_eq!([outside(FOUR, 1003), outside(SIX, 1004)], own);
    // One address beyond each prefix.
    let (four, six) = (("10.0.0.128", FOUR.1), ("fd00:0:0:2::", SIX.1));
    assert_eq!([outside(four, 1005), outside(six, 1006)], [four.0, six.0].map(address));
    let (four, six) = (("10.0.0.127", FOUR.1), ("fd00:0:0:1::", SIX.1));
    assert_eq!([outside(four, 1007), outside(six, 1008)], own);
    let taken = Masquerade::start("longhaul0", &lab).unwrap_err();
    assert_eq!(taken.kind(), io::ErrorKind::PermissionDenied);

    drop(rules);
    assert_eq!([outside(FOUR, 1009), outside(SIX, 1010)], [FOUR.0, SIX.0].map(address));
    // The name is free again at once.
    drop(Masquerade::start("longhaul0", &lab).unwrap());
}
