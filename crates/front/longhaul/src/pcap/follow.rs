//! Data that both ends of a TCP stream or UDP conversation sent, in order.

use super::document::packets::{FollowedPart, hexadecimal};
use super::reading::{self, Capture, Dissected, Tables};
use super::{FollowRequest, FollowedBytes, OnRead, ReadEvent, StreamEnd, Transport, analysis};
use crate::{Problem, StopFlag};
use capture::dissect::{FlowKey, PacketDirection};
use packet_fields::follow::{Chunk, TcpFollower};
use std::ops::ControlFlow;
use std::path::Path;

/// The part of a stream that was read.
pub struct Followed {
    /// The file, as far as it was read.
    pub capture: Capture,
    /// True if the file has the stream.
    pub is_found: bool,
    /// Bytes that were shown.
    pub bytes: u64,
    /// True if there are more than requested.
    pub is_cut: bool,
}

/// Reads a file, and shows what the ends of a stream sent.
///
/// # Errors
/// The file cannot be opened, or is no capture.
pub fn run(
    path: &Path,
    request: &FollowRequest,
    on_read: OnRead<'_>,
    stop: &StopFlag,
) -> Result<Followed, Problem> {
    let tables = Tables::of_reading();
    let mut parts = Parts::new(request);
    let mut follower = TcpFollower::default();
    let capture = reading::read_packets(path, &tables, stop, on_read, |found, on_read| {
        let at = (found.packet.number, found.packet.time_ns);
        match request.transport {
            Transport::Tcp => {
                if let (Some(segment), Some(stream)) = (found.segment, found.stream)
                    && stream.number == request.stream
                {
                    parts.begin(&segment.key, segment.direction, found.packet.time_ns, on_read);
                    follower.add(at, segment, &mut |chunk| parts.add(chunk, on_read));
                }
            }
            Transport::Udp => datagram(found, &mut parts, on_read),
        }
        if parts.is_cut || parts.is_refused {
            ControlFlow::Break(())
        } else {
            ControlFlow::Continue(())
        }
    })?;
    follower.finish(&mut |chunk| parts.add(chunk, on_read));
    let Parts { key, bytes, is_cut, .. } = parts;
    Ok(Followed { capture, is_found: key.is_some(), bytes, is_cut })
}

/// Shows a datagram of that UDP conversation.
fn datagram(found: &Dissected<'_>, parts: &mut Parts<'_>, on_read: OnRead<'_>) {
    let Some(place) = found.layers.transport() else { return };
    let data = found.packet.data;
    let key = found.layers.conversation(place, data);
    let Some((key, direction)) = key else { return };
    if found.conversations.udp_stream(&key) != Some(parts.request.stream) {
        return;
    }
    let Some((_, layer)) = found.layers.get(place) else { return };
    let from = layer.start as usize + layer.header_len as usize;
    let rest = data.get(from..).unwrap_or_default();
    let length = layer.payload_len as usize;
    let captured = rest.get(..length).unwrap_or(rest);
    let (packet, time_ns) = (found.packet.number, found.packet.time_ns);
    parts.begin(&key, direction, time_ns, on_read);
    parts.add(Chunk { direction, packet, time_ns, data: captured, missing: 0 }, on_read);
    let missing = length.saturating_sub(captured.len());
    if missing > 0 {
        // A datagram has at most 64 KiB.
        let missing = missing as u32;
        parts.add(Chunk { direction, packet, time_ns, data: &[], missing }, on_read);
    }
}

/// The view of a stream.
struct Parts<'a> {
    request: &'a FollowRequest,
    /// The end that sent first, and the time.
    key: Option<(PacketDirection, u64)>,
    bytes: u64,
    most: u64,
    is_cut: bool,
    /// True if the caller wants no more.
    is_refused: bool,
}

impl<'a> Parts<'a> {
    fn new(request: &'a FollowRequest) -> Self {
        let most = if request.bytes == 0 { u64::MAX } else { request.bytes };
        Parts { request, key: None, bytes: 0, most, is_cut: false, is_refused: false }
    }

    /// Notes the first packet of the stream.
    fn begin(
        &mut self,
        key: &FlowKey,
        direction: PacketDirection,
        time_ns: u64,
        on_read: OnRead<'_>,
    ) {
        if self.key.is_some() {
            return;
        }
        self.key = Some((direction, time_ns));
        let ends = [direction, direction.reverse()].map(|side| analysis::end(key, side));
        self.is_refused = on_read(ReadEvent::Stream(ends)).is_break();
    }

    fn add(&mut self, mut chunk: Chunk<'_>, on_read: OnRead<'_>) {
        let Some((first, begun_ns)) = self.key else { return };
        let is_first = chunk.direction == first;
        let is_left_out = match self.request.end {
            Some(StreamEnd::First) => !is_first,
            Some(StreamEnd::Second) => is_first,
            None => false,
        };
        if is_left_out || self.is_cut || self.is_refused {
            return;
        }
        let left = self.most - self.bytes;
        if chunk.data.len() as u64 > left {
            self.is_cut = true;
            chunk.data = chunk.data.get(..left as usize).unwrap_or_default();
        }
        self.bytes += chunk.data.len() as u64;
        let part = FollowedBytes {
            is_first,
            packet: chunk.packet,
            since_first_ns: chunk.time_ns.wrapping_sub(begun_ns).cast_signed(),
            data: chunk.data,
            missing: chunk.missing,
        };
        self.is_refused = on_read(ReadEvent::Part(part)).is_break();
    }
}

impl FollowedBytes<'_> {
    /// As a document.
    #[must_use]
    pub fn document(&self, stream: u32) -> FollowedPart {
        FollowedPart {
            bytes: self.data.len(),
            data: hexadecimal(self.data),
            end: if self.is_first { "first" } else { "second" },
            missing_bytes: self.missing,
            packet: self.packet,
            schema: "longhaul.pcap-follow/1",
            stream,
            time_s: self.since_first_ns as f64 / 1e9,
        }
    }
}
