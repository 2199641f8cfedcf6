//! The calculators: their questions, and the fields of their forms.

use super::form::{Entry, Kind};
use longhaul::Field;

/// A calculator.
#[derive(Debug)]
pub(super) struct Calculator {
    /// Its name in `longhaul calc`; `bdp` is a command of its own.
    pub(super) name: &'static str,
    pub(super) title: &'static str,
    pub(super) question: &'static str,
    /// The variant of `longhaul::calc::CalcRequest`; empty for `bdp`.
    pub(super) variant: &'static str,
    /// Fields of the request that the form does not have, or that were left empty: key and JSON.
    pub(super) fixed: &'static [(&'static str, &'static str)],
    pub(super) fields: &'static [Entry],
}

/// The calculator of this name.
pub(super) fn of(name: &str) -> Option<&'static Calculator> {
    CALCULATORS.iter().find(|one| one.name == name)
}

const OPTIONAL: Option<&str> = Some("");

const fn entry(
    (name, key, field): (&'static str, &'static str, Field),
    (label, hint): (&'static str, &'static str),
    kind: Kind,
    default: Option<&'static str>,
    example: &'static str,
) -> Entry {
    Entry { name, key, field, label, hint, kind, default, example }
}

/// A rate; `hint` says of what.
const fn rate(
    label: &'static str,
    hint: &'static str,
    default: Option<&'static str>,
    example: &'static str,
) -> Entry {
    entry(("rate", "rate", Field::Rate), (label, hint), Kind::Rate, default, example)
}

const fn rtt(default: Option<&'static str>, example: &'static str) -> Entry {
    let text = ("RTT", "Round-trip time under load, as in 173ms, 250us or 1.5s");
    entry(("rtt", "rtt", Field::Rtt), text, Kind::Rtt, default, example)
}

const fn loss(default: Option<&'static str>, example: &'static str) -> Entry {
    let text = ("Random loss", "Share of packets, as in 1%, 0.001% or 1e-5");
    entry(("loss", "loss", Field::Loss), text, Kind::Loss, default, example)
}

const fn window(
    label: &'static str,
    default: Option<&'static str>,
    example: &'static str,
) -> Entry {
    let hint = "Bytes, as in 64KiB or 4MiB; at most 1 GiB";
    entry(("window", "window", Field::Window), (label, hint), Kind::Size, default, example)
}

const fn streams() -> Entry {
    let text = ("Streams", "Parallel connections that share the rate, 1 to 128");
    entry(("streams", "streams", Field::Streams), text, Kind::Count, Some("1"), "1")
}

/// MSS over an MTU of 1500: IPv4 with TCP timestamps.
const MSS: Entry = entry(
    ("mss", "mss", Field::Mss),
    ("MSS", "Payload of a full segment in bytes: 1448 with an MTU of 1500 and timestamps"),
    Kind::Count,
    Some("1448"),
    "1448",
);

const LINK: Entry =
    Entry { key: "link", ..rate("Link rate", "An upper bound, as in 1gbit", OPTIONAL, "1gbit") };

const TARGET: Entry = entry(
    ("target", "target", Field::Target),
    ("Target rate", "The loss that this rate tolerates is computed; empty: the link rate"),
    Kind::Rate,
    OPTIONAL,
    "",
);

const DELAYED_ACK: Entry = entry(
    ("b", "packets_per_ack", Field::Count),
    ("Segments per ACK (b)", "2 with delayed ACKs, unless bytes are counted as in Linux"),
    Kind::Choice(&[("1", "1"), ("2", "2: delayed ACKs")]),
    Some("1"),
    "1",
);

const PER_ACK: (&str, &str) = ("packets_per_ack", "1");

pub(super) static CALCULATORS: &[Calculator] = &[
    Calculator {
        name: "bdp",
        title: "Bandwidth-delay product",
        question: "BDP, window and buffers of a path, its payload rate, ramp-up and tolerable loss.",
        variant: "",
        fixed: &[],
        fields: &[
            rate("Rate", "Bottleneck rate, as in 100mbit, 2.5gbit or 200m", None, "100mbit"),
            rtt(None, "173ms"),
            window("Window", OPTIONAL, ""),
            streams(),
            entry(
                ("mtu", "mtu", Field::Mtu),
                ("MTU", "Largest IP packet in bytes, 576 to 65535"),
                Kind::Count,
                Some("1500"),
                "1500",
            ),
        ],
    },
    Calculator {
        name: "window",
        title: "TCP window",
        question: "Of rate, RTT and window give two: the third is computed.",
        variant: "window",
        fixed: &[],
        fields: &[
            rate("Rate", "Total rate of all streams, as in 100mbit", OPTIONAL, "100mbit"),
            rtt(OPTIONAL, "173ms"),
            window("Window", OPTIONAL, ""),
            streams(),
        ],
    },
    Calculator {
        name: "scale",
        title: "Window scale",
        question: "The window scales of TCP (RFC 7323), and the smallest that a path needs.",
        variant: "scale",
        fixed: &[],
        fields: &[
            rate("Rate", "Rate that the window must sustain, as in 2.5gbit", OPTIONAL, "100mbit"),
            rtt(OPTIONAL, "173ms"),
        ],
    },
    Calculator {
        name: "mathis",
        title: "Reno under loss: Mathis",
        question: "The throughput of Reno under random loss, and the loss that a rate tolerates.",
        variant: "loss",
        fixed: &[("law", "mathis")],
        fields: &[
            rtt(None, "100ms"),
            loss(OPTIONAL, "1%"),
            LINK,
            TARGET,
            MSS,
            window("Receive window", OPTIONAL, ""),
            DELAYED_ACK,
        ],
    },
    Calculator {
        name: "pftk",
        title: "Reno with timeouts: PFTK",
        question: "The throughput of Reno with timeouts and a receive window (Padhye et al.).",
        variant: "loss",
        fixed: &[("law", "pftk")],
        fields: &[
            rtt(None, "100ms"),
            loss(OPTIONAL, "5%"),
            LINK,
            TARGET,
            MSS,
            window("Receive window", OPTIONAL, ""),
            DELAYED_ACK,
            entry(
                ("rto", "rto", Field::Rto),
                (
                    "Retransmission timeout",
                    "The initial one, as in 1s; empty: RTT + 200 ms as in Linux",
                ),
                Kind::Rtt,
                OPTIONAL,
                "",
            ),
        ],
    },
    Calculator {
        name: "cubic",
        title: "CUBIC under loss",
        question: "The throughput of CUBIC under random loss (RFC 9438), and the loss that a rate tolerates.",
        variant: "loss",
        fixed: &[("law", "cubic"), PER_ACK],
        fields: &[
            rtt(None, "100ms"),
            loss(OPTIONAL, "0.01%"),
            LINK,
            TARGET,
            MSS,
            window("Receive window", OPTIONAL, ""),
        ],
    },
    Calculator {
        name: "bbr",
        title: "BBR under loss",
        question: "What is known of the throughput of BBR version 1 under random loss.",
        variant: "loss",
        fixed: &[("law", "bbr"), PER_ACK],
        fields: &[
            rtt(None, "100ms"),
            loss(OPTIONAL, "1%"),
            Entry { key: "link", ..rate("Link rate", "As in 1gbit", None, "1gbit") },
            TARGET,
            MSS,
            window("Receive window", OPTIONAL, ""),
        ],
    },
    Calculator {
        name: "transfer",
        title: "Duration of a transfer",
        question: "The time from the first SYN to the last ACK: handshake, slow start, steady state.",
        variant: "transfer",
        fixed: &[],
        fields: &[
            entry(
                ("size", "transfer/size", Field::Bytes),
                ("Size", "Payload, as in 10GB or 700MiB"),
                Kind::Size,
                None,
                "10GB",
            ),
            Entry { key: "transfer/link", ..rate("Link rate", "As in 1gbit", None, "1gbit") },
            Entry { key: "transfer/rtt", ..rtt(None, "100ms") },
            Entry { key: "transfer/loss", ..loss(Some("0%"), "0.01%") },
            entry(
                ("iw", "transfer/initial", Field::InitialWindow),
                ("Initial window", "Segments; 10 by RFC 6928"),
                Kind::Count,
                Some("10"),
                "10",
            ),
            Entry { key: "transfer/window", ..window("Receive window", OPTIONAL, "") },
            Entry { key: "transfer/mss", ..MSS },
            entry(
                ("congestion", "congestion", Field::Congestion),
                ("Congestion control", "The sender's"),
                Kind::Choice(&[("", "all"), ("reno", "Reno"), ("cubic", "CUBIC"), ("bbr", "BBR")]),
                OPTIONAL,
                "",
            ),
        ],
    },
    Calculator {
        name: "overhead",
        title: "Overhead",
        question: "The payload rate of an Ethernet link after framing and the headers of IP, TCP or UDP.",
        variant: "overhead",
        fixed: &[],
        fields: &[
            rate("Line rate", "Nominal Ethernet rate, as in 2.5gbit", None, "2.5gbit"),
            entry(
                ("mtu", "mtu", Field::Mtu),
                ("MTU", "Largest IP packet in bytes; jumbo frames: 9000"),
                Kind::Count,
                Some("1500"),
                "1500",
            ),
            entry(
                ("ip", "ip", Field::Method),
                ("IP version", "IPv4 headers have 20 bytes, IPv6 headers 40"),
                Kind::Choice(&[("ipv4", "IPv4"), ("ipv6", "IPv6")]),
                Some("ipv4"),
                "ipv4",
            ),
            entry(
                ("vlan", "vlan_tags", Field::Vlan),
                ("VLAN tags", "Per frame, 0 to 2"),
                Kind::Count,
                Some("0"),
                "0",
            ),
            entry(
                ("protocol", "udp", Field::Transport),
                ("Transport", "What the packets carry"),
                Kind::Choice(&[("false", "TCP"), ("true", "UDP")]),
                Some("false"),
                "false",
            ),
            entry(
                ("timestamps", "timestamps", Field::Settings),
                ("TCP timestamps", "12 bytes of each segment (RFC 7323)"),
                Kind::Choice(&[("true", "on"), ("false", "off")]),
                Some("true"),
                "true",
            ),
            entry(
                ("sack", "sack_blocks", Field::Sack),
                ("SACK blocks", "In every segment: 0 to 3 with timestamps, 0 to 4 without"),
                Kind::Count,
                Some("0"),
                "0",
            ),
        ],
    },
    Calculator {
        name: "line",
        title: "Line rate of a goodput",
        question: "The Ethernet link that a measured TCP goodput identifies, and the share of a plan.",
        variant: "line",
        fixed: &[],
        fields: &[
            entry(
                ("goodput", "goodput", Field::Rate),
                ("Goodput", "Of a bulk transfer, as in 941mbit or 94.1mbit"),
                Kind::Rate,
                None,
                "941mbit",
            ),
            entry(
                ("ip", "ip", Field::Method),
                ("IP version", "That of the transfer"),
                Kind::Choice(&[("", "unknown: try both"), ("ipv4", "IPv4"), ("ipv6", "IPv6")]),
                OPTIONAL,
                "",
            ),
            entry(
                ("plan", "plan", Field::Plan),
                ("Plan", "Rate that the provider sells, as in 1gbit"),
                Kind::Rate,
                OPTIONAL,
                "1gbit",
            ),
        ],
    },
    Calculator {
        name: "distance",
        title: "Distance and least RTT",
        question: "The great circle between two places, and the least RTT along it in fibre.",
        variant: "distance",
        fixed: &[],
        fields: &[
            entry(
                ("from", "from", Field::Host),
                ("From", "City with an airport, IATA code, or coordinates: Paris, CDG, 48.86,2.35"),
                Kind::Place,
                None,
                "Eugene",
            ),
            entry(("to", "to", Field::To), ("To", "The other place"), Kind::Place, None, "Paris"),
            entry(
                ("rtt", "rtt", Field::Rtt),
                ("Measured RTT", "To compare, as in 163.6ms"),
                Kind::Rtt,
                OPTIONAL,
                "163.6ms",
            ),
        ],
    },
    Calculator {
        name: "wan",
        title: "WAN optimisers",
        question: "Throughput with and without a pair of devices that terminate TCP at both sites.",
        variant: "wan",
        fixed: &[],
        fields: &[
            rate("Link rate", "Between the sites, as in 100mbit", None, "100mbit"),
            rtt(None, "173ms"),
            loss(Some("0%"), "0.1%"),
            window("Window of the hosts", Some("64KiB"), "64KiB"),
            entry(
                ("ratio", "ratio", Field::Ratio),
                ("Data reduction", "Compression and deduplication, 1:1 to 1000:1, as in 3:1"),
                Kind::Ratio,
                Some("1:1"),
                "3:1",
            ),
            entry(
                ("lan", "lan", Field::Link),
                ("Rate of the local networks", "As in 1gbit"),
                Kind::Rate,
                Some("1gbit"),
                "1gbit",
            ),
            MSS,
            entry(
                ("reno", "reno", Field::Congestion),
                (
                    "Congestion control of the hosts",
                    "CUBIC is the default of Linux, macOS and Windows",
                ),
                Kind::Choice(&[("false", "CUBIC"), ("true", "Reno")]),
                Some("false"),
                "false",
            ),
        ],
    },
    Calculator {
        name: "udt",
        title: "UDT's rate increase",
        question: "How fast UDT increases its sending rate, and how it recovers from a loss.",
        variant: "udt",
        fixed: &[("sending", "0")],
        fields: &[
            rate("Link rate (L)", "As in 1gbit", None, "1gbit"),
            entry(
                ("sending", "sending", Field::Target),
                ("Sending rate (C)", "At most the link rate; empty: 0"),
                Kind::Rate,
                OPTIONAL,
                "",
            ),
            entry(
                ("packet", "packet", Field::Packet),
                ("Packet size (S)", "Bytes, 64 to 65535"),
                Kind::Count,
                Some("1500"),
                "1500",
            ),
            loss(OPTIONAL, "0.1%"),
        ],
    },
];
