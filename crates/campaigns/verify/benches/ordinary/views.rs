//! Captures of a run from several points of the path, whole and in part, as `explain` reads them.

use crate::cases::Case;
use capture::LinkType;
use capture::dissect::{self, Layers, TcpSegment};
use lab::{LinkDirection, PacketRecord};
use link::FateKind;
use record::{Finding, Measurement};
use std::time::Duration;
use tcp_analysis::{
    Connection, FaultFinder, Faults, PacketPosition, Requested, Rules, Sampled, Sampler,
    measurement,
};

/// Time of the lab's start, ns since 1970: a capture has no time 0.
const EPOCH_NS: u64 = 1_700_000_000_000_000_000;

/// What a capture has of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum View {
    Sender,
    Receiver,
    Middle,
    /// Without the first packets.
    MidStream,
    OneDirection,
}

impl View {
    pub(crate) const ALL: [View; 5] =
        [View::Sender, View::Receiver, View::Middle, View::MidStream, View::OneDirection];

    pub(crate) const fn name(self) -> &'static str {
        match self {
            View::Sender => "sender",
            View::Receiver => "receiver",
            View::Middle => "middle",
            View::MidStream => "mid-stream",
            View::OneDirection => "one-direction",
        }
    }

    /// What is captured of a run.
    fn packets<'a>(self, case: &Case, records: &'a [PacketRecord]) -> Vec<Passing<'a>> {
        let at = |sender: bool| if case.server_sends == sender { 1.0 } else { 0.0 };
        match self {
            View::Sender => passing(case, records, at(true)),
            View::Receiver => passing(case, records, at(false)),
            View::Middle => passing(case, records, case.middle),
            View::MidStream => {
                let mut packets = passing(case, records, case.hidden.points[0]);
                let before = (packets.len() as f64 * case.hidden.before) as usize;
                packets.drain(..before.max(3).min(packets.len()));
                packets
            }
            View::OneDirection => {
                let mut packets = passing(case, records, case.hidden.points[1]);
                let is_up = |packet: &Passing<'_>| packet.record.direction == LinkDirection::Up;
                packets.retain(|packet| is_up(packet) == case.hidden.from_client);
                packets
            }
        }
    }

    /// What is found in it.
    pub(crate) fn explain(
        self,
        case: &Case,
        records: &[PacketRecord],
    ) -> Option<(Finding, Measurement)> {
        let measured = measured(&self.packets(case, records))?;
        Some((diagnose::explain(&measured), measured))
    }
}

/// A packet that passes a point of the path.
struct Passing<'a> {
    at_ns: u64,
    record: &'a PacketRecord,
}

/// What passes a point of the path, 0 at the client and 1 at the server, in the order of time: a
/// host's own packets as they enter the link, lost or not; others on their way behind the queue.
fn passing<'a>(case: &Case, records: &'a [PacketRecord], point: f64) -> Vec<Passing<'a>> {
    let mut packets: Vec<Passing<'a>> = Vec::new();
    for record in records {
        let passed = if record.direction == LinkDirection::Up { point } else { 1.0 - point };
        let at = match record.kind {
            _ if passed <= 0.0 => record.arrived.0,
            FateKind::Delivered { due, .. } => {
                let left: Duration = (case.rtt / 2).mul_f64(1.0 - passed);
                due.0.saturating_sub(u64::try_from(left.as_nanos()).unwrap_or(0))
            }
            FateKind::Dropped(_) => continue,
        };
        packets.push(Passing { at_ns: EPOCH_NS + at, record });
    }
    packets.sort_by_key(|packet| (packet.at_ns, packet.record.number));
    packets
}

/// The measurement of the connection: passes as over a file.
fn measured(packets: &[Passing<'_>]) -> Option<Measurement> {
    let mut finder = FaultFinder::default();
    let mut known = Connection::default();
    each(packets, &Faults::default(), |position, segment| {
        finder.add(0, position.packet, position.time_ns, segment, known.path_rtt_ns());
        known.add(Rules::default(), position, segment);
    });
    let faults = finder.finish();
    if !faults.is_empty() {
        known = Connection::default();
        each(packets, &faults, |position, segment| {
            known.add(Rules::default(), position, segment);
        });
    }
    let direction = known.data_direction();
    let point = known.vantage(direction).point;
    let mut sampler = Sampler::new(direction, known.duration_ns(), point).knowing(&known);
    let mut connection = known.anew();
    each(packets, &faults, |position, segment| {
        let found = connection.add(Rules::default(), position, segment);
        sampler.add(&connection, position, segment, &found);
    });
    let sampled =
        Sampled { connection: &connection, sampler, is_bulk: false, caveats: faults.caveats(0) };
    let any = known.carried(direction) > 0;
    any.then(|| measurement(("192.0.2.2", 8080), Requested::default(), vec![sampled], Vec::new()))
}

/// Each segment of the connection, without copies.
fn each(
    packets: &[Passing<'_>],
    faults: &Faults,
    mut see: impl FnMut(PacketPosition, &TcpSegment<'_>),
) {
    let mut layers = Layers::new();
    for (packet, Passing { at_ns, record }) in (1..).zip(packets) {
        dissect::dissect(LinkType::RAW, &record.bytes, record.length, &mut layers);
        let Some(segment) = layers.tcp(&record.bytes) else { continue };
        let corrected = faults.corrected_ns(0, segment.direction, packet, *at_ns);
        if let Some(time_ns) = corrected {
            see(PacketPosition { packet, time_ns, reuses_ports: false }, &segment);
        }
    }
}
