//! Frames of every encapsulation that is dissected, and pcap files of them.

/// An Ethernet frame of that type.
pub(crate) fn ethernet(kind: u16, payload: &[u8]) -> Vec<u8> {
    let addresses = [2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1];
    [&addresses, &kind.to_be_bytes()[..], payload].concat()
}

/// An IPv4 packet; `fragment` is the field of flags and offset.
pub(crate) fn ipv4(protocol: u8, fragment: u16, payload: &[u8]) -> Vec<u8> {
    let total = (20 + payload.len()) as u16;
    let mut header = vec![0x45, 0];
    header.extend(total.to_be_bytes());
    header.extend([0, 7]);
    header.extend(fragment.to_be_bytes());
    header.extend([64, protocol, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2]);
    header.extend(payload);
    header
}

/// An IPv6 packet.
pub(crate) fn ipv6(next: u8, payload: &[u8]) -> Vec<u8> {
    let mut header = vec![0x60, 0, 0, 0];
    header.extend((payload.len() as u16).to_be_bytes());
    header.extend([next, 64]);
    for last in [1, 2] {
        header.extend([0xfd, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, last]);
    }
    header.extend(payload);
    header
}

/// A TCP segment with timestamps.
pub(crate) fn tcp(ports: [u16; 2], seq: u32, flags: u8, payload: &[u8]) -> Vec<u8> {
    let ack = if flags & 16 != 0 { 1 } else { 0 };
    let timestamps = [1, 1, 8, 10, 0, 0, 0, 1, 0, 0, 0, 2];
    tcp_with(ports, [seq, ack], flags, 0xffff, &timestamps, payload)
}

/// A TCP segment with these options.
pub(crate) fn tcp_with(
    ports: [u16; 2],
    [seq, ack]: [u32; 2],
    flags: u8,
    window: u16,
    options: &[u8],
    payload: &[u8],
) -> Vec<u8> {
    let mut header = Vec::new();
    header.extend(ports[0].to_be_bytes());
    header.extend(ports[1].to_be_bytes());
    header.extend(seq.to_be_bytes());
    header.extend(ack.to_be_bytes());
    header.extend([(20 + options.len() as u8) << 2, flags]);
    header.extend(window.to_be_bytes());
    header.extend([0; 4]);
    header.extend(options);
    header.extend(payload);
    header
}

/// A UDP datagram.
pub(crate) fn udp(ports: [u16; 2], payload: &[u8]) -> Vec<u8> {
    let mut header = Vec::new();
    header.extend(ports[0].to_be_bytes());
    header.extend(ports[1].to_be_bytes());
    header.extend((8 + payload.len() as u16).to_be_bytes());
    header.extend([0, 0]);
    header.extend(payload);
    header
}

/// A pcap file of that link type; frames are a millisecond apart.
pub(crate) fn pcap(link: u32, frames: &[Vec<u8>]) -> Vec<u8> {
    pcap_every(1, link, frames)
}

/// A pcap file whose frames are so many milliseconds apart.
pub(crate) fn pcap_every(step_ms: u32, link: u32, frames: &[Vec<u8>]) -> Vec<u8> {
    let mut file = Vec::new();
    for word in [0xa1b2_c3d4_u32, 0x0004_0002, 0, 0, 262_144, link] {
        file.extend(word.to_le_bytes());
    }
    for (number, frame) in frames.iter().enumerate() {
        let length = frame.len() as u32;
        let ms = number as u32 * step_ms;
        for word in [1_700_000_000 + ms / 1000, ms % 1000 * 1000, length, length] {
            file.extend(word.to_le_bytes());
        }
        file.extend(frame);
    }
    file
}

const IPV4: u16 = 0x0800;
const IPV6: u16 = 0x86dd;
const ACK: u8 = 16;

/// A segment of a stream of its own, inside of IPv4.
fn segment(port: u16) -> Vec<u8> {
    ipv4(6, 0, &tcp([port, 50_001], 1000, ACK, &[0; 32]))
}

/// Frames of Ethernet: name and bytes.
pub(crate) fn all() -> Vec<(&'static str, Vec<u8>)> {
    let tagged = |kind: u16, payload: &[u8]| [&[0, 100][..], &kind.to_be_bytes(), payload].concat();
    let label = |bottom: u8| [0, 1, bottom, 64];
    let inner = segment(40_010);
    let pppoe = |payload: &[u8]| {
        let length = (payload.len() as u16).to_be_bytes();
        [&[0x11, 0, 0, 1][..], &length, payload].concat()
    };
    let gtp = |flags: u8, options: &[u8], payload: &[u8]| {
        let length = ((options.len() + payload.len()) as u16).to_be_bytes();
        [&[flags, 255][..], &length, &[0, 0, 0, 5], options, payload].concat()
    };
    let ah = [&[6, 4, 0, 0, 0, 0, 0, 1, 0, 0, 0, 1][..], &[0; 12]].concat();
    let arp = [&[0, 1, 8, 0, 6, 4, 0, 1][..], &[0; 20]].concat();
    let snap = [&[0xaa, 0xaa, 3, 0, 0, 0, 8, 0][..], &inner].concat();
    let sized = |payload: &[u8]| ethernet(payload.len() as u16, payload);
    let vxlan = |payload: &[u8]| [&[8, 0, 0, 0, 0, 0, 9, 0][..], payload].concat();
    let tcp_segment = tcp([40_020, 50_001], 1, ACK, &[0; 16]);
    let datagram = udp([40_030, 50_003], &[0; 24]);
    let quic = [&[0xc3, 0, 0, 0, 1, 8, 1, 2, 3, 4, 5, 6, 7, 8, 0, 0, 0x44, 0xb0][..], &[0; 1200]];
    vec![
        ("tcp", ethernet(IPV4, &segment(40_000))),
        ("udp", ethernet(IPV4, &ipv4(17, 0, &datagram))),
        ("tcp6", ethernet(IPV6, &ipv6(6, &tcp_segment))),
        ("udp6", ethernet(IPV6, &ipv6(17, &datagram))),
        ("vlan", ethernet(0x8100, &tagged(IPV4, &segment(40_001)))),
        ("qinq", ethernet(0x88a8, &tagged(0x8100, &tagged(IPV4, &segment(40_002))))),
        ("mpls", ethernet(0x8847, &[&label(1)[..], &segment(40_003)].concat())),
        ("mpls2", ethernet(0x8847, &[&label(0)[..], &label(1), &segment(40_004)].concat())),
        ("pppoe", ethernet(0x8864, &pppoe(&[&[0, 0x21][..], &segment(40_005)].concat()))),
        ("pppoe6", ethernet(0x8864, &pppoe(&[&[0, 0x57][..], &ipv6(6, &tcp_segment)].concat()))),
        ("padi", ethernet(0x8863, &[0x11, 9, 0, 0, 0, 4, 1, 1, 0, 0])),
        ("arp", ethernet(0x0806, &arp)),
        ("snap", sized(&snap)),
        ("llc", sized(&[&[0xe0, 0xe1, 3][..], &[0; 20]].concat())),
        ("unknown type", ethernet(0x9999, &[0; 40])),
        (
            "padded",
            [ethernet(IPV4, &ipv4(6, 0, &tcp([40_040, 50_001], 1, ACK, &[]))), vec![0; 2]].concat(),
        ),
        ("icmp", ethernet(IPV4, &ipv4(1, 0, &[8, 0, 0xf7, 0xff, 0, 0, 0, 0]))),
        (
            "icmp error",
            ethernet(IPV4, &ipv4(1, 0, &[&[3, 3, 0, 0, 0, 0, 0, 0][..], &inner].concat())),
        ),
        ("icmpv6", ethernet(IPV6, &ipv6(58, &[128, 0, 0, 0, 0, 0, 0, 0]))),
        ("igmp", ethernet(IPV4, &ipv4(2, 0, &[0x16, 0, 0, 0, 224, 0, 0, 1]))),
        (
            "hop-by-hop",
            ethernet(IPV6, &ipv6(0, &[&[6, 0, 1, 4, 0, 0, 0, 0][..], &tcp_segment].concat())),
        ),
        (
            "destination",
            ethernet(IPV6, &ipv6(60, &[&[17, 0, 1, 4, 0, 0, 0, 0][..], &datagram].concat())),
        ),
        (
            "routing",
            ethernet(IPV6, &ipv6(43, &[&[17, 0, 0, 0, 0, 0, 0, 0][..], &datagram].concat())),
        ),
        (
            "fragment 6",
            ethernet(IPV6, &ipv6(44, &[&[17, 0, 0, 1, 0, 0, 0, 9][..], &datagram].concat())),
        ),
        (
            "later fragment 6",
            ethernet(IPV6, &ipv6(44, &[&[17, 0, 0, 0x41, 0, 0, 0, 8][..], &[0; 32]].concat())),
        ),
        (
            "whole fragment 6",
            ethernet(IPV6, &ipv6(44, &[&[17, 0, 0, 0, 0, 0, 0, 7][..], &datagram].concat())),
        ),
        ("no next header", ethernet(IPV6, &ipv6(59, &[0; 4]))),
        ("first fragment", ethernet(IPV4, &ipv4(17, 0x2000, &udp([40_031, 50_003], &[0; 1024])))),
        ("later fragment", ethernet(IPV4, &ipv4(17, 0x0100, &[0; 40]))),
        ("ip in ip", ethernet(IPV4, &ipv4(4, 0, &segment(40_006)))),
        ("6in4", ethernet(IPV4, &ipv4(41, 0, &ipv6(6, &tcp_segment)))),
        ("gre", ethernet(IPV4, &ipv4(47, 0, &[&[0, 0, 8, 0][..], &segment(40_007)].concat()))),
        (
            "gre key",
            ethernet(
                IPV4,
                &ipv4(47, 0, &[&[0x20, 0, 8, 0, 0, 0, 0, 9][..], &segment(40_007)].concat()),
            ),
        ),
        (
            "gre ethernet",
            ethernet(
                IPV4,
                &ipv4(
                    47,
                    0,
                    &[&[0, 0, 0x65, 0x58][..], &ethernet(IPV4, &segment(40_008))].concat(),
                ),
            ),
        ),
        (
            "vxlan",
            ethernet(
                IPV4,
                &ipv4(17, 0, &udp([40_032, 4789], &vxlan(&ethernet(IPV4, &segment(40_009))))),
            ),
        ),
        (
            "gtp",
            ethernet(IPV4, &ipv4(17, 0, &udp([2152, 2152], &gtp(0x30, &[], &segment(40_011))))),
        ),
        (
            "gtp options",
            ethernet(
                IPV4,
                &ipv4(
                    17,
                    0,
                    &udp(
                        [2152, 2152],
                        &gtp(0x34, &[0, 0, 0, 0x85, 1, 0x10, 9, 0], &segment(40_012)),
                    ),
                ),
            ),
        ),
        ("quic", ethernet(IPV4, &ipv4(17, 0, &udp([40_033, 443], &quic.concat())))),
        ("ah", ethernet(IPV4, &ipv4(51, 0, &[&ah[..], &tcp_segment].concat()))),
        ("esp", ethernet(IPV4, &ipv4(50, 0, &[&[0, 0, 0, 9, 0, 0, 0, 1][..], &[0; 24]].concat()))),
        ("unknown protocol", ethernet(IPV4, &ipv4(253, 0, &[0; 24]))),
    ]
    .into_iter()
    .chain(tunnels())
    .chain(crate::messages::frames())
    .collect()
}

/// Frames of Ethernet in which other frames are.
fn tunnels() -> Vec<(&'static str, Vec<u8>)> {
    let frame = |port| ethernet(IPV4, &segment(port));
    let in_udp = |ports, payload: &[u8]| ethernet(IPV4, &ipv4(17, 0, &udp(ports, payload)));
    let gre =
        |header: &[u8], payload: &[u8]| ethernet(IPV4, &ipv4(47, 0, &[header, payload].concat()));
    let geneve = |header: &[u8], payload: &[u8]| [header, &[0, 0, 9, 0], payload].concat();
    let whole = geneve(&[0, 0, 0x65, 0x58], &frame(40_060));
    let option = [&[1, 2, 3, 1, 0, 0, 0, 5][..], &frame(40_061)].concat();
    let inside6 = ipv6(6, &tcp([40_062, 50_001], 1, ACK, &[0; 16]));
    let origin = [0, 0, 1, 2, 1, 2, 3, 4];
    let erspan2 = [0x10, 0, 0x88, 0xbe, 0, 0, 0, 1, 0x10, 1, 0, 1, 0, 0, 0, 2];
    let erspan3 =
        |last: u8| [0x10, 0, 0x22, 0xeb, 0, 0, 0, 1, 0x20, 1, 0, 1, 0, 0, 0, 2, 0, 0, 0, last];
    vec![
        ("geneve", in_udp([40_034, 6081], &whole)),
        ("geneve options", in_udp([40_034, 6081], &geneve(&[2, 0x40, 0x65, 0x58], &option))),
        ("geneve ip", in_udp([40_034, 6081], &geneve(&[0, 0, 8, 0], &segment(40_063)))),
        ("geneve over ipv6", ethernet(IPV6, &ipv6(17, &udp([40_035, 6081], &whole)))),
        ("erspan 1", gre(&[0, 0, 0x88, 0xbe], &frame(40_064))),
        ("erspan 2", gre(&erspan2, &frame(40_065))),
        ("erspan 3", gre(&erspan3(0), &frame(40_066))),
        ("erspan 3 options", gre(&erspan3(1), &[&[0; 8][..], &frame(40_067)].concat())),
        ("wccp", gre(&[0, 0, 0x88, 0x3e], &[&[0; 4][..], &segment(40_068)].concat())),
        ("teredo", in_udp([40_036, 3544], &inside6)),
        ("teredo origin", in_udp([3544, 40_037], &[&origin[..], &inside6].concat())),
        (
            "teredo authentication",
            in_udp([3544, 40_037], &[&[0, 1, 0, 0][..], &[0; 9], &origin, &inside6].concat()),
        ),
        ("etherip", ethernet(IPV4, &ipv4(97, 0, &[&[0x30, 0][..], &frame(40_069)].concat()))),
        ("ethernet in ip", ethernet(IPV4, &ipv4(143, 0, &frame(40_070)))),
    ]
}

/// Streams that begin anew: with the same first number, with another one.
pub(crate) fn reused_ports() -> Vec<Vec<u8>> {
    let packet = |ports, seq, flags, payload: &[u8]| {
        ethernet(IPV4, &ipv4(6, 0, &tcp(ports, seq, flags, payload)))
    };
    let forward = [40_000, 50_001];
    vec![
        packet(forward, 100, 2, &[]),
        packet(forward, 100, 2, &[]),
        packet(forward, 101, 16, &[0; 20]),
        packet(forward, 5000, 2, &[]),
        packet(forward, 5001, 16, &[0; 20]),
        packet([50_001, 40_000], 9, 16, &[0; 20]),
        packet([50_001, 40_000], 77, 2, &[]),
        packet(forward, 5000, 2, &[]),
    ]
}

/// Fragments of datagrams and segments: in order, in reverse, with an overlap, repeated,
/// without one, over IPv6.
pub(crate) fn fragments() -> Vec<Vec<u8>> {
    let whole = |ports| udp(ports, &[7; 4000]);
    let fragment = |id: u8, protocol: u8, data: &[u8], from: usize, to: usize| {
        let more = if to < data.len() { 0x2000 } else { 0 };
        let mut packet = ipv4(protocol, more | (from / 8) as u16, &data[from..to]);
        packet[5] = id;
        ethernet(IPV4, &packet)
    };
    let of = |id: u8, data: &[u8], ranges: &[(usize, usize)]| -> Vec<Vec<u8>> {
        ranges.iter().map(|(from, to)| fragment(id, 17, data, *from, *to)).collect()
    };
    let mut frames = Vec::new();
    let first = whole([40_050, 50_003]);
    let end = first.len();
    frames.extend(of(1, &first, &[(0, 1480), (1480, 2960), (2960, end)]));
    let second = whole([40_051, 50_003]);
    frames.extend(of(2, &second, &[(2960, end), (1480, 2960), (0, 1480)]));
    let third = whole([40_052, 50_003]);
    frames.extend(of(3, &third, &[(0, 1480), (0, 1480), (1000, 2960), (2960, end)]));
    // The second one is missing.
    let fourth = whole([40_053, 50_003]);
    frames.extend(of(4, &fourth, &[(0, 1480), (2960, end)]));
    // Two of the same flow between each other, and a segment.
    let (fifth, sixth) = (whole([40_054, 50_003]), whole([40_054, 50_003]));
    frames.extend(of(5, &fifth, &[(0, 2960)]));
    frames.extend(of(6, &sixth, &[(0, 2960)]));
    frames.extend(of(6, &sixth, &[(2960, end)]));
    frames.extend(of(5, &fifth, &[(2960, end)]));
    for (id, seq) in [(7, 1000), (8, 3000), (9, 1000)] {
        let segment = tcp([40_055, 50_001], seq, ACK, &[9; 2000]);
        frames.push(fragment(id, 6, &segment, 0, 1480));
        frames.push(fragment(id, 6, &segment, 1480, segment.len()));
    }
    let fragment6 = |id: u8, data: &[u8], from: usize, to: usize| {
        let more = u8::from(to < data.len());
        let [high, low] = ((from as u16) | u16::from(more)).to_be_bytes();
        ethernet(IPV6, &ipv6(44, &[&[17, 0, high, low, 0, 0, 0, id], &data[from..to]].concat()))
    };
    let seventh = whole([40_056, 50_003]);
    frames.push(fragment6(1, &seventh, 0, 1448));
    frames.push(fragment6(1, &seventh, 2896, end));
    frames.push(fragment6(1, &seventh, 1448, 2896));
    frames
}
