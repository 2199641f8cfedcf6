//! Multicast DNS, DHCPv6, BPDUs and iperf3's control connections: their fields, their line in a
//! packet list, and any bytes in their place.

#![expect(clippy::unwrap_used, reason = "in a test an unwrap is an assertion")]

use capture::conversations::Conversations;
use capture::dissect::{Layers, Protocol, dissect};
use capture::file::Reader;
use capture::{LinkType, MemoryBudget, TABLE_BYTES};
use packet_fields::iperf3_control::ControlConnections;
use packet_fields::{Field, Filter, PacketView, Summary, Tracker, detail};
use proptest::prelude::*;

/// Shows each packet of a pcap file of these frames to `see`.
fn each(frames: &[Vec<u8>], mut see: impl FnMut(&PacketView<'_>)) {
    let link = u32::from(LinkType::ETHERNET.0);
    let head = [0xa1b2_c3d4_u32, 0x0004_0002, 0, 0, 262_144, link];
    let mut file: Vec<u8> = head.iter().flat_map(|word| word.to_le_bytes()).collect();
    for (number, frame) in frames.iter().enumerate() {
        let length = frame.len() as u32;
        for word in [1_700_000_000, number as u32 * 1000, length, length] {
            file.extend(word.to_le_bytes());
        }
        file.extend(frame);
    }
    let seed = capture::Seed([1, 2]);
    let (mut reader, mut conversations) =
        (Reader::new(&file[..]).unwrap(), Conversations::new(seed));
    let mut tracker = Tracker::new(tcp_analysis::Rules::default());
    let mut control = ControlConnections::within(&MemoryBudget::new(TABLE_BYTES));
    let mut layers = Layers::new();
    while let Some(packet) = reader.next_packet().unwrap() {
        dissect(packet.link, packet.data, packet.original_len, &mut layers);
        let segment = layers.tcp(packet.data);
        let segment = segment.as_ref();
        let stream = conversations.add(&packet, &layers, segment);
        let named = control.name(&layers, segment, stream);
        let layers = named.as_ref().unwrap_or(&layers);
        see(&tracker.add(&packet, layers, segment, stream, &conversations));
    }
}

/// Values of a field in a packet, as they are shown.
fn values(view: &PacketView<'_>, name: &str) -> Vec<String> {
    let (field, mut found) = (Field::from_name(name).unwrap(), Vec::new());
    view.each_value(field, |value| {
        let mut text = String::new();
        value.write(field.description().kind, &mut text).unwrap();
        found.push(text);
    });
    found
}

/// The protocol and the last column of each packet.
fn columns(frames: &[Vec<u8>]) -> Vec<(&'static str, String)> {
    let (mut summary, mut found) = (Summary::default(), Vec::new());
    each(frames, |view| {
        summary.fill(view);
        found.push((summary.protocol, summary.info.clone()));
    });
    found
}

/// Numbers of the packets that pass.
fn passing(frames: &[Vec<u8>], filter: &str) -> Vec<u64> {
    let filter = Filter::new(filter).unwrap_or_else(|error| panic!("{filter}: {error}"));
    let mut numbers = Vec::new();
    each(frames, |view| {
        if filter.matches(view) {
            numbers.push(view.packet.number);
        }
    });
    numbers
}

/// The values of the only packet.
#[track_caller]
fn assert_values(frame: &[u8], expected: &[(&str, &[&str])]) {
    each(&[frame.to_vec()], |view| {
        for (name, values_of_it) in expected {
            assert_eq!(values(view, name), *values_of_it, "{name}");
        }
    });
}

fn ethernet(kind: u16, payload: &[u8]) -> Vec<u8> {
    [&[2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1][..], &kind.to_be_bytes(), payload].concat()
}

fn ipv4(protocol: u8, from: u8, payload: &[u8]) -> Vec<u8> {
    let total = (20 + payload.len() as u16).to_be_bytes();
    let rest = [0, 7, 0x40, 0, 64, protocol, 0, 0, 10, 0, 0, from, 10, 0, 0, 3 - from];
    ethernet(0x0800, &[&[0x45, 0][..], &total, &rest, payload].concat())
}

fn udp(ports: [u16; 2], payload: &[u8]) -> Vec<u8> {
    let length = 8 + payload.len() as u16;
    let header = [ports[0], ports[1], length, 0].map(u16::to_be_bytes);
    ipv4(17, 1, &[&header.concat()[..], payload].concat())
}

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
    let info = &columns[1].1;
    assert!(info.ends_with("TXT abc._ipp._tcp.local A host.local"), "{info}");
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

const COOKIE: &[u8; 37] = b"abcdefghijklmnopqrstuvwxyz2345672345\0";
const SYN: u8 = 2;
const DATA: u8 = 24;

/// A connection's segments: each from the client or not, with its flags and payload.
struct Connection {
    ports: [u16; 2],
    next: [u32; 2],
    frames: Vec<Vec<u8>>,
}

impl Connection {
    fn new(ports: [u16; 2]) -> Self {
        let mut it = Connection { ports, next: [1000, 5000], frames: Vec::new() };
        it.send(true, SYN, &[]);
        it.send(false, SYN | 16, &[]);
        it
    }

    fn send(&mut self, is_client: bool, flags: u8, payload: &[u8]) {
        let [client, server] = self.ports;
        let (ports, from, to) =
            if is_client { ([client, server], 0, 1) } else { ([server, client], 1, 0) };
        let mut segment = ports.map(u16::to_be_bytes).concat();
        segment.extend(self.next[from].to_be_bytes());
        segment.extend(self.next[to].to_be_bytes());
        segment.extend([0x50, flags, 1, 0, 0, 0, 0, 0]);
        segment.extend(payload);
        self.next[from] += payload.len() as u32 + u32::from(flags & SYN != 0);
        self.frames.push(ipv4(6, 1 + from as u8, &segment));
    }

    fn client(&mut self, payload: &[u8]) {
        self.send(true, DATA, payload);
    }

    fn server(&mut self, payload: &[u8]) {
        self.send(false, DATA, payload);
    }
}

fn json(text: &str) -> Vec<u8> {
    [&(text.len() as u32).to_be_bytes()[..], text.as_bytes()].concat()
}

/// A test from the cookie to its end: 14 packets, the first two without a payload.
fn control_connection(ports: [u16; 2]) -> Connection {
    let mut it = Connection::new(ports);
    it.client(COOKIE);
    it.server(&[9]);
    // The length in a segment of its own, as iperf3 sends it.
    it.client(&json("{\"tcp\":true}")[..4]);
    it.client(&json("{\"tcp\":true}")[4..]);
    it.server(&[10]);
    it.server(&[1, 2]);
    it.client(&[4]);
    it.server(&[13]);
    it.client(&json("{\"streams\":[]}"));
    it.server(&[json("{\"streams\":[1]}"), vec![14]].concat());
    it.client(&[16]);
    it.client(&[]);
    it
}

#[test]
fn an_iperf3_test_is_recognised_on_any_port() {
    for ports in [[40_000, 5201], [40_000, 40_001], [5201, 443]] {
        let frames = control_connection(ports).frames;
        assert_eq!(frames.len(), 14);
        assert_eq!(passing(&frames, "iperf3"), (3..=13).collect::<Vec<u64>>(), "{ports:?}");
        assert_eq!(passing(&frames, "tls"), [0; 0]);
        assert_eq!(passing(&frames, "iperf3.cookie contains \"abc\""), [3]);
        assert_eq!(passing(&frames, "iperf3.state == PARAM_EXCHANGE"), [4]);
        assert_eq!(passing(&frames, "iperf3.state == TEST_RUNNING"), [8]);
        assert_eq!(passing(&frames, "iperf3.state in {4, 14, 16}"), [9, 12, 13]);
        assert_eq!(passing(&frames, "iperf3.length > 12"), [11, 12]);
        assert_eq!(
            passing(&frames, "frame.protocols == \"eth:ethertype:ip:tcp:iperf3\"").len(),
            11
        );
        let columns = columns(&frames);
        let info: Vec<&str> = columns[2..13].iter().map(|(_, info)| info.as_str()).collect();
        assert_eq!(
            info,
            [
                "cookie abcdefghijklmnopqrstuvwxyz2345672345",
                "PARAM_EXCHANGE",
                "JSON, 12 bytes",
                "JSON, continued",
                "CREATE_STREAMS",
                "TEST_START, TEST_RUNNING",
                "TEST_END",
                "EXCHANGE_RESULTS",
                "JSON, 14 bytes",
                "JSON, 15 bytes, DISPLAY_RESULTS",
                "IPERF_DONE",
            ]
        );
        assert!(columns[2..13].iter().all(|(protocol, _)| *protocol == "iperf3"));
        assert_eq!([columns[1].0, columns[13].0], ["TCP"; 2]);
    }
}

#[test]
fn refusals_are_recognised() {
    let mut busy = Connection::new([40_000, 5201]);
    busy.client(COOKIE);
    busy.server(&[0xff]);
    assert_eq!(passing(&busy.frames, "iperf3.state == ACCESS_DENIED"), [4]);
    assert_eq!(passing(&busy.frames, "iperf3.state == -1"), [4]);
    let mut error = Connection::new([40_000, 5201]);
    error.client(COOKIE);
    error.server(&[9]);
    error.client(&json("{}"));
    error.server(&[0xfe]);
    error.server(&[0, 0, 0, 1, 0, 0, 0, 0]);
    assert_eq!(passing(&error.frames, "iperf3.state == SERVER_ERROR"), [6]);
    assert_eq!(columns(&error.frames)[6], ("iperf3", "error numbers".to_owned()));
}

/// Data, another protocol on the port, and what cannot be known have no name.
#[test]
fn what_is_uncertain_has_no_name() {
    let named = |connection: &Connection| passing(&connection.frames, "iperf3");
    // A stream of data has the cookie, and nothing after it, whatever its first byte is.
    for (is_client, first) in [(true, b'0'), (true, 9), (true, 12), (false, b'0'), (false, 9)] {
        let mut data = Connection::new([40_000, 5201]);
        data.client(COOKIE);
        data.send(is_client, DATA, &[first, 0x80, 3, 4]);
        data.send(is_client, DATA, &[9]);
        data.send(is_client, DATA, &[10]);
        assert_eq!(named(&data), [3], "{is_client} {first}");
    }
    // The port without the cookie; the cookie with more or less; one that is none.
    for first in [&[9][..], b"GET / HTTP/1.1\r\n\r\n", &COOKIE[..36], &[b'0'; 37]] {
        let mut other = Connection::new([40_000, 5201]);
        other.client(first);
        other.server(&[9]);
        other.client(COOKIE);
        other.server(&[9]);
        assert_eq!(named(&other), [0; 0], "{first:?}");
    }
    let mut longer = Connection::new([40_000, 5201]);
    longer.client(&[&COOKIE[..], b"x"].concat());
    assert_eq!(named(&longer), [0; 0]);
    // The server begins, or the beginning is not in the capture.
    let mut server_first = Connection::new([40_000, 5201]);
    server_first.server(b"220 ready\r\n");
    server_first.client(COOKIE);
    assert_eq!(named(&server_first), [0; 0]);
    let mut whole = control_connection([40_000, 5201]);
    whole.frames.drain(..2);
    assert_eq!(named(&whole), [0; 0]);
    // States out of order, and lengths that cannot be.
    let mut disordered = Connection::new([40_000, 5201]);
    disordered.client(COOKIE);
    disordered.server(&[1]);
    disordered.server(&[2]);
    assert_eq!(named(&disordered), [3]);
    let mut long = Connection::new([40_000, 5201]);
    long.client(COOKIE);
    long.server(&[9]);
    long.client(&[0x7f, 0xff, 0xff, 0xff]);
    long.server(&[10]);
    assert_eq!(named(&long), [3, 4]);
}

#[test]
fn gaps_and_repetitions() {
    // A retransmitted state is no second one.
    let mut frames = control_connection([40_000, 5201]).frames;
    let repeated = frames[3].clone();
    frames.insert(4, repeated);
    assert_eq!(passing(&frames, "iperf3.state == PARAM_EXCHANGE"), [4]);
    assert_eq!(passing(&frames, "iperf3").len(), 11);
    // Without JSON that was not captured, the rest is known; without a state, it is not.
    let mut frames = control_connection([40_000, 5201]).frames;
    frames.remove(5);
    assert_eq!(passing(&frames, "iperf3").len(), 10);
    let mut frames = control_connection([40_000, 5201]).frames;
    frames.remove(6);
    assert_eq!(passing(&frames, "iperf3"), [3, 4, 5, 6]);
}

/// Everything that is shown of each packet.
fn show_all(frames: &[Vec<u8>]) {
    let mut summary = Summary::default();
    each(frames, |view| {
        summary.fill(view);
        assert!(summary.info.chars().all(|c| !c.is_control()), "{:?}", summary.info);
        let found = detail::layers(view);
        assert!(found.len() > 1 && found[0].protocol == Protocol::None);
    });
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

    #[test]
    fn any_segments_after_a_cookie_are_shown(segments in prop::collection::vec((any::<bool>(), prop::collection::vec(prop_oneof![0_u8..17, any::<u8>()], 0..12), -3_i32..3), 0..20)) {
        let mut it = Connection::new([40_000, 5201]);
        it.client(COOKIE);
        it.server(&[9]);
        for (is_client, payload, gap) in segments {
            let side = usize::from(!is_client);
            it.next[side] = it.next[side].wrapping_add(gap.cast_unsigned());
            it.send(is_client, DATA, &payload);
        }
        show_all(&it.frames);
    }
}
