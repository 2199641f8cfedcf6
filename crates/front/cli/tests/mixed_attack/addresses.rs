//! Where everyone is.

use crate::clients;
use host::netlink::{Netlink, await_local_route};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::time::Duration;

/// Of the server that is tested.
pub(crate) const PORT: u16 = 5201;
/// Of the server for copies: its tests, and its copies.
pub(crate) const TEST_PORT_BESIDE_COPIES: u16 = 5202;
pub(crate) const COPY_PORT: u16 = 5203;

/// Both servers', and that of the client that copies.
pub(crate) const SERVER: Ipv4Addr = Ipv4Addr::new(10, 66, 0, 1);
pub(crate) const SERVER6: Ipv6Addr = Ipv6Addr::new(0xfd66, 0, 0, 0, 0, 0, 0, 1);

/// Of those whose addresses are forged.
pub(crate) const VICTIM: Ipv4Addr = Ipv4Addr::new(10, 66, 4, 1);

/// Kinds of attackers: none is refused for what another kind has done.
const KINDS: u8 = 11;

/// Addresses of each kind.
const EACH: u8 = 6;

/// Silent addresses at the port for copies.
const SILENT: u8 = 64;

/// Of the clients that run all the time.
pub(crate) const fn client(number: u8) -> Ipv4Addr {
    Ipv4Addr::new(10, 66, 1, number)
}

/// Of the clients that come while these run.
pub(crate) const fn newcomer(number: u8) -> Ipv4Addr {
    Ipv4Addr::new(10, 66, 2, number)
}

/// One of the silent addresses, in turn.
pub(crate) fn silent(turn: u32) -> Ipv4Addr {
    Ipv4Addr::new(10, 66, 3, in_turn(turn, SILENT))
}

/// One of the addresses of a kind, in turn.
pub(crate) fn attacker(kind: u8, turn: u32) -> Ipv4Addr {
    Ipv4Addr::new(10, 66, 10 + kind, in_turn(turn, EACH))
}

/// Addresses of one /64: an attacker with IPv6 has as many as it wants.
pub(crate) fn attacker6(turn: u32) -> Ipv6Addr {
    Ipv6Addr::new(0xfd66, 0, 0, 1, 0, 0, 0, in_turn(turn, EACH).into())
}

fn in_turn(turn: u32, count: u8) -> u8 {
    u8::try_from(turn % u32::from(count)).unwrap() + 1
}

/// Adds all of them to the loopback device.
pub(crate) fn add() {
    let netlink = Netlink::open().unwrap();
    let device = netlink.index("lo").unwrap();
    netlink.bring_up(device, None, None).unwrap();
    for address in all() {
        // A host without IPv6 is attacked by IPv4 alone.
        let added = netlink.add_address(device, address);
        assert!(added.is_ok() || address.is_ipv6(), "{address}: {added:?}");
        if added.is_ok() && address.is_ipv6() {
            await_local_route(address, Duration::from_secs(20)).unwrap();
        }
    }
}

fn all() -> Vec<IpAddr> {
    let v4 = |address: Ipv4Addr| IpAddr::V4(address);
    let v6 = |address: Ipv6Addr| IpAddr::V6(address);
    let mut all = vec![v4(SERVER), v6(SERVER6), v4(VICTIM)];
    all.extend((1..=clients::COUNT).map(client).map(v4));
    all.extend((1..=clients::NEWCOMERS).map(newcomer).map(v4));
    all.extend((0..SILENT.into()).map(silent).map(v4));
    for turn in 0..u32::from(EACH) {
        all.extend((0..KINDS).map(|kind| v4(attacker(kind, turn))));
        all.push(v6(attacker6(turn)));
    }
    all
}
