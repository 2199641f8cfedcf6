//! Conversations and endpoints of Ethernet, IP, TCP and UDP, by Wireshark's rules.
//!
//! - A frame counts with its whole length on the wire, in every conversation of every
//!   layer, inner headers of tunnels included.
//! - Side A is the sender of the first packet ([`Conversation::traffic_from_first`]).
//! - A SYN with another sequence number than the one before begins a new TCP
//!   conversation of the same addresses and ports, and these have numbers (`tcp.stream`).
//!
//! An IP conversation whose packets are TCP or UDP is the sum of theirs, so that most
//! packets cost one lookup.

use crate::dissect::{FlowKey, Layers, PacketDirection, Protocol, TcpFlags, TcpSegment};
use crate::file::Packet;
use crate::memory_budget::{ChunkedList, MemoryBudget, TABLE_BYTES};
use crate::table::{Conversation, Hasher, Key, LeftOut, Moment, Seed, Table};

/// Addresses of an Ethernet conversation, the lower one first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EthernetKey {
    /// Side A.
    pub a: [u8; 6],
    /// Side B.
    pub b: [u8; 6],
}

impl EthernetKey {
    #[inline]
    fn of(header: &[u8]) -> Option<(Self, PacketDirection)> {
        let (destination, rest) = header.split_first_chunk::<6>()?;
        let source: &[u8; 6] = rest.first_chunk()?;
        Some(if source <= destination {
            (EthernetKey { a: *source, b: *destination }, PacketDirection::AToB)
        } else {
            (EthernetKey { a: *destination, b: *source }, PacketDirection::BToA)
        })
    }
}

impl Key for EthernetKey {
    #[inline]
    fn hash(&self, hasher: &Hasher) -> u64 {
        let word = |[a, b, c, d, e, f]: [u8; 6]| u64::from_le_bytes([a, b, c, d, e, f, 0, 0]);
        hasher.two(word(self.a), word(self.b))
    }
}

/// First sequence numbers of a TCP conversation, as seen.
#[derive(Debug, Clone, Copy, Default)]
struct FirstNumbers {
    /// For each side, the number of its SYN or the one before its first byte.
    base: [Option<u32>; 2],
}

impl FirstNumbers {
    fn update(&mut self, segment: &TcpSegment<'_>) {
        let side = segment.direction.index();
        if segment.flags.has(TcpFlags::SYN) {
            self.base[side] = Some(segment.seq);
        }
        self.base[side].get_or_insert(segment.seq.wrapping_sub(1));
        if segment.flags.has(TcpFlags::ACK) {
            self.base[1 - side].get_or_insert(segment.ack.wrapping_sub(1));
        }
    }
}

/// A TCP conversation of a packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StreamNumber {
    /// As `tcp.stream`: in the order of appearance, from 0.
    pub number: u32,
    /// Whether this packet is its first one.
    pub is_new: bool,
    /// Whether the SYN reuses the ports of an earlier conversation, or repeats that of
    /// this one (`tcp.analysis.reused_ports`).
    pub reuses_ports: bool,
}

/// What a lookup found; a flow may have begun anew since, which costs another lookup.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ExpectedStream {
    number: u32,
    /// How many flows had begun anew before.
    renewed: u32,
}

impl ExpectedStream {
    /// The stream's number, if it was known.
    #[must_use]
    pub fn number(self) -> Option<u32> {
        (self.number != u32::MAX).then_some(self.number)
    }
}

impl Default for ExpectedStream {
    fn default() -> Self {
        ExpectedStream { number: u32::MAX, renewed: 0 }
    }
}

/// Conversations of all layers.
#[derive(Debug)]
pub struct Conversations {
    ethernet: Table<EthernetKey>,
    /// Without what TCP and UDP conversations have.
    other_ip: Table<FlowKey>,
    tcp: Table<FlowKey>,
    first_numbers: ChunkedList<FirstNumbers>,
    udp: Table<FlowKey>,
    first_ns: Option<u64>,
    seed: Seed,
}

#[inline]
fn moment(packet: &Packet<'_>, direction: PacketDirection) -> Moment {
    Moment { packet: packet.number, time_ns: packet.time_ns, direction }
}

impl Conversations {
    /// No conversations; `seed` is for hash tables and should be random.
    #[must_use]
    pub fn new(seed: Seed) -> Self {
        Self::within(seed, &MemoryBudget::new(TABLE_BYTES))
    }

    /// As [`Conversations::new`], with memory for its tables from this budget.
    #[must_use]
    pub fn within(seed: Seed, budget: &MemoryBudget) -> Self {
        Self::of_layers(seed, budget, budget)
    }

    /// TCP conversations alone, with the numbers that they have beside others.
    #[must_use]
    pub fn of_tcp(seed: Seed, budget: &MemoryBudget) -> Self {
        Self::of_layers(seed, budget, &MemoryBudget::new(0))
    }

    fn of_layers(seed: Seed, tcp: &MemoryBudget, others: &MemoryBudget) -> Self {
        Conversations {
            ethernet: Table::new(seed, others),
            other_ip: Table::new(seed, others),
            tcp: Table::new(seed, tcp),
            first_numbers: ChunkedList::new(tcp),
            udp: Table::new(seed, others),
            first_ns: None,
            seed,
        }
    }

    /// The stream of a segment, if it is known; for [`Conversations::add_expected`].
    #[inline]
    #[must_use]
    pub fn find(&self, key: &FlowKey) -> ExpectedStream {
        ExpectedStream { number: self.tcp.find(key), renewed: self.tcp.renewed }
    }

    /// The number of a UDP conversation, as `udp.stream`: in the order of appearance, from 0.
    #[must_use]
    pub fn udp_stream(&self, key: &FlowKey) -> Option<u32> {
        Some(self.udp.find(key)).filter(|number| *number != u32::MAX)
    }

    /// As [`Conversations::add`], for a segment that was looked up before.
    #[inline]
    pub fn add_expected(
        &mut self,
        packet: &Packet<'_>,
        layers: &Layers,
        segment: Option<&TcpSegment<'_>>,
        expected: ExpectedStream,
    ) -> Option<StreamNumber> {
        let is_current = expected.renewed == self.tcp.renewed;
        self.tcp.expect(if is_current { expected.number } else { u32::MAX });
        self.add(packet, layers, segment)
    }

    /// Counts a packet. `segment` is [`Layers::tcp`] of it; its conversation is returned.
    #[inline]
    pub fn add(
        &mut self,
        packet: &Packet<'_>,
        layers: &Layers,
        segment: Option<&TcpSegment<'_>>,
    ) -> Option<StreamNumber> {
        let bytes = packet.original_len;
        self.first_ns.get_or_insert(packet.time_ns);
        let mut stream = None;
        // The IP header whose addresses are not yet counted.
        let mut network = None;
        for (place, layer) in layers.recorded().iter().enumerate() {
            match Protocol::from_number(layers.number(place)) {
                Protocol::Ethernet => {
                    let header = packet.data.get(layer.start as usize..).unwrap_or_default();
                    if let Some((key, direction)) = EthernetKey::of(header) {
                        self.ethernet.count(&key, moment(packet, direction), bytes);
                    }
                }
                Protocol::Ipv4 | Protocol::Ipv6 => {
                    self.add_ip(network.replace(place), packet, layers);
                }
                Protocol::Tcp => {
                    if let Some(segment) = segment {
                        network = None;
                        stream = self.add_tcp(segment, moment(packet, segment.direction), bytes);
                    }
                }
                Protocol::Udp => {
                    if let Some((key, direction)) = layers.conversation(place, packet.data) {
                        network = None;
                        self.udp.count(&key, moment(packet, direction), bytes);
                    }
                }
                _ => {}
            }
        }
        // Fragments of IPv6 count where they complete a packet, those of IPv4 always, as in
        // Wireshark.
        let counts =
            |place: &usize| !layers.is_fragment() || layers.number(*place) == Protocol::Ipv4 as u8;
        self.add_ip(network.filter(counts), packet, layers);
        stream
    }

    /// Counts the IP header at `place`, if there is one.
    #[inline]
    fn add_ip(&mut self, place: Option<usize>, packet: &Packet<'_>, layers: &Layers) {
        if let Some(place) = place
            && let Some((key, direction)) = layers.addresses(place, packet.data)
        {
            self.other_ip.count(&key, moment(packet, direction), packet.original_len);
        }
    }

    #[inline]
    fn add_tcp(
        &mut self,
        segment: &TcpSegment<'_>,
        moment: Moment,
        bytes: u32,
    ) -> Option<StreamNumber> {
        let found = self.tcp_stream(segment, moment);
        let flow = found.and_then(|stream| self.tcp.flow(stream.number));
        match flow {
            Some(flow) => flow.traffic.add(segment.direction, moment.time_ns, bytes),
            None => self.tcp.count_further(bytes),
        }
        found
    }

    #[inline]
    fn tcp_stream(&mut self, segment: &TcpSegment<'_>, moment: Moment) -> Option<StreamNumber> {
        let known = self.tcp.flows().len();
        self.tcp.is_closed = !self.first_numbers.make_room();
        let mut number = self.tcp.number(&segment.key, moment)?;
        let side = segment.direction.index();
        let mut reuses_ports = false;
        if segment.flags.is_first_syn()
            && let Some(first) = self.first_numbers.get(number as usize)
            && let Some(base) = first.base[side]
        {
            reuses_ports = true;
            if base != segment.seq {
                number = self.tcp.renew(number, moment)?;
            }
        }
        let is_new = self.tcp.flows().len() > known;
        if is_new {
            self.first_numbers.push(FirstNumbers::default());
        }
        let traffic = &self.tcp.flow(number)?.traffic;
        // Known after the first segments, except that a SYN sets it anew.
        if (traffic.each[side].frames < 3 || segment.flags.has(TcpFlags::SYN))
            && let Some(first) = self.first_numbers.get_mut(number as usize)
        {
            first.update(segment);
        }
        Some(StreamNumber { number, is_new, reuses_ports })
    }

    /// Time of the first packet in nanoseconds since 1970.
    #[must_use]
    pub fn first_ns(&self) -> Option<u64> {
        self.first_ns
    }

    /// What is in no conversation of Ethernet, IP, TCP and UDP because the memory for tables was
    /// used up. IP has what its own packets, those without TCP and UDP, lack.
    #[must_use]
    pub fn left_out(&self) -> [LeftOut; 4] {
        [
            self.ethernet.left_out(),
            self.other_ip.left_out(),
            self.tcp.left_out(),
            self.udp.left_out(),
        ]
    }

    /// Conversations between Ethernet addresses, in the order of appearance.
    #[must_use]
    pub fn ethernet(&self) -> &ChunkedList<Conversation<EthernetKey>> {
        self.ethernet.flows()
    }

    /// TCP conversations; the place in the list is the stream's number.
    #[must_use]
    pub fn tcp(&self) -> &ChunkedList<Conversation<FlowKey>> {
        self.tcp.flows()
    }

    /// UDP conversations, in the order of appearance.
    #[must_use]
    pub fn udp(&self) -> &ChunkedList<Conversation<FlowKey>> {
        self.udp.flows()
    }

    /// Conversations between IP addresses of both versions, in the order of the tables that they
    /// are summed from, and what the budget has no room for.
    #[must_use]
    pub fn ip(&self, budget: &MemoryBudget) -> (ChunkedList<Conversation<FlowKey>>, LeftOut) {
        let mut table = Table::new(self.seed, budget);
        for part in self.ip_parts() {
            let (key, direction) = part.key.addresses_only();
            let turned = direction == PacketDirection::BToA;
            let first = if turned { part.first.reverse() } else { part.first };
            let time_ns = part.traffic.first_ns;
            let moment = Moment { packet: part.first_packet, time_ns, direction: first };
            let number = table.number(&key, moment);
            let Some(flow) = number.and_then(|number| table.flow(number)) else {
                table.leave_out(&part.traffic);
                continue;
            };
            flow.traffic.merge(&part.traffic, turned);
            if part.first_packet < flow.first_packet {
                (flow.first_packet, flow.first) = (part.first_packet, first);
            }
        }
        let left_out = table.left_out();
        (table.into_flows(), left_out)
    }

    pub(crate) fn seed(&self) -> Seed {
        self.seed
    }

    /// The conversations whose traffic is that of IP.
    pub(crate) fn ip_parts(&self) -> impl Iterator<Item = &Conversation<FlowKey>> {
        self.other_ip.flows().iter().chain(self.tcp.flows().iter()).chain(self.udp.flows().iter())
    }
}
