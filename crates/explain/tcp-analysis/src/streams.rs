//! The connections of a capture, by the number of their stream.
//!
//! Memory is bounded by a budget whatever the capture has: a part of it is for connections
//! themselves, the rest for what they keep of their packets. Without room for another one, further
//! connections are not analysed. Where the packets of a connection need more, its analysis ends
//! there, which frees most of what it kept.

use crate::connection::{Connection, PacketPosition};
use crate::flags::FlagCounts;
use crate::outstanding::{MAX, Segment};
use crate::rules::Rules;
use crate::wireshark::PacketAnalysis;
use capture::conversations::StreamNumber;
use capture::dissect::{FlowKey, PacketDirection, TcpSegment};
use capture::{ChunkedList, MemoryBudget, TABLE_BYTES};

/// The part of the budget that is kept for packets.
const FOR_PACKETS: (usize, usize) = (2, 5);

/// The most that a packet can make a connection take: twice the longest list of segments in each
/// direction, as a list doubles.
const STEP: usize = 4 * MAX * size_of::<Segment>();

/// All connections of a capture. `capture::Conversations` numbers them.
#[derive(Debug)]
pub struct Streams {
    rules: Rules,
    connections: ChunkedList<Followed>,
    /// Whether there was no room for a connection: those that follow are not analysed.
    is_full: bool,
    for_packets: MemoryBudget,
    budget: MemoryBudget,
    cut: u32,
}

/// A connection that is followed.
#[derive(Debug)]
struct Followed {
    connection: (FlowKey, Connection),
    /// Bytes that it has taken of the budget for packets.
    taken: usize,
    /// Whether its analysis ended early.
    is_cut: bool,
}

impl Streams {
    /// No connections yet.
    #[must_use]
    pub fn new(rules: Rules) -> Self {
        Streams::within(rules, &MemoryBudget::new(TABLE_BYTES))
    }

    /// As [`Streams::new`], with memory from this budget.
    #[must_use]
    pub fn within(rules: Rules, budget: &MemoryBudget) -> Self {
        let share = budget.left() / FOR_PACKETS.1 * FOR_PACKETS.0;
        let share = if budget.take(share) { share } else { 0 };
        Streams {
            rules,
            connections: ChunkedList::new(budget),
            is_full: false,
            for_packets: MemoryBudget::new(share),
            budget: budget.clone(),
            cut: 0,
        }
    }

    /// Analyses a segment of the stream that `capture::Conversations::add` returned for it,
    /// the packet's `number` in the file and its time. `None` if numbers were skipped, or there is
    /// no memory for it.
    #[inline]
    pub fn add(
        &mut self,
        stream: StreamNumber,
        number: u64,
        time_ns: u64,
        segment: &TcpSegment<'_>,
    ) -> Option<PacketAnalysis> {
        let at = stream.number as usize;
        if at == self.connections.len() && !self.is_full {
            let connection = (segment.key, Connection::default());
            self.is_full = !self.connections.push(Followed { connection, taken: 0, is_cut: false });
        }
        let followed = self.connections.get_mut(at).filter(|followed| !followed.is_cut)?;
        let (_, connection) = &mut followed.connection;
        if self.for_packets.left() < STEP {
            followed.is_cut = true;
            self.cut += 1;
            connection.end_analysis();
            followed.settle(&self.for_packets);
            return None;
        }
        let position =
            PacketPosition { packet: number, time_ns, reuses_ports: stream.reuses_ports };
        let found = connection.add(self.rules, position, segment);
        followed.settle(&self.for_packets);
        Some(found)
    }

    /// The connection of a stream, and its addresses.
    #[must_use]
    pub fn get(&self, number: u32) -> Option<&(FlowKey, Connection)> {
        self.connections.get(number as usize).map(|followed| &followed.connection)
    }

    /// How many connections there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.connections.len()
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.connections.is_empty()
    }

    /// Connections whose analysis ended early because the memory for packets was used up.
    #[must_use]
    pub fn cut(&self) -> u32 {
        self.cut
    }

    /// Every connection by its stream's number.
    pub fn iter(&self) -> impl Iterator<Item = (u32, &FlowKey, &Connection)> {
        let each = (0..).zip(self.connections.iter());
        each.map(|(number, followed)| (number, &followed.connection.0, &followed.connection.1))
    }

    /// How often each flag was set in the whole capture.
    #[must_use]
    pub fn counts(&self) -> FlagCounts {
        let mut sum = FlagCounts::default();
        for (_, _, connection) in self.iter() {
            sum.merge(&connection.counts(PacketDirection::AToB));
            sum.merge(&connection.counts(PacketDirection::BToA));
        }
        sum
    }
}

impl Drop for Streams {
    fn drop(&mut self) {
        self.budget.give_back(self.for_packets.most());
    }
}

impl Followed {
    /// Takes what the connection has grown by, or returns what it has freed.
    #[inline]
    fn settle(&mut self, budget: &MemoryBudget) {
        let now = self.connection.1.heap_bytes();
        if now == self.taken {
            return;
        }
        if now < self.taken {
            budget.give_back(self.taken - now);
        } else if !budget.take(now - self.taken) {
            // There was room for a step, and this is none that is larger.
            return;
        }
        self.taken = now;
    }
}
