//! What `tcp-analysis` says of each packet in a capture at a host.

use crate::run::{Packet, Run};
use capture::LinkType;
use capture::dissect::{self, Layers};
use std::collections::HashMap;
use tcp_analysis::{Connection, PacketPosition, RetransmissionKind, Rules};

/// Time of the lab's start, ns since 1970: a capture has no time 0.
const EPOCH_NS: u64 = 1_700_000_000_000_000_000;

/// A packet's label.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Label {
    pub(crate) kind: Option<RetransmissionKind>,
    /// An ACK showed that its retransmission was unnecessary.
    pub(crate) spurious: bool,
}

/// The label of each of the run's packets, by its place; `None`: not in this capture.
pub(crate) fn labels(run: &Run, at_sender: bool) -> Vec<Option<Label>> {
    let mut labels = vec![None; run.packets.len()];
    let mut layers = Layers::new();
    let mut connections: HashMap<u16, Connection> = HashMap::new();
    for (at_ns, place) in passing(run, at_sender) {
        let packet = &run.packets[place];
        dissect::dissect(LinkType::RAW, &packet.bytes, packet.length, &mut layers);
        let Some(segment) = layers.tcp(&packet.bytes) else { continue };
        // Packets are numbered from 1 by their place, so that ACKs can name them.
        let position = PacketPosition {
            packet: place as u64 + 1,
            time_ns: EPOCH_NS + at_ns,
            reuses_ports: false,
        };
        let connection = connections.entry(packet.port).or_default();
        let found = connection.add(Rules::default(), position, &segment);
        labels[place] = Some(Label { kind: found.kind, spurious: false });
        if let Some(retransmission) = found.proves_spurious
            && let Some(Some(label)) = labels.get_mut(retransmission as usize - 1)
        {
            label.spurious = true;
        }
    }
    labels
}

/// When each packet passes a host, and its place: what it sends as it enters the link, lost
/// or not; what it receives on arrival.
fn passing(run: &Run, at_sender: bool) -> Vec<(u64, usize)> {
    let at = |packet: &Packet| match packet.is_data == at_sender {
        true => Some(packet.arrived_ns),
        false => packet.due_ns,
    };
    let all = run.packets.iter().enumerate();
    let mut all: Vec<(u64, usize)> =
        all.filter_map(|(place, packet)| Some((at(packet)?, place))).collect();
    all.sort_by_key(|(at_ns, _)| *at_ns);
    all
}
