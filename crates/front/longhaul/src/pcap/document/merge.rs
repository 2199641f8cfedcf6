//! Two captures of one transfer: `longhaul.pcap-merge/1`.

use super::{Broken, VERSION, file_object};
use crate::pcap::merge::Merged;
use capture_merge::{
    Change, Clock, ClockBasis, ClockSegment, DelaySummary, HandshakeChange, PacketFate, PacketRow,
    Transit, TransitSummary,
};
use serde::Serialize;

/// Two captures of one transfer.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Debug, Clone, Serialize)]
pub struct MergeDocument {
    /// Packets from A's side to B's.
    pub a_to_b: OneDirection,
    /// Packets from B's side to A's.
    pub b_to_a: OneDirection,
    /// Fields that changed between the captures.
    pub changes: Vec<FieldChange>,
    /// The difference of the clocks.
    pub clock: ClockDocument,
    /// A and B.
    pub files: [MergedFile; 2],
    /// Flows in both and in one of them.
    pub flows: FlowCounts,
    /// TCP options that changed in handshakes.
    pub handshake_changes: Vec<OptionChange>,
    /// Handshakes with changes.
    pub handshakes_changed: u64,
    /// Handshakes in both captures.
    pub handshakes_compared: u64,
    /// Remarks, as sentences.
    pub notes: Vec<String>,
    /// Name and version of the document.
    pub schema: &'static str,
    /// The TCP streams in both captures.
    pub streams: Vec<PairedStream>,
    /// Longhaul's version.
    pub version: &'static str,
}

impl MergeDocument {
    pub(crate) fn new(merged: &Merged) -> Self {
        let merge = &merged.merge;
        let [compared, changed] = merge.changes.handshakes_compared;
        let [in_both, a_alone, b_alone] = merge.flows;
        let streams = merge.streams.iter();
        let [a_to_b, b_to_a] = &merge.transits;
        MergeDocument {
            a_to_b: OneDirection::of(a_to_b, &merge.rows),
            b_to_a: OneDirection::of(b_to_a, &merge.rows),
            changes: merge.changes.fields.iter().map(FieldChange::of).collect(),
            clock: ClockDocument::of(&merge.clock),
            files: [0, 1].map(|side| MergedFile::of(merged, side)),
            flows: FlowCounts { a_alone, b_alone, in_both },
            handshake_changes: merge.changes.handshakes.iter().map(OptionChange::of).collect(),
            handshakes_changed: changed,
            handshakes_compared: compared,
            notes: merged.notes.clone(),
            schema: "longhaul.pcap-merge/1",
            streams: streams
                .map(|it| PairedStream { a: it.a, b: it.b, translated: it.is_translated })
                .collect(),
            version: VERSION,
        }
    }
}

/// One of the captures.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Debug, Clone, Serialize)]
pub struct MergedFile {
    /// Where it broke off.
    pub broken: Option<Broken>,
    /// Bytes on the wire.
    pub bytes: u64,
    /// The point of the path, in words.
    pub captured: Option<String>,
    /// Packets that the network duplicated.
    pub duplicated: u64,
    /// Its name.
    pub file: String,
    /// Time of the first packet, seconds since 1970.
    pub first_unix_s: f64,
    /// Time of the last packet, seconds since 1970.
    pub last_unix_s: f64,
    /// Packets that were lost before the other one.
    pub lost: u64,
    /// Packets in both.
    pub matched: u64,
    /// Packets that are not compared.
    pub not_compared: u64,
    /// Remarks on it, as sentences.
    pub notes: Vec<String>,
    /// Packets that should have passed the other one first and are not there.
    pub only_here: u64,
    /// Packets at times that the other one does not cover.
    pub outside: u64,
    /// Packets.
    pub packets: u64,
    /// Super-segments that were lost in part.
    pub partly_lost: u64,
    /// Packets of flows that the other one does not have.
    pub without_partner: u64,
}

impl MergedFile {
    fn of(merged: &Merged, side: usize) -> Self {
        let capture = &merged.captures[side];
        let counts = merged.merge.counts[side];
        let (first, last) = merged.merge.spans[side];
        file_object!(
            capture,
            MergedFile {
                captured: merged.points[side].clone(),
                first_unix_s: first as f64 / 1e9,
                last_unix_s: last as f64 / 1e9,
                matched: counts.matched,
                partly_lost: counts.partly_lost,
                lost: counts.lost,
                duplicated: counts.duplicated,
                only_here: counts.only_here,
                outside: counts.outside,
                without_partner: counts.without_partner,
                not_compared: counts.not_compared,
            }
        )
    }
}

/// Flows in both captures, and in one of them.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Debug, Clone, Serialize)]
pub struct FlowCounts {
    /// In A alone.
    pub a_alone: u64,
    /// In B alone.
    pub b_alone: u64,
    /// In both.
    pub in_both: u64,
}

/// A TCP stream in both captures.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Debug, Clone, Serialize)]
pub struct PairedStream {
    /// Its number in A.
    pub a: u32,
    /// Its number in B.
    pub b: u32,
    /// True if its addresses differ.
    pub translated: bool,
}

/// A number in A and one in B.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Debug, Clone, Serialize)]
pub struct InBoth {
    /// In A.
    pub a: u32,
    /// In B.
    pub b: u32,
}

impl From<(u32, u32)> for InBoth {
    fn from((a, b): (u32, u32)) -> Self {
        InBoth { a, b }
    }
}

/// A field that changed between the captures.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Debug, Clone, Serialize)]
pub struct FieldChange {
    /// Its value at the far side.
    pub after: String,
    /// Its value at the near side.
    pub before: String,
    /// Direction of the packets.
    pub direction: &'static str,
    /// The field.
    pub field: &'static str,
    /// The first packet.
    pub first: InBoth,
    /// The number of packets.
    pub packets: u64,
    /// True if routing changes it.
    pub routing: bool,
}

impl FieldChange {
    fn of(it: &Change) -> Self {
        let [before, after] = it.values.clone();
        FieldChange {
            after,
            before,
            direction: it.transit.name(),
            field: it.field,
            first: it.first.into(),
            packets: it.count,
            routing: it.is_routing,
        }
    }
}

/// A TCP option that changed in a handshake.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Debug, Clone, Serialize)]
pub struct OptionChange {
    /// Its value at the far side.
    pub after: Option<String>,
    /// Its value at the near side.
    pub before: Option<String>,
    /// Direction of the packet.
    pub direction: &'static str,
    /// The packet's numbers.
    pub first: InBoth,
    /// The option.
    pub option: &'static str,
    /// SYN or SYN-ACK.
    pub packet: &'static str,
    /// The stream's numbers.
    pub streams: InBoth,
}

impl OptionChange {
    fn of(it: &HandshakeChange) -> Self {
        let [before, after] = it.values.clone();
        OptionChange {
            after,
            before,
            direction: it.transit.name(),
            first: it.packets.into(),
            option: it.option,
            packet: if it.is_syn_ack { "SYN-ACK" } else { "SYN" },
            streams: it.streams.into(),
        }
    }
}

/// The clock of B against that of A.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Debug, Clone, Serialize)]
pub struct ClockDocument {
    /// The basis of the estimate.
    pub basis: &'static str,
    /// Spans of time with an offset and a drift.
    pub segments: Vec<ClockSpan>,
    /// The reason one-way delays are not reliable.
    pub unsuitable: Option<&'static str>,
}

impl ClockDocument {
    fn of(clock: &Clock) -> Self {
        ClockDocument {
            basis: match clock.basis {
                ClockBasis::BothDirections => "both directions",
                ClockBasis::OneDirection => "one direction",
                ClockBasis::SameClock => "same clock",
                ClockBasis::Nothing => "no packet",
            },
            segments: clock.segments.iter().map(ClockSpan::of).collect(),
            unsuitable: clock.unsuitable,
        }
    }
}

/// A span of time in which the clocks differ by an offset and a drift.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Debug, Clone, Serialize)]
pub struct ClockSpan {
    /// The drift in parts per million.
    pub drift_ppm: Option<f64>,
    /// Its uncertainty.
    pub drift_uncertainty_ppm: Option<f64>,
    /// Its begin, seconds since 1970.
    pub from_unix_s: f64,
    /// The offset in seconds.
    pub offset_s: f64,
    /// Its uncertainty.
    pub uncertainty_s: Option<f64>,
}

impl ClockSpan {
    fn of(it: &ClockSegment) -> Self {
        let drift_uncertainty = it.drift_uncertainty;
        ClockSpan {
            drift_ppm: it.drift.map(|drift| drift * 1e6),
            drift_uncertainty_ppm: drift_uncertainty.is_finite().then_some(drift_uncertainty * 1e6),
            from_unix_s: it.from_ns as f64 / 1e9,
            offset_s: it.offset_ns as f64 / 1e9,
            uncertainty_s: it.uncertainty_ns.map(|ns| ns as f64 / 1e9),
        }
    }
}

/// One-way delays in milliseconds.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Debug, Clone, Serialize)]
#[expect(missing_docs, reason = "capture_merge::DelaySummary documents each")]
pub struct Delays {
    pub count: u64,
    pub jitter: f64,
    pub max: f64,
    pub median: f64,
    pub min: f64,
    pub p95: f64,
    pub p99: f64,
}

impl From<DelaySummary> for Delays {
    fn from(it: DelaySummary) -> Self {
        Delays {
            count: it.count,
            jitter: it.jitter_ns / 1e6,
            max: ms(it.max_ns),
            median: ms(it.median_ns),
            min: ms(it.min_ns),
            p95: ms(it.p95_ns),
            p99: ms(it.p99_ns),
        }
    }
}

fn ms(ns: i64) -> f64 {
    ns as f64 / 1e6
}

/// The packets of one direction.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Debug, Clone, Serialize)]
pub struct OneDirection {
    /// One-way delays.
    pub delay_ms: Option<Delays>,
    /// Numbers of duplicates at the far side.
    pub duplicate_packets: Vec<u32>,
    /// Packets that the network duplicated.
    pub duplicated: u64,
    /// Longest burst of losses, in packets.
    pub longest_loss_burst: u64,
    /// Bursts of losses.
    pub loss_bursts: u64,
    /// Packets that were lost.
    pub lost: u64,
    /// Their payload.
    pub lost_bytes: u64,
    /// Their numbers at the near side.
    pub lost_packets: Vec<u32>,
    /// Segments that were lost, those of super-segments among them.
    pub lost_segments: u64,
    /// Packets that only the far side has.
    pub only_after: u64,
    /// Packets at times that the far side does not cover.
    pub outside: u64,
    /// Packets that passed the near side.
    pub packets: u64,
    /// Super-segments that were lost in part.
    pub partly_lost: u64,
    /// Packets that arrived behind later ones.
    pub reordered: u64,
    /// Their numbers at the far side.
    pub reordered_packets: Vec<u32>,
    /// The most packets that overtook one (RFC 4737).
    pub reordering_extent: u64,
    /// The longest time that one was late, in milliseconds.
    pub reordering_late_ms: f64,
}

impl OneDirection {
    fn of(summary: &TransitSummary, rows: &[PacketRow]) -> Self {
        let of = |fates: &'static [PacketFate]| {
            let rows = rows.iter().filter(move |row| row.transit == summary.transit);
            rows.filter(move |row| fates.contains(&row.fate))
        };
        let upstream = |row: &PacketRow| match summary.transit {
            Transit::AToB => row.a,
            Transit::BToA => row.b,
        };
        let downstream = |row: &PacketRow| match summary.transit {
            Transit::AToB => row.b,
            Transit::BToA => row.a,
        };
        let lost = of(&[PacketFate::Lost, PacketFate::PartlyLost]).filter_map(upstream);
        let duplicates = of(&[PacketFate::Duplicated]).filter_map(downstream);
        let late = of(&[PacketFate::Delivered]).filter(|row| row.is_reordered);
        OneDirection {
            delay_ms: summary.delays.map(Delays::from),
            duplicate_packets: duplicates.collect(),
            duplicated: summary.duplicated,
            longest_loss_burst: summary.bursts.longest,
            loss_bursts: summary.bursts.count,
            lost: summary.lost,
            lost_bytes: summary.lost_bytes,
            lost_packets: lost.collect(),
            lost_segments: summary.lost_segments,
            only_after: summary.only_after,
            outside: summary.outside,
            packets: summary.sent,
            partly_lost: summary.partly_lost,
            reordered: summary.reordering.packets,
            reordered_packets: late.filter_map(downstream).collect(),
            reordering_extent: summary.reordering.max_extent,
            reordering_late_ms: ms(summary.reordering.max_late_ns),
        }
    }
}
