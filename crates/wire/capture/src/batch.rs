//! Several packets at a time: their layers, and the TCP streams they belong to.
//!
//! Flows are spread over more memory than a cache has, and each lookup waits for it. Of
//! packets that are looked up one right after the other, the waits overlap.
//!
//! IP packets are reassembled here: the fragment that completes one has its layers, and its
//! bytes as [`Packet::data`].

use crate::Seed;
use crate::conversations::{Conversations, ExpectedStream};
use crate::dissect::{FlowKey, Layers, dissect};
use crate::file::{BATCH, Packet, Packets};
use crate::reassembly::Reassembler;

/// Tunnels in tunnels whose packets are fragments at each level, that are reassembled.
const MAX_NESTED: usize = 4;

/// The layers and streams of some packets; one value is used for all.
#[derive(Debug)]
pub struct Batch {
    layers: Vec<Layers>,
    keys: [Option<FlowKey>; BATCH],
    streams: [ExpectedStream; BATCH],
    reassembler: Reassembler,
    /// Packets that a fragment completed, by their place in the batch.
    reassembled: Vec<(usize, Vec<u8>)>,
}

impl Batch {
    /// No packets; `seed` is for hash tables and should be random.
    #[must_use]
    pub fn new(seed: Seed) -> Self {
        Batch {
            layers: vec![Layers::new(); BATCH],
            keys: [None; BATCH],
            streams: [ExpectedStream::default(); BATCH],
            reassembler: Reassembler::new(seed),
            reassembled: Vec::new(),
        }
    }

    /// Dissects the packets and looks up their streams.
    pub fn prepare(&mut self, packets: &Packets<'_>, conversations: &Conversations) {
        let mut count = 0;
        self.reassembled.clear();
        for ((packet, layers), key) in packets.iter().zip(&mut self.layers).zip(&mut self.keys) {
            dissect(packet.link, packet.data, packet.original_len, layers);
            *key = layers.tcp_key(packet.data);
            if layers.is_fragment()
                && let Some(whole) = reassemble(&mut self.reassembler, packet.data, layers)
            {
                *key = layers.tcp_key(&whole);
                self.reassembled.push((count, whole));
            }
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
        packets.iter().zip(found).enumerate().map(|(place, (mut packet, (layers, stream)))| {
            if let Some((_, whole)) = self.reassembled.iter().find(|(its, _)| *its == place) {
                packet.data = whole;
            }
            (packet, layers, stream)
        })
    }
}

/// The whole packet, if the fragment in `data` completes one.
#[cold]
fn reassemble(reassembler: &mut Reassembler, data: &[u8], layers: &mut Layers) -> Option<Vec<u8>> {
    let mut whole = reassembler.add(data, layers)?;
    for _ in 1..MAX_NESTED {
        if !layers.is_fragment() {
            break;
        }
        match reassembler.add(&whole, layers) {
            Some(inner) => whole = inner,
            None => break,
        }
    }
    Some(whole)
}
