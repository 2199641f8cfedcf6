//! TCP streams, worst first.

use super::analysis::{self, Analysis, Explained};
use super::document::streams::{
    CauseTime, Ecn, Mptcp, ReceiveWindow, Stream, StreamFlags, StreamsFile,
};
use super::{OnRead, Rules};
use crate::{Problem, StopFlag};
use capture::dissect::{FlowKey, PacketDirection};
use record::Caveat;
use report::terminal::StreamRow;
use std::path::Path;
use tcp_analysis::{Connection, RetransmissionKind};
use units::{BitRate, ByteCount, Rtt};

/// Streams of a file that are explained.
const MAX_EXPLAINED: usize = 10;

/// The TCP streams of a file.
pub struct StreamsRead {
    /// The file with its streams.
    pub analysis: Analysis,
    /// True if the largest streams were explained, for which the file is read twice.
    pub is_explained: bool,
    explained: Vec<Explained>,
    order: Vec<u32>,
}

/// Reads a file, and explains its largest streams.
///
/// # Errors
/// The file cannot be opened, or is no capture.
pub fn read(
    path: &Path,
    rules: Rules,
    on_read: OnRead<'_>,
    stop: &StopFlag,
) -> Result<StreamsRead, Problem> {
    let analysis = analysis::analyse(path, rules, on_read, stop)?;
    // Standard input cannot be read twice.
    let is_explained = path != Path::new("-") && !analysis.capture.is_interrupted;
    let largest = if is_explained { analysis.largest(MAX_EXPLAINED) } else { Vec::new() };
    let explained = match largest.is_empty() {
        true => Vec::new(),
        false => analysis.explain(path, &largest, on_read, stop)?,
    };
    let order = worst_first(&analysis);
    Ok(StreamsRead { analysis, is_explained, explained, order })
}

impl StreamsRead {
    /// The number of streams.
    #[must_use]
    pub fn count(&self) -> usize {
        self.order.len()
    }

    /// The first `most` rows, worst first.
    pub fn rows(&self, most: usize) -> impl Iterator<Item = StreamRow> {
        self.order.iter().take(most).filter_map(|number| {
            let (key, connection) = self.analysis.streams.get(*number)?;
            Some(row(*number, key, connection, &self.explained, &self.analysis))
        })
    }

    /// The file's object; `streams` are its list.
    pub fn file<L>(&self, streams: L) -> StreamsFile<L> {
        StreamsFile::new(&self.analysis.capture, &self.analysis.tests, streams)
    }

    /// A row as a document: it has each flag by its name in Wireshark.
    #[must_use]
    pub fn stream(&self, row: &StreamRow) -> Option<Stream> {
        let analysis = &self.analysis;
        let (_, connection) = analysis.streams.get(row.stream)?;
        let direction = connection.data_direction();
        let counts = connection.retransmissions(direction);
        let flags = |direction| connection.counts(direction).iter().collect();
        let vantage = connection.vantage(direction);
        let test = analysis.tests.of(row.stream);
        let [sender, receiver] = row.ends.clone();
        Some(Stream {
            caveats: analysis.hidden(row.stream, connection),
            completeness: connection.completeness(),
            congestion_control: row.congestion.clone(),
            duplicated: counts.duplicated,
            duration_s: row.seconds,
            ecn: Ecn::from(&row.ecn),
            flags: StreamFlags {
                from_receiver: flags(direction.reverse()),
                from_sender: flags(direction),
            },
            goodput_bps: row.goodput.map(BitRate::bps),
            initial_rtt_ms: connection.initial_rtt_ns().map(|ns| ns as f64 / 1e6),
            iperf3: test.and_then(|test| Some(test.parameters.as_ref()?.json.clone())),
            limit: row.limit.clone(),
            lost_before_this_point: counts.not_seen_before,
            lost_behind_this_point: counts.seen_before,
            min_rtt_ms: row.rtt.map(|(least, _)| least.millis_f64()),
            mptcp: analysis.mptcp.of(row.stream).map(Mptcp::from),
            payload_bytes: row.payload.bytes(),
            position: vantage.position,
            position_uncertainty: vantage.uncertainty,
            receive_window: row.window.map(|(bytes, is_lower_bound)| ReceiveWindow {
                is_lower_bound,
                largest_bytes: bytes.bytes(),
            }),
            receiver,
            reordered: counts.reordered,
            retransmissions: RetransmissionKind::ALL
                .iter()
                .map(|kind| (kind.name(), counts.of(*kind)))
                .collect(),
            rtt_ms: row.rtt.map(|(_, smoothed)| smoothed.millis_f64()),
            sender,
            spurious_dsack: counts.spurious_dsack,
            spurious_eifel: counts.spurious_eifel,
            stream: row.stream,
            time_by_cause: CauseTime::of(&row.times),
        })
    }
}

/// Streams with data, those that retransmitted the largest share first; of equal ones the
/// larger one.
fn worst_first(analysis: &Analysis) -> Vec<u32> {
    let mut all: Vec<(f64, u64, u32)> = analysis
        .streams
        .iter()
        .map(|(number, _, connection)| {
            let direction = connection.data_direction();
            let payload = connection.carried(direction);
            (share(connection, direction), payload, number)
        })
        .collect();
    all.sort_by(|a, b| b.0.total_cmp(&a.0).then(b.1.cmp(&a.1)).then(a.2.cmp(&b.2)));
    all.into_iter().map(|(_, _, number)| number).collect()
}

/// Retransmissions as a share of the data packets.
fn share(connection: &Connection, direction: PacketDirection) -> f64 {
    let (_, packets, _) = connection.traffic(direction);
    f64::from(connection.retransmissions(direction).total()) / f64::from(packets.max(1))
}

/// A stream's row, with what was explained of it.
pub(crate) fn row(
    number: u32,
    key: &FlowKey,
    connection: &Connection,
    explained: &[Explained],
    analysis: &Analysis,
) -> StreamRow {
    let direction = connection.data_direction();
    let counts = connection.retransmissions(direction);
    let acknowledged = connection.acknowledged(direction);
    let payload = acknowledged.unwrap_or_else(|| connection.sent_once(direction));
    let payload = ByteCount::from_bytes(payload);
    let seconds = connection.duration_ns() as f64 / 1e9;
    let vantage = connection.vantage(direction);
    let whole = vantage.to_sender_ns.zip(vantage.to_receiver_ns).map(|(near, far)| near + far);
    let smoothed = connection.rtt_ns(direction).map(|(least, smoothed)| smoothed - least);
    let rtt = whole.map(|ns| {
        let queued = ns + smoothed.unwrap_or(0);
        (Rtt::from_micros(ns / 1000), Rtt::from_micros(queued / 1000))
    });
    let retransmits = if connection.is_one_way() {
        // The cause of the sender's repetitions shows in the other direction.
        vec![("repeated segments", counts.total())]
    } else {
        RetransmissionKind::ALL.iter().map(|kind| (kind.name(), counts.of(*kind))).collect()
    };
    let retransmits = retransmits.into_iter().filter(|(_, count)| *count > 0).collect();
    let limit = explained.iter().find(|one| one.streams.contains(&number));
    let sender = limit.and_then(|one| {
        let place = one.streams.iter().position(|stream| *stream == number)?;
        one.senders.get(place).cloned()
    });
    let (times, congestion) = sender.map(|it| (it.times, it.congestion)).unzip();
    StreamRow {
        stream: number,
        ends: [direction, direction.reverse()].map(|side| analysis::end(key, side).to_string()),
        seconds,
        payload,
        goodput: (seconds > 0.0).then(|| BitRate::from_bps_f64(payload.as_f64() * 8.0 / seconds)),
        retransmits,
        retransmit_share: share(connection, direction).min(1.0),
        rtt,
        point: analysis::place(&vantage),
        caveats: analysis.hidden(number, connection).iter().map(Caveat::sentence).collect(),
        window: connection
            .largest_window(direction.reverse())
            .map(|(bytes, is_bound)| (ByteCount::from_bytes(bytes), is_bound)),
        ecn: (
            connection.ecn_mode(),
            [direction, direction.reverse()].map(|side| connection.ecn_counts(side)),
        ),
        limit: limit.map(|one| diagnose::explain(&one.measurement).sentence),
        times: times.unwrap_or_default(),
        congestion: congestion.flatten(),
    }
}
