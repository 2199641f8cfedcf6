//! Display filters: what they accept, what they say of mistakes, and that any of them can be
//! printed and parsed again.

#![expect(clippy::unwrap_used, reason = "in a test an unwrap is an assertion")]

use capture::LinkType;
use capture::conversations::Conversations;
use capture::dissect::{Layers, dissect};
use capture::file::{Packet, Reader};
use packet_fields::field::protocols;
use packet_fields::filter::{MAX_DEPTH, MAX_LENGTH};
use packet_fields::{Field, FieldKind, Filter, PacketView, Tracker};
use proptest::prelude::*;

/// A pcap file of raw IP packets, a millisecond apart.
fn pcap(packets: &[Vec<u8>]) -> Vec<u8> {
    let link = u32::from(LinkType::RAW.0);
    let mut file: Vec<u8> = [0xa1b2_c3d4_u32, 0x0004_0002, 0, 0, 65_535, link]
        .iter()
        .flat_map(|word| word.to_le_bytes())
        .collect();
    for (number, packet) in packets.iter().enumerate() {
        let length = packet.len() as u32;
        for word in [1_700_000_000, number as u32 * 1000, length, length] {
            file.extend(word.to_le_bytes());
        }
        file.extend(packet);
    }
    file
}

fn ipv4(protocol: u8, from: u8, payload: &[u8]) -> Vec<u8> {
    let to = 3 - from;
    let total = (20 + payload.len()) as u16;
    let mut packet = vec![0x45, 0];
    packet.extend(total.to_be_bytes());
    packet.extend([0, 7, 0x40, 0, 64, protocol, 0, 0, 10, 0, 0, from, 10, 0, 0, to]);
    packet.extend(payload);
    packet
}

fn tcp(ports: [u16; 2], seq: u32, ack: u32, flags: u8, payload: &[u8]) -> Vec<u8> {
    let mut header: Vec<u8> = ports.iter().flat_map(|port| port.to_be_bytes()).collect();
    header.extend(seq.to_be_bytes());
    header.extend(ack.to_be_bytes());
    header.extend([0x50, flags, 1, 0, 0, 0, 0, 0]);
    header.extend(payload);
    header
}

/// A connection that retransmits, and a datagram: five packets.
fn capture() -> Vec<u8> {
    let [forward, back] = [[40_000, 80], [80, 40_000]];
    pcap(&[
        ipv4(6, 1, &tcp(forward, 1000, 0, 2, &[])),
        ipv4(6, 2, &tcp(back, 5000, 1001, 18, &[])),
        ipv4(6, 1, &tcp(forward, 1001, 5001, 24, b"GET /index")),
        ipv4(6, 1, &tcp(forward, 1001, 5001, 24, b"GET /index")),
        ipv4(17, 2, &[0x13, 0x88, 0x0f, 0xa0, 0, 13, 0, 0, b'h', b'e', b'l', b'l', b'o']),
    ])
}

/// Shows each packet of a file to `see`.
fn each(file: &[u8], mut see: impl FnMut(&PacketView<'_>)) {
    let seed = capture::Seed([1, 2]);
    let (mut reader, mut conversations) = (Reader::new(file).unwrap(), Conversations::new(seed));
    let mut tracker = Tracker::new(tcp_analysis::Rules::default());
    let mut layers = Layers::new();
    while let Some(packet) = reader.next_packet().unwrap() {
        dissect(packet.link, packet.data, packet.original_len, &mut layers);
        let segment = layers.tcp(packet.data);
        let segment = segment.as_ref();
        let stream = conversations.add(&packet, &layers, segment);
        let packet: &Packet<'_> = &packet;
        see(&tracker.add(packet, &layers, segment, stream, &conversations));
    }
}

/// Numbers of the packets that pass.
fn passing(filter: &str) -> Vec<u64> {
    let filter = Filter::new(filter).unwrap_or_else(|error| panic!("{filter}: {error}"));
    let mut numbers = Vec::new();
    each(&capture(), |view| {
        if filter.matches(view) {
            numbers.push(view.packet.number);
        }
    });
    numbers
}

#[test]
fn fields_and_protocols_are_tested_for() {
    assert_eq!(passing("tcp"), [1, 2, 3, 4]);
    assert_eq!(passing("udp || tcp.analysis.retransmission"), [4, 5]);
    // A bit that is 0 is there.
    assert_eq!(passing("tcp.flags.syn"), [1, 2, 3, 4]);
    assert_eq!(passing("tcp.flags.syn == 1"), [1, 2]);
    assert_eq!(passing("!tcp"), [5]);
    assert_eq!(passing("frame"), [1, 2, 3, 4, 5]);
}

#[test]
fn of_two_values_one_decides_unless_all_are_asked_for() {
    assert_eq!(passing("tcp.port == 80"), [1, 2, 3, 4]);
    assert_eq!(passing("tcp.port != 80"), [0; 0]);
    assert_eq!(passing("tcp.port !== 80"), [1, 2, 3, 4]);
    assert_eq!(passing("tcp.port === 80"), [0; 0]);
    assert_eq!(passing("ip.addr == 10.0.0.1"), [1, 2, 3, 4, 5]);
    assert_eq!(passing("all ip.addr == 10.0.0.0/8"), [1, 2, 3, 4, 5]);
    assert_eq!(passing("all tcp.port > 80"), [0; 0]);
    assert_eq!(passing("any tcp.port != 80"), [1, 2, 3, 4]);
}

#[test]
fn numbers_addresses_times_bytes_and_sets() {
    assert_eq!(passing("ip.src == 10.0.0.2"), [2, 5]);
    assert_eq!(passing("ip.src in {10.0.0.2 .. 10.0.0.9, 10.1.0.0}"), [2, 5]);
    assert_eq!(passing("tcp.srcport in {1..100}"), [2]);
    assert_eq!(passing("tcp.srcport not in {1..100}"), [1, 3, 4, 5]);
    assert_eq!(passing("tcp.flags & 0x12 == 0x12"), [2]);
    assert_eq!(passing("tcp.flags & 2"), [1, 2]);
    assert_eq!(passing("tcp[13] == 0x12"), [2]);
    assert_eq!(passing("tcp[0:2] == 9c:40"), [1, 3, 4]);
    assert_eq!(passing("tcp.payload contains \"GET\""), [3, 4]);
    assert_eq!(passing("udp contains 68:65:6c"), [5]);
    assert_eq!(passing("frame.time_relative >= 0.003"), [4, 5]);
    assert_eq!(passing("frame.time_relative > 0.003"), [5]);
    assert_eq!(passing("tcp.srcport > tcp.dstport"), [1, 3, 4]);
    assert_eq!(passing("tcp.seq == 1 and tcp.len == 10"), [3, 4]);
    assert_eq!(passing("tcp.analysis.initial_rtt == 0.002"), [3, 4]);
}

#[test]
fn regular_expressions_functions_and_names() {
    assert_eq!(passing("tcp.payload matches \"get /IND\""), [3, 4]);
    assert_eq!(passing("tcp ~ r\"\\x47ET\\s/\""), [3, 4]);
    assert_eq!(passing("http.request.method == GET && http.request.uri matches \"^/i\""), [0; 0]);
    assert_eq!(passing("http"), [3, 4]);
    assert_eq!(passing("len(tcp.payload) == 10"), [3, 4]);
    assert_eq!(passing("count(ip.addr) == 2 && udp"), [5]);
    assert_eq!(passing("upper(ip.host) contains \"10.0.0.1\" && udp"), [5]);
    assert_eq!(passing("string(tcp.srcport) matches \"^8\""), [2]);
    assert_eq!(passing("max(tcp.srcport, tcp.dstport) == 40000"), [1, 2, 3, 4]);
    assert_eq!(passing("ip.proto == TCP xor tcp.len > 0"), [1, 2]);
    assert_eq!(passing("tcp ^^ udp ^^ frame"), [0; 0]);
    assert_eq!(passing("ip.proto == \"udp\""), [5]);
    assert_eq!(passing("tcp.flags.syn == Set && tcp.flags.str contains \"A\""), [2]);
    assert_eq!(passing("ip.src[3] == 02"), [2, 5]);
    assert_eq!(passing("tcp.payload[-5:] == \"index\""), [3, 4]);
    assert_eq!(passing("udp.payload[0,-1] == \"ho\""), [5]);
    assert_eq!(passing("ip.src#1 == 10.0.0.2 && !(ip.src#2 == 10.0.0.2)"), [2, 5]);
    assert_eq!(passing("frame.time >= \"2023-11-14 22:13:20.003\""), [4, 5]);
    assert_eq!(passing("tcp.connection.syn || tcp.connection.synack"), [1, 2]);
    assert_eq!(passing("_ws.expert.severity == Note"), [4]);
    assert_eq!(passing("_ws.expert"), [1, 2, 4]);
    assert_eq!(passing("frame.protocols == \"raw:ip:udp:data\""), [5]);
}

/// Expressions that take exponential time elsewhere, over a payload made for them; and those that
/// would take much memory are refused.
#[test]
fn regular_expressions_are_bounded() {
    let mut payload = vec![b'a'; 30_000];
    payload.push(b'!');
    let file =
        pcap(&[ipv4(17, 1, &[&[0x13, 0x88, 0x0f, 0xa0, 0, 0, 0, 0], &payload[..]].concat())]);
    for (text, passes) in
        [("(a+)+$", false), ("(a|a)*b", false), ("(a*)*!", true), ("(.*)(.*)(.*)c", false)]
    {
        let filter = Filter::new(&format!("frame matches \"{text}\"")).unwrap();
        each(&file, |view| assert_eq!(filter.matches(view), passes, "{text}"));
    }
    for text in ["(a{1,200}){1,200}", "((a{100}){100}){100}"] {
        let error = Filter::new(&format!("frame matches \"{text}\"")).unwrap_err();
        assert!(error.message.contains("too large"), "{}", error.message);
    }
}

/// A difference of packets that were shown depends on which were.
#[test]
fn time_since_the_packet_shown_before() {
    let filter = Filter::new("frame.time_delta_displayed >= 0.002 or frame.number == 1").unwrap();
    let seed = capture::Seed([1, 2]);
    let file = capture();
    let (mut reader, mut conversations) =
        (Reader::new(&file[..]).unwrap(), Conversations::new(seed));
    let mut tracker = Tracker::new(tcp_analysis::Rules::default());
    let mut layers = Layers::new();
    let mut shown = Vec::new();
    while let Some(packet) = reader.next_packet().unwrap() {
        dissect(packet.link, packet.data, packet.original_len, &mut layers);
        let segment = layers.tcp(packet.data);
        let segment = segment.as_ref();
        let stream = conversations.add(&packet, &layers, segment);
        let view = tracker.add(&packet, &layers, segment, stream, &conversations);
        if filter.matches(&view) {
            shown.push(packet.number);
            tracker.passed(packet.time_ns);
        }
    }
    assert_eq!(shown, [1, 3, 5]);
}

#[test]
fn and_binds_closer_than_or() {
    assert_eq!(passing("udp or tcp and tcp.len > 0"), [3, 4, 5]);
    assert_eq!(passing("(udp or tcp) and tcp.len > 0"), [3, 4]);
    assert_eq!(passing("not udp and tcp.len == 0"), [1, 2]);
}

/// Each mistake, what the message has to say, and where it points.
#[test]
fn mistakes_have_a_place_and_a_remedy() {
    for (text, says, at) in [
        ("tcp.prot == 80", "did you mean 'tcp.port'?", 0),
        ("tcp && foo.bar", "no field or protocol", 7),
        ("tcp.port == web", "not an unsigned number", 12),
        ("tcp.port == http", "cannot be compared", 12),
        ("tcp.port == 70000", "at most 65535", 12),
        ("ip.addr == fd00::1", "an IPv4 address", 11),
        ("ip.addr == 10.0.0.0/40", "an IPv4 address", 11),
        ("(tcp", "add ')'", 0),
        ("tcp)", "omit ')'", 3),
        ("tcp ||", "ends where a field", 6),
        ("tcp udp", "'&&' or '||' is missing", 4),
        ("tcp == 1", "can be tested for", 0),
        ("tcp.analysis.retransmission == 1", "no value", 31),
        ("tcp.port in {80", "add '}'", 12),
        ("tcp.port in {}", "empty", 12),
        ("tcp.port in {9..1}", "ends before it begins", 13),
        ("tcp.port == \"80\"", "without quotation marks", 12),
        ("ip.src contains 10", "no parts", 16),
        ("tcp.segment", "'tcp.len > 0'", 0),
        ("tcp.optons.timestamp", "did you mean 'tcp.options.timestamp'?", 0),
        ("ip.proto == ICMPP", "did you mean \"ICMP\"?", 12),
        ("ip.proto == TPC", "no value of that name; it has", 12),
        ("tcp.port matches \"80\"", "string(tcp.port)", 17),
        ("tcp matches \"(a\"", "no regular expression", 12),
        ("tcp matches \"(a{1,200}){1,200}\"", "too large", 12),
        ("tcp matches \"a\\.b\"", "no such escape", 14),
        ("len(tcp.port) > 1", "is not for tcp.port", 4),
        ("len(tcp.payload", "add ')'", 15),
        ("len(tcp.payload)", "compared with a value", 0),
        ("count(tcp) > 1", "is not for tcp", 6),
        ("frame.time > yesterday", "is not a date", 13),
        ("tcp.port#0 == 1", "which header", 9),
        ("1 == tcp.port", "begins with a field", 0),
        ("1 < tcp.port < 9", "begins with a field", 0),
        ("tcp.len > 1 < 9", "cannot be chained", 12),
        ("tcp.payload contains \"a", "not closed", 21),
        ("tcp.port == 80 $ 1", "no operator", 15),
        ("ip.src == tcp.port", "cannot be compared", 10),
    ] {
        let error = Filter::new(text).unwrap_err();
        assert!(error.message.contains(says), "{text}: {}", error.message);
        assert_eq!(error.at.start, at, "{text}: {}", error.message);
        assert!(error.at.end <= text.len());
    }
}

#[test]
fn length_and_nesting_are_bounded() {
    let nested = |depth: usize| format!("{}tcp{}", "(".repeat(depth), ")".repeat(depth));
    assert!(Filter::new(&nested(MAX_DEPTH)).is_ok());
    assert!(Filter::new(&nested(MAX_DEPTH + 1)).unwrap_err().message.contains("nested"));
    assert!(Filter::new(&"!".repeat(MAX_LENGTH)).unwrap_err().message.contains("nested"));
    let long = format!("tcp{}", " ".repeat(MAX_LENGTH - 3));
    assert!(Filter::new(&long).is_ok());
    assert!(Filter::new(&format!("{long} ")).unwrap_err().message.contains("at most"));
    // Many terms are no nesting.
    assert!(Filter::new(&["tcp"; 2000].join("||")).is_ok());
}

/// A test of any field.
fn test() -> impl Strategy<Value = String> {
    let fields = prop::sample::select(Field::ALL.to_vec());
    let relations = prop::sample::select(vec!["==", "!=", "===", "!==", ">", "<", ">=", "<="]);
    let quantifier = prop::sample::select(vec!["", "any ", "all "]);
    (fields, relations, quantifier, any::<u32>(), any::<bool>()).prop_map(
        |(field, relation, quantifier, number, alone)| {
            let description = field.description();
            let name = description.name;
            let literal = |number: u32| match description.kind {
                FieldKind::Presence => None,
                FieldKind::Decimal(bits) => Some((number >> (32 - u32::from(bits))).to_string()),
                FieldKind::Hex(bits) => Some(format!("0x{:x}", number >> (32 - u32::from(bits)))),
                FieldKind::Signed => Some((number.cast_signed() >> 1).to_string()),
                FieldKind::Boolean => Some((number & 1).to_string()),
                FieldKind::Time => Some(format!("{}.{:03}", number >> 10, number & 511)),
                FieldKind::Date => Some(format!("\"2023-11-14 22:13:{:02}\"", number % 60)),
                FieldKind::Ethernet => Some(format!("02:00:{:02x}:00:ff:01", number & 255)),
                FieldKind::Ipv4 => Some(format!("10.0.0.{}/{}", number & 255, number % 33)),
                FieldKind::Ipv6 => Some(format!("fd00::{:x}/{}", number & 255, number % 129)),
                FieldKind::Bytes => Some(format!("{:02x}:00", number & 255)),
                FieldKind::Text => Some(format!("\"a\\\"{}\"", number & 255)),
            };
            match literal(number) {
                Some(literal) if !alone => format!("{quantifier}{name} {relation} {literal}"),
                Some(literal) if number % 3 == 0 => format!("{name} in {{{literal}}}"),
                _ => name.to_owned(),
            }
        },
    )
}

/// A filter of any shape.
fn filter() -> impl Strategy<Value = String> {
    let names: Vec<&str> = protocols().map(|(name, _)| name).filter(|it| !it.is_empty()).collect();
    let leaf = prop_oneof![test(), prop::sample::select(names).prop_map(str::to_owned)];
    leaf.prop_recursive(5, 24, 4, |inner| {
        prop_oneof![
            inner.clone().prop_map(|one| format!("!({one})")),
            prop::collection::vec(inner.clone(), 2..4)
                .prop_map(|all| format!("({})", all.join(" && "))),
            prop::collection::vec(inner, 2..4).prop_map(|all| format!("({})", all.join(" || "))),
        ]
    })
}

proptest! {
    #[test]
    fn a_filter_is_printed_and_parsed_again(text in filter()) {
        let first = Filter::new(&text).map_err(|error| TestCaseError::fail(error.to_string()))?;
        let printed = first.to_string();
        let again = Filter::new(&printed)
            .map_err(|error| TestCaseError::fail(format!("{printed}: {error}")))?;
        prop_assert!(first == again, "{} | {}", text, printed);
        prop_assert_eq!(again.to_string(), printed);
        // Both decide the same.
        each(&capture(), |view| assert_eq!(first.matches(view), again.matches(view)));
    }

    #[test]
    fn any_text_is_a_filter_or_an_error_inside_of_it(text in ".{0,80}") {
        if let Err(error) = Filter::new(&text) {
            prop_assert!(error.at.end <= text.len());
            prop_assert!(!error.message.is_empty());
        }
    }

    #[test]
    fn any_tokens_are_a_filter_or_an_error(
        tokens in prop::collection::vec(
            prop::sample::select(vec![
                "tcp", "tcp.port", "==", "80", "&&", "||", "!", "(", ")", "{", "}", "in", ",", "..",
                "all", "[0]", "[1:2]", "len", "xor", "#", "1", "matches", "upper", "http.host", "frame", "&", "\"a\"", "ip.addr", "10.0.0.1/8", "contains", "not",
            ]),
            0..20,
        )
    ) {
        let text = tokens.join(" ");
        if let Ok(filter) = Filter::new(&text) {
            let again = Filter::new(&filter.to_string());
            prop_assert!(again.as_ref() == Ok(&filter), "{} | {}", text, filter);
        }
    }
}
