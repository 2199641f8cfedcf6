//! The JSON documents of captures; `docs/reference/json.md` has their keys. Members are in
//! alphabetical order.

pub mod conversations;
pub mod merge;
pub mod packets;
pub mod streams;

use super::reading::Capture;
use super::rows::ConversationLayer;
use capture::dissect::Protocol;
use conversations::{Conversation, conversations};
use report::terminal::ConversationRow;
use report::untrusted::clean;
use serde::Serialize;

pub(crate) const VERSION: &str = env!("CARGO_PKG_VERSION");

pub(crate) fn seconds(ns: u64) -> f64 {
    ns as f64 / 1e9
}

/// A document of several files.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Debug, Clone, Serialize)]
pub struct Files<F> {
    /// The files that could be read, in the order of the request.
    pub files: Vec<F>,
    /// Name and version of the document.
    pub schema: &'static str,
    /// Longhaul's version.
    pub version: &'static str,
}

impl<F> Files<F> {
    /// Version of the summaries.
    pub const SUMMARY: &'static str = "longhaul.pcap/1";
    /// Version of the hierarchies.
    pub const HIERARCHY: &'static str = "longhaul.pcap-hierarchy/1";
    /// Version of the conversations.
    pub const CONVERSATIONS: &'static str = "longhaul.pcap-conversations/1";
    /// Version of the endpoints.
    pub const ENDPOINTS: &'static str = "longhaul.pcap-endpoints/1";

    /// A document of these files.
    #[must_use]
    pub fn new(schema: &'static str, files: Vec<F>) -> Self {
        Files { files, schema, version: VERSION }
    }
}

/// Where a file broke off.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Debug, Clone, Serialize)]
pub struct Broken {
    /// The last packet before it; 0 if there is none.
    pub after_packet: u64,
    /// Bytes from the start of the file, decompressed.
    pub at_byte: u64,
    /// The error.
    pub why: String,
}

impl Broken {
    /// Of a file that was not read to its end.
    #[must_use]
    pub fn of(capture: &Capture) -> Option<Self> {
        capture.broken.as_ref().map(|broken| Broken {
            after_packet: broken.after_packet,
            at_byte: broken.at_byte,
            why: clean(&broken.problem.to_string()),
        })
    }
}

/// The object of a file: members that all views have, and those of its view.
macro_rules! file_object {
    ($capture:expr, $name:ident { $($rest:tt)* }) => {
        $name {
            broken: $crate::pcap::document::Broken::of($capture),
            bytes: $capture.overview.bytes,
            file: ::report::untrusted::clean(&$capture.name),
            notes: $capture.notes(),
            packets: $capture.overview.packets,
            $($rest)*
        }
    };
}
pub(crate) use file_object;

/// An interface of a capture.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Debug, Clone, Serialize)]
pub struct Interface {
    /// Its description; empty where there is none.
    pub description: String,
    /// Packets dropped for want of buffers.
    pub dropped: Option<u64>,
    /// Name of the link type.
    pub link: String,
    /// Number of the link type.
    pub link_type: u32,
    /// Its name; empty where there is none.
    pub name: String,
    /// Packets dropped by the operating system.
    pub os_dropped: Option<u64>,
    /// Packets in the file.
    pub packets: u64,
    /// Packets that it received.
    pub received: Option<u64>,
    /// Longest part of a packet that is captured, in bytes; 0 for no limit.
    pub snaplen_bytes: u32,
}

/// Packets in headers of one kind that are not dissected.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Debug, Clone, Serialize)]
pub struct NotUnderstood {
    /// Their number.
    pub packets: u64,
    /// The kind.
    pub what: String,
}

/// The summary of a file.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Debug, Clone, Serialize)]
pub struct SummaryFile {
    /// True if its integers are big-endian.
    pub big_endian: bool,
    /// Where it broke off.
    pub broken: Option<Broken>,
    /// Bytes on the wire.
    pub bytes: u64,
    /// Programs and systems that wrote it.
    pub captured_by: Vec<String>,
    /// Bytes in the file.
    pub captured_bytes: u64,
    /// Comments on the whole file.
    pub comments: Vec<String>,
    /// Its compression.
    pub compression: Option<&'static str>,
    /// The conversations with most bytes.
    pub conversations: Vec<Conversation>,
    /// Packets that were captured in part.
    pub cut_off: u64,
    /// Packets that were dropped by what captured them.
    pub dropped: Option<u64>,
    /// Seconds from the first packet to the last.
    pub duration_s: f64,
    /// Its name.
    pub file: String,
    /// Time of the first packet, seconds since 1970.
    pub first_unix_s: f64,
    /// Its format.
    pub format: &'static str,
    /// IP fragments.
    pub fragments: u64,
    /// Its interfaces.
    pub interfaces: Vec<Interface>,
    /// Time of the last packet, seconds since 1970.
    pub last_unix_s: f64,
    /// Layer of the conversations.
    pub layer: &'static str,
    /// Packets that are not dissected.
    pub not_dissected: u64,
    /// Packets that are not understood, by kind.
    pub not_understood: Vec<NotUnderstood>,
    /// Remarks, as sentences.
    pub notes: Vec<String>,
    /// Comments on packets.
    pub packet_comments: u64,
    /// Packets.
    pub packets: u64,
    /// Mean rate in bit/s.
    pub rate_bps: Option<f64>,
    /// Segments of GSO, GRO and the like, larger than the path's MTU.
    pub super_segments: u64,
    /// Packets whose length on the wire is unknown.
    pub without_length: u64,
}

impl SummaryFile {
    /// With conversations of a layer.
    pub fn new(capture: &Capture, layer: ConversationLayer, top: &[ConversationRow]) -> Self {
        let (it, overview) = (&capture.file, &capture.overview);
        let texts = |texts: &[String]| texts.iter().map(|text| clean(text)).collect();
        let interfaces = it.interfaces.iter().map(|interface| Interface {
            description: clean(&interface.description),
            dropped: interface.dropped,
            link: interface.link.to_string(),
            link_type: interface.link.0.into(),
            name: clean(&interface.name),
            os_dropped: interface.os_dropped,
            packets: interface.packets,
            received: interface.received,
            snaplen_bytes: interface.snaplen,
        });
        let kinds = capture.not_understood.kinds();
        let not_understood = kinds
            .iter()
            .map(|(what, packets)| NotUnderstood { packets: *packets, what: what.to_string() });
        file_object!(
            capture,
            SummaryFile {
                format: it.format.name(),
                big_endian: it.big_endian,
                compression: it.compression.name(),
                interfaces: interfaces.collect(),
                captured_by: texts(&it.captured_by),
                comments: texts(&it.comments),
                packet_comments: it.packet_comments,
                captured_bytes: overview.captured_bytes,
                first_unix_s: seconds(overview.first_ns),
                last_unix_s: seconds(overview.last_ns),
                duration_s: overview.seconds(),
                rate_bps: overview.rate_bps(),
                dropped: it.dropped(),
                cut_off: overview.cut_off,
                fragments: overview.fragments,
                super_segments: overview.super_segments,
                without_length: overview.without_length,
                not_dissected: overview.not_dissected,
                not_understood: not_understood.collect(),
                layer: layer.name(),
                conversations: conversations(capture, top.iter().copied()).collect(),
            }
        )
    }
}

/// A protocol below others.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Debug, Clone, Serialize)]
pub struct ProtocolRow {
    /// Bytes of the frames that have it, whole.
    pub bytes: u64,
    /// Bytes of its own in frames in which it is the innermost protocol.
    pub end_bytes: u64,
    /// Frames in which it is the innermost protocol.
    pub end_frames: u64,
    /// Frames that have it there.
    pub frames: u64,
    /// Bytes of its own headers; of data, all.
    pub own_bytes: u64,
    /// The protocols from the frame on, separated by colons.
    pub path: String,
    /// Its name.
    pub protocol: &'static str,
}

impl ProtocolRow {
    /// The protocols of a capture, each behind the one that carries it.
    pub fn of(capture: &Capture) -> impl Iterator<Item = ProtocolRow> {
        let mut path: Vec<&str> = Vec::new();
        capture.hierarchy.rows().into_iter().map(move |row| {
            let protocol =
                if row.protocol == Protocol::None { "frame" } else { row.protocol.name() };
            path.truncate(row.depth);
            path.push(protocol);
            ProtocolRow {
                bytes: row.bytes,
                end_bytes: row.end_bytes,
                end_frames: row.end_frames,
                frames: row.frames,
                own_bytes: row.own_bytes,
                path: path.join(":"),
                protocol,
            }
        })
    }
}

/// The protocols of a file.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Debug, Clone, Serialize)]
pub struct HierarchyFile {
    /// Where it broke off.
    pub broken: Option<Broken>,
    /// Bytes on the wire.
    pub bytes: u64,
    /// Its name.
    pub file: String,
    /// Remarks, as sentences.
    pub notes: Vec<String>,
    /// Packets.
    pub packets: u64,
    /// Each protocol behind the one that carries it.
    pub protocols: Vec<ProtocolRow>,
}

impl HierarchyFile {
    /// Of a file.
    #[must_use]
    pub fn new(capture: &Capture) -> Self {
        file_object!(capture, HierarchyFile { protocols: ProtocolRow::of(capture).collect() })
    }
}
