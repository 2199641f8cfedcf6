//! What captures at both hosts of a lab show, from the records of its packets.

use capture::LinkType;
use capture::dissect::{self, Layers, PacketDirection, TcpSegment};
use lab::{FlowKey, LinkDirection, PacketRecord, Watch};
use link::FateKind;
use record::Measurement;
use simulator::Scenario;
use std::thread::{self, JoinHandle};
use tcp_analysis::{Connection, PacketPosition, Requested, Rules, Sampled, Sampler, measurement};

/// Bytes of each packet: all headers.
pub(crate) const SNAPLEN: usize = 120;

/// Time of the lab's start, ns since 1970: a capture has no time 0.
const EPOCH_NS: u64 = 1_700_000_000_000_000_000;

/// Reads the records until the lab ends.
pub(crate) fn collect(watch: Watch) -> JoinHandle<Vec<PacketRecord>> {
    thread::spawn(move || watch.records.iter().flatten().collect())
}

/// A packet that passes a host.
struct Passing<'a> {
    at_ns: u64,
    record: &'a PacketRecord,
}

/// The measurements that captures at the sender and at the receiver give; with `reverse` data
/// goes down.
pub(crate) fn measurements(
    case: &Scenario,
    records: &[PacketRecord],
    streams: &[FlowKey],
) -> [Measurement; 2] {
    [true, false].map(|at_sender| {
        let packets = passing(records, case.reverse, at_sender);
        let mut measured = Vec::new();
        for stream in streams {
            measured.extend(sampled(&packets, stream));
        }
        let requested = Requested {
            congestion: Some(case.congestion.name()),
            rate: case.rate,
            pacing: case.pacing,
            window: None,
        };
        let streams = measured.iter().map(|(connection, sampler)| Sampled {
            caveats: Vec::new(),
            connection,
            sampler: sampler.clone(),
            is_bulk: true,
        });
        measurement(("10.0.0.2", 5201), requested, streams.collect(), Vec::new())
    })
}

/// What passes a host, in the order of time: what it sends as it enters the link, lost or not;
/// what it receives on arrival.
fn passing(records: &[PacketRecord], reverse: bool, at_sender: bool) -> Vec<Passing<'_>> {
    let mut packets: Vec<Passing<'_>> = Vec::new();
    for record in records {
        let is_data = (record.direction == LinkDirection::Down) == reverse;
        let at = match record.kind {
            _ if is_data == at_sender => record.arrived,
            FateKind::Delivered { due, .. } => due,
            FateKind::Dropped(_) => continue,
        };
        packets.push(Passing { at_ns: EPOCH_NS + at.0, record });
    }
    packets.sort_by_key(|packet| (packet.at_ns, packet.record.number));
    packets
}

/// A stream's connection at the end, and its samples: two passes, as over a file.
fn sampled(packets: &[Passing<'_>], stream: &FlowKey) -> Option<(Connection, Sampler)> {
    let mut connection = Connection::default();
    let mut data = None;
    each(packets, stream, |position, segment, is_data| {
        connection.add(Rules::default(), position, segment);
        data = data.or(is_data.then_some(segment.direction));
    });
    let data = data?;
    let point = connection.vantage(data).point;
    let mut sampler = Sampler::new(data, connection.duration_ns(), point);
    let mut connection = Connection::default();
    each(packets, stream, |position, segment, _| {
        let found = connection.add(Rules::default(), position, segment);
        sampler.add(&connection, position, segment, &found);
    });
    Some((connection, sampler))
}

/// Each segment of a stream, and whether its sender sends the data.
fn each(
    packets: &[Passing<'_>],
    stream: &FlowKey,
    mut see: impl FnMut(PacketPosition, &TcpSegment<'_>, bool),
) {
    let mut layers = Layers::new();
    for (packet, Passing { at_ns, record }) in (1..).zip(packets) {
        dissect::dissect(LinkType::RAW, &record.bytes, record.length, &mut layers);
        let Some(segment) = layers.tcp(&record.bytes) else { continue };
        let (from, to) = match segment.direction {
            PacketDirection::AToB => (segment.key.a_port, segment.key.b_port),
            PacketDirection::BToA => (segment.key.b_port, segment.key.a_port),
        };
        let (source, destination) = (stream.source.port(), stream.destination.port());
        let is_data = (from, to) == (source, destination);
        if is_data || (to, from) == (source, destination) {
            let position = PacketPosition { packet, time_ns: *at_ns, reuses_ports: false };
            see(position, &segment, is_data);
        }
    }
}
