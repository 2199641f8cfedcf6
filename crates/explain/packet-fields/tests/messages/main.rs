//! Multicast DNS, DHCPv6, BPDUs and iperf3's control connections: their fields, their line in a
//! packet list, and any bytes in their place.

#![expect(clippy::unwrap_used, reason = "in a test an unwrap is an assertion")]

mod iperf3;
mod packets;

use packets::{assert_values, columns, each, ethernet, passing, show_all, udp, values};
use proptest::prelude::*;

fn option(kind: u16, data: &[u8]) -> Vec<u8> {
    [&kind.to_be_bytes()[..], &(data.len() as u16).to_be_bytes(), data].concat()
}

/// A question with the bit for a unicast answer, one without, and an OPT record.
fn mdns_query(name: &[u8]) -> Vec<u8> {
    let start = [&[0, 0, 0, 0, 0, 2, 0, 0, 0, 0, 0, 1][..], name, &[0, 12, 0x80, 1]].concat();
    let opt = [0, 0, 41, 0x85, 0xa0, 0, 0, 0x11, 0x94, 0, 0];
    [&start[..], &[0xc0, 12, 0, 16, 0, 1], &opt].concat()
}

#[test]
fn multicast_dns_has_the_fields_of_dns_and_its_own_name() {
    let name = b"\x04_ipp\x04_tcp\x05local\0";
    let query = udp([5353, 5353], &mdns_query(name));
    assert_values(
        &query,
        &[
            ("frame.protocols", &["eth:ethertype:ip:udp:mdns"]),
            ("dns.qry.name", &["_ipp._tcp.local", "_ipp._tcp.local"]),
            ("dns.qry.class", &["0x0001", "0x0001"]),
            ("dns.qry.qu", &["1", "0"]),
            ("dns.resp.type", &["41"]),
            ("dns.resp.class", &[]),
            ("dns.resp.cache_flush", &["1"]),
            ("dns.resp.ttl", &[]),
            ("data.len", &[]),
        ],
    );
    // An instance with its host, port, properties and address.
    let mut response = vec![0, 0, 0x84, 0, 0, 0, 0, 4, 0, 0, 0, 0];
    response.extend(name);
    response.extend([0, 12, 0, 1, 0, 0, 0, 120, 0, 6]);
    response.extend(b"\x03abc\xc0\x0c");
    response.extend(
        b"\x03abc\xc0\x0c\0\x21\x80\x01\0\0\0\x78\0\x0d\0\x01\0\x02\x02\x77\x04host\xc0\x16",
    );
    response.extend(b"\x03abc\xc0\x0c\0\x10\x80\x01\0\0\0\x78\0\x09\x03a=b\x04c=de");
    response.extend(b"\x04host\xc0\x16\0\x01\x80\x01\0\0\0\x78\0\x04\x0a\0\0\x09");
    let response = udp([5353, 5353], &response);
    assert_values(
        &response,
        &[
            ("dns.ptr.domain_name", &["abc._ipp._tcp.local"]),
            ("dns.resp.name", &["_ipp._tcp.local", "abc._ipp._tcp.local", "host.local"]),
            ("dns.srv.priority", &["1"]),
            ("dns.srv.weight", &["2"]),
            ("dns.srv.port", &["631"]),
            ("dns.srv.target", &["host.local"]),
            ("dns.txt", &["a=b", "c=de"]),
            ("dns.resp.class", &["0x0001"; 4]),
            ("dns.resp.cache_flush", &["0", "1", "1", "1"]),
            ("dns.a", &["10.0.0.9"]),
        ],
    );
    // The flags are of multicast DNS alone, and the lower port decides.
    let unicast = udp([53, 5353], &mdns_query(name));
    assert_values(&unicast, &[("dns.qry.class", &["0x8001", "0x0001"]), ("dns.qry.qu", &[])]);
    let frames = [query, response, unicast];
    assert_eq!(passing(&frames, "mdns"), [1, 2]);
    assert_eq!(passing(&frames, "dns"), [3]);
    assert_eq!(passing(&frames, "dns.qry.name contains \"_ipp\" && udp"), [1, 3]);
    let columns = columns(&frames);
    let info = "Standard query 0x0000 PTR _ipp._tcp.local TXT _ipp._tcp.local";
    assert_eq!(columns[0], ("MDNS", info.to_owned()));
    assert_eq!(columns[1].1, "Standard query response 0x0000 PTR SRV TXT A");
}

/// What a name says reaches the packet list as graphic ASCII alone.
#[test]
fn names_in_the_packet_list_are_harmless() {
    let name = b"\x06a\x1b[2Jb\x04\xc2\x9bm \0";
    let columns = columns(&[udp([5353, 5353], &mdns_query(name))]);
    let info = &columns[0].1;
    assert!(info.contains("PTR a?[2Jb.?m?"), "{info}");
    assert!(info.chars().all(|c| c.is_ascii_graphic() || c == ' '), "{info:?}");
}

#[test]
fn dhcpv6_messages_with_options_in_options() {
    let duid = [0, 1, 0, 1, 9, 9, 9, 9, 2, 0, 0, 0, 0, 1];
    let address = |last: u8| [&[0xfd][..], &[0; 14], &[last]].concat();
    let solicit = [
        vec![1, 0x10, 0x20, 0x30],
        option(1, &duid),
        option(8, &[0, 100]),
        option(6, &[0, 23, 0, 24]),
        option(39, b"\0\x04host\x07example\0"),
    ]
    .concat();
    assert_values(
        &udp([546, 547], &solicit),
        &[
            ("frame.protocols", &["eth:ethertype:ip:udp:dhcpv6"]),
            ("dhcpv6.msgtype", &["1"]),
            ("dhcpv6.xid", &["0x102030"]),
            ("dhcpv6.option.type", &["1", "8", "6", "39"]),
            ("dhcpv6.option.length", &["14", "2", "4", "15"]),
            ("dhcpv6.duid.bytes", &["0001000109090909020000000001"]),
            ("dhcpv6.duid.type", &["1"]),
            ("dhcpv6.elapsed_time", &["1000"]),
            ("dhcpv6.requested_option_code", &["23", "24"]),
            ("dhcpv6.client_domain", &["host.example."]),
            ("dhcpv6.hopcount", &[]),
        ],
    );
    let lease = option(5, &[&address(9)[..], &[0, 0, 0x0e, 0x10, 0, 0, 0x1c, 0x20]].concat());
    let times = [0, 0, 0, 10, 0, 0, 0, 20];
    let prefix = [&[0, 0, 0, 100, 0, 0, 0, 200, 56][..], &address(0)].concat();
    let reply = [
        vec![7, 0x10, 0x20, 0x30],
        option(2, &[0, 3, 0, 1, 2, 0, 0, 0, 0, 9]),
        option(3, &[&[0, 0, 0, 7][..], &times, &lease].concat()),
        option(25, &[&[0, 0, 0, 8][..], &times, &option(26, &prefix)].concat()),
        option(13, b"\0\0fine"),
        option(23, &address(3)),
    ]
    .concat();
    assert_values(
        &udp([547, 546], &reply),
        &[
            ("dhcpv6.option.type", &["2", "3", "5", "25", "26", "13", "23"]),
            ("dhcpv6.iaid", &["00000007", "00000008"]),
            ("dhcpv6.iaaddr.ip", &["fd00::9"]),
            ("dhcpv6.iaaddr.pref_lifetime", &["3600"]),
            ("dhcpv6.iaaddr.valid_lifetime", &["7200"]),
            ("dhcpv6.iaprefix.pref_addr", &["fd00::"]),
            ("dhcpv6.iaprefix.pref_len", &["56"]),
            ("dhcpv6.status_code", &["0"]),
            ("dhcpv6.dns_server", &["fd00::3"]),
        ],
    );
    let relayed = [&[12, 1][..], &address(4), &address(5), &option(9, &solicit)].concat();
    assert_values(
        &udp([547, 547], &relayed),
        &[
            ("dhcpv6.msgtype", &["12", "1"]),
            ("dhcpv6.hopcount", &["1"]),
            ("dhcpv6.linkaddr", &["fd00::4"]),
            ("dhcpv6.peeraddr", &["fd00::5"]),
            ("dhcpv6.xid", &["0x102030"]),
        ],
    );
    let frames = [udp([546, 547], &solicit), udp([547, 546], &reply), udp([547, 547], &relayed)];
    assert_eq!(passing(&frames, "dhcpv6.msgtype == Solicit"), [1, 3]);
    assert_eq!(passing(&frames, "dhcpv6 && dhcpv6.iaaddr.ip == fd00::/8"), [2]);
    let columns = columns(&frames);
    let info = "Solicit XID: 0x102030 DUID: 0001000109090909020000000001";
    assert_eq!(columns[0], ("DHCPv6", info.to_owned()));
    let info = &columns[2].1;
    assert!(info.starts_with("Relay-forw L: fd00::4 Solicit XID: 0x102030"), "{info}");
    // Relays of relays end somewhere.
    let mut deep = solicit;
    for _ in 0..200 {
        deep = [&[12, 1][..], &[0; 32], &option(9, &deep)].concat();
    }
    each(&[udp([547, 547], &deep)], |view| {
        assert!(values(view, "dhcpv6.msgtype").len() < 32);
    });
}

/// An LLC frame of the spanning tree, padded.
fn bpdu(bytes: &[u8]) -> Vec<u8> {
    let payload = [&[0x42, 0x42, 3][..], bytes].concat();
    let mut frame = ethernet(payload.len() as u16, &payload);
    frame.resize(frame.len().max(60), 0);
    frame
}

fn configuration(version: u8, kind: u8, flags: u8) -> Vec<u8> {
    let mut bytes = vec![0, 0, version, kind, flags];
    bytes.extend([0x80, 1, 2, 0, 0, 0, 0, 7, 0, 0, 0x4e, 0x20, 0x90, 2, 2, 0, 0, 0, 0, 8]);
    bytes.extend([0x80, 3, 1, 0x80, 20, 0, 2, 0, 15, 0]);
    bytes
}

#[test]
fn bpdus_of_each_kind() {
    let plain = bpdu(&configuration(0, 0, 0x81));
    assert_values(
        &plain,
        &[
            ("frame.protocols", &["eth:llc:stp"]),
            ("stp.version", &["0"]),
            ("stp.type", &["0x00"]),
            ("stp.flags", &["0x81"]),
            ("stp.flags.tc", &["1"]),
            ("stp.flags.tcack", &["1"]),
            ("stp.flags.forwarding", &[]),
            ("stp.root.prio", &["32768"]),
            ("stp.root.ext", &["1"]),
            ("stp.root.hw", &["02:00:00:00:00:07"]),
            ("stp.root.cost", &["20000"]),
            ("stp.bridge.prio", &["36864"]),
            ("stp.bridge.ext", &["2"]),
            ("stp.bridge.hw", &["02:00:00:00:00:08"]),
            ("stp.port", &["0x8003"]),
            ("stp.msg_age", &["1.500000000"]),
            ("stp.max_age", &["20.000000000"]),
            ("stp.hello", &["2.000000000"]),
            ("stp.forward", &["15.000000000"]),
        ],
    );
    let rapid = bpdu(&[&configuration(2, 2, 0x3e)[..], &[0]].concat());
    assert_values(
        &rapid,
        &[
            ("stp.flags.port_role", &["3"]),
            ("stp.flags.proposal", &["1"]),
            ("stp.flags.learning", &["1"]),
            ("stp.flags.agreement", &["0"]),
        ],
    );
    let multiple = bpdu(&[&configuration(3, 2, 0x7c)[..], &[0; 67]].concat());
    let change = bpdu(&[0, 0, 0, 0x80]);
    // GARP has the same service access point, and is none.
    let garp = bpdu(&[0, 1, 1, 2, 0, 0]);
    let cisco = [&[0xaa, 0xaa, 3, 0, 0, 12, 1, 11][..], &configuration(2, 2, 0x3c), &[0]].concat();
    let cisco = ethernet(cisco.len() as u16, &cisco);
    let frames = [plain, rapid, multiple, change, garp, cisco];
    assert_eq!(passing(&frames, "stp"), [1, 2, 3, 4, 6]);
    assert_eq!(passing(&frames, "stp.hello == 2 && stp.flags.port_role == Designated"), [2, 3, 6]);
    assert_eq!(passing(&frames, "stp.type == \"Topology Change Notification\""), [4]);
    let root = "Root = 32768/1/02:00:00:00:00:07  Cost = 20000  Port = 0x8003";
    let expected = [
        ("STP", format!("Conf. TC + {root}")),
        ("STP", format!("RST. {root}")),
        ("STP", format!("MST. {root}")),
        ("STP", "Topology Change Notification".to_owned()),
    ];
    assert_eq!(columns(&frames)[..4], expected);
}

proptest! {
    #[test]
    fn any_bytes_are_shown(payload in prop::collection::vec(any::<u8>(), 0..200), ports in prop::sample::select(vec![[5353, 5353], [546, 547], [547, 547], [53, 40_000]])) {
        show_all(&[udp(ports, &payload), bpdu(&payload), bpdu(&[&[0, 0], &payload[..]].concat())]);
    }

    /// Options, names and lengths that could be meant.
    #[test]
    fn bytes_with_structure_are_shown(pieces in prop::collection::vec((0_u16..60, prop::collection::vec(0_u8..48, 0..40)), 0..12)) {
        let options: Vec<u8> = pieces.iter().flat_map(|(kind, data)| option(*kind, data)).collect();
        let nested = option(9, &[&[12; 34][..], &option(3, &[&[0; 12][..], &options].concat())].concat());
        let records = [&[0, 0, 0x84, 0, 0, 4, 0, 9, 0, 9, 0, 9][..], &options].concat();
        show_all(&[
            udp([546, 547], &[&[1, 1, 1, 1][..], &options].concat()),
            udp([547, 547], &[&[13; 34][..], &nested].concat()),
            udp([5353, 5353], &records),
        ]);
    }
}
