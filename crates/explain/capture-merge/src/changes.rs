//! What a middlebox changed: fields of packets that are in both captures.

use crate::captured::CapturedPackets;
use crate::flow_pairs::FlowPair;
use crate::matching::Matches;
use crate::packet::PacketIdentity;
use crate::transit::Transit;
use crate::translation::Both;
use capture::dissect::{FlowKey, PacketDirection, TcpOptions};

/// A field that differs between the captures.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Change {
    /// From which capture to which.
    pub transit: Transit,
    /// Its name.
    pub field: &'static str,
    /// Packets in which it differs.
    pub count: u64,
    /// Numbers in A and B of the first one.
    pub first: (u32, u32),
    /// What it was there before, and after.
    pub values: [String; 2],
    /// Whether every router does it.
    pub is_routing: bool,
}

/// An option of a SYN or SYN-ACK that differs between the captures.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HandshakeChange {
    /// From which capture to which.
    pub transit: Transit,
    /// Stream in A and in B.
    pub streams: (u32, u32),
    /// Whether it is a SYN-ACK.
    pub is_syn_ack: bool,
    /// Packet numbers in A and B.
    pub packets: (u32, u32),
    /// Name of the option.
    pub option: &'static str,
    /// Its value before and after; `None` where the SYN does not have it.
    pub values: [Option<String>; 2],
}

/// What differs between the captures.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Changes {
    /// Field by field, those of A to B first.
    pub fields: Vec<Change>,
    /// Options of handshakes, at most [`MAX_HANDSHAKE_CHANGES`].
    pub handshakes: Vec<HandshakeChange>,
    /// SYNs and SYN-ACKs that are in both captures, and those of them that differ.
    pub handshakes_compared: [u64; 2],
}

/// Options of handshakes that are kept.
pub const MAX_HANDSHAKE_CHANGES: usize = 1000;

impl Changes {
    /// Compares the packets of a direction of a flow.
    pub(crate) fn add(
        &mut self,
        (a, b): (&CapturedPackets, &CapturedPackets),
        pair: FlowPair,
        both: &Both<'_>,
        matches: &Matches,
        transit: Transit,
    ) {
        let flows = a.flows.get(pair.a as usize).zip(b.flows.get(pair.b as usize));
        let Some((a_flow, b_flow)) = flows else { return };
        let a_ends = ends(&a_flow.key, both.direction);
        let b_ends = ends(&b_flow.key, pair.direction_in_b(both.direction));
        for found in &matches.pairs {
            let places = [found.a as usize - both.starts[0], found.b as usize - both.starts[1]];
            let packets = both.a.get(places[0]).zip(both.b.get(places[1]));
            let Some((in_a, in_b)) = packets else { continue };
            let numbers = (in_a.number, in_b.number);
            let ordered = |a: String, b: String| match transit {
                Transit::AToB => [a, b],
                Transit::BToA => [b, a],
            };
            for (name, (a, b)) in
                ["source", "destination"].into_iter().zip(a_ends.iter().zip(&b_ends))
            {
                if a != b {
                    let values = || ordered(a.clone(), b.clone());
                    self.note((transit, name, false), numbers, values);
                }
            }
            // A range of a super-segment has the fields of another packet.
            if in_a.payload_len != in_b.payload_len {
                continue;
            }
            for (field, is_routing, is_different, text) in FIELDS {
                if is_different(in_a, in_b) {
                    let values = || ordered(text(in_a), text(in_b));
                    self.note((transit, field, is_routing), numbers, values);
                }
            }
            let syns = a.syns.get(&in_a.number).zip(b.syns.get(&in_b.number));
            if let Some((a_syn, b_syn)) = syns.filter(|_| in_a.is_syn() && in_b.is_syn()) {
                let streams = a_flow.stream.zip(b_flow.stream).unwrap_or_default();
                let syns = if transit == Transit::AToB { [a_syn, b_syn] } else { [b_syn, a_syn] };
                self.compare_syns(transit, streams, (in_a, in_b), syns);
            }
        }
    }

    fn note(
        &mut self,
        (transit, field, is_routing): (Transit, &'static str, bool),
        first: (u32, u32),
        values: impl FnOnce() -> [String; 2],
    ) {
        let same = |change: &&mut Change| change.transit == transit && change.field == field;
        if let Some(change) = self.fields.iter_mut().find(same) {
            change.count += 1;
            if first < change.first {
                (change.first, change.values) = (first, values());
            }
        } else {
            let values = values();
            self.fields.push(Change { transit, field, count: 1, first, values, is_routing });
        }
    }

    fn compare_syns(
        &mut self,
        transit: Transit,
        streams: (u32, u32),
        (a, b): (&PacketIdentity, &PacketIdentity),
        syns: [&TcpOptions; 2],
    ) {
        self.handshakes_compared[0] += 1;
        let mut is_changed = false;
        for (option, text) in OPTIONS {
            let values = syns.map(text);
            if values[0] == values[1] {
                continue;
            }
            is_changed = true;
            if self.handshakes.len() < MAX_HANDSHAKE_CHANGES {
                self.handshakes.push(HandshakeChange {
                    transit,
                    streams,
                    is_syn_ack: a.flags & 0x10 != 0,
                    packets: (a.number, b.number),
                    option,
                    values,
                });
            }
        }
        self.handshakes_compared[1] += u64::from(is_changed);
    }

    /// Brings everything into an order of its own.
    pub(crate) fn sort(&mut self) {
        self.fields.sort_by_key(|change| {
            let place = FIELDS.iter().position(|it| it.0 == change.field);
            (change.transit, place)
        });
        self.handshakes.sort_by_key(|change| (change.streams, change.packets));
    }
}

/// Source and destination of a direction.
fn ends(key: &FlowKey, direction: usize) -> [String; 2] {
    let a = (key.a_address(), key.a_port);
    let b = (key.b_address(), key.b_port);
    let ends = if direction == PacketDirection::AToB.index() { [a, b] } else { [b, a] };
    ends.map(|(address, port)| core::net::SocketAddr::new(address, port).to_string())
}

type Field = (
    &'static str,
    bool,
    fn(&PacketIdentity, &PacketIdentity) -> bool,
    fn(&PacketIdentity) -> String,
);

/// The fields that are compared: name, whether routers change it, how, as text.
const FIELDS: [Field; 12] = [
    ("TTL", true, |a, b| a.ttl != b.ttl, |it| it.ttl.to_string()),
    ("DSCP", false, |a, b| a.tos >> 2 != b.tos >> 2, |it| (it.tos >> 2).to_string()),
    ("ECN", false, |a, b| a.tos & 3 != b.tos & 3, |it| ECN[usize::from(it.tos & 3)].to_owned()),
    ("IP ID", false, |a, b| a.ip_id != b.ip_id, |it| it.ip_id.to_string()),
    ("sequence number", false, |a, b| a.seq != b.seq, |it| it.seq.to_string()),
    ("acknowledgement number", false, |a, b| a.ack != b.ack, |it| it.ack.to_string()),
    ("TCP flags", false, |a, b| a.flags != b.flags, |it| format!("{:#05x}", it.flags)),
    ("window", false, |a, b| a.window != b.window, |it| it.window.to_string()),
    (
        "timestamp value",
        false,
        |a, b| a.has_timestamps() != b.has_timestamps() || a.ts_val != b.ts_val,
        |it| timestamp(it, it.ts_val),
    ),
    (
        "timestamp echo",
        false,
        |a, b| a.has_timestamps() != b.has_timestamps() || a.ts_ecr != b.ts_ecr,
        |it| timestamp(it, it.ts_ecr),
    ),
    (
        "TCP options",
        false,
        |a, b| a.options != b.options,
        |it| format!("digest {:08x}", it.options),
    ),
    (
        "payload",
        false,
        |a, b| match a.has_whole() && b.has_whole() {
            true => a.whole != b.whole,
            false => a.has_prefix() && b.has_prefix() && a.prefix != b.prefix,
        },
        |it| format!("digest {:08x}", if it.has_whole() { it.whole } else { it.prefix }),
    ),
];

/// Names of the codepoints (RFC 3168, section 5).
const ECN: [&str; 4] = ["Not-ECT", "ECT(1)", "ECT(0)", "CE"];

fn timestamp(packet: &PacketIdentity, value: u32) -> String {
    if packet.has_timestamps() { value.to_string() } else { "none".to_owned() }
}

/// The options of a SYN that are compared, and their values as text.
type SynOption = (&'static str, fn(&TcpOptions) -> Option<String>);

const OPTIONS: [SynOption; 6] = [
    ("MSS", |it| it.mss.map(|mss| mss.to_string())),
    ("window scale", |it| it.window_scale.map(|shift| shift.to_string())),
    ("SACK permitted", |it| it.sack_permitted.then(|| "yes".to_owned())),
    ("timestamps", |it| it.timestamps.map(|_| "yes".to_owned())),
    ("fast open", |it| it.fast_open.map(|length| format!("cookie of {length} bytes"))),
    ("MPTCP", |it| it.mptcp.map(|subtype| capture::dissect::mptcp_name(subtype).to_owned())),
];
