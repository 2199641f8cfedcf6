//! Counts the bytes of streams, reports intervals, and sums the streams of one peer.

use crate::context::Context;
use crate::event::{DatagramStats, Event, IntervalReport, Label};
use host::lock::lock;
use iperf2_proto::{Datagram, ReceiveStats, ServerReport};
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// Maximum number of interval sums that wait for reports of further streams.
const MAX_PENDING_SUMS: usize = 16;

/// Streams with one peer, whose reports are summed.
pub(crate) struct Group<'a> {
    on_event: &'a (dyn Fn(Event) + Sync),
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    joined: u32,
    active: u32,
    intervals: BTreeMap<u32, (u32, IntervalReport)>,
    total: Option<IntervalReport>,
}

impl<'a> Group<'a> {
    pub(crate) fn new(on_event: &'a (dyn Fn(Event) + Sync)) -> Self {
        Group { on_event, state: Mutex::default() }
    }

    fn join(&self) {
        let mut state = lock(&self.state);
        if state.active == 0 {
            *state = State::default();
        }
        state.joined += 1;
        state.active += 1;
    }

    /// Reports an interval of a stream, and the sum once all streams have reported.
    fn report(&self, number: u32, row: IntervalReport) {
        let mut state = lock(&self.state);
        (self.on_event)(Event::Interval(row));
        if row.whole {
            state.active = state.active.saturating_sub(1);
            state.total = Some(sum(state.total, &row));
            if let (0, 2.., Some(total)) = (state.active, state.joined, state.total) {
                (self.on_event)(Event::Interval(total));
            }
            return;
        }
        let (count, before) =
            state.intervals.remove(&number).map_or((0, None), |(count, row)| (count, Some(row)));
        let (count, total) = (count + 1, sum(before, &row));
        if count < state.joined {
            state.intervals.insert(number, (count, total));
            if state.intervals.len() > MAX_PENDING_SUMS {
                state.intervals.pop_first();
            }
        } else if count > 1 {
            (self.on_event)(Event::Interval(total));
        }
    }
}

fn sum(before: Option<IntervalReport>, row: &IntervalReport) -> IntervalReport {
    let Some(before) = before else {
        let received = row.received.map(|received| DatagramStats { jitter: None, ..received });
        return IntervalReport { label: None, ends: None, received, ..*row };
    };
    let received = before.received.zip(row.received).map(|(a, b)| DatagramStats {
        datagrams: a.datagrams.saturating_add(b.datagrams),
        lost: a.lost.saturating_add(b.lost),
        late: a.late.saturating_add(b.late),
        jitter: None,
    });
    IntervalReport {
        from: before.from.min(row.from),
        to: before.to.max(row.to),
        bytes: before.bytes.saturating_add(row.bytes),
        received,
        ..before
    }
}

/// The byte counts of one stream.
pub(crate) struct Meter<'a> {
    group: Arc<Group<'a>>,
    label: Label,
    ends: (SocketAddr, SocketAddr),
    sending: bool,
    interval: Option<Duration>,
    begun: Instant,
    intervals: u32,
    bytes: u64,
    bytes_before: u64,
    /// Of a UDP receiver.
    stats: Option<ReceiveStats>,
    stats_before: ReceiveStats,
}

impl<'a> Meter<'a> {
    pub(crate) fn new(
        context: &Context<'a>,
        label: Label,
        ends: (SocketAddr, SocketAddr),
        begun: Instant,
    ) -> Self {
        let group = context.group(ends.1.ip());
        group.join();
        Meter {
            group,
            label,
            ends,
            sending: false,
            interval: context.interval,
            begun,
            intervals: 0,
            bytes: 0,
            bytes_before: 0,
            stats: None,
            stats_before: ReceiveStats::default(),
        }
    }

    /// Makes this a UDP receiver that continues from `stats`.
    pub(crate) fn with_stats(mut self, stats: ReceiveStats) -> Self {
        self.bytes = stats.bytes;
        self.stats = Some(stats);
        self
    }

    /// Sets the start time.
    pub(crate) fn begin(&mut self, now: Instant) {
        self.begun = now;
    }

    /// Makes this a sender that starts now.
    pub(crate) fn sends(&mut self, now: Instant) {
        self.sending = true;
        self.begun = now;
    }

    pub(crate) fn label(&self) -> Label {
        self.label
    }

    pub(crate) fn ends(&self) -> (SocketAddr, SocketAddr) {
        self.ends
    }

    pub(crate) fn add(&mut self, bytes: usize) {
        self.bytes = self.bytes.saturating_add(bytes as u64);
    }

    pub(crate) fn arrive(&mut self, datagram: &Datagram, bytes: usize, received_at: Duration) {
        self.add(bytes);
        if let Some(stats) = &mut self.stats {
            stats.arrive(datagram.number, bytes as u64, datagram.sent, received_at);
        }
    }

    /// Reports the intervals that are due.
    pub(crate) fn tick(&mut self, now: Instant) {
        let Some(interval) = self.interval else { return };
        let passed = now.saturating_duration_since(self.begun);
        while passed >= interval * (self.intervals + 1) {
            let to = interval * (self.intervals + 1);
            self.report_interval(interval, to);
        }
    }

    fn report_interval(&mut self, interval: Duration, to: Duration) {
        let since = self.stats.map(|stats| stats.since(&self.stats_before));
        let row = IntervalReport {
            label: Some(self.label),
            ends: Some(self.ends),
            sending: self.sending,
            from: interval * self.intervals,
            to,
            bytes: self.bytes - self.bytes_before,
            whole: false,
            received: since.map(received),
        };
        self.group.report(self.intervals, row);
        self.intervals += 1;
        self.bytes_before = self.bytes;
        self.stats_before = self.stats.unwrap_or_default();
    }

    /// Reports the last interval and the whole test; returns the server report.
    pub(crate) fn finish(mut self, now: Instant) -> ServerReport {
        self.tick(now);
        let time = now.saturating_duration_since(self.begun);
        if let Some(interval) = self.interval {
            // A remainder of a tenth or more is reported as an interval.
            if time.saturating_sub(interval * self.intervals) * 10 >= interval {
                self.report_interval(interval, time);
            }
        }
        let row = IntervalReport {
            label: Some(self.label),
            ends: Some(self.ends),
            sending: self.sending,
            from: Duration::ZERO,
            to: time,
            bytes: self.bytes,
            whole: true,
            received: self.stats.map(received),
        };
        self.group.report(self.intervals, row);
        let stats = self.stats.unwrap_or_default();
        ServerReport {
            bytes: self.bytes,
            time,
            lost: stats.lost(),
            late: stats.late,
            datagrams: stats.datagrams,
            jitter: stats.jitter(),
        }
    }
}

fn received(stats: ReceiveStats) -> DatagramStats {
    DatagramStats {
        datagrams: stats.datagrams,
        lost: stats.lost(),
        late: stats.late,
        jitter: Some(stats.jitter()),
    }
}
