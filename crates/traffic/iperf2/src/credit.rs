//! Limits what a server sends to a UDP address that is not validated.
//!
//! Source addresses can be forged, so a server sends at most what it received from an
//! address: no more bytes, including IP and UDP headers, and no more datagrams (RFC 9000,
//! section 8.1, permits three times as much, but then validates the address, which
//! iperf 2 cannot). All flows and ports of an address share one credit.

use host::clock;
use host::lock::{lock, wait_timeout};
use std::net::IpAddr;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock};
use std::time::{Duration, Instant};

/// IPv4 and UDP headers, bytes.
const HEADERS_V4: u64 = 28;

/// IPv6 and UDP headers, bytes.
const HEADERS_V6: u64 = 48;

/// Typical MTU, bytes; longer datagrams count as fragments.
const MTU: u64 = 1500;

/// What was received from one address and not yet sent to it.
pub(crate) struct Credit {
    headers: u64,
    balance: Mutex<Balance>,
    grown: Condvar,
}

struct Balance {
    bytes: u64,
    datagrams: u64,
    /// The minimum that a waiting thread needs, bytes; `u64::MAX` if none waits.
    wanted: u64,
}

impl Credit {
    pub(crate) fn new(address: IpAddr) -> Self {
        let headers = if address.to_canonical().is_ipv4() { HEADERS_V4 } else { HEADERS_V6 };
        let balance = Balance { bytes: 0, datagrams: 0, wanted: u64::MAX };
        Credit { headers, balance: Mutex::new(balance), grown: Condvar::new() }
    }

    fn balance(&self) -> MutexGuard<'_, Balance> {
        lock(&self.balance)
    }

    /// The cost of sending a datagram of so many bytes.
    fn cost(&self, length: u64) -> u64 {
        let fragments = length.div_ceil(MTU - self.headers).max(1);
        length.saturating_add(fragments.saturating_mul(self.headers))
    }

    /// Credits a datagram that was received from the address.
    pub(crate) fn receive(&self, length: usize) {
        let mut balance = self.balance();
        balance.bytes = balance.bytes.saturating_add(length as u64 + self.headers);
        balance.datagrams = balance.datagrams.saturating_add(1);
        if balance.bytes >= balance.wanted {
            balance.wanted = u64::MAX;
            self.grown.notify_all();
        }
    }

    /// Pays for a datagram if the balance covers `at_least` of them.
    fn pay(&self, length: u64, at_least: u64) -> bool {
        let cost = self.cost(length);
        let mut balance = self.balance();
        let enough = balance.has(cost, at_least);
        if enough {
            balance.bytes -= cost;
            balance.datagrams -= 1;
        }
        enough
    }

    /// Pays for the last datagram of a stream, or for a report.
    pub(crate) fn pay_for_one(&self, length: usize) -> bool {
        self.pay(length as u64, 1)
    }
}

impl Balance {
    fn has(&self, cost: u64, datagrams: u64) -> bool {
        self.bytes >= cost.saturating_mul(datagrams) && self.datagrams >= datagrams
    }
}

/// A flow's reference to the credit of its address, and when the flow ended.
pub(crate) struct FlowCredit {
    credit: Arc<Credit>,
    ends_by: OnceLock<Instant>,
}

impl FlowCredit {
    pub(crate) fn new(credit: Arc<Credit>) -> Self {
        FlowCredit { credit, ends_by: OnceLock::new() }
    }

    pub(crate) fn credit(&self) -> &Arc<Credit> {
        &self.credit
    }

    /// The flow has ended: the reverse stream ends when the credit is used up, at the latest
    /// at `ends_by`. Only the first call counts.
    pub(crate) fn end(&self, ends_by: Instant) {
        // With the lock held, so that no waiting thread misses it.
        let _balance = self.credit.balance();
        let _ = self.ends_by.set(ends_by);
        self.credit.grown.notify_all();
    }

    fn wait(&self, length: u64, until: Instant) {
        let cost = self.credit.cost(length);
        let mut balance = self.credit.balance();
        while !balance.has(cost, 2) && self.ends_by.get().is_none() {
            let time = until.saturating_duration_since(clock::now());
            if time.is_zero() {
                return;
            }
            // If the number of datagrams is the limit, waits for the next one.
            let wanted = cost.saturating_mul(2).max(balance.bytes.saturating_add(1));
            balance.wanted = balance.wanted.min(wanted);
            balance = wait_timeout(&self.credit.grown, balance, time);
        }
    }
}

/// The maximum that a stream may send.
#[derive(Clone)]
pub(crate) enum Budget {
    /// No limit: for a client, or for a trusted address.
    Unlimited,
    /// As much as was received from the peer's address.
    Received {
        /// The flow that requested the data.
        flow: Arc<FlowCredit>,
        /// Timeout until the next datagram can be sent.
        idle: Duration,
    },
}

impl Budget {
    /// Pays for a datagram that is not the last of its stream; the balance must cover the
    /// last one too.
    pub(crate) fn pay(&self, length: u64) -> bool {
        match self {
            Budget::Unlimited => true,
            Budget::Received { flow, .. } => flow.credit.pay(length, 2),
        }
    }

    /// Pays for the last datagram of a stream.
    pub(crate) fn pay_for_last(&self, length: u64) -> bool {
        match self {
            Budget::Unlimited => true,
            Budget::Received { flow, .. } => flow.credit.pay(length, 1),
        }
    }

    /// Refunds a datagram that was not sent.
    pub(crate) fn refund(&self, length: u64) {
        if let Budget::Received { flow, .. } = self {
            let mut balance = flow.credit.balance();
            balance.bytes = balance.bytes.saturating_add(flow.credit.cost(length));
            balance.datagrams = balance.datagrams.saturating_add(1);
        }
    }

    /// Sleeps until a datagram can be paid for, no more credit can come, or `until`.
    pub(crate) fn wait(&self, length: u64, until: Instant) {
        if let Budget::Received { flow, .. } = self {
            flow.wait(length, until);
        }
    }

    /// Whether the stream is over: its flow has ended and the credit is used up, or it was
    /// idle for too long. `due` is when the next datagram is to be sent, `last_sent` when
    /// the last one was.
    pub(crate) fn is_over(
        &self,
        length: u64,
        now: Instant,
        due: Instant,
        last_sent: Instant,
    ) -> bool {
        let Budget::Received { flow, idle } = self else { return false };
        let ended = flow.ends_by.get().is_some_and(|&ends_by| {
            let cost = flow.credit.cost(length);
            now >= ends_by || due >= ends_by || !flow.credit.balance().has(cost, 2)
        });
        ended || now >= last_sent + *idle || due >= last_sent + *idle
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::Ipv4Addr;
    use std::thread;

    const LONG: Duration = Duration::from_secs(600);

    fn credit() -> Arc<Credit> {
        Arc::new(Credit::new(Ipv4Addr::new(192, 0, 2, 1).into()))
    }

    fn budget(credit: &Arc<Credit>) -> (Arc<FlowCredit>, Budget) {
        let flow = Arc::new(FlowCredit::new(Arc::clone(credit)));
        (Arc::clone(&flow), Budget::Received { flow, idle: LONG })
    }

    #[test]
    fn credit_covers_neither_more_bytes_nor_more_datagrams_than_received() {
        let credit = credit();
        credit.receive(1472);
        assert!(!credit.pay_for_one(1473), "another fragment has another header");
        assert!(credit.pay_for_one(16));
        assert!(!credit.pay_for_one(16), "one datagram was received");
        credit.receive(16);
        assert!(credit.pay_for_one(16));
        let (_, budget) = budget(&credit);
        credit.receive(1472);
        assert!(!budget.pay(100), "the last datagram must be covered");
        assert!(budget.pay_for_last(100));
        budget.refund(100);
        assert!(budget.pay_for_last(100) && !budget.pay_for_last(100));
    }

    #[test]
    fn a_waiting_thread_is_woken_by_credit_or_by_the_end() {
        let credit = credit();
        let (flow, budget) = budget(&credit);
        let waits = || {
            let budget = budget.clone();
            thread::spawn(move || budget.wait(1000, clock::now() + LONG))
        };
        let thread = waits();
        credit.receive(2000);
        credit.receive(2000);
        thread.join().unwrap();
        assert!(budget.pay(1000) && !budget.pay(1000));
        let thread = waits();
        flow.end(clock::now() + LONG);
        thread.join().unwrap();
        let now = clock::now();
        assert!(budget.is_over(1000, now, now, now), "no more credit can come");
        assert!(budget.pay_for_last(1000));
    }

    #[test]
    fn an_idle_stream_ends() {
        let (_, budget) = budget(&credit());
        let now = clock::now();
        assert!(!budget.is_over(16, now, now + LONG / 2, now));
        assert!(budget.is_over(16, now, now + LONG, now));
        assert!(budget.is_over(16, now + LONG, now, now));
        assert!(!Budget::Unlimited.is_over(16, now + LONG, now + LONG, now));
    }
}
