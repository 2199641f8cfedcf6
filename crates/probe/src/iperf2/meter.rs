//! Counting a stream, row by row, and summing the streams of one peer.

use super::desk::Desk;
use super::event::{Event, Label, Received, Row};
use iperf2::{Account, Datagram, ServerReport};
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Interval sums that wait for their last stream.
const WAITING: usize = 16;

/// Streams whose rows are summed.
pub(crate) struct Group<'a> {
    tell: &'a (dyn Fn(Event) + Sync),
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    joined: u32,
    active: u32,
    intervals: BTreeMap<u32, (u32, Row)>,
    total: Option<Row>,
}

impl<'a> Group<'a> {
    pub(crate) fn new(tell: &'a (dyn Fn(Event) + Sync)) -> Self {
        Group { tell, state: Mutex::default() }
    }

    fn join(&self) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        if state.active == 0 {
            *state = State::default();
        }
        state.joined += 1;
        state.active += 1;
    }

    /// Tells a stream's row, and the sum once all streams have one.
    fn row(&self, number: u32, row: Row) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        (self.tell)(Event::Row(row));
        if row.whole {
            state.active = state.active.saturating_sub(1);
            state.total = Some(sum(state.total, &row));
            if let (0, 2.., Some(total)) = (state.active, state.joined, state.total) {
                (self.tell)(Event::Row(total));
            }
            return;
        }
        let (count, before) =
            state.intervals.remove(&number).map_or((0, None), |(count, row)| (count, Some(row)));
        let (count, total) = (count + 1, sum(before, &row));
        if count < state.joined {
            state.intervals.insert(number, (count, total));
            if state.intervals.len() > WAITING {
                state.intervals.pop_first();
            }
        } else if count > 1 {
            (self.tell)(Event::Row(total));
        }
    }
}

fn sum(before: Option<Row>, row: &Row) -> Row {
    let Some(before) = before else {
        let received = row.received.map(|received| Received { jitter: None, ..received });
        return Row { label: None, ends: None, received, ..*row };
    };
    let received = before.received.zip(row.received).map(|(a, b)| Received {
        datagrams: a.datagrams.saturating_add(b.datagrams),
        lost: a.lost.saturating_add(b.lost),
        late: a.late.saturating_add(b.late),
        jitter: None,
    });
    Row {
        from: before.from.min(row.from),
        to: before.to.max(row.to),
        bytes: before.bytes.saturating_add(row.bytes),
        received,
        ..before
    }
}

/// One stream's counts.
pub(crate) struct Meter<'a> {
    group: Arc<Group<'a>>,
    label: Label,
    ends: (SocketAddr, SocketAddr),
    sending: bool,
    interval: Option<Duration>,
    begun: Instant,
    rows: u32,
    bytes: u64,
    bytes_before: u64,
    /// Of a receiver of datagrams.
    account: Option<Account>,
    account_before: Account,
}

impl<'a> Meter<'a> {
    pub(crate) fn new(
        desk: &Desk<'a>,
        label: Label,
        ends: (SocketAddr, SocketAddr),
        begun: Instant,
    ) -> Self {
        let group = desk.group(ends.1.ip());
        group.join();
        Meter {
            group,
            label,
            ends,
            sending: false,
            interval: desk.interval,
            begun,
            rows: 0,
            bytes: 0,
            bytes_before: 0,
            account: None,
            account_before: Account::default(),
        }
    }

    /// Counts datagrams from here on, those of `account` included.
    pub(crate) fn with_account(mut self, account: Account) -> Self {
        self.bytes = account.bytes;
        self.account = Some(account);
        self
    }

    /// The moment from which time counts.
    pub(crate) fn begin(&mut self, now: Instant) {
        self.begun = now;
    }

    /// It counts what we send, from now on.
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

    pub(crate) fn arrive(&mut self, datagram: &Datagram, bytes: usize, came: Duration) {
        self.add(bytes);
        if let Some(account) = &mut self.account {
            account.arrive(datagram.number, bytes as u64, datagram.sent, came);
        }
    }

    /// Tells the rows that are due.
    pub(crate) fn tick(&mut self, now: Instant) {
        let Some(interval) = self.interval else { return };
        let passed = now.saturating_duration_since(self.begun);
        while passed >= interval * (self.rows + 1) {
            let to = interval * (self.rows + 1);
            self.interval_row(interval, to);
        }
    }

    fn interval_row(&mut self, interval: Duration, to: Duration) {
        let since = self.account.map(|account| account.since(&self.account_before));
        let row = Row {
            label: Some(self.label),
            ends: Some(self.ends),
            sending: self.sending,
            from: interval * self.rows,
            to,
            bytes: self.bytes - self.bytes_before,
            whole: false,
            received: since.map(received),
        };
        self.group.row(self.rows, row);
        self.rows += 1;
        self.bytes_before = self.bytes;
        self.account_before = self.account.unwrap_or_default();
    }

    /// Tells the last rows, and what a server reports.
    pub(crate) fn finish(mut self, now: Instant) -> ServerReport {
        self.tick(now);
        let time = now.saturating_duration_since(self.begun);
        if let Some(interval) = self.interval {
            // A remainder of a tenth or more deserves a row.
            if time.saturating_sub(interval * self.rows) * 10 >= interval {
                self.interval_row(interval, time);
            }
        }
        let row = Row {
            label: Some(self.label),
            ends: Some(self.ends),
            sending: self.sending,
            from: Duration::ZERO,
            to: time,
            bytes: self.bytes,
            whole: true,
            received: self.account.map(received),
        };
        self.group.row(self.rows, row);
        let account = self.account.unwrap_or_default();
        ServerReport {
            bytes: self.bytes,
            time,
            lost: account.lost(),
            late: account.late,
            datagrams: account.datagrams,
            jitter: account.jitter(),
        }
    }
}

fn received(account: Account) -> Received {
    Received {
        datagrams: account.datagrams,
        lost: account.lost(),
        late: account.late,
        jitter: Some(account.jitter()),
    }
}
