//! Frames with messages of multicast DNS, DHCPv6 and the spanning tree.

use crate::frames::{ethernet, ipv4, ipv6, udp};

const IPV4: u16 = 0x0800;
const IPV6: u16 = 0x86dd;

/// Frames of Ethernet: name and bytes.
pub(crate) fn frames() -> Vec<(&'static str, Vec<u8>)> {
    let in_v4 = |ports, payload: &[u8]| ethernet(IPV4, &ipv4(17, 0, &udp(ports, payload)));
    let in_v6 = |ports, payload: &[u8]| ethernet(IPV6, &ipv6(17, &udp(ports, payload)));
    let relayed = [&[12, 1][..], &address(4), &address(5), &option(9, &solicit())].concat();
    vec![
        ("mdns query", in_v4([5353, 5353], &mdns_query())),
        ("mdns response", in_v6([5353, 5353], &mdns_response())),
        ("mdns legacy query", in_v4([40_090, 5353], &mdns_query())),
        ("dhcpv6 solicit", in_v6([546, 547], &solicit())),
        ("dhcpv6 reply", in_v6([547, 546], &reply())),
        ("dhcpv6 relayed", in_v6([547, 547], &relayed)),
        ("stp", bpdu(&configuration(0, 0, 0x81))),
        ("stp change", bpdu(&[0, 0, 0, 0x80])),
        ("rstp", bpdu(&[&configuration(2, 2, 0x3e)[..], &[0]].concat())),
        ("mstp", bpdu(&multiple())),
        ("pvst", pvst()),
    ]
}

/// Questions with and without the bit for a unicast answer, and an OPT record.
fn mdns_query() -> Vec<u8> {
    let start = [0, 0, 0, 0, 0, 2, 0, 0, 0, 0, 0, 1];
    let questions = b"\x04_ipp\x04_tcp\x05local\0\0\x0c\x80\x01\xc0\x0c\0\x10\0\x01";
    let opt = [0, 0, 41, 0x85, 0xa0, 0, 0, 0x11, 0x94, 0, 0];
    [&start[..], questions, &opt].concat()
}

/// A service with its host, port, properties and address.
fn mdns_response() -> Vec<u8> {
    let mut message = vec![0, 0, 0x84, 0, 0, 0, 0, 4, 0, 0, 0, 0];
    message.extend(b"\x04_ipp\x04_tcp\x05local\0\0\x0c\0\x01\0\0\x11\x94\0\x06\x03abc\xc0\x0c");
    message.extend(b"\x03abc\xc0\x0c\0\x21\x80\x01\0\0\0\x78\0\x0d\0\x01\0\x02\x02\x77");
    message.extend(b"\x04host\xc0\x16");
    message.extend(b"\x03abc\xc0\x0c\0\x10\x80\x01\0\0\0\x78\0\x09\x03a=b\x04c=de");
    message.extend(b"\x04host\xc0\x16\0\x01\x80\x01\0\0\0\x78\0\x04\x0a\0\0\x09");
    message
}

fn option(kind: u16, data: &[u8]) -> Vec<u8> {
    [&kind.to_be_bytes()[..], &(data.len() as u16).to_be_bytes(), data].concat()
}

fn address(last: u8) -> Vec<u8> {
    [&[0xfd][..], &[0; 14], &[last]].concat()
}

const DUID: [u8; 14] = [0, 1, 0, 1, 0x2a, 1, 2, 3, 2, 0, 0, 0, 0, 1];

fn solicit() -> Vec<u8> {
    [
        vec![1, 0x10, 0x20, 0x30],
        option(1, &DUID),
        option(8, &[0, 100]),
        option(6, &[0, 23, 0, 24]),
        option(3, &[&[0, 0, 0, 7][..], &[0; 8]].concat()),
        option(39, b"\0\x04host\x07example\0"),
    ]
    .concat()
}

fn reply() -> Vec<u8> {
    let times = [0, 0, 0, 10, 0, 0, 0, 20];
    let lease = option(5, &[&address(9)[..], &[0, 0, 0x0e, 0x10, 0, 0, 0x1c, 0x20]].concat());
    let prefix = option(26, &[&[0, 0, 0, 100, 0, 0, 0, 200, 56][..], &address(0)].concat());
    [
        vec![7, 0x10, 0x20, 0x30],
        option(1, &DUID),
        option(2, &[0, 3, 0, 1, 2, 0, 0, 0, 0, 9]),
        option(3, &[&[0, 0, 0, 7][..], &times, &lease].concat()),
        option(25, &[&[0, 0, 0, 8][..], &times, &prefix].concat()),
        option(13, b"\0\0fine"),
        option(23, &address(3)),
    ]
    .concat()
}

/// A configuration BPDU, or the beginning of one of RSTP and MSTP.
fn configuration(version: u8, kind: u8, flags: u8) -> Vec<u8> {
    let mut bytes = vec![0, 0, version, kind, flags];
    bytes.extend([0x80, 1, 2, 0, 0, 0, 0, 7, 0, 0, 0x4e, 0x20, 0x90, 2, 2, 0, 0, 0, 0, 8]);
    bytes.extend([0x80, 3, 1, 0x80, 20, 0, 2, 0, 15, 0]);
    bytes
}

fn multiple() -> Vec<u8> {
    let mut bytes = configuration(3, 2, 0x7c);
    bytes.extend([0, 0, 64, 0]);
    bytes.extend(b"region");
    bytes.extend([0; 26]);
    bytes.extend([0, 1]);
    bytes.extend([0; 20]);
    bytes.extend([0x90, 2, 2, 0, 0, 0, 0, 8, 20]);
    bytes
}

/// A frame of LLC, as long as the shortest of Ethernet.
fn padded(payload: &[u8]) -> Vec<u8> {
    let mut frame = ethernet(payload.len() as u16, payload);
    frame.resize(frame.len().max(60), 0);
    frame
}

fn bpdu(bytes: &[u8]) -> Vec<u8> {
    padded(&[&[0x42, 0x42, 3][..], bytes].concat())
}

fn pvst() -> Vec<u8> {
    let rapid = configuration(2, 2, 0x3e);
    let vlan = [0, 0, 0, 0, 2, 0, 5];
    padded(&[&[0xaa, 0xaa, 3, 0, 0, 12, 1, 11][..], &rapid, &vlan].concat())
}
