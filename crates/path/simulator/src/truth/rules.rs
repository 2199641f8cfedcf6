//! The limit of each interval.

use super::facts::{Facts, PAYLOAD_SHARE, Settings};
use super::reductions::{self, Causes, DEEP, SHARED};
use super::windows::{self, Sums};
use record::Limit;
use tcp::LimitTimes;
use twin::TruthInterval;

/// A bottleneck is saturated if it sends for this share of the time.
const SATURATED: f64 = 0.95;
/// The same for the part of a sawtooth with which a run ends.
const SATURATED_PART: f64 = 0.9;
/// Likewise for the direction of the acknowledgements, whose sawtooth is not followed.
const REVERSE_SATURATED: f64 = 0.9;
/// A rate that was set is reached within this, over [`REACHED_SPAN_S`].
const REACHED: f64 = 0.97;
/// Reads and writes average out over this span, s, or over so many blocks.
const REACHED_SPAN_S: f64 = 2.0;
const REACHED_BLOCKS: f64 = 4.0;
/// Below this share of an earlier rate, a path's rate has fallen.
const FALLEN: f64 = 0.7;
/// A saturated bottleneck has this much queued at times: two packets.
const MIN_QUEUE: u64 = 3_000;
/// A control that paces itself follows a wait of the hosts that takes this share of the time.
const FOLLOWED: f64 = 0.25;
/// A managed queue limits the windows if it caused this share of the latest reductions.
const ACTIVE: f64 = 0.2;
/// Longest sawtooth over which utilization is averaged, s.
const LONGEST_SAWTOOTH_S: f64 = 15.0;

pub(super) fn limits(facts: &Facts, intervals: &[TruthInterval]) -> Vec<Limit> {
    let causes = reductions::by_interval(facts, intervals);
    let overflows: Vec<usize> = (0..causes.len()).filter(|index| causes[*index].1).collect();
    (0..intervals.len())
        .map(|index| {
            let settings = facts.at(intervals[index].to_s - 0.05);
            // Bursts alternate with waits within a round trip.
            let (span, from) = windows::around(intervals, index, (0.5 * settings.rtt_s).max(0.1));
            let waits = windows::sums(span, from, facts.is_shared()).times;
            let (span, from) = windows::around(intervals, index, reached_span_s(facts) / 2.0);
            let read = windows::sums(span, from, facts.is_shared());
            if let Some(limit) = of_sender(facts, &waits, read.read as f64 / read.seconds) {
                return limit;
            }
            let (span, from) = windows::around(intervals, index, (2.0 * settings.rtt_s).max(0.25));
            let sums = windows::sums(span, from, facts.is_shared());
            let (span, from) = windows::around(intervals, index, (4.0 * settings.rtt_s).max(1.0));
            let others = windows::sums(span, from, facts.is_shared()).others;
            let sums = Sums { others, ..sums };
            let sawtooth = sawtooth(facts, intervals, &overflows, index);
            let causes = &causes[index].0;
            let full = sums.utilization >= SATURATED && sums.peak_queue_bytes >= MIN_QUEUE;
            if full || sawtooth.is_some_and(|full| full) {
                return of_saturated(facts, intervals[index].to_s, &settings, &sums, causes);
            }
            of_unsaturated(&intervals[index], &sums, causes)
        })
        .collect()
}

/// Over which span a rate that was set is reached, s.
fn reached_span_s(facts: &Facts) -> f64 {
    let blocks = facts.scenario.rate.zip(facts.scenario.block);
    let block_s = blocks.map_or(0.0, |(rate, block)| 8.0 * block.as_f64() / rate.as_f64().max(1.0));
    REACHED_SPAN_S.max(REACHED_BLOCKS * block_s)
}

/// What the sender waited for, if not for the network; `read` in packets per second.
fn of_sender(facts: &Facts, times: &LimitTimes, read: f64) -> Option<Limit> {
    let scenario = facts.scenario;
    let goodput = read * 1448.0 * 8.0;
    let reaches = |rate| facts.allowed(rate).is_some_and(|allowed| goodput >= REACHED * allowed);
    // Whatever a sender waits for between two writes: it has sent all of them.
    if reaches(scenario.rate) {
        return Some(Limit::Application);
    }
    // Waits that are not of a setting of the scenario are the network's: a control paces
    // itself, and an autotuned send buffer may be full while a hole is repaired.
    // A pacing rate includes headers.
    let pacing = scenario.pacing.map(|rate| rate.scaled(PAYLOAD_SHARE));
    let paced = if reaches(pacing) { times.pacing_ns } else { 0 };
    let buffer =
        if scenario.send_buffer.or(scenario.window).is_some() { times.send_buffer_ns } else { 0 };
    let by_control = times.pacing_ns - paced;
    let network = times.cwnd_ns + times.send_buffer_ns - buffer;
    let hosts = [
        (paced, Some(Limit::Pacing)),
        (times.application_ns, Some(Limit::Application)),
        (buffer, Some(Limit::SendBuffer)),
        (times.rwnd_ns, Some(of_receive_window(facts, reaches(scenario.reader)))),
    ];
    let most = hosts.iter().map(|(time, _)| *time).max().unwrap_or(0);
    // A control that paces itself follows the rate that it delivers: where a window or a
    // buffer is filled again and again, that is its rate, and not the network's.
    let follows = most > network && most as f64 >= FOLLOWED * (network + by_control + most) as f64;
    let network = if follows { network } else { network + by_control };
    let waits = std::iter::once((network, None)).chain(hosts);
    waits.max_by_key(|(time, _)| *time).and_then(|(_, limit)| limit)
}

fn of_receive_window(facts: &Facts, read_all: bool) -> Limit {
    if read_all {
        Limit::SlowReceiver
    } else if facts.window_scaling() {
        Limit::WindowScaling
    } else {
        Limit::ReceiveWindow
    }
}

/// Whether the bottleneck was saturated over the sawtooth that an interval is in: from
/// one overflow of the queue to the next, or to the end.
fn sawtooth(
    facts: &Facts,
    intervals: &[TruthInterval],
    overflows: &[usize],
    index: usize,
) -> Option<bool> {
    let next = overflows.partition_point(|overflow| *overflow < index);
    let first = *overflows.get(next.checked_sub(1)?)?;
    let (last, least) = match overflows.get(next) {
        Some(last) => (*last, SATURATED),
        None => (intervals.len() - 1, SATURATED_PART),
    };
    let from = intervals[first].to_s;
    let span = &intervals[first + 1..=last];
    let short = intervals[last].to_s - from <= LONGEST_SAWTOOTH_S;
    (!span.is_empty() && short)
        .then(|| windows::sums(span, from, facts.is_shared()).utilization >= least)
}

fn of_saturated(
    facts: &Facts,
    to_s: f64,
    settings: &Settings,
    sums: &Sums,
    causes: &Causes,
) -> Limit {
    if sums.others >= SHARED {
        return Limit::SharedBottleneck;
    }
    if settings.rate < FALLEN * facts.best_rate(to_s) {
        return Limit::PathChange;
    }
    match causes.latest() {
        Some(Limit::EcnMarks) => Limit::EcnMarks,
        _ if settings.managed && causes.share(Limit::Aqm) >= ACTIVE => Limit::Aqm,
        Some(Limit::ShallowQueue | Limit::CongestionAvoidance) if settings.depth < DEEP => {
            Limit::ShallowQueue
        }
        _ => Limit::PathRate,
    }
}

fn of_unsaturated(interval: &TruthInterval, sums: &Sums, causes: &Causes) -> Limit {
    if sums.reverse_utilization >= REVERSE_SATURATED {
        return Limit::AckPath;
    }
    if reductions::in_ramp(interval, causes) {
        return Limit::Ramp;
    }
    causes.latest().unwrap_or(Limit::CongestionAvoidance)
}
