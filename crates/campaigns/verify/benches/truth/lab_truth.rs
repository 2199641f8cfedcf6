//! The ground truth of a run in the lab, from the lab's own records: the emulator's log of
//! every flow, and the kernels' readings of every connection.
//!
//! Both are on the lab's clock. The test's time axis begins where the sending end begins
//! to send, which is also the zero of its samples.

mod connection;

use crate::lab_run::{Clocks, CpuReading, ThreadShare};
use connection::Senders;
use lab::{FlowInterval, FlowKey, IntervalLog, LinkInterval};
use link::Counters;
use record::Drops;
use std::time::Duration;
use twin::{ConnectionTruth, ReverseTruth, TruthInterval};
use units::{BitRate, Nanos};

/// An interval of the ground truth.
const INTERVAL_NS: u64 = 100_000_000;

/// What was logged of a run.
#[derive(Debug)]
pub(crate) struct Logged {
    /// The start of the test on the lab's clock.
    pub(crate) began: Nanos,
    pub(crate) seconds: f64,
    /// The direction of the data.
    pub(crate) forward: IntervalLog,
    /// That of the acknowledgements.
    pub(crate) reverse: IntervalLog,
    /// The measured streams, in the order of the measurement.
    pub(crate) streams: Vec<FlowKey>,
    /// Their application writes as fast as it can.
    pub(crate) bulk: bool,
    /// The TCP connections of the cross traffic, all bulk.
    pub(crate) cross: Vec<FlowKey>,
    pub(crate) clocks: Clocks,
}

/// What the lab knows beyond a simulation, in one interval.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(crate) struct HostInterval {
    /// CPU time of the measured streams' busiest sending and receiving threads: one that
    /// uses or waits for a core all the time is CPU-limited.
    pub(crate) sender_cpu: ThreadShare,
    pub(crate) receiver_cpu: ThreadShare,
    /// The bottleneck rate at the end of the interval, a trace's mean.
    pub(crate) rate: Option<BitRate>,
    /// The one-way delay at the end of the interval.
    pub(crate) delay: Duration,
    /// Mean queueing delay of the measured streams' packets.
    pub(crate) queued: Duration,
    /// The measured streams' packets that later ones overtook.
    pub(crate) overtaken: u64,
    /// IP bytes delivered of the measured streams, by the moment of their sending.
    pub(crate) own_bytes: u64,
    /// The same of all other traffic.
    pub(crate) other_bytes: u64,
}

/// The truth of each 100 ms, without a shorter last one.
pub(crate) fn intervals(logged: &Logged) -> (Vec<TruthInterval>, Vec<HostInterval>) {
    let axis = Axis::new(logged.began, logged.seconds);
    let keys: Vec<FlowKey> = logged.streams.iter().chain(&logged.cross).copied().collect();
    let forward = steps(&logged.forward, axis);
    let reverse = steps(&logged.reverse, axis);
    let flows = flows(&logged.forward, &keys, axis);
    let own = logged.streams.iter().map(|key| (*key, logged.bulk));
    let all: Vec<_> = own.chain(logged.cross.iter().map(|key| (*key, true))).collect();
    let senders = Senders::of(&logged.clocks, &all, axis);
    let cpu = cpu(&logged.clocks.cpu, axis);
    let all = all_bytes(&logged.forward, axis);
    let mut truth = Vec::new();
    let mut hosts = Vec::new();
    for index in 0..axis.count {
        let (step, back) = (&forward[index], &reverse[index]);
        let connections = keys.iter().enumerate().map(|(number, _)| ConnectionTruth {
            measured: number < logged.streams.len(),
            ..with_flow(senders.truth(number, index), &flows[number][index])
        });
        truth.push(TruthInterval {
            to_s: axis.to_s(index),
            connections: connections.collect(),
            queue_bytes: step.queue_bytes,
            peak_queue_bytes: step.peak_queue_bytes,
            utilization: step.utilization(),
            sent_bytes: step.sum(|c| c.sent_bytes),
            drops: Drops {
                queue: step.sum(|c| c.queue_drops),
                aqm: step.sum(|c| c.aqm_drops),
                policer: step.sum(|c| c.policed),
                too_long: step.sum(|c| c.too_long),
                bursts: step.sum(|c| c.burst_lost),
                blackhole: step.sum(|c| c.blackhole_lost),
                unintended: 0,
            },
            lost: step.sum(|c| c.lost),
            marked: step.sum(|c| c.marked),
            reverse: ReverseTruth {
                utilization: back.utilization(),
                arrived: back.sum(|c| c.arrived),
                dropped: back.sum(|c| c.queue_drops + c.aqm_drops + c.policed + c.too_long),
                lost: back.sum(|c| c.lost + c.burst_lost + c.blackhole_lost),
            },
        });
        let own = flows[..logged.streams.len()].iter().map(|flow| &flow[index]);
        let (sent, queued) = own.clone().fold((0, Duration::ZERO), |(sent, queued), flow| {
            (sent + flow.now.sent, queued + flow.now.queued)
        });
        let own_bytes = own.clone().map(|flow| flow.now.delivered_bytes).sum();
        hosts.push(HostInterval {
            sender_cpu: cpu[index].sender,
            receiver_cpu: cpu[index].receiver,
            rate: step.rate,
            delay: step.delay,
            queued: queued / u32::try_from(sent).unwrap_or(u32::MAX).max(1),
            overtaken: own.map(|flow| flow.now.overtaken).sum(),
            own_bytes,
            other_bytes: all[index].saturating_sub(own_bytes),
        });
    }
    (truth, hosts)
}

/// The longest time within the test in which the emulator was not scheduled: packets then
/// waited for nothing that is part of the path.
pub(crate) fn longest_pause(logged: &Logged) -> Duration {
    let axis = Axis::new(logged.began, logged.seconds);
    let lengths = [&logged.forward, &logged.reverse]
        .into_iter()
        .flat_map(|log| placed(log, axis).map(|(_, length, _)| length));
    Duration::from_nanos(lengths.max().unwrap_or(0))
}

/// From the start of the test to the end of the first logged interval in which a measured
/// stream's data passed the link.
pub(crate) fn first_data(logged: &Logged) -> Duration {
    // The cookie of a stream, and handshakes, are shorter.
    const DATA: u64 = 400;
    let log = &logged.forward;
    let own: Vec<usize> =
        (0..log.flows.len()).filter(|index| logged.streams.contains(&log.flows[*index])).collect();
    let has_data = |row: &&LinkInterval| {
        own.iter().any(|index| row.flows.get(*index).is_some_and(|f| f.delivered_bytes > DATA))
    };
    log.intervals.iter().find(has_data).map_or(Duration::MAX, |row| row.to.since(logged.began))
}

/// The test's time axis on the lab's clock.
#[derive(Debug, Clone, Copy)]
struct Axis {
    began: Nanos,
    count: usize,
}

impl Axis {
    fn new(began: Nanos, seconds: f64) -> Self {
        // A test ends a little late, so that a whole last interval is not missed.
        let count = (seconds.clamp(0.0, 3600.0) * 10.0 + 0.01).floor() as usize;
        Axis { began, count }
    }

    /// The end of an interval, in seconds since the start of the test.
    fn to_s(self, index: usize) -> f64 {
        (index + 1) as f64 / 10.0
    }

    fn start(self, index: usize) -> Nanos {
        self.began.plus_nanos(index as u64 * INTERVAL_NS)
    }

    /// The interval of a moment.
    fn index(self, at: Nanos) -> Option<usize> {
        let since = at.0.checked_sub(self.began.0)?;
        let index = usize::try_from(since / INTERVAL_NS).ok()?;
        (index < self.count).then_some(index)
    }
}

/// A link's counters over one interval of the truth.
#[derive(Debug, Clone, Copy, Default)]
struct Step {
    before: Counters,
    after: Counters,
    /// Length of the logged intervals that it consists of.
    passed_ns: u64,
    queue_bytes: u64,
    peak_queue_bytes: u64,
    rate: Option<BitRate>,
    delay: Duration,
}

impl Step {
    fn sum(&self, counter: impl Fn(&Counters) -> u64) -> u64 {
        counter(&self.after).saturating_sub(counter(&self.before))
    }

    fn utilization(&self) -> f64 {
        if self.passed_ns == 0 {
            return 0.0;
        }
        let busy = self.after.busy.saturating_sub(self.before.busy);
        busy.as_nanos() as f64 / self.passed_ns as f64
    }
}

/// The logged intervals with the interval of the truth that their middles lie in.
fn placed(log: &IntervalLog, axis: Axis) -> impl Iterator<Item = (usize, u64, &LinkInterval)> {
    log.intervals.windows(2).filter_map(move |pair| {
        let [before, row] = pair else { return None };
        let length = row.to.nanos_since(before.to);
        Some((axis.index(before.to.plus_nanos(length / 2))?, length, row))
    })
}

fn steps(log: &IntervalLog, axis: Axis) -> Vec<Step> {
    let mut steps: Vec<Option<Step>> = vec![None; axis.count];
    // The link's counters begin at zero with the test.
    let mut before = Counters::default();
    for (index, length, row) in placed(log, axis) {
        let step = steps[index].get_or_insert(Step { before, ..Step::default() });
        before = row.counters;
        step.after = row.counters;
        step.passed_ns += length;
        step.queue_bytes = row.queued_bytes.bytes();
        step.peak_queue_bytes = step.peak_queue_bytes.max(row.peak_queued_bytes.bytes());
        (step.rate, step.delay) = (row.rate, row.delay);
    }
    steps.into_iter().map(Option::unwrap_or_default).collect()
}

/// A flow over one interval of the truth.
#[derive(Debug, Clone, Copy, Default)]
struct FlowStep {
    /// By the moment of its packets' fates at the link.
    now: FlowInterval,
    /// Bytes by the moment they reached the far end.
    arrived_bytes: u64,
}

fn flows(log: &IntervalLog, keys: &[FlowKey], axis: Axis) -> Vec<Vec<FlowStep>> {
    let mut all = vec![vec![FlowStep::default(); axis.count]; keys.len()];
    for (number, key) in keys.iter().enumerate() {
        let Some(at) = log.flows.iter().position(|flow| flow == key) else { continue };
        for (index, _, row) in placed(log, axis) {
            let Some(flow) = row.flows.get(at) else { continue };
            add(&mut all[number][index].now, flow);
        }
        for pair in log.intervals.windows(2) {
            let [before, row] = pair else { continue };
            let middle = before.to.plus_nanos(row.to.nanos_since(before.to) / 2);
            if let (Some(index), Some(flow)) =
                (axis.index(middle.plus(row.delay)), row.flows.get(at))
            {
                all[number][index].arrived_bytes += flow.delivered_bytes;
            }
        }
    }
    all
}

/// Bytes delivered of all flows, by the moment of their sending.
fn all_bytes(log: &IntervalLog, axis: Axis) -> Vec<u64> {
    let mut all = vec![0; axis.count];
    for (index, _, row) in placed(log, axis) {
        all[index] += row.flows.iter().map(|flow| flow.delivered_bytes).sum::<u64>();
    }
    all
}

fn add(sum: &mut FlowInterval, flow: &FlowInterval) {
    sum.sent += flow.sent;
    sum.delivered_bytes += flow.delivered_bytes;
    sum.queued += flow.queued;
    sum.marked += flow.marked;
    sum.overtaken += flow.overtaken;
    sum.too_long += flow.too_long;
    sum.policed += flow.policed;
    sum.queue_drops += flow.queue_drops;
    sum.aqm_drops += flow.aqm_drops;
    sum.lost += flow.lost;
    sum.burst_lost += flow.burst_lost;
    sum.blackhole_lost += flow.blackhole_lost;
}

/// What the kernels know of a connection, with what the link knows of its flow.
fn with_flow(truth: ConnectionTruth, flow: &FlowStep) -> ConnectionTruth {
    ConnectionTruth {
        arrived_bytes: flow.arrived_bytes,
        drops: Drops {
            queue: flow.now.queue_drops,
            aqm: flow.now.aqm_drops,
            policer: flow.now.policed,
            too_long: flow.now.too_long,
            bursts: flow.now.burst_lost,
            blackhole: flow.now.blackhole_lost,
            unintended: 0,
        },
        lost: flow.now.lost,
        marked: flow.now.marked,
        ..truth
    }
}

/// The reading of each interval: that which covers its middle.
fn cpu(readings: &[CpuReading], axis: Axis) -> Vec<CpuReading> {
    (0..axis.count)
        .map(|index| {
            let middle = axis.start(index).plus_nanos(INTERVAL_NS / 2);
            let at = readings.partition_point(|reading| reading.at < middle);
            readings.get(at).copied().unwrap_or_default()
        })
        .collect()
}
