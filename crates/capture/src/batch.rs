//! Several packets at a time: their layers, and the TCP streams they belong to.
//!
//! Flows are spread over more memory than a cache has, and each lookup waits for it. Of
//! packets that are looked up one right after the other, the waits overlap.

use crate::conversations::{Conversations, ExpectedStream};
use crate::dissect::{FlowKey, Layers, dissect};
use crate::file::{BATCH, Packet, Packets};

/// The layers and streams of some packets; one value is used for all.
#[derive(Debug)]
pub struct Batch {
    layers: Vec<Layers>,
    keys: [Option<FlowKey>; BATCH],
    streams: [ExpectedStream; BATCH],
}

impl Default for Batch {
    fn default() -> Self {
        Batch {
            layers: vec![Layers::new(); BATCH],
            keys: [None; BATCH],
            streams: [ExpectedStream::default(); BATCH],
        }
    }
}

impl Batch {
    /// Dissects the packets and looks up their streams.
    pub fn prepare(&mut self, packets: &Packets<'_>, conversations: &Conversations) {
        let mut count = 0;
        for ((packet, layers), key) in packets.iter().zip(&mut self.layers).zip(&mut self.keys) {
            dissect(packet.link, packet.data, packet.original_len, layers);
            *key = layers.tcp_key(packet.data);
            count += 1;
        }
        let mut last = (None, ExpectedStream::default());
        for (key, stream) in self.keys.iter().zip(&mut self.streams).take(count) {
            if *key != last.0 {
                let found = key.map_or(ExpectedStream::default(), |key| conversations.find(&key));
                last = (*key, found);
            }
            *stream = last.1;
        }
    }

    /// The packets with their layers and what was found of their streams.
    pub fn each<'a>(
        &'a self,
        packets: &Packets<'a>,
    ) -> impl Iterator<Item = (Packet<'a>, &'a Layers, ExpectedStream)> + use<'a> {
        let found = self.layers.iter().zip(self.streams);
        packets.iter().zip(found).map(|(packet, (layers, stream))| (packet, layers, stream))
    }
}
