//! A packet, and what is known of it from the packets before.

use crate::application::{Application, Payload};
use crate::expert;
use crate::field::{Field, Owner, Tested};
use crate::iperf3_control::{ControlConnections, ControlSegment};
use crate::value::Value;
use crate::values;
use capture::conversations::{Conversations, StreamNumber};
use capture::dissect::{Layer, Layers, PacketDirection, Protocol, TcpFlags, TcpSegment};
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
    /// Bytes sent since the last segment with PSH; `None` where bytes in flight are unknown.
    pub push_bytes_sent: Option<u32>,
    /// Whether its sender was the first to send a FIN.
    pub closes_first: bool,
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
    /// The messages of iperf3's control connection in it.
    pub iperf3: Option<ControlSegment>,
    /// The conversations up to here.
    pub conversations: &'a Conversations,
    /// Time since the first packet, and since the one before, in ns.
    pub since_first_ns: i64,
    /// Likewise.
    pub since_previous_ns: i64,
    /// Time since the previous packet that passed the filter ([`Tracker::passed`]), in ns.
    pub since_passed_ns: i64,
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
    pub fn each_value(&self, field: Field, mut emit: impl FnMut(Value<'_>)) {
        match field.description().owner {
            Owner::Header(_) => {
                for (place, (protocol, layer)) in self.layers.iter().enumerate() {
                    if field.is_of(protocol) {
                        values::of_layer(self, field, place, (protocol, layer), &mut emit);
                    }
                }
            }
            Owner::Frame => values::of_frame(self, field, &mut emit),
            Owner::Application(owner) => values::of_payload(self, owner, field, &mut emit),
            Owner::Expert => expert::values(self, field, &mut emit),
        }
    }

    /// Hands the values of a field in one of several headers of its protocol to `emit`: from 1, or
    /// from -1 for the last.
    pub fn each_value_of(&self, field: Field, layer: i8, emit: impl FnMut(Value<'_>)) {
        let headers = || {
            let each = self.layers.iter().enumerate();
            each.filter(move |(_, (protocol, _))| field.is_of(*protocol)).map(|(place, _)| place)
        };
        let wanted = match usize::try_from(layer) {
            Ok(number) => number.checked_sub(1),
            Err(_) => headers().count().checked_sub(usize::from(layer.unsigned_abs())),
        };
        if let Some(place) = wanted.and_then(|at| headers().nth(at)) {
            self.each_value_at(field, place, emit);
        }
    }

    /// The protocol of the payload, if a number tells it.
    #[must_use]
    pub fn application(&self) -> Option<Application> {
        Payload::of(self).map(|payload| payload.application)
    }

    /// Hands the values of a field in the header at `place` to `emit`.
    pub fn each_value_at(&self, field: Field, place: usize, mut emit: impl FnMut(Value<'_>)) {
        if let Some((protocol, layer)) = self.layers.get(place)
            && field.is_of(protocol)
        {
            values::of_layer(self, field, place, (protocol, layer), &mut emit);
        }
    }

    /// Hands the bytes of each header of a protocol to `emit`, payload included.
    #[inline]
    pub fn each_header(&self, protocol: Tested, mut emit: impl FnMut(&'a [u8])) {
        match protocol {
            Tested::Frame => emit(self.packet.frame),
            Tested::Header(Protocol::Data) if self.application().is_some() => {}
            Tested::Header(protocol) => {
                for (place, (its, layer)) in self.layers.iter().enumerate() {
                    if its == protocol {
                        emit(self.bytes(place, layer));
                    }
                }
            }
            Tested::Application(application) => {
                let payload = Payload::of(self).filter(|it| it.is(application));
                payload.map(|payload| payload.bytes).into_iter().for_each(emit);
            }
            Tested::Expert => {
                let mut found = false;
                expert::each(self, |_| found = true);
                if found {
                    emit(&[]);
                }
            }
        }
    }
}

/// What is kept of a stream: its first and last time, and more.
#[derive(Debug, Clone, Copy, Default)]
struct Times {
    first_ns: u64,
    last_ns: u64,
    /// Bytes of each direction since its last PSH, and whether that was its last segment.
    unpushed: [u32; 2],
    is_pushed: [bool; 2],
    /// Who sent the first FIN.
    closes_first: Option<PacketDirection>,
}

impl Times {
    /// Counts the bytes of a segment as `tcp.analysis.push_bytes_sent` does.
    fn push(&mut self, segment: &TcpSegment<'_>) -> u32 {
        let (Some(sent), Some(is_pushed)) = (
            self.unpushed.get_mut(segment.direction.index()),
            self.is_pushed.get_mut(segment.direction.index()),
        ) else {
            return 0;
        };
        let before = if *is_pushed { 0 } else { *sent };
        *sent = before.saturating_add(segment.payload_len);
        *is_pushed = segment.flags.has(TcpFlags::PSH);
        *sent
    }
}

/// Follows a capture packet by packet: TCP streams, and the times that others are
/// relative to.
#[derive(Debug)]
pub struct Tracker {
    streams: Streams,
    times: ChunkedList<Times>,
    iperf3: ControlConnections,
    first_ns: Option<u64>,
    previous_ns: u64,
    /// Time of the last packet that passed.
    passed_ns: Option<u64>,
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
        let iperf3 = ControlConnections::within(budget);
        Tracker { streams, times, iperf3, first_ns: None, previous_ns: 0, passed_ns: None }
    }

    /// The TCP streams.
    #[must_use]
    pub fn streams(&self) -> &Streams {
        &self.streams
    }

    /// Notes that a packet passed the filter and is shown.
    #[inline]
    pub fn passed(&mut self, time_ns: u64) {
        self.passed_ns = Some(time_ns);
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
        let passed_ns = self.passed_ns.unwrap_or(now);
        let followed = segment.zip(stream);
        let iperf3 = followed.and_then(|(segment, stream)| self.iperf3.add(segment, stream));
        let stream = followed.and_then(|(segment, stream)| self.follow(packet, segment, stream));
        PacketView {
            packet,
            layers,
            segment,
            stream,
            iperf3,
            conversations,
            since_first_ns: since(now, first_ns),
            since_previous_ns: since(now, previous_ns),
            since_passed_ns: since(now, passed_ns),
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
        let new = Times { first_ns: now, last_ns: now, ..Times::default() };
        if at == self.times.len() && !self.times.push(new) {
            return None;
        }
        let times = self.times.get_mut(at)?;
        let (since_first_ns, since_previous_ns) =
            (since(now, times.first_ns), since(now, times.last_ns));
        times.last_ns = now;
        let has_bytes = segment.payload_len > 0 && analysis.bytes_in_flight.is_some();
        let push_bytes_sent = has_bytes.then(|| times.push(segment));
        if segment.flags.has(TcpFlags::FIN) {
            times.closes_first.get_or_insert(segment.direction);
        }
        let closes_first = times.closes_first == Some(segment.direction);
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
            push_bytes_sent,
            closes_first,
            since_first_ns,
            since_previous_ns,
        })
    }
}
