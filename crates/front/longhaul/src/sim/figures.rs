//! What a simulation shows: each flow's share, the bottleneck, the finding.

use super::SimResult;
use super::flow_group::FlowGroup;
use super::prepared::Prepared;
use link::{Rate, Schedule, TokenBucket};
use model::statistics::percentile;
use record::{
    CommandHost, Measurement, NextCommand, PathReport, SIM_SCHEMA, SenderLimit, SimBottleneck,
    SimEnd, SimFlow, SimMoment, SimReport, Stream, command_line,
};
use std::time::Duration;
use tcp::LimitTimes;
use twin::{ConnectionConfig, Outcome, TruthInterval};
use units::{BitRate, ByteCount, Nanos, nanos};

/// The name of the simulator, for documents that name a peer.
const PEER: &str = "longhaul's simulator";

/// The result of a simulation over a path.
pub(super) fn result(prepared: &Prepared, path: PathReport, outcome: Outcome) -> SimResult {
    let ended = match (outcome.interrupted, outcome.truncated) {
        (true, _) => SimEnd::Interrupted,
        (_, true) => SimEnd::PacketLimit,
        _ => SimEnd::Complete,
    };
    let queueing = |interval: &TruthInterval| queueing(&prepared.links[0], interval);
    let trace: Vec<SimMoment> =
        outcome.truth.iter().map(|one| moment(one, queueing(one))).collect();
    let bottleneck = bottleneck(&outcome, &trace);
    let seconds = outcome.measurement.spec.seconds;
    let packets = outcome.packets;
    let link = path.asked.link.clone();
    let truth = outcome.truth;
    let mut measurement = Measurement { path: Some(path), ..outcome.measurement };
    PEER.clone_into(&mut measurement.peer);
    "simulator".clone_into(&mut measurement.spec.target);
    measurement.notes.push("simulated in virtual time: no packet was sent".to_owned());
    let flows = flows(prepared, &measurement, &truth);
    let finding = diagnose::explain(&measurement);
    let notes = notes(prepared, ended, seconds, packets);
    let report = SimReport {
        schema: SIM_SCHEMA.to_owned(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        seed: prepared.seed,
        requested_s: prepared.seconds,
        seconds,
        ended,
        packets,
        goodput_bps: rate(measurement.received().bytes(), seconds),
        jain: jain(&together(prepared, &measurement)),
        flows,
        bottleneck,
        finding,
        notes,
        next: next(prepared, &link),
        link,
    };
    SimResult { report, measurement, trace }
}

/// The time in which the link sends its queue, at its rate then.
fn queueing(link: &Schedule, interval: &TruthInterval) -> Option<Duration> {
    let at = Duration::try_from_secs_f64(interval.to_s).unwrap_or_default();
    let rate = match link.at(Nanos(nanos(at))).0.rate {
        Rate::Constant(rate) | Rate::TokenBucket(TokenBucket { rate, .. }) => rate,
        Rate::Unlimited | Rate::Trace(_) => return None,
    };
    Some(rate.time_for(ByteCount::from_bytes(interval.queue_bytes)))
}

fn moment(interval: &TruthInterval, queue_time: Option<Duration>) -> SimMoment {
    SimMoment {
        to_ms: (interval.to_s * 1e3).round() as u64,
        queue_bytes: interval.queue_bytes,
        queue_time,
        states: interval.connections.iter().map(|one| one.state).collect(),
    }
}

fn flows(prepared: &Prepared, measurement: &Measurement, truth: &[TruthInterval]) -> Vec<SimFlow> {
    let members = members(prepared, &measurement.streams);
    let together = together(prepared, measurement);
    let shared: Vec<f64> = if together.is_empty() {
        members.iter().map(|one| one.received() as f64).collect()
    } else {
        together
    };
    let all: f64 = shared.iter().sum();
    let flow = |(member, part): (&Member<'_>, &f64)| {
        let (start_s, end) = member.active(prepared);
        let rtts: Vec<f64> = member.streams.iter().flat_map(rtts_ms).collect();
        let (limited_by, limited_share) = limited_by(member, truth, (start_s, end));
        SimFlow {
            id: member.streams.first().map_or(0, |stream| stream.id),
            connections: member.group.connections_each(),
            spec: member.group.spec.clone(),
            control: member.group.control_name().to_owned(),
            base_rtt_ms: Some(base_rtt_ms(prepared, member.group)),
            start_s,
            finished_s: member.finished(measurement),
            received_bytes: ByteCount::from_bytes(member.received()),
            goodput_bps: rate(member.received(), end - start_s),
            share: if all > 0.0 { part / all } else { 0.0 },
            retransmits: member.streams.iter().filter_map(|stream| stream.retransmits).sum(),
            rtt_median_ms: percentile(&rtts, 0.5),
            rtt_p95_ms: percentile(&rtts, 0.95),
            limited_by,
            limited_share,
        }
    };
    members.iter().zip(&shared).map(flow).collect()
}

/// The RTT of the path at the start and of the access link of a group's flows.
fn base_rtt_ms(prepared: &Prepared, group: &FlowGroup) -> f64 {
    let path = prepared.path().map_or(0.0, |path| path.rtt().millis_f64());
    path + group.delay.as_secs_f64() * 1e3
}

/// A flow, with the streams of its connections.
struct Member<'a> {
    group: &'a FlowGroup,
    /// The index of the first connection.
    first: usize,
    /// Never empty.
    streams: &'a [Stream],
}

/// The flows of all groups, in the order of their streams.
fn members<'a>(prepared: &'a Prepared, streams: &'a [Stream]) -> Vec<Member<'a>> {
    let groups = prepared.groups.iter();
    let groups = groups.flat_map(|group| std::iter::repeat_n(group, group.count as usize));
    let mut first = 0;
    let flow = |group: &'a FlowGroup| {
        let end = first + group.connections_each() as usize;
        let streams = streams.get(first..end)?;
        let member = Member { group, first, streams };
        first = end;
        Some(member)
    };
    groups.map_while(flow).collect()
}

impl Member<'_> {
    fn received(&self) -> u64 {
        self.streams.iter().map(|stream| stream.received_bytes).sum()
    }

    /// The time for which its goodput counts, s.
    fn active(&self, prepared: &Prepared) -> (f64, f64) {
        let span = |(stream, connection): (&Stream, &ConnectionConfig)| {
            let start_s = connection.start.as_secs_f64();
            (start_s, active_until(stream, connection, start_s))
        };
        let connections = prepared.connections.iter().skip(self.first);
        let spans = self.streams.iter().zip(connections).map(span);
        spans.reduce(|(from, to), (start, end)| (from.min(start), to.max(end))).unwrap_or_default()
    }

    /// When its last bytes arrived, if all its connections ended before the run.
    fn finished(&self, measurement: &Measurement) -> Option<f64> {
        let ends = self.streams.iter().map(|stream| finished(stream, measurement));
        ends.collect::<Option<Vec<f64>>>()?.into_iter().reduce(f64::max)
    }
}

/// What a flow's senders waited for most while it was active, and the share of their time.
fn limited_by(
    member: &Member<'_>,
    truth: &[TruthInterval],
    (start_s, end_s): (f64, f64),
) -> (Option<SenderLimit>, f64) {
    let connections = member.first..member.first + member.streams.len();
    // Intervals of 100 ms: before its first one it waits for an application that has not begun.
    let own = truth.iter().skip_while(|interval| interval.to_s <= start_s + 1e-9);
    let own = own.take_while(|interval| interval.to_s <= end_s + 0.1);
    let own = own.filter_map(|interval| interval.connections.get(connections.clone())).flatten();
    let sum = |of: fn(&LimitTimes) -> u64| own.clone().map(|one| of(&one.times)).sum::<u64>();
    let waits = [
        (SenderLimit::Application, sum(|times| times.application_ns)),
        (SenderLimit::Cwnd, sum(|times| times.cwnd_ns)),
        (SenderLimit::Rwnd, sum(|times| times.rwnd_ns)),
        (SenderLimit::SendBuffer, sum(|times| times.send_buffer_ns)),
        (SenderLimit::Pacing, sum(|times| times.pacing_ns)),
    ];
    let all: u64 = waits.iter().map(|(_, ns)| ns).sum();
    match waits.into_iter().max_by_key(|(_, ns)| *ns).filter(|_| all > 0) {
        Some((limit, ns)) => (Some(limit), ns as f64 / all as f64),
        None => (None, 0.0),
    }
}

/// When a connection's last bytes arrived, if it has ended before the run.
fn finished(stream: &Stream, measurement: &Measurement) -> Option<f64> {
    let last = stream.sender.last()?.t_s;
    (last < measurement.spec.seconds - 0.15).then_some(last)
}

/// The time up to which a connection's goodput counts, s: its planned end, or the one that it
/// reached.
fn active_until(stream: &Stream, config: &ConnectionConfig, start_s: f64) -> f64 {
    let planned = config.limit.after.map(|after| start_s + after.as_secs_f64());
    let reached = start_s + stream.received_seconds;
    planned.map_or(reached, |planned| planned.min(reached))
}

/// Bytes that each flow received while all were active; empty if they never were.
fn together(prepared: &Prepared, measurement: &Measurement) -> Vec<f64> {
    let members = members(prepared, &measurement.streams);
    let spans = members.iter().map(|member| member.active(prepared));
    let (from, to) = spans
        .fold((0.0f64, f64::INFINITY), |(from, to), (start, end)| (from.max(start), to.min(end)));
    if to <= from {
        return Vec::new();
    }
    let received = |stream: &Stream, at: f64| {
        let before = stream.receiver.partition_point(|sample| sample.t_s <= at + 1e-9);
        let sample = before.checked_sub(1).and_then(|index| stream.receiver.get(index));
        sample.map_or(0, |sample| sample.received_bytes)
    };
    let of_flow = |member: &Member<'_>| {
        let streams = member.streams.iter();
        streams.map(|stream| (received(stream, to) - received(stream, from)) as f64).sum()
    };
    members.iter().map(of_flow).collect()
}

/// Jain's index: 1 where all have the same, 1/n where one has everything.
fn jain(parts: &[f64]) -> Option<f64> {
    let squares: f64 = parts.iter().map(|part| part * part).sum();
    let sum: f64 = parts.iter().sum();
    (parts.len() > 1 && squares > 0.0).then(|| sum * sum / (parts.len() as f64 * squares))
}

/// The smoothed RTTs every 100 ms, in ms: that of the latest sample, as those of the ramp-up are
/// closer.
pub(super) fn rtts_ms(stream: &Stream) -> Vec<f64> {
    let samples = &stream.sender;
    let [first, last] = [samples.first(), samples.last()].map(|one| one.map_or(0.0, |one| one.t_s));
    let moments = (first * 10.0).ceil() as usize..=(last * 10.0).floor() as usize;
    let at = moments.filter_map(|moment| {
        let before = samples.partition_point(|sample| sample.t_s <= moment as f64 / 10.0 + 1e-9);
        samples.get(before.checked_sub(1)?)
    });
    at.filter(|sample| sample.rtt_us > 0).map(|sample| f64::from(sample.rtt_us) / 1e3).collect()
}

fn bottleneck(outcome: &Outcome, trace: &[SimMoment]) -> SimBottleneck {
    let queues: Vec<f64> = outcome.truth.iter().map(|one| one.queue_bytes as f64).collect();
    let busy: Vec<f64> = outcome.truth.iter().map(|one| one.utilization).collect();
    let [median, p95] = [0.5, 0.95].map(|share| percentile(&queues, share).unwrap_or(0.0));
    let times: Option<Vec<f64>> =
        trace.iter().map(|moment| Some(moment.queue_time?.as_secs_f64() * 1e3)).collect();
    let ms = |share: f64| times.as_ref().map(|times| percentile(times, share).unwrap_or(0.0));
    let peak = outcome.truth.iter().map(|one| one.peak_queue_bytes).max().unwrap_or(0);
    SimBottleneck {
        utilization: model::statistics::mean(&busy).unwrap_or(0.0).min(1.0),
        queue_median_bytes: ByteCount::from_f64(median),
        queue_p95_bytes: ByteCount::from_f64(p95),
        queue_peak_bytes: ByteCount::from_bytes(peak),
        queue_median_ms: ms(0.5),
        queue_p95_ms: ms(0.95),
        drops: twin::link_drops(&outcome.forward),
        lost: outcome.forward.lost,
        marked: outcome.forward.marked,
    }
}

fn rate(bytes: u64, seconds: f64) -> BitRate {
    let time = Duration::try_from_secs_f64(seconds).unwrap_or_default();
    if time.is_zero() { BitRate::ZERO } else { BitRate::of(ByteCount::from_bytes(bytes), time) }
}

fn notes(prepared: &Prepared, ended: SimEnd, seconds: f64, packets: u64) -> Vec<String> {
    let end = match ended {
        SimEnd::Complete => None,
        SimEnd::Interrupted => Some(format!("interrupted after {seconds:.1} s of simulated time")),
        SimEnd::PacketLimit => Some(format!(
            "ended after {seconds:.1} s, with {packets} packets: the most that it may carry"
        )),
    };
    // The finding takes all flows for connections over one path.
    let differ = prepared.groups.iter().any(|group| !group.delay.is_zero()).then(|| {
        "flows have round trips of their own, which the finding takes for queueing delay".to_owned()
    });
    end.into_iter().chain(differ).collect()
}

/// One flow: which control is best here; several: whether a kernel does the same.
fn next(prepared: &Prepared, link: &str) -> Option<NextCommand> {
    if prepared.paths.len() > 1 {
        return None;
    }
    let seconds = prepared.seconds.to_string();
    // A lab has those of the kernel alone.
    let in_linux =
        |group: &FlowGroup| group.control.is_some_and(|one| one.algorithm().is_in_linux());
    let (words, why) = match prepared.groups.as_slice() {
        groups if !matches!(groups, [only] if only.count == 1) && groups.iter().all(in_linux) => {
            let mut words = vec!["longhaul", "sim", "compare", "--link", link];
            for group in groups {
                words.extend(["--flow", &group.spec]);
            }
            words.extend(["-t", &seconds]);
            (words, "runs the same flows under this machine's kernel, in a lab")
        }
        _ => (
            vec!["longhaul", "sim", "advise", "--link", link],
            "compares every congestion control over this path",
        ),
    };
    Some(NextCommand { command: command_line(words), on: CommandHost::Here, why: why.to_owned() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn jains_index_is_that_of_its_paper() {
        assert_eq!(jain(&[1.0]), None);
        assert_eq!(jain(&[0.0, 0.0]), None);
        assert_eq!(jain(&[5.0, 5.0, 5.0]), Some(1.0));
        assert_eq!(jain(&[4.0, 0.0]), Some(0.5));
    }
}
