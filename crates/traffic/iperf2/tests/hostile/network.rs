//! A network namespace with many addresses, and an iperf 2 server in it.

#[path = "../interop/test_server.rs"]
#[expect(dead_code, reason = "another test target uses the rest")]
mod server;

pub(crate) use server::{TestServer, datagram, run, totals};

use host::netlink::{Netlink, await_local_route};
use host::netns::NetNs;
use iperf2::Event;
use iperf2::client::ClientConfig;
use iperf2_proto::{Amount, ClientHeader, Mode};
use stall_retry::{alone, beside_others};
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::thread;
use std::time::Duration;

/// IPv4 addresses of the network: 10.9.0.1 to 10.9.0.`ADDRESSES`.
const ADDRESSES: u8 = 80;

/// IPv6 addresses in each of the two /64.
const ADDRESSES_V6: u16 = 8;

/// The server's address.
pub(crate) const SERVER: IpAddr = IpAddr::V4(Ipv4Addr::new(10, 9, 0, 1));

/// Another address, from 2.
pub(crate) fn address(number: u8) -> IpAddr {
    Ipv4Addr::new(10, 9, 0, number).into()
}

/// An address in the /64 of that number.
pub(crate) fn address_v6(prefix: u16, number: u16) -> IpAddr {
    Ipv6Addr::new(0xfd00, 9, 0, prefix, 0, 0, 0, number).into()
}

/// Runs a test in its own network namespace, where all those addresses are local but
/// not loopback addresses.
pub(crate) fn in_a_network(test: impl FnOnce() + Send) {
    beside_others(|| in_its_network(test));
}

/// The same, while no other test runs in this process.
pub(crate) fn alone_in_a_network(test: impl FnOnce() + Send) {
    alone(|| in_its_network(test));
}

fn in_its_network(test: impl FnOnce() + Send) {
    let network = match NetNs::create() {
        Ok(network) => network,
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
            assert!(
                std::env::var("LONGHAUL_REQUIRE_PEERS").as_deref() != Ok("1"),
                "LONGHAUL_REQUIRE_PEERS=1 asks for namespaces"
            );
            eprintln!("skipped: no network namespace can be made here");
            return;
        }
        Err(error) => panic!("{error}"),
    };
    let work = || {
        let netlink = Netlink::open().unwrap();
        let loopback = netlink.index("lo").unwrap();
        netlink.bring_up(loopback, None, None).unwrap();
        let v4 = (1..=ADDRESSES).map(address);
        let v6 = (1..=2).flat_map(|prefix| (1..=ADDRESSES_V6).map(move |n| address_v6(prefix, n)));
        for address in v4.chain(v6.clone()) {
            netlink.add_address(loopback, address).unwrap();
        }
        for address in v6 {
            await_local_route(address, Duration::from_secs(10)).unwrap();
        }
        test();
    };
    network.run(work).unwrap();
}

/// A client's header.
pub(crate) fn header(mode: Mode, port: u16, length: u32, amount: Amount) -> ClientHeader {
    ClientHeader {
        mode,
        streams: 1,
        port: port.into(),
        length,
        amount,
        rate_bps: 1 << 40,
        tos: 0,
        acknowledged: false,
        no_report: false,
    }
}

/// A short test from one address of the network to another.
pub(crate) fn client(test_server: &TestServer, from: IpAddr, udp: bool) -> ClientConfig {
    ClientConfig {
        host: test_server.address.ip().to_string(),
        bind: Some((from, 0).into()),
        amount: Amount::Time(Duration::from_millis(300)),
        ..test_server.config(udp)
    }
}

/// Waits up to 30 s for a condition.
pub(crate) fn until(what: &str, holds: impl Fn() -> bool) {
    for _ in 0..3000 {
        if holds() {
            return;
        }
        thread::sleep(Duration::from_millis(10));
    }
    panic!("timeout: {what}");
}

/// Number of streams that the server reported.
pub(crate) fn connected(test_server: &TestServer) -> usize {
    test_server.events().iter().filter(|event| matches!(event, Event::Connected { .. })).count()
}
