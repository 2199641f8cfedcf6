//! Sums over a span of intervals around each interval.

use tcp::LimitTimes;
use twin::{ConnectionTruth, TruthInterval};

/// Sums over a span of intervals.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(super) struct Sums {
    pub(super) seconds: f64,
    /// Share of the time in which the bottleneck was sending.
    pub(super) utilization: f64,
    pub(super) peak_queue_bytes: u64,
    /// Share of the bottleneck's bytes that are not of measured connections.
    pub(super) others: f64,
    /// Waits of the measured connections.
    pub(super) times: LimitTimes,
    /// Payload that the measured connections' applications read, packets.
    pub(super) read: u64,
    pub(super) reverse_utilization: f64,
    /// Share of the acknowledgements that were dropped or lost.
    pub(super) reverse_lost: f64,
    /// Packets of measured connections that were marked.
    pub(super) marked: u64,
}

/// Measured connections of an interval.
pub(super) fn measured(interval: &TruthInterval) -> impl Iterator<Item = &ConnectionTruth> {
    interval.connections.iter().filter(|connection| connection.measured)
}

/// Sums over a span, which is not empty; `shared` if there is cross traffic at all.
pub(super) fn sums(span: &[TruthInterval], before_s: f64, shared: bool) -> Sums {
    let seconds = span.last().map_or(0.0, |last| last.to_s - before_s).max(1e-9);
    let mut sums = Sums { seconds, ..Sums::default() };
    let (mut sent, mut own, mut arrived, mut lost) = (0u64, 0u64, 0u64, 0u64);
    let mut from = before_s;
    for interval in span {
        let share = (interval.to_s - from).max(0.0) / seconds;
        from = interval.to_s;
        sums.utilization += interval.utilization * share;
        sums.reverse_utilization += interval.reverse.utilization * share;
        sums.peak_queue_bytes = sums.peak_queue_bytes.max(interval.peak_queue_bytes);
        sent += interval.sent_bytes;
        arrived += interval.reverse.arrived;
        lost += interval.reverse.dropped + interval.reverse.lost;
        for connection in measured(interval) {
            // Losses on the wire had passed the bottleneck too.
            own += connection.arrived_bytes + connection.lost * 1500;
            sums.read += connection.read;
            sums.marked += connection.marked;
            add(&mut sums.times, &connection.times);
        }
    }
    // What arrives left the bottleneck a one-way delay earlier.
    sums.others = if shared { 1.0 - own as f64 / (sent as f64).max(1.0) } else { 0.0 };
    sums.reverse_lost = lost as f64 / (arrived as f64).max(1.0);
    sums
}

fn add(sum: &mut LimitTimes, times: &LimitTimes) {
    sum.application_ns += times.application_ns;
    sum.cwnd_ns += times.cwnd_ns;
    sum.rwnd_ns += times.rwnd_ns;
    sum.send_buffer_ns += times.send_buffer_ns;
    sum.pacing_ns += times.pacing_ns;
    sum.busy_ns += times.busy_ns;
}

/// The intervals within `half_s` on both sides of interval `at`, and where the first of
/// them begins, s.
pub(super) fn around(
    intervals: &[TruthInterval],
    at: usize,
    half_s: f64,
) -> (&[TruthInterval], f64) {
    let middle = intervals[at].to_s - 0.05;
    let first = intervals.partition_point(|i| i.to_s - 0.05 < middle - half_s - 1e-6).min(at);
    let end = intervals.partition_point(|i| i.to_s - 0.05 <= middle + half_s + 1e-6).max(at + 1);
    (&intervals[first..end], start_of(intervals, first))
}

/// When an interval begins, s.
pub(super) fn start_of(intervals: &[TruthInterval], at: usize) -> f64 {
    at.checked_sub(1).map_or(0.0, |before| intervals[before].to_s)
}
