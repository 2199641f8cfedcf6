//! Transmit times of a device.

use host::netlink::Netlink;
use host::netns::NetNs;
use host::transmit_times::{TransmitTimes, Transmitted};
use host::tun::{MAX_READ, Tun};
use host::{clock, wait};
use std::net::{IpAddr, Ipv4Addr, UdpSocket};
use std::time::Duration;

const ADDRESS: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 1);

/// Runs on a host in its own namespace.
pub(crate) fn run() -> i32 {
    NetNs::create().unwrap().run(each_packet_has_its_time).unwrap();
    NetNs::create().unwrap().run(a_full_ring_keeps_the_earliest).unwrap();
    0
}

struct Device {
    tun: Tun,
    socket: UdpSocket,
    times: TransmitTimes,
}

impl Device {
    fn new() -> Self {
        let netlink = Netlink::open().unwrap();
        let tun = Tun::create("a").unwrap();
        let device = netlink.index("a").unwrap();
        netlink.bring_up(device, Some(1400), Some(10_000)).unwrap();
        let times = TransmitTimes::open(device).unwrap();
        netlink.add_address(device, IpAddr::V4(ADDRESS)).unwrap();
        let to = Ipv4Addr::new(10, 0, 0, 2);
        let route = host::netlink::Route {
            device,
            prefix: IpAddr::V4(to),
            length: 32,
            source: None,
            congestion: None,
        };
        netlink.add_routes([route]).unwrap();
        let socket = UdpSocket::bind((ADDRESS, 9)).unwrap();
        socket.connect((to, 9)).unwrap();
        // Those of the device's own packets, of multicast groups.
        std::thread::sleep(Duration::from_millis(20));
        let mut device = Device { tun, socket, times };
        device.times.by_ref().for_each(drop);
        while device.tun.receive(&mut [0; MAX_READ]).is_ok() {}
        device
    }
}

fn each_packet_has_its_time() {
    let mut device = Device::new();
    let mut sent = Vec::new();
    for number in 0..5 {
        let before = clock::unix_time();
        device.socket.send(&vec![number; 100 + usize::from(number)]).unwrap();
        sent.push(before..=clock::unix_time());
        std::thread::sleep(Duration::from_millis(5));
    }
    // The times are those of the transmission, however late they are read; and a received
    // packet has none.
    let mut packet = [0; MAX_READ];
    let length = device.tun.receive(&mut packet).unwrap();
    device.tun.send(&[std::io::IoSlice::new(&packet[..length])]).unwrap();
    wait::readable([], Some(Duration::from_millis(20))).unwrap();
    let times: Vec<Transmitted> = device.times.by_ref().take(6).collect();
    assert_eq!(times.len(), sent.len());
    for (number, (sent, packet)) in sent.iter().zip(times).enumerate() {
        assert!(sent.contains(&packet.time), "{packet:?} is not in {sent:?}");
        // IPv4 and UDP have 28 bytes.
        assert_eq!(packet.length, 128 + number);
    }
}

/// More than the ring holds, twice: what fits is in order, and later packets have their times
/// again once the ring was read.
fn a_full_ring_keeps_the_earliest() {
    let mut device = Device::new();
    for _ in 0..2 {
        let began = clock::unix_time();
        for _ in 0..20_000 {
            device.socket.send(&[0; 10]).unwrap();
        }
        let times: Vec<Duration> = device.times.by_ref().map(|packet| packet.time).collect();
        assert_eq!(times.len(), 1 << 14);
        assert!(times.is_sorted() && times[0] >= began);
    }
}
