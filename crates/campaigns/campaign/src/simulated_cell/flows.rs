//! The measurements of a test's flows, of one simulation of all their connections.

use super::connections::{PlannedFlow, control};
use crate::cell_lab::finished;
use record::{Caveat, Direction, FlowFigures, Measurement, PathReport, Stream, TestSpec};
use study::{Test, Traffic};
use twin::Outcome;

/// Rounding error of a sample's time, s: samples are 10 ms apart at least.
const ROUNDING_S: f64 = 1e-6;

/// The figures and the measurement of each flow. Their time begins with the flow, after its warm-up.
pub(super) fn of(
    test: &Test,
    planned: &[PlannedFlow],
    outcome: Outcome,
    path: &PathReport,
) -> Vec<(FlowFigures, Measurement)> {
    let Measurement { version, peer, spec, streams, .. } = outcome.measurement;
    let mut streams = streams.into_iter();
    let begins = |flow: &Traffic| (flow.start + flow.omit).as_secs_f64();
    let first = test.flows.iter().map(begins).fold(f64::INFINITY, f64::min);
    let flows = planned.iter().filter_map(|flow| {
        let traffic = test.flows.get(flow.traffic)?;
        let count = traffic.streams.saturating_mul(control(traffic).connections());
        let count = usize::try_from(count).unwrap_or(usize::MAX);
        let own = streams.by_ref().take(count).zip(1..);
        let own: Vec<Stream> = own.map(|(stream, id)| of_flow(stream, id, traffic)).collect();
        let measurement = Measurement {
            version: version.clone(),
            peer: peer.clone(),
            spec: self::spec(traffic, &spec),
            streams: own,
            path: Some(path.clone()),
            ..Measurement::default()
        };
        Some(finished(&flow.name, begins(traffic) - first, measurement))
    });
    flows.collect()
}

fn spec(traffic: &Traffic, of_all: &TestSpec) -> TestSpec {
    TestSpec {
        target: of_all.target.clone(),
        port: of_all.port,
        direction: traffic.direction,
        seconds: traffic.duration.as_secs_f64(),
        omit_s: u32::try_from(traffic.omit.as_secs()).unwrap_or(u32::MAX),
        streams: traffic.streams,
        rate_bps: traffic.bitrate,
        fq_rate_bps: traffic.pacing,
        block_bytes: traffic.block,
        congestion: Some(traffic.congestion().to_owned()),
        ..TestSpec::default()
    }
}

/// A stream from the end of its flow's warm-up to the flow's end. The sender's counters remain those
/// of the whole connection, as a kernel's do; what was received counts from there.
fn of_flow(stream: Stream, id: u32, traffic: &Traffic) -> Stream {
    let from = (traffic.start + traffic.omit).as_secs_f64();
    let to = traffic.end().as_secs_f64();
    let is_within = |t_s: f64| (from - ROUNDING_S..=to + ROUNDING_S).contains(&t_s);
    // What stood at the end of the warm-up.
    let before = |t_s: f64| t_s <= from + ROUNDING_S;
    let earlier = stream.sender.iter().take_while(|sample| before(sample.t_s)).last();
    let (written, retransmits) =
        earlier.map_or((0, 0), |sample| (sample.written_bytes, sample.retransmits));
    let earlier = stream.receiver.iter().take_while(|sample| before(sample.t_s)).last();
    let received = earlier.map_or(0, |sample| sample.received_bytes);
    let mut sender = stream.sender;
    sender.retain(|sample| is_within(sample.t_s));
    sender.iter_mut().for_each(|sample| sample.t_s = (sample.t_s - from).max(0.0));
    let mut receiver = stream.receiver;
    receiver.retain(|sample| is_within(sample.t_s));
    for sample in &mut receiver {
        sample.t_s = (sample.t_s - from).max(0.0);
        sample.received_bytes = sample.received_bytes.saturating_sub(received);
    }
    let last = sender.last().copied().unwrap_or_default();
    let read = receiver.last().copied().unwrap_or_default();
    let caveat = (!traffic.omit.is_zero()).then(|| Caveat::OmittedSeconds {
        seconds: traffic.omit.as_secs_f64(),
        retransmits: sender.first().map(|first| first.retransmits),
    });
    Stream {
        id,
        reverse: traffic.direction == Direction::Reverse,
        sent_bytes: last.written_bytes.saturating_sub(written),
        sent_seconds: last.t_s,
        received_bytes: read.received_bytes,
        received_seconds: read.t_s,
        retransmits: Some(last.retransmits.saturating_sub(retransmits)),
        caveats: caveat.into_iter().collect(),
        sender,
        receiver,
        ..stream
    }
}
