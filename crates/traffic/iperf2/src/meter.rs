//! Counts the bytes of streams, reports intervals, and sums the streams of one peer.

use crate::context::Context;
use crate::event::{ConnectionInfo, DatagramStats, Event, IntervalReport, Label};
use crate::report_limit::{ReportLimit, is_proven};
use host::lock::lock;
use iperf2_proto::{Datagram, Mode, ReceiveStats, ServerReport};
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
    intervals: BTreeMap<u32, Sum>,
    total: Option<IntervalReport>,
    /// Whether one of the streams was reported.
    reported: bool,
}

/// The sum of an interval so far.
#[derive(Clone, Copy)]
struct Sum {
    count: u32,
    /// Whether one of the interval reports was reported.
    reported: bool,
    row: IntervalReport,
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

    /// Takes an interval of a stream, and reports it if it is to be `reported`; reports the sum
    /// of those that were once all streams are through.
    fn report(&self, number: u32, row: IntervalReport, reported: bool) {
        let mut state = lock(&self.state);
        if reported {
            (self.on_event)(Event::Interval(row));
        }
        if row.whole {
            state.active = state.active.saturating_sub(1);
            state.reported |= reported;
            state.total = Some(sum(state.total, &row));
            if let (0, 2.., Some(total)) = (state.active, state.joined, state.total)
                && state.reported
            {
                (self.on_event)(Event::Interval(total));
            }
            return;
        }
        let before = state.intervals.remove(&number);
        let total = Sum {
            count: before.map_or(1, |before| before.count + 1),
            reported: reported || before.is_some_and(|before| before.reported),
            row: sum(before.map(|before| before.row), &row),
        };
        if total.count < state.joined {
            state.intervals.insert(number, total);
            if state.intervals.len() > MAX_PENDING_SUMS {
                state.intervals.pop_first();
            }
        } else if total.count > 1 && total.reported {
            (self.on_event)(Event::Interval(total.row));
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

/// The start of a stream.
pub(crate) struct Start {
    pub(crate) label: Label,
    /// Local and remote address.
    pub(crate) ends: (SocketAddr, SocketAddr),
    pub(crate) mode: Mode,
    /// `None` for UDP.
    pub(crate) tcp: Option<ConnectionInfo>,
    /// Comes before it: this end connects to the peer.
    pub(crate) connecting: Option<Event>,
    pub(crate) begun: Instant,
}

/// The byte counts of one stream.
pub(crate) struct Meter<'a> {
    group: Arc<Group<'a>>,
    /// `None` if everything is reported.
    limit: Option<Arc<ReportLimit>>,
    /// Whether the stream is reported: from its start, or from when it has proven to be one.
    reported: bool,
    /// Events of its start that are not reported yet.
    pending: Vec<Event>,
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
            limit: None,
            reported: true,
            pending: Vec::new(),
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

    /// Reports the start of a server's stream, now or once it has proven to be one.
    pub(crate) fn start(context: &Context<'a>, start: Start, now: Instant) -> Self {
        let Start { label, ends, mode, tcp, connecting, begun } = start;
        let (local, peer) = ends;
        let connected = Event::Connected { label, local, peer, mode, tcp };
        let mut meter = Meter::new(context, label, ends, begun);
        meter.pending = connecting.into_iter().chain([connected]).collect();
        meter.limit.clone_from(&context.report_limit);
        meter.reported = false;
        if meter.limit.as_ref().is_none_or(|limit| limit.admits_stream(now)) {
            meter.announce();
        }
        meter
    }

    /// For the other direction of a stream that was reported with it.
    pub(crate) fn also(context: &Context<'a>, other: &Meter<'a>, label: Label) -> Self {
        Meter {
            limit: other.limit.clone(),
            reported: other.reported,
            ..Meter::new(context, label, other.ends, other.begun)
        }
    }

    fn announce(&mut self) {
        self.reported = true;
        for event in self.pending.drain(..) {
            (self.group.on_event)(event);
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
        if !self.reported && is_proven(now.saturating_duration_since(self.begun), self.bytes) {
            self.announce();
        }
        let Some(interval) = self.interval else { return };
        let passed = now.saturating_duration_since(self.begun);
        while passed >= interval * (self.intervals + 1) {
            let to = interval * (self.intervals + 1);
            self.report_interval(interval, to, now);
        }
    }

    fn report_interval(&mut self, interval: Duration, to: Duration, now: Instant) {
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
        let limit = self.limit.as_ref();
        let reported =
            self.reported && limit.is_none_or(|limit| limit.admits_interval(now, row.bytes));
        self.group.report(self.intervals, row, reported);
        self.intervals += 1;
        self.bytes_before = self.bytes;
        self.stats_before = self.stats.unwrap_or_default();
    }

    /// Whether the stream is reported.
    pub(crate) fn is_reported(&self) -> bool {
        self.reported
    }

    /// Reports the last interval and the whole test; returns the server report.
    pub(crate) fn finish(mut self, now: Instant) -> ServerReport {
        self.tick(now);
        let time = now.saturating_duration_since(self.begun);
        if let Some(interval) = self.interval {
            // A remainder of a tenth or more is reported as an interval.
            if time.saturating_sub(interval * self.intervals) * 10 >= interval {
                self.report_interval(interval, time, now);
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
        self.group.report(self.intervals, row, self.reported);
        if let Some(limit) = self.limit.as_ref().filter(|_| !self.reported) {
            limit.suppress_stream();
        }
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
