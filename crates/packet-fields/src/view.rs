//! A packet, and what is known of it from the packets before.

use crate::field::Field;
use crate::value::Value;
use crate::values;
use capture::conversations::{Conversations, StreamNumber};
use capture::dissect::{Layer, Layers, Protocol, TcpSegment};
use capture::file::Packet;
use capture::{ChunkedList, MemoryBudget, TABLE_BYTES};
use tcp_analysis::{PacketAnalysis, Rules, Streams, WindowScale};

/// What is known of a TCP segment from its stream.
#[derive(Debug, Clone, Copy)]
pub struct StreamView {
    /// `tcp.stream`.
    pub number: u32,
    /// Wireshark's analysis.
    pub analysis: PacketAnalysis,
    /// First sequence numbers of its sender, and of its receiver.
    pub base: [u32; 2],
    /// Whether and how its window is scaled.
    pub scale: WindowScale,
    /// Initial RTT of the stream, if it is known by now.
    pub initial_rtt_ns: Option<u64>,
    /// What was captured of the stream before this packet.
    pub completeness: u8,
    /// Time since the stream's first packet, and since the one before, in ns.
    pub since_first_ns: i64,
    /// Likewise.
    pub since_previous_ns: i64,
}

/// A packet to be tested or shown.
#[derive(Debug, Clone, Copy)]
pub struct PacketView<'a> {
    /// The packet.
    pub packet: &'a Packet<'a>,
    /// Its layers.
    pub layers: &'a Layers,
    /// Its innermost TCP segment.
    pub segment: Option<&'a TcpSegment<'a>>,
    /// What is known of that.
    pub stream: Option<StreamView>,
    /// The conversations up to here.
    pub conversations: &'a Conversations,
    /// Time since the first packet, and since the one before, in ns.
    pub since_first_ns: i64,
    /// Likewise.
    pub since_previous_ns: i64,
}

impl<'a> PacketView<'a> {
    /// Whether fragments were reassembled for it.
    #[must_use]
    #[inline]
    pub fn is_reassembled(&self) -> bool {
        !std::ptr::eq(self.packet.data, self.packet.frame)
    }

    /// Place of the IP header whose fragments were reassembled: headers up to there are
    /// the frame's, those inside of it the whole packet's.
    #[must_use]
    pub fn reassembled_at(&self) -> Option<usize> {
        if !self.is_reassembled() {
            return None;
        }
        let each = self.layers.iter().enumerate();
        let fragments = each.filter(|(_, (protocol, layer))| {
            let end = layer.start as usize + layer.header_len as usize;
            let is_ip = matches!(protocol, Protocol::Ipv4 | Protocol::Ipv6);
            is_ip && self.packet.data.get(..end) != self.packet.frame.get(..end)
        });
        fragments.map(|(place, _)| place).next()
    }

    /// The bytes of a layer from its header on, as far as they were captured and belong to
    /// it.
    #[must_use]
    #[inline]
    pub fn bytes(&self, place: usize, layer: &Layer) -> &'a [u8] {
        let is_outer = self.is_reassembled() && self.reassembled_at().is_some_and(|it| place <= it);
        let data = if is_outer { self.packet.frame } else { self.packet.data };
        let rest = data.get(layer.start as usize..).unwrap_or_default();
        let length = layer.header_len as usize + layer.payload_len as usize;
        rest.get(..length).unwrap_or(rest)
    }

    /// Hands each value of a field to `emit`.
    #[inline]
    pub fn each_value(&self, field: Field, mut emit: impl FnMut(Value<'a>)) {
        if field.description().protocol == Protocol::None {
            values::of_frame(self, field, &mut emit);
            return;
        }
        for (place, (protocol, layer)) in self.layers.iter().enumerate() {
            if field.is_of(protocol) {
                values::of_layer(self, field, place, (protocol, layer), &mut emit);
            }
        }
    }

    /// Hands the values of a field in the header at `place` to `emit`.
    pub fn each_value_at(&self, field: Field, place: usize, mut emit: impl FnMut(Value<'a>)) {
        if let Some((protocol, layer)) = self.layers.get(place)
            && field.is_of(protocol)
        {
            values::of_layer(self, field, place, (protocol, layer), &mut emit);
        }
    }

    /// Hands the bytes of each header of a protocol to `emit`, payload included.
    #[inline]
    pub fn each_header(&self, protocol: Protocol, mut emit: impl FnMut(&'a [u8])) {
        if protocol == Protocol::None {
            emit(self.packet.frame);
            return;
        }
        for (place, (its, layer)) in self.layers.iter().enumerate() {
            if its == protocol {
                emit(self.bytes(place, layer));
            }
        }
    }
}

/// First and last time of a stream.
#[derive(Debug, Clone, Copy)]
struct Times {
    first_ns: u64,
    last_ns: u64,
}

/// Follows a capture packet by packet: TCP streams, and the times that others are
/// relative to.
#[derive(Debug)]
pub struct Tracker {
    streams: Streams,
    times: ChunkedList<Times>,
    first_ns: Option<u64>,
    previous_ns: u64,
}

fn since(time_ns: u64, before_ns: u64) -> i64 {
    time_ns.wrapping_sub(before_ns).cast_signed()
}

impl Tracker {
    /// No packets yet.
    #[must_use]
    pub fn new(rules: Rules) -> Self {
        Tracker::within(rules, &MemoryBudget::new(TABLE_BYTES))
    }

    /// As [`Tracker::new`], with memory from this budget.
    #[must_use]
    pub fn within(rules: Rules, budget: &MemoryBudget) -> Self {
        let times = ChunkedList::new(budget);
        let streams = Streams::within(rules, budget);
        Tracker { streams, times, first_ns: None, previous_ns: 0 }
    }

    /// The TCP streams.
    #[must_use]
    pub fn streams(&self) -> &Streams {
        &self.streams
    }

    /// Adds the next packet: `stream` is what `Conversations::add` returned for `segment`.
    #[inline]
    pub fn add<'a>(
        &mut self,
        packet: &'a Packet<'a>,
        layers: &'a Layers,
        segment: Option<&'a TcpSegment<'a>>,
        stream: Option<StreamNumber>,
        conversations: &'a Conversations,
    ) -> PacketView<'a> {
        let now = packet.time_ns;
        let first_ns = *self.first_ns.get_or_insert(now);
        let previous_ns = if packet.number == 1 { now } else { self.previous_ns };
        self.previous_ns = now;
        let followed = segment.zip(stream);
        let stream = followed.and_then(|(segment, stream)| self.follow(packet, segment, stream));
        PacketView {
            packet,
            layers,
            segment,
            stream,
            conversations,
            since_first_ns: since(now, first_ns),
            since_previous_ns: since(now, previous_ns),
        }
    }

    fn follow(
        &mut self,
        packet: &Packet<'_>,
        segment: &TcpSegment<'_>,
        stream: StreamNumber,
    ) -> Option<StreamView> {
        let now = packet.time_ns;
        let known = self.streams.get(stream.number);
        // A SYN that begins a stream anew counts at once, as in Wireshark.
        let none = u8::from(stream.is_new && stream.reuses_ports);
        let completeness = known.map_or(none, |(_, connection)| connection.completeness());
        let analysis = self.streams.add(stream, packet.number, now, segment)?;
        let at = stream.number as usize;
        if at == self.times.len() && !self.times.push(Times { first_ns: now, last_ns: now }) {
            return None;
        }
        let times = self.times.get_mut(at)?;
        let (since_first_ns, since_previous_ns) =
            (since(now, times.first_ns), since(now, times.last_ns));
        times.last_ns = now;
        let (_, connection) = self.streams.get(stream.number)?;
        let direction = segment.direction;
        let base = |direction| connection.first_sequence_number(direction).unwrap_or(0);
        Some(StreamView {
            number: stream.number,
            analysis,
            base: [base(direction), base(direction.reverse())],
            scale: connection.window_scale(direction),
            initial_rtt_ns: connection.initial_rtt_ns(),
            completeness,
            since_first_ns,
            since_previous_ns,
        })
    }
}
