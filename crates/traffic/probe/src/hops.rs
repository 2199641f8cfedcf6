//! The hops of a route and their statistics: pure, the caller passes the time.

use crate::prober::{Outcome, Response};
use crate::rtt_stats::RunningStats;
use record::Hop;
use std::collections::HashMap;
use std::net::IpAddr;
use std::time::{Duration, Instant};

/// Consecutive silent hops after which the search ends.
const MAX_SILENT_HOPS: u8 = 8;
/// Maximum number of outstanding probes during the search: all those beyond the host
/// reach it, and hosts rate-limit their replies.
const MAX_OUTSTANDING: usize = 3;
/// How long after the timeout a reply still counts as late.
const LATE_GRACE: Duration = Duration::from_secs(10);

/// The statistics of one hop.
#[derive(Debug, Clone, Default)]
struct HopStats {
    sent: u64,
    received: u64,
    late: u64,
    rtts: RunningStats,
    last_ms: f64,
    /// The responding addresses, with counts.
    from: Vec<(IpAddr, u64)>,
    refusal: Option<String>,
}

/// An outstanding probe.
#[derive(Debug, Clone, Copy)]
struct InFlight {
    ttl: u8,
    at: Instant,
}

/// All hops, in order.
#[derive(Debug)]
pub(crate) struct Hops {
    target: IpAddr,
    max_hops: u8,
    timeout: Duration,
    hops: Vec<HopStats>,
    outstanding: HashMap<u16, InFlight>,
    /// The hop at which the host replied.
    reached: Option<u8>,
    /// The hop that reported the host unreachable.
    refused: Option<u8>,
}

impl Hops {
    pub(crate) fn new(target: IpAddr, max_hops: u8, timeout: Duration) -> Self {
        let (hops, outstanding) = (Vec::new(), HashMap::new());
        Hops { target, max_hops, timeout, hops, outstanding, reached: None, refused: None }
    }

    /// Counts probe `seq` with this TTL, sent at `at`.
    pub(crate) fn send(&mut self, seq: u16, ttl: u8, at: Instant) {
        let count = usize::from(ttl).max(self.hops.len());
        self.hops.resize(count, HopStats::default());
        if let Some(stats) = self.hops.get_mut(usize::from(ttl).wrapping_sub(1)) {
            stats.sent += 1;
            self.outstanding.insert(seq, InFlight { ttl, at });
        }
    }

    /// Counts a response. Returns its sender if that is new.
    pub(crate) fn receive(&mut self, response: &Response) -> Option<IpAddr> {
        let from = response.from?;
        let InFlight { ttl, at } = self.outstanding.remove(&response.seq)?;
        let stats = self.hops.get_mut(usize::from(ttl).wrapping_sub(1))?;
        let least = |known: Option<u8>| Some(known.map_or(ttl, |known| known.min(ttl)));
        let is_host = match &response.outcome {
            Outcome::Reply | Outcome::Closed => true,
            Outcome::Unreachable(reason) => {
                if from != self.target {
                    stats.refusal = Some(reason.clone());
                    self.refused = least(self.refused);
                }
                from == self.target
            }
            Outcome::Expired => false,
        };
        if is_host {
            self.reached = least(self.reached);
        }
        let rtt = response.at.saturating_duration_since(at);
        if rtt > self.timeout {
            stats.late += 1;
        } else {
            stats.received += 1;
            stats.last_ms = rtt.as_secs_f64() * 1e3;
            stats.rtts.add(stats.last_ms);
        }
        match stats.from.iter_mut().find(|(known, _)| *known == from) {
            Some((_, times)) => {
                *times += 1;
                None
            }
            None => {
                stats.from.push((from, 1));
                Some(from)
            }
        }
    }

    pub(crate) fn is_reached(&self) -> bool {
        self.reached.is_some()
    }

    /// Whether a hop reported the host unreachable and the host did not reply.
    pub(crate) fn is_refused(&self) -> bool {
        self.reached.is_none() && self.refused.is_some()
    }

    /// The last hop of the route, if known.
    fn end(&self) -> Option<u8> {
        self.reached.or(self.refused)
    }

    /// The last hop that responded.
    fn last(&self) -> u8 {
        let last = self.hops.iter().rposition(|stats| !stats.from.is_empty());
        last.and_then(|at| u8::try_from(at + 1).ok()).unwrap_or(0)
    }

    /// The number of hops to probe in each round: up to the host, or one beyond the last
    /// that responded.
    pub(crate) fn probed_hops(&self) -> u8 {
        self.end().unwrap_or_else(|| self.last().saturating_add(1)).min(self.max_hops)
    }

    /// What to do next during the search for the route.
    pub(crate) fn next_step(&self, now: Instant) -> Next {
        let next = u8::try_from(self.hops.len() + 1).unwrap_or(u8::MAX);
        if self.end().is_some_and(|end| next > end) {
            return Next::Done;
        }
        let outstanding = self.waiting(now);
        let far = self.hops.len() >= usize::from(self.max_hops)
            || next > self.last().saturating_add(MAX_SILENT_HOPS);
        match (far, outstanding) {
            (true, 0) => Next::Done,
            (true, _) => Next::Wait,
            (false, outstanding) if outstanding >= MAX_OUTSTANDING => Next::Wait,
            (false, _) => Next::Probe(next),
        }
    }

    /// Outstanding probes that have not timed out, up to the end of the route.
    pub(crate) fn waiting(&self, now: Instant) -> usize {
        let end = self.end().unwrap_or(u8::MAX);
        self.outstanding
            .values()
            .filter(|probe| probe.ttl <= end && self.is_recent(probe, now))
            .count()
    }

    fn is_recent(&self, probe: &InFlight, now: Instant) -> bool {
        now.saturating_duration_since(probe.at) < self.timeout
    }

    /// Forgets probes whose replies are overdue.
    pub(crate) fn forget(&mut self, now: Instant) {
        let limit = self.timeout + LATE_GRACE;
        self.outstanding.retain(|_, probe| now.saturating_duration_since(probe.at) < limit);
    }

    /// The hops so far, without names and locations.
    pub(crate) fn hops(&self, now: Instant) -> Vec<Hop> {
        let count = usize::from(self.probed_hops());
        (1u8..)
            .zip(self.hops.iter().take(count))
            .map(|(ttl, stats)| self.hop(ttl, stats, now))
            .collect()
    }

    fn hop(&self, ttl: u8, stats: &HopStats, now: Instant) -> Hop {
        let waiting = self
            .outstanding
            .values()
            .filter(|probe| probe.ttl == ttl && self.is_recent(probe, now));
        let settled = stats.sent.saturating_sub(waiting.count() as u64);
        let lost = settled.saturating_sub(stats.received);
        let mut from = stats.from.clone();
        // A stable sort keeps the first address first on a tie.
        from.sort_by_key(|(_, times)| std::cmp::Reverse(*times));
        let mut from = from.into_iter().map(|(address, _)| address.to_string());
        let rtts = &stats.rtts;
        let known = |value: f64| (rtts.count > 0).then_some(value);
        Hop {
            ttl,
            address: from.next(),
            others: from.collect(),
            sent: stats.sent,
            received: stats.received,
            late: stats.late,
            loss: if settled == 0 { 0.0 } else { lost as f64 / settled as f64 },
            last_ms: known(stats.last_ms),
            best_ms: known(rtts.min),
            avg_ms: known(rtts.mean),
            worst_ms: known(rtts.max),
            stdev_ms: known(rtts.deviation()),
            refusal: if self.reached.is_some_and(|reached| reached <= ttl) {
                None
            } else {
                stats.refusal.clone()
            },
            ..Hop::default()
        }
    }
}

/// The next step of the search for the route.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Next {
    /// Probe this hop.
    Probe(u8),
    /// Wait for responses.
    Wait,
    /// The search is complete.
    Done,
}

#[cfg(test)]
mod tests {
    use super::*;
    use host::clock;

    const MS: Duration = Duration::from_millis(1);

    fn target() -> IpAddr {
        "192.0.2.9".parse().unwrap()
    }

    fn router(n: u8) -> IpAddr {
        IpAddr::from([10, 0, 0, n])
    }

    fn response(seq: u16, outcome: Outcome, from: IpAddr, at: Instant) -> Response {
        Response { seq, outcome, from: Some(from), ttl: None, bytes: 0, at }
    }

    /// Hops 1 to `sent` have been probed, hop n by probe n, at the same time.
    fn probed(sent: u8) -> (Hops, Instant) {
        let (mut hops, now) = (Hops::new(target(), 30, 1000 * MS), clock::now());
        for ttl in 1..=sent {
            hops.send(ttl.into(), ttl, now);
        }
        (hops, now)
    }

    #[test]
    fn the_route_is_found_with_few_probes_beyond_the_host() {
        let (mut hops, now) = probed(0);
        for ttl in 1..=3 {
            assert_eq!(hops.next_step(now), Next::Probe(ttl));
            hops.send(ttl.into(), ttl, now);
        }
        assert_eq!(hops.next_step(now), Next::Wait);
        hops.receive(&response(1, Outcome::Expired, router(1), now + MS));
        assert_eq!(hops.next_step(now), Next::Probe(4));
        hops.receive(&response(3, Outcome::Closed, target(), now + MS));
        assert_eq!((hops.next_step(now), hops.probed_hops()), (Next::Done, 3));
        // A shorter route to the host.
        hops.receive(&response(2, Outcome::Reply, target(), now + MS));
        assert_eq!((hops.probed_hops(), hops.hops(now).len()), (2, 2));
    }

    #[test]
    fn silence_ends_the_search() {
        let (mut hops, now) = probed(1);
        hops.receive(&response(1, Outcome::Expired, router(1), now + MS));
        for ttl in 2..=9 {
            hops.send(ttl.into(), ttl, now);
        }
        assert_eq!(hops.next_step(now + 999 * MS), Next::Wait);
        assert_eq!(hops.next_step(now + 1000 * MS), Next::Done);
        let list = hops.hops(now + 1000 * MS);
        assert_eq!((list.len(), list[1].address.as_deref(), list[1].loss), (2, None, 1.0));
        assert!(!hops.is_reached());
    }

    #[test]
    fn the_maximum_hop_is_probed_and_none_beyond() {
        let (mut hops, now) = (Hops::new(target(), 2, MS), clock::now());
        hops.send(1, 1, now);
        assert_eq!(hops.next_step(now), Next::Probe(2));
        hops.send(2, 2, now);
        assert_eq!(hops.next_step(now), Next::Wait);
        hops.receive(&response(2, Outcome::Expired, router(2), now));
        assert_eq!((hops.next_step(now + MS), hops.probed_hops()), (Next::Done, 2));
    }

    #[test]
    fn loss_excludes_outstanding_probes() {
        let (mut hops, now) = probed(1);
        hops.receive(&response(1, Outcome::Expired, router(1), now + 10 * MS));
        hops.send(2, 1, now + 100 * MS);
        assert_eq!(hops.hops(now + 200 * MS)[0].loss, 0.0);
        let hop = &hops.hops(now + 1200 * MS)[0];
        assert_eq!((hop.sent, hop.received, hop.loss), (2, 1, 0.5));
        hops.receive(&response(2, Outcome::Expired, router(7), now + 1300 * MS));
        let hop = &hops.hops(now + 1300 * MS)[0];
        assert_eq!((hop.received, hop.late, hop.best_ms), (1, 1, Some(10.0)));
        assert_eq!(
            (hop.address.clone(), &hop.others[..]),
            (Some(router(1).to_string()), &[router(7).to_string()][..])
        );
        // A second response to the same probe, and one to a probe that was never sent.
        assert_eq!(hops.receive(&response(2, Outcome::Expired, router(8), now)), None);
        assert_eq!(hops.receive(&response(99, Outcome::Expired, router(8), now)), None);
    }

    #[test]
    fn an_unreachable_error_ends_the_route_until_the_host_replies() {
        let (mut hops, now) = probed(3);
        let reason = "host unreachable".to_owned();
        hops.receive(&response(2, Outcome::Unreachable(reason.clone()), router(2), now));
        assert!(hops.is_refused());
        assert_eq!(hops.hops(now)[1].refusal, Some(reason));
        hops.receive(&response(3, Outcome::Closed, target(), now));
        assert!(hops.is_reached() && !hops.is_refused());
        assert_eq!(hops.probed_hops(), 3);
    }
}
