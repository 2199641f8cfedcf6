//! The connections of a capture, by the number of their stream.

use crate::connection::{Connection, PacketPosition};
use crate::flags::FlagCounts;
use crate::rules::Rules;
use crate::wireshark::PacketAnalysis;
use capture::conversations::StreamNumber;
use capture::dissect::{Direction, FlowKey, TcpSegment};

/// All connections of a capture. How many there can be is bounded by
/// `capture::Conversations`, which numbers them.
#[derive(Debug, Default)]
pub struct Streams {
    rules: Rules,
    connections: Vec<(FlowKey, Connection)>,
}

impl Streams {
    /// No connections yet.
    #[must_use]
    pub fn new(rules: Rules) -> Self {
        Streams { rules, connections: Vec::new() }
    }

    /// Analyses a segment of the stream that `capture::Conversations::add` returned for it,
    /// the packet's `number` in the file and its time. `None` if numbers were skipped.
    #[inline]
    pub fn add(
        &mut self,
        stream: StreamNumber,
        number: u64,
        time_ns: u64,
        segment: &TcpSegment<'_>,
    ) -> Option<PacketAnalysis> {
        let at = stream.number as usize;
        if at == self.connections.len() {
            self.connections.push((segment.key, Connection::default()));
        }
        let (_, connection) = self.connections.get_mut(at)?;
        let position =
            PacketPosition { packet: number, time_ns, reuses_ports: stream.reuses_ports };
        Some(connection.add(self.rules, position, segment))
    }

    /// The connection of a stream, and its addresses.
    #[must_use]
    pub fn get(&self, number: u32) -> Option<&(FlowKey, Connection)> {
        self.connections.get(number as usize)
    }

    /// Every connection by its stream's number.
    pub fn iter(&self) -> impl Iterator<Item = (u32, &FlowKey, &Connection)> {
        (0..).zip(&self.connections).map(|(number, (key, connection))| (number, key, connection))
    }

    /// How often each flag was set in the whole capture.
    #[must_use]
    pub fn counts(&self) -> FlagCounts {
        let mut sum = FlagCounts::default();
        for (_, _, connection) in self.iter() {
            sum.merge(&connection.counts(Direction::AToB));
            sum.merge(&connection.counts(Direction::BToA));
        }
        sum
    }
}
