//! Packets, one document each, and counts of them.

use super::{Broken, VERSION, file_object, seconds};
use crate::pcap::reading::Capture;
use capture::dissect::Protocol;
use packet_fields::{PacketView, Summary, detail};
use report::terminal::ExpertRow;
use report::untrusted::clean;
use serde::Serialize;

/// A packet.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Debug, Clone, Serialize)]
pub struct Packet {
    /// The bytes of its frame in hexadecimal, if requested.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bytes: Option<String>,
    /// Destination address.
    pub destination: String,
    /// Flags by Wireshark's names.
    pub flags: Vec<&'static str>,
    /// Its description, in a line.
    pub info: String,
    /// Its layers, if requested.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub layers: Option<Vec<Layer>>,
    /// Its length on the wire.
    pub length_bytes: u32,
    /// Its marks, in a word or two.
    pub marks: String,
    /// Its number in the file.
    pub number: u64,
    /// The innermost protocol.
    pub protocol: &'static str,
    /// The reassembled packet in hexadecimal, if there is one and the bytes are requested.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reassembled: Option<Option<String>>,
    /// Name and version of the document.
    pub schema: &'static str,
    /// Source address.
    pub source: String,
    /// Its TCP stream.
    pub stream: Option<u32>,
    /// Seconds since the first packet.
    pub time_s: f64,
    /// Seconds since 1970.
    pub time_unix_s: f64,
}

impl Packet {
    /// A packet with its columns, and with its fields and bytes `with_layers`.
    #[must_use]
    pub fn new(view: &PacketView<'_>, summary: &Summary, with_layers: bool) -> Self {
        let stream = view.stream.as_ref();
        let flags = stream.map(|stream| stream.analysis.flags.names().collect());
        let layers = || detail::layers(view).iter().map(Layer::of).collect();
        let reassembled = || view.is_reassembled().then(|| hexadecimal(view.packet.data));
        Packet {
            bytes: with_layers.then(|| hexadecimal(view.packet.frame)),
            destination: summary.destination.clone(),
            flags: flags.unwrap_or_default(),
            info: summary.info.clone(),
            layers: with_layers.then(layers),
            length_bytes: view.packet.original_len,
            marks: summary.marks.trim_end().to_owned(),
            number: view.packet.number,
            protocol: summary.protocol,
            reassembled: with_layers.then(reassembled),
            schema: "longhaul.pcap-packet/1",
            source: summary.source.clone(),
            stream: stream.map(|stream| stream.number),
            time_s: view.since_first_ns as f64 / 1e9,
            time_unix_s: seconds(view.packet.time_ns),
        }
    }
}

/// A layer of a packet.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Debug, Clone, Serialize)]
pub struct Layer {
    /// Its fields.
    pub fields: Vec<FieldValue>,
    /// True if its bytes are those of the reassembled packet.
    pub is_reassembled: bool,
    /// Length of its header, in bytes.
    pub length: usize,
    /// Its protocol; `frame` for the whole.
    pub protocol: &'static str,
    /// Where its header begins, in bytes.
    pub start: usize,
}

impl Layer {
    fn of(layer: &detail::LayerDetail) -> Self {
        let fields = layer.fields.iter().map(|it| FieldValue {
            field: it.field.description().name,
            value: it.number.map_or_else(|| Value::Text(clean(&it.text)), Value::Number),
        });
        Layer {
            fields: fields.collect(),
            is_reassembled: layer.is_reassembled,
            length: layer.length,
            protocol: match layer.protocol {
                Protocol::None => "frame",
                protocol => protocol.name(),
            },
            start: layer.start,
        }
    }
}

/// A field of a layer.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Debug, Clone, Serialize)]
pub struct FieldValue {
    /// Its name in Wireshark.
    pub field: &'static str,
    /// Its value.
    pub value: Value,
}

/// The value of a field.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Debug, Clone, Serialize)]
#[serde(untagged)]
pub enum Value {
    /// A number.
    Number(i64),
    /// Text.
    Text(String),
}

/// Data that one end of a stream sent, one document for each part.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Debug, Clone, Serialize)]
pub struct FollowedPart {
    /// The number of bytes.
    pub bytes: usize,
    /// The bytes in hexadecimal.
    pub data: String,
    /// `first` for the end that sent first, else `second`.
    pub end: &'static str,
    /// Bytes that were not captured.
    pub missing_bytes: u32,
    /// The packet that it came with.
    pub packet: u64,
    /// Name and version of the document.
    pub schema: &'static str,
    /// Number of the stream.
    pub stream: u32,
    /// Seconds since the first packet of the stream.
    pub time_s: f64,
}

/// Bytes in hexadecimal.
#[must_use]
pub fn hexadecimal(bytes: &[u8]) -> String {
    use std::fmt::Write as _;
    bytes.iter().fold(String::with_capacity(2 * bytes.len()), |mut text, byte| {
        // Formatting into a string cannot fail.
        let _ = write!(text, "{byte:02x}");
        text
    })
}

/// The end of a list of packets, or of a followed stream.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Debug, Clone, Serialize)]
pub struct ListedFile {
    /// Where it broke off.
    pub broken: Option<Broken>,
    /// Bytes on the wire, as far as it was read.
    pub bytes: u64,
    /// Its name.
    pub file: String,
    /// Remarks, as sentences.
    pub notes: Vec<String>,
    /// Packets, as far as it was read.
    pub packets: u64,
    /// Packets that passed the filter, or bytes that were followed.
    pub shown: u64,
}

impl ListedFile {
    pub(crate) fn new(capture: &Capture, shown: u64) -> Self {
        file_object!(capture, ListedFile { shown })
    }
}

/// Expert information on a file.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Debug, Clone, Serialize)]
pub struct Expert {
    /// Its name.
    pub file: String,
    /// The display filter that packets passed.
    pub filter: Option<String>,
    /// Each kind once, the most severe first.
    pub items: Vec<ExpertItem>,
    /// Remarks, as sentences.
    pub notes: Vec<String>,
    /// Packets.
    pub packets: u64,
    /// Name and version of the document.
    pub schema: &'static str,
    /// Longhaul's version.
    pub version: &'static str,
}

impl Expert {
    pub(crate) fn new(capture: &Capture, filter: Option<String>, rows: &[ExpertRow]) -> Self {
        Expert {
            file: clean(&capture.name),
            filter,
            items: rows.iter().map(ExpertItem::of).collect(),
            notes: capture.notes(),
            packets: capture.overview.packets,
            schema: "longhaul.pcap-expert/1",
            version: VERSION,
        }
    }
}

/// A kind of message.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Debug, Clone, Serialize)]
pub struct ExpertItem {
    /// The number of packets that have it.
    pub count: u64,
    /// The first one.
    pub first_packet: u64,
    /// Its group in Wireshark.
    pub group: &'static str,
    /// Its text.
    pub message: &'static str,
    /// The protocol that it is about.
    pub protocol: &'static str,
    /// Its severity.
    pub severity: &'static str,
}

impl ExpertItem {
    fn of(row: &ExpertRow) -> Self {
        ExpertItem {
            count: row.count,
            first_packet: row.first,
            group: row.kind.group.name(),
            message: row.kind.summary,
            protocol: row.kind.protocol,
            severity: row.kind.severity.name(),
        }
    }
}

/// Packets and bytes per interval.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Debug, Clone, Serialize)]
pub struct Io {
    /// A curve for each filter.
    pub curves: Vec<IoCurve>,
    /// Name of the file.
    pub file: String,
    /// The interval, in seconds.
    pub interval_s: f64,
    /// Remarks, as sentences.
    pub notes: Vec<String>,
    /// Name and version of the document.
    pub schema: &'static str,
    /// Time of the first packet, seconds since 1970.
    pub start_unix_s: f64,
    /// Longhaul's version.
    pub version: &'static str,
}

/// A curve.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Debug, Clone, Serialize)]
pub struct IoCurve {
    /// Bytes of each interval.
    pub bytes: Vec<u64>,
    /// Its filter; `None` for all packets.
    pub filter: Option<String>,
    /// Packets of each interval.
    pub packets: Vec<u64>,
}
