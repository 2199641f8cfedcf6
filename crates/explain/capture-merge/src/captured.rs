//! The packets of one capture, and the flows they belong to.

use crate::packet::{IpHeader, PacketIdentity};
use capture::conversations::StreamNumber;
use capture::dissect::{FlowKey, Layers, PacketDirection, Protocol, TcpOptions, TcpSegment};
use capture::file::Packet;
use capture::{MemoryBudget, TABLE_BYTES};
use std::collections::BTreeMap;
use std::ops::Range;

/// Packets of a capture that are compared, 64 bytes each; further ones are only counted.
pub const MAX_PACKETS: usize = 1 << 23;

/// Bytes of memory for a flow: its place in the list of flows while that doubles, and two B-trees
/// whose nodes are half full.
const FLOW_BYTES: usize = 3 * size_of::<CapturedFlow>() + 3 * size_of::<(FlowKey, u32)>() + 64;

/// SYNs whose options are kept.
const MAX_SYNS: usize = 1 << 15;

/// A flow of a capture.
#[derive(Debug, Clone)]
pub(crate) struct CapturedFlow {
    pub(crate) key: FlowKey,
    /// Its number among the TCP streams.
    pub(crate) stream: Option<u32>,
    /// Its packets in each direction, after [`CapturedPackets::sort`].
    pub(crate) ranges: [Range<usize>; 2],
}

impl CapturedFlow {
    pub(crate) fn is_tcp(&self) -> bool {
        self.stream.is_some()
    }
}

/// What is kept of a capture to be merged.
#[derive(Debug)]
pub struct CapturedPackets {
    budget: MemoryBudget,
    pub(crate) packets: Vec<PacketIdentity>,
    pub(crate) flows: Vec<CapturedFlow>,
    /// Flows of TCP by the number of the stream.
    streams: BTreeMap<u32, u32>,
    /// The latest flow of TCP by its key, for segments whose options were cut off.
    latest: BTreeMap<FlowKey, u32>,
    /// Other flows.
    keys: BTreeMap<FlowKey, u32>,
    last: Option<(FlowKey, u32)>,
    /// Options of SYNs and SYN-ACKs by packet number.
    pub(crate) syns: BTreeMap<u32, TcpOptions>,
    /// Times of the first and the last packet, of any protocol.
    pub(crate) span_ns: Option<(i64, i64)>,
    /// Packets of the file.
    pub packets_read: u64,
    /// Packets without an IP header, which are not compared.
    pub without_ip: u64,
    /// Packets of flows for which there was no memory.
    pub beyond_flows: u64,
    /// Packets beyond [`MAX_PACKETS`] or the most flows, and those cut off inside of the
    /// TCP options before any whole one of their connection: not compared.
    pub beyond_limit: u64,
}

impl Default for CapturedPackets {
    fn default() -> Self {
        Self::new()
    }
}

impl Drop for CapturedPackets {
    fn drop(&mut self) {
        self.budget.give_back(self.flows.len() * FLOW_BYTES);
    }
}

impl CapturedPackets {
    /// No packets yet.
    #[must_use]
    pub fn new() -> Self {
        Self::within(&MemoryBudget::new(TABLE_BYTES))
    }

    /// No packets yet; memory for flows is taken from this budget.
    #[must_use]
    pub fn within(budget: &MemoryBudget) -> Self {
        CapturedPackets {
            budget: budget.clone(),
            packets: Vec::new(),
            flows: Vec::new(),
            streams: BTreeMap::new(),
            latest: BTreeMap::new(),
            keys: BTreeMap::new(),
            last: None,
            syns: BTreeMap::new(),
            span_ns: None,
            packets_read: 0,
            without_ip: 0,
            beyond_flows: 0,
            beyond_limit: 0,
        }
    }

    /// Adds a packet, with the TCP segment in it and the number of its stream by
    /// `capture::Conversations`.
    pub fn add(
        &mut self,
        packet: &Packet<'_>,
        layers: &Layers,
        tcp: Option<(StreamNumber, &TcpSegment<'_>)>,
    ) {
        self.packets_read += 1;
        let time_ns = packet.time_ns.min(1 << 62) as i64;
        let (first, last) = self.span_ns.unwrap_or((time_ns, time_ns));
        self.span_ns = Some((first.min(time_ns), last.max(time_ns)));
        let cut = if tcp.is_none() { layers.tcp_with_cut_options(packet.data) } else { None };
        let segment = tcp.map(|(_, segment)| segment).or(cut.as_ref());
        let Some(found) = Headers::of(packet, layers, segment) else {
            self.without_ip += 1;
            return;
        };
        let number = u32::try_from(packet.number).ok().filter(|_| self.packets.len() < MAX_PACKETS);
        let flow = match (tcp, &cut) {
            (Some((stream, _)), _) => self.stream(stream.number, found.key),
            (None, Some(_)) => self.latest.get(&found.key).copied(),
            (None, None) => self.flow(found.key),
        };
        let Some((number, flow)) = number.zip(flow) else {
            self.beyond_limit += 1;
            return;
        };
        let mut identity = PacketIdentity::new(
            (number, packet.time_ns),
            (flow, found.direction),
            found.ip,
            found.payload,
        );
        if let Some(segment) = segment {
            identity = identity.with_segment(segment);
            if identity.is_syn() && cut.is_none() && self.syns.len() < MAX_SYNS {
                self.syns.insert(number, segment.options());
            }
        }
        self.packets.push(identity);
    }

    fn stream(&mut self, number: u32, key: FlowKey) -> Option<u32> {
        if let Some(flow) = self.streams.get(&number) {
            return Some(*flow);
        }
        let flow = self.begin(key, Some(number))?;
        self.streams.insert(number, flow);
        self.latest.insert(key, flow);
        Some(flow)
    }

    fn flow(&mut self, key: FlowKey) -> Option<u32> {
        if let Some((last, flow)) = self.last
            && last == key
        {
            return Some(flow);
        }
        let flow = match self.keys.get(&key) {
            Some(flow) => *flow,
            None => {
                let flow = self.begin(key, None)?;
                self.keys.insert(key, flow);
                flow
            }
        };
        self.last = Some((key, flow));
        Some(flow)
    }

    fn begin(&mut self, key: FlowKey, stream: Option<u32>) -> Option<u32> {
        let number = self.flows.len();
        if !self.budget.take(FLOW_BYTES) {
            self.beyond_flows += 1;
            return None;
        }
        self.flows.push(CapturedFlow { key, stream, ranges: [0..0, 0..0] });
        Some(number as u32)
    }

    /// Sorts the packets by flow, direction and time, and notes where each flow's are.
    pub(crate) fn sort(&mut self) {
        self.packets.sort_unstable_by_key(|packet| {
            (packet.flow, packet.direction(), packet.time_ns, packet.number)
        });
        let mut start = 0;
        for group in
            self.packets.chunk_by(|a, b| a.flow == b.flow && a.direction() == b.direction())
        {
            let end = start + group.len();
            if let Some(first) = group.first()
                && let Some(flow) = self.flows.get_mut(first.flow as usize)
                && let Some(range) = flow.ranges.get_mut(first.direction())
            {
                *range = start..end;
            }
            start = end;
        }
    }

    /// The packets of a flow in a direction, by time, and the number of the first one.
    pub(crate) fn of_flow(&self, flow: u32, direction: usize) -> (usize, &[PacketIdentity]) {
        let range = self.flows.get(flow as usize).and_then(|flow| flow.ranges.get(direction));
        let range = range.cloned().unwrap_or_default();
        (range.start, self.packets.get(range).unwrap_or_default())
    }
}

/// What the headers of a packet say.
struct Headers<'a> {
    key: FlowKey,
    direction: PacketDirection,
    ip: IpHeader,
    /// Length by the headers, and bytes as captured.
    payload: (u32, &'a [u8]),
}

impl<'a> Headers<'a> {
    /// Those of the innermost IP packet.
    fn of(packet: &Packet<'a>, layers: &Layers, segment: Option<&TcpSegment<'a>>) -> Option<Self> {
        let (mut network, mut datagram) = (None, None);
        for (place, (protocol, layer)) in layers.iter().enumerate() {
            match protocol {
                Protocol::Ipv4 | Protocol::Ipv6 => {
                    (network, datagram) = (Some((place, layer)), None);
                }
                Protocol::Udp => datagram = Some((place, layer)),
                _ => {}
            }
        }
        let (place, layer) = network?;
        let ip = IpHeader::parse(packet.data.get(layer.start as usize..)?)?;
        if let Some(segment) = segment {
            let payload = (segment.payload_len, segment.payload);
            return Some(Headers { key: segment.key, direction: segment.direction, ip, payload });
        }
        let whole = datagram
            .and_then(|(place, layer)| Some((layers.conversation(place, packet.data)?, layer)));
        let ((key, direction), layer) = match whole {
            Some(found) => found,
            None => (layers.addresses(place, packet.data)?, layer),
        };
        let captured = packet.data.get((layer.start + layer.header_len) as usize..);
        let captured = captured.unwrap_or_default();
        let payload = captured.get(..layer.payload_len as usize).unwrap_or(captured);
        Some(Headers { key, direction, ip, payload: (layer.payload_len, payload) })
    }
}
