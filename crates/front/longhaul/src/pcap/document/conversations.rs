//! Conversations and endpoints of a capture.

use super::{Broken, file_object, seconds};
use crate::pcap::reading::Capture;
use crate::pcap::rows::ConversationLayer;
use capture::dissect::PacketDirection;
use capture::endpoints::{Address, Endpoint as EndpointRow};
use capture::{Counts, LeftOut};
use report::terminal::ConversationRow;
use serde::Serialize;

/// Conversations or endpoints not listed because the memory for tables was used up.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Debug, Clone, Serialize)]
pub struct NotListed {
    /// Their bytes.
    pub bytes: u64,
    /// Conversations, about.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub conversations: Option<u64>,
    /// Endpoints, about.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub endpoints: Option<u64>,
    /// Their packets.
    pub packets: u64,
}

impl NotListed {
    fn of(left_out: LeftOut, is_endpoints: bool) -> Option<Self> {
        let LeftOut { flows, counts } = left_out;
        (counts.frames > 0).then(|| NotListed {
            bytes: counts.bytes,
            conversations: (!is_endpoints).then_some(flows),
            endpoints: is_endpoints.then_some(flows),
            packets: counts.frames,
        })
    }
}

/// The conversations of a file; `L` is their list, or what serialises as one.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Debug, Clone, Serialize)]
pub struct ConversationsFile<L> {
    /// Where it broke off.
    pub broken: Option<Broken>,
    /// Bytes on the wire.
    pub bytes: u64,
    /// Those with most bytes first.
    pub conversations: L,
    /// Its name.
    pub file: String,
    /// Layer of the addresses.
    pub layer: &'static str,
    /// Further conversations.
    pub not_listed: Option<NotListed>,
    /// Remarks, as sentences.
    pub notes: Vec<String>,
    /// Packets.
    pub packets: u64,
}

impl<L> ConversationsFile<L> {
    /// With these conversations, beside those that were left out.
    pub fn new(
        capture: &Capture,
        layer: ConversationLayer,
        left_out: LeftOut,
        conversations: L,
    ) -> Self {
        file_object!(
            capture,
            ConversationsFile {
                layer: layer.name(),
                conversations,
                not_listed: NotListed::of(left_out, false),
            }
        )
    }
}

/// The endpoints of a file; `L` is their list, or what serialises as one.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Debug, Clone, Serialize)]
pub struct EndpointsFile<L> {
    /// Where it broke off.
    pub broken: Option<Broken>,
    /// Bytes on the wire.
    pub bytes: u64,
    /// Those with most bytes first.
    pub endpoints: L,
    /// Its name.
    pub file: String,
    /// Layer of the addresses.
    pub layer: &'static str,
    /// Further endpoints.
    pub not_listed: Option<NotListed>,
    /// Remarks, as sentences.
    pub notes: Vec<String>,
    /// Packets.
    pub packets: u64,
}

impl<L> EndpointsFile<L> {
    /// With these endpoints, beside those that were left out.
    pub fn new(
        capture: &Capture,
        layer: ConversationLayer,
        left_out: LeftOut,
        endpoints: L,
    ) -> Self {
        file_object!(
            capture,
            EndpointsFile {
                layer: layer.name(),
                endpoints,
                not_listed: NotListed::of(left_out, true),
            }
        )
    }
}

/// An address, with its port where it has one.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Debug, Clone, Serialize)]
pub struct End {
    /// The address.
    pub address: String,
    /// The port.
    pub port: Option<u16>,
}

impl End {
    /// As text.
    #[must_use]
    pub fn of(address: &Address) -> Self {
        let (address, port) = match address {
            Address::Ethernet([a, b, c, d, e, f]) => {
                (format!("{a:02x}:{b:02x}:{c:02x}:{d:02x}:{e:02x}:{f:02x}"), None)
            }
            Address::Ip(ip) => (ip.to_string(), None),
            Address::Port(ip, port) => (ip.to_string(), Some(*port)),
        };
        End { address, port }
    }
}

/// One direction of a conversation.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Debug, Clone, Serialize)]
pub struct OneWay {
    /// Its bytes.
    pub bytes: u64,
    /// Its frames.
    pub frames: u64,
    /// Its mean rate in bit/s.
    pub rate_bps: Option<f64>,
}

/// A conversation.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Debug, Clone, Serialize)]
pub struct Conversation {
    /// The end that sent first.
    pub a: End,
    /// The traffic that it sent.
    pub a_to_b: OneWay,
    /// The other end.
    pub b: End,
    /// The traffic that it sent.
    pub b_to_a: OneWay,
    /// Seconds from its first packet to its last.
    pub duration_s: f64,
    /// Seconds from the first packet of the file to its first.
    pub start_s: f64,
    /// Its number, if it is a TCP stream.
    pub stream: Option<usize>,
}

/// Conversations of a capture, one by one.
pub fn conversations(
    capture: &Capture,
    rows: impl Iterator<Item = ConversationRow>,
) -> impl Iterator<Item = Conversation> {
    let first_ns = capture.conversations.first_ns().unwrap_or(0);
    rows.map(move |row: ConversationRow| {
        let [a, b] = row.ends.each_ref().map(End::of);
        let one_way = |counts: Counts, direction| OneWay {
            bytes: counts.bytes,
            frames: counts.frames,
            rate_bps: row.traffic.rate_bps(direction),
        };
        let [forward, backward] = row.traffic.each;
        Conversation {
            a,
            a_to_b: one_way(forward, PacketDirection::AToB),
            b,
            b_to_a: one_way(backward, PacketDirection::BToA),
            duration_s: seconds(row.traffic.duration_ns()),
            start_s: seconds(row.traffic.first_ns.saturating_sub(first_ns)),
            stream: row.stream,
        }
    })
}

/// Frames and bytes.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Debug, Clone, Serialize)]
pub struct Total {
    /// The bytes.
    pub bytes: u64,
    /// The frames.
    pub frames: u64,
}

impl From<Counts> for Total {
    fn from(counts: Counts) -> Self {
        Total { bytes: counts.bytes, frames: counts.frames }
    }
}

/// An endpoint.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Debug, Clone, Serialize)]
pub struct Endpoint {
    /// Its address.
    pub end: End,
    /// The traffic that it received.
    pub received: Total,
    /// The traffic that it sent.
    pub sent: Total,
}

impl From<EndpointRow> for Endpoint {
    fn from(row: EndpointRow) -> Self {
        Endpoint {
            end: End::of(&row.address),
            received: row.received.into(),
            sent: row.sent.into(),
        }
    }
}
