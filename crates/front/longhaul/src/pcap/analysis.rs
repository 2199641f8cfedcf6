//! The TCP streams of a capture file: one pass over all of them, and a second one that
//! samples those to explain.

use super::OnRead;
use super::reading::{self, Capture};
use crate::{Problem, StopFlag};
use capture::dissect::{FlowKey, PacketDirection, TcpSegment};
use record::{Caveat, Measurement};
use report::terminal;
use std::collections::HashMap;
use std::net::SocketAddr;
use std::ops::ControlFlow;
use std::path::Path;
use tcp_analysis::iperf3::{Test, Tests};
use tcp_analysis::{
    CapturePoint, CongestionEvidence, Connection, FaultFinder, Faults, MptcpConnections,
    PacketAnalysis, PacketPosition, Rules, Sampled, Sampler, Streams, TimeShare, Vantage,
    measurement,
};

/// Streams of a transfer that are explained together: as many as iperf3 can have.
const MAX_STREAMS: usize = 128;

/// Payload from which a stream is worth explaining beside others.
const MIN_PAYLOAD: u64 = 100_000;

/// A smaller one is a hang where it sent this share of its packets again, at least so often.
const HANG_SHARE: f64 = 0.2;
const HANG_PACKETS: u32 = 2;

/// A capture with its streams.
pub struct Analysis {
    /// The file.
    pub capture: Capture,
    pub(crate) streams: Streams,
    /// The iperf3 tests that began in the capture.
    pub tests: Tests,
    pub(crate) mptcp: MptcpConnections,
    /// Packets that capturing added: they are omitted from `streams` and `tests`.
    pub(crate) faults: Faults,
}

/// Reads and analyses a file.
///
/// # Errors
/// The file cannot be opened, or is no capture.
pub(crate) fn analyse(
    path: &Path,
    rules: Rules,
    on_read: OnRead<'_>,
    stop: &StopFlag,
) -> Result<Analysis, Problem> {
    let mut finder = FaultFinder::default();
    let tables = reading::Tables::of_reading();
    let mut streams = Streams::within(rules, &tables.budget);
    let mut tests = Tests::default();
    let mut mptcp = MptcpConnections::default();
    let mut capture = reading::read_packets(path, &tables, stop, on_read, |found, _| {
        let (number, time_ns) = (found.packet.number, found.packet.time_ns);
        let rtt_of = |streams: &Streams, stream| {
            streams.get(stream).and_then(|(_, known): &(_, Connection)| known.path_rtt_ns())
        };
        if let (Some(stream), Some(segment)) = (found.stream, found.segment) {
            let rtt_ns = rtt_of(&streams, stream.number);
            finder.add(stream.number, number, time_ns, segment, rtt_ns);
            streams.add(stream, number, time_ns, segment);
            tests.add(stream.number, number, time_ns, segment);
            mptcp.add(stream.number, segment);
        } else if let Some(cut) = found.cut
            && let Some(stream) = found.conversations.find(&cut.key).number()
        {
            finder.add_cut(stream, number, time_ns, cut, rtt_of(&streams, stream));
        }
        ControlFlow::Continue(())
    })?;
    capture.mptcp = mptcp.connections();
    capture.not_analysed = reading::not_analysed(&streams, &capture.conversations);
    let faults = finder.finish();
    // Standard input cannot be read twice.
    if faults.is_empty() || path == Path::new("-") || capture.is_interrupted {
        return Ok(Analysis { capture, streams, tests, faults, mptcp });
    }
    drop((streams, tests));
    let tables = reading::Tables::of_second_reading();
    let mut streams = Streams::within(rules, &tables.budget);
    let mut tests = Tests::default();
    reading::read_segments(path, &tables, stop, on_read, |packet, stream, segment| {
        let (number, side) = (stream.number, segment.direction);
        if let Some(ns) = faults.corrected_ns(number, side, packet.number, packet.time_ns) {
            streams.add(stream, packet.number, ns, segment);
            tests.add(number, packet.number, ns, segment);
        }
    })?;
    Ok(Analysis { capture, streams, tests, faults, mptcp })
}

/// Streams of one transfer that were explained together: their numbers, the largest first, and
/// what was measured.
pub(crate) struct Explained {
    pub(crate) streams: Vec<u32>,
    /// Of each stream.
    pub(crate) senders: Vec<SenderDetail>,
    pub(crate) measurement: Measurement,
}

/// Evidence of a stream's sender.
#[derive(Clone)]
pub(crate) struct SenderDetail {
    pub(crate) times: Vec<TimeShare>,
    pub(crate) congestion: Option<CongestionEvidence>,
}

/// A packet with its analysis.
pub(crate) struct AnalysedPacket<'a> {
    pub(crate) stream: u32,
    /// The connection after it.
    pub(crate) connection: &'a Connection,
    pub(crate) place: PacketPosition,
    pub(crate) segment: &'a TcpSegment<'a>,
    pub(crate) found: PacketAnalysis,
}

impl Analysis {
    /// The largest streams with at least so much payload, at most `most`.
    pub(crate) fn largest_of(&self, most: usize, least_payload: u64) -> Vec<u32> {
        let mut all: Vec<(u64, u32)> = self
            .streams
            .iter()
            .map(|(number, _, connection)| {
                (connection.carried(connection.data_direction()), number)
            })
            .filter(|(payload, _)| *payload >= least_payload)
            .collect();
        all.sort_unstable_by_key(|(payload, number)| (std::cmp::Reverse(*payload), *number));
        all.into_iter().take(most).map(|(_, number)| number).collect()
    }

    /// The largest transfers by payload that are worth explaining, at most `most`: the streams of
    /// one iperf3 test are one transfer. Small ones are where they hang, or all are small.
    pub(crate) fn largest(&self, most: usize) -> Vec<Vec<u32>> {
        let large = self.largest_of(usize::MAX, MIN_PAYLOAD);
        let all_small = large.is_empty();
        let small = self.largest_of(usize::MAX, 1).into_iter().skip(large.len());
        let small = small.filter(|number| all_small || self.hangs(*number));
        let mut transfers: Vec<Vec<u32>> = Vec::new();
        for number in large.into_iter().chain(small) {
            let same = transfers.iter().position(|it| self.is_same_test(it[0], number));
            match same {
                Some(place) if transfers[place].len() < MAX_STREAMS => {
                    transfers[place].push(number);
                }
                None if transfers.len() < most => transfers.push(vec![number]),
                Some(_) | None => {}
            }
        }
        transfers
    }

    /// Returns true if a stream retransmitted much of its data.
    fn hangs(&self, number: u32) -> bool {
        self.streams.get(number).is_some_and(|(_, connection)| {
            let direction = connection.data_direction();
            let again = connection.retransmissions(direction).total();
            let (_, packets, _) = connection.traffic(direction);
            again >= HANG_PACKETS && f64::from(again) >= HANG_SHARE * f64::from(packets)
        })
    }

    /// The transfers that `streams` are part of, each once.
    pub(crate) fn transfers_of(&self, streams: &[u32]) -> Vec<Vec<u32>> {
        let all = self.largest(usize::MAX);
        let mut transfers: Vec<Vec<u32>> = Vec::new();
        for number in streams {
            let with = |transfer: &&Vec<u32>| transfer.contains(number);
            if !transfers.iter().any(|transfer| transfer.contains(number)) {
                transfers.push(all.iter().find(with).cloned().unwrap_or_else(|| vec![*number]));
            }
        }
        transfers
    }

    /// Returns true if two streams carry data of the same iperf3 test in the same direction.
    fn is_same_test(&self, one: u32, other: u32) -> bool {
        let from_client = |stream| {
            let (_, connection) = self.streams.get(stream)?;
            self.tests.is_from_client(stream, connection.data_direction())
        };
        let cookie = self.tests.cookie_of(one);
        cookie.is_some()
            && cookie == self.tests.cookie_of(other)
            && from_client(one) == from_client(other)
    }

    /// Reads the file again and measures each of the transfers `wanted` as seen from where it was
    /// captured.
    ///
    /// # Errors
    /// As [`analyse`].
    pub(crate) fn explain(
        &self,
        path: &Path,
        wanted: &[Vec<u32>],
        on_read: OnRead<'_>,
        stop: &StopFlag,
    ) -> Result<Vec<Explained>, Problem> {
        self.explain_packets(path, wanted, on_read, stop, |_| {})
    }

    /// The same, and shows each packet of these streams to `see`.
    ///
    /// # Errors
    /// As [`analyse`].
    pub(crate) fn explain_packets(
        &self,
        path: &Path,
        wanted: &[Vec<u32>],
        on_read: OnRead<'_>,
        stop: &StopFlag,
        mut see: impl FnMut(AnalysedPacket<'_>),
    ) -> Result<Vec<Explained>, Problem> {
        let mut samplers: HashMap<u32, (Connection, Sampler)> = HashMap::new();
        let count = wanted.iter().map(Vec::len).sum();
        for number in wanted.iter().flatten() {
            if let Some((_, connection)) = self.streams.get(*number) {
                let direction = connection.data_direction();
                let point = connection.vantage(direction).point;
                let sampler = Sampler::new(direction, connection.duration_ns(), point)
                    .sharing(count)
                    .knowing(connection);
                samplers.insert(*number, (connection.anew(), sampler));
            }
        }
        let rules = Rules::default();
        let tables = reading::Tables::of_second_reading();
        reading::read_segments(path, &tables, stop, on_read, |packet, stream, segment| {
            if let Some((connection, sampler)) = samplers.get_mut(&stream.number) {
                let (number, side) = (stream.number, segment.direction);
                let time = self.faults.corrected_ns(number, side, packet.number, packet.time_ns);
                let Some(time_ns) = time else { return };
                let place = PacketPosition {
                    packet: packet.number,
                    time_ns,
                    reuses_ports: stream.reuses_ports,
                };
                let found = connection.add(rules, place, segment);
                sampler.add(connection, place, segment, &found);
                see(AnalysedPacket { stream: stream.number, connection, place, segment, found });
            }
        })?;
        let each = wanted.iter().filter_map(|transfer| {
            let taken = |number: &u32| Some((*number, samplers.remove(number)?));
            let sampled: Vec<(u32, (Connection, Sampler))> =
                transfer.iter().filter_map(taken).collect();
            self.measured(&sampled)
        });
        Ok(each.collect())
    }

    fn measured(&self, sampled: &[(u32, (Connection, Sampler))]) -> Option<Explained> {
        let (first, (connection, _)) = sampled.first()?;
        let (key, _) = self.streams.get(*first)?;
        let direction = connection.data_direction();
        let receiver = end(key, direction.reverse());
        let requested = self.tests.of(*first).map(Test::requested).unwrap_or_default();
        let mut notes = vec![format!("captured {}", place(&connection.vantage(direction)))];
        for (number, (connection, _)) in sampled {
            let kinds = retransmission_kinds(connection);
            // The cause of a sender's repetitions shows in the other direction.
            if kinds.is_empty() || connection.is_one_way() {
                continue;
            }
            let of = if sampled.len() > 1 { format!(" of stream {number}") } else { String::new() };
            notes.push(format!("retransmissions{of}: {kinds}"));
        }
        let target = (receiver.ip().to_string(), receiver.port());
        let numbers = sampled.iter().map(|(number, _)| *number).collect();
        let detail = |(_, (connection, sampler)): &(u32, (Connection, Sampler))| SenderDetail {
            // Neither shows in one direction.
            times: if connection.is_one_way() {
                Vec::new()
            } else {
                sampler.time_shares(connection)
            },
            congestion: (!connection.is_one_way()).then(|| sampler.congestion()),
        };
        let senders: Vec<SenderDetail> = sampled.iter().map(detail).collect();
        for ((number, _), sender) in sampled.iter().zip(&senders) {
            if sender.times.is_empty() {
                continue;
            }
            let of = if sampled.len() > 1 { format!("stream {number}: ") } else { String::new() };
            notes.push(format!("{of}{}", terminal::time_by_cause(&sender.times)));
            let family = sender.congestion.as_ref().map(terminal::congestion);
            notes.extend(family.map(|text| format!("{of}{text}")));
        }
        let streams = sampled.iter().map(|(number, (connection, sampler))| Sampled {
            connection,
            sampler: sampler.clone(),
            is_bulk: self.tests.cookie_of(*number).is_some(),
            caveats: self.caveats(*number),
        });
        let measurement = measurement((&target.0, target.1), requested, streams.collect(), notes);
        Some(Explained { streams: numbers, senders, measurement })
    }

    /// Properties of a stream that the capture does not show.
    pub(crate) fn hidden(&self, number: u32, connection: &Connection) -> Vec<Caveat> {
        let mut all = self.caveats(number);
        all.extend(tcp_analysis::caveats(connection, connection.data_direction()));
        all
    }

    /// Properties of a stream that the capture as a whole hides.
    fn caveats(&self, stream: u32) -> Vec<Caveat> {
        let packets = self.capture.cut_headers;
        let cut = (packets > 0).then_some(Caveat::TruncatedHeaders { packets });
        self.faults.caveats(stream).into_iter().chain(cut).collect()
    }

    /// The iperf3 test that a stream belongs to, in sentences.
    pub(crate) fn test_sentences(&self, stream: u32) -> Vec<String> {
        let first_ns = self.capture.overview.first_ns;
        self.tests.of(stream).map(|test| terminal::iperf3_test(test, first_ns)).unwrap_or_default()
    }
}

/// Retransmissions of a stream by kind, with the first packet of each.
fn retransmission_kinds(connection: &Connection) -> String {
    let counts = connection.retransmissions(connection.data_direction());
    let kinds = tcp_analysis::RetransmissionKind::ALL.iter().filter(|kind| counts.of(**kind) > 0);
    let texts: Vec<String> = kinds
        .map(|kind| {
            format!(
                "{} {} (first: packet {})",
                counts.of(*kind),
                kind.name().replace('_', " "),
                counts.first_packet[*kind as usize]
            )
        })
        .collect();
    texts.join(", ")
}

/// Address and port of the side that sends in `direction`.
pub(crate) fn end(key: &FlowKey, direction: PacketDirection) -> SocketAddr {
    match direction {
        PacketDirection::AToB => SocketAddr::new(key.a_address(), key.a_port),
        PacketDirection::BToA => SocketAddr::new(key.b_address(), key.b_port),
    }
}

/// Where a capture was made, in words.
pub(crate) fn place(vantage: &Vantage) -> String {
    let share = |share: Option<f64>| share.map_or("-".to_owned(), |it| units::percent_with(it, 2));
    match vantage.point {
        CapturePoint::Sender => "at the sender".to_owned(),
        CapturePoint::Receiver => "at the receiver".to_owned(),
        CapturePoint::Between => format!(
            "between the ends: {} of the RTT is on the sender's side (± {})",
            share(vantage.position),
            share(vantage.uncertainty)
        ),
        CapturePoint::Unknown => "at an unknown point of the path".to_owned(),
    }
}
