//! The hops of a way and what they said: pure, time comes in.

use crate::prober::{Heard, What};
use crate::tally::Running;
use record::Hop;
use std::collections::HashMap;
use std::net::IpAddr;
use std::time::{Duration, Instant};

/// After so many hops in a row without a word nothing more is expected.
const SILENCE: u8 = 8;
/// Probes on their way while the way is not known yet: those beyond the host
/// all reach it, and hosts answer only a few at once.
const AHEAD: usize = 3;
/// How long after its timeout an answer is still told from a stranger.
const LATEST: Duration = Duration::from_secs(10);

/// What one hop said.
#[derive(Debug, Clone, Default)]
struct Said {
    sent: u64,
    received: u64,
    late: u64,
    rtts: Running,
    last_ms: f64,
    /// Who answered, and how often.
    by: Vec<(IpAddr, u64)>,
    refusal: Option<String>,
}

/// A probe on its way.
#[derive(Debug, Clone, Copy)]
struct Flight {
    ttl: u8,
    at: Instant,
}

/// All hops, the first first.
#[derive(Debug)]
pub(crate) struct Hops {
    target: IpAddr,
    most: u8,
    timeout: Duration,
    said: Vec<Said>,
    flying: HashMap<u16, Flight>,
    /// Where the host itself answered.
    reached: Option<u8>,
    /// Where somebody said that it goes no further.
    refused: Option<u8>,
}

impl Hops {
    pub(crate) fn new(target: IpAddr, most: u8, timeout: Duration) -> Self {
        let (said, flying) = (Vec::new(), HashMap::new());
        Hops { target, most, timeout, said, flying, reached: None, refused: None }
    }

    /// Probe `seq` left at `at`, to go `ttl` hops.
    pub(crate) fn send(&mut self, seq: u16, ttl: u8, at: Instant) {
        let wanted = usize::from(ttl).max(self.said.len());
        self.said.resize(wanted, Said::default());
        if let Some(said) = self.said.get_mut(usize::from(ttl).wrapping_sub(1)) {
            said.sent += 1;
            self.flying.insert(seq, Flight { ttl, at });
        }
    }

    /// Something was heard. Tells who, where it is new.
    pub(crate) fn hear(&mut self, heard: &Heard) -> Option<IpAddr> {
        let from = heard.from?;
        let Flight { ttl, at } = self.flying.remove(&heard.seq)?;
        let said = self.said.get_mut(usize::from(ttl).wrapping_sub(1))?;
        let least = |known: Option<u8>| Some(known.map_or(ttl, |known| known.min(ttl)));
        let is_host = match &heard.what {
            What::Reply | What::Closed => true,
            What::Unreached(why) => {
                if from != self.target {
                    said.refusal = Some(why.clone());
                    self.refused = least(self.refused);
                }
                from == self.target
            }
            What::Expired => false,
        };
        if is_host {
            self.reached = least(self.reached);
        }
        let rtt = heard.at.saturating_duration_since(at);
        if rtt > self.timeout {
            said.late += 1;
        } else {
            said.received += 1;
            said.last_ms = rtt.as_secs_f64() * 1e3;
            said.rtts.add(said.last_ms);
        }
        match said.by.iter_mut().find(|(known, _)| *known == from) {
            Some((_, times)) => {
                *times += 1;
                None
            }
            None => {
                said.by.push((from, 1));
                Some(from)
            }
        }
    }

    pub(crate) fn is_reached(&self) -> bool {
        self.reached.is_some()
    }

    /// The hop at which somebody said that it goes no further.
    pub(crate) fn is_refused(&self) -> bool {
        self.reached.is_none() && self.refused.is_some()
    }

    /// Where the way ends, as far as is known.
    fn end(&self) -> Option<u8> {
        self.reached.or(self.refused)
    }

    /// The last hop that said something.
    fn last(&self) -> u8 {
        let last = self.said.iter().rposition(|said| !said.by.is_empty());
        last.and_then(|at| u8::try_from(at + 1).ok()).unwrap_or(0)
    }

    /// Hops that are worth a probe in each round: up to the host, or one
    /// beyond the last that answered.
    pub(crate) fn worth_asking(&self) -> u8 {
        self.end().unwrap_or_else(|| self.last().saturating_add(1)).min(self.most)
    }

    /// While the way is not known: the hop to ask now, if any.
    pub(crate) fn ask_next(&self, now: Instant) -> Next {
        let next = u8::try_from(self.said.len() + 1).unwrap_or(u8::MAX);
        let known = self.end().is_some_and(|end| next > end);
        if known {
            return Next::Done;
        }
        let flying = self.waiting(now);
        let far =
            self.said.len() >= usize::from(self.most) || next > self.last().saturating_add(SILENCE);
        match (far, flying) {
            (true, 0) => Next::Done,
            (true, _) => Next::Wait,
            (false, flying) if flying >= AHEAD => Next::Wait,
            (false, _) => Next::Ask(next),
        }
    }

    /// Probes that may still be answered in time, to hops that count.
    pub(crate) fn waiting(&self, now: Instant) -> usize {
        let end = self.end().unwrap_or(u8::MAX);
        self.flying
            .values()
            .filter(|flight| flight.ttl <= end && self.is_young(flight, now))
            .count()
    }

    fn is_young(&self, flight: &Flight, now: Instant) -> bool {
        now.saturating_duration_since(flight.at) < self.timeout
    }

    /// Forgets probes that nothing will be heard of.
    pub(crate) fn forget(&mut self, now: Instant) {
        let limit = self.timeout + LATEST;
        self.flying.retain(|_, flight| now.saturating_duration_since(flight.at) < limit);
    }

    /// The hops as they are now; names and places are for others to add.
    pub(crate) fn hops(&self, now: Instant) -> Vec<Hop> {
        let asked = usize::from(self.worth_asking());
        (1u8..)
            .zip(self.said.iter().take(asked))
            .map(|(ttl, said)| self.hop(ttl, said, now))
            .collect()
    }

    fn hop(&self, ttl: u8, said: &Said, now: Instant) -> Hop {
        let waiting =
            self.flying.values().filter(|flight| flight.ttl == ttl && self.is_young(flight, now));
        let settled = said.sent.saturating_sub(waiting.count() as u64);
        let lost = settled.saturating_sub(said.received);
        let mut by = said.by.clone();
        // A stable sort: of equals the one that was first stays first.
        by.sort_by_key(|(_, times)| std::cmp::Reverse(*times));
        let mut by = by.into_iter().map(|(address, _)| address.to_string());
        let rtts = &said.rtts;
        let known = |value: f64| (rtts.count > 0).then_some(value);
        Hop {
            ttl,
            address: by.next(),
            others: by.collect(),
            sent: said.sent,
            received: said.received,
            late: said.late,
            loss: if settled == 0 { 0.0 } else { lost as f64 / settled as f64 },
            last_ms: known(said.last_ms),
            best_ms: known(rtts.min),
            avg_ms: known(rtts.mean),
            worst_ms: known(rtts.max),
            stdev_ms: known(rtts.deviation()),
            refusal: if self.reached.is_some_and(|reached| reached <= ttl) {
                None
            } else {
                said.refusal.clone()
            },
            ..Hop::default()
        }
    }
}

/// What to do while the way is not known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Next {
    /// Ask this hop.
    Ask(u8),
    /// Wait for answers.
    Wait,
    /// The way is known, or will not be.
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

    fn heard(seq: u16, what: What, from: IpAddr, at: Instant) -> Heard {
        Heard { seq, what, from: Some(from), ttl: None, bytes: 0, at }
    }

    /// Hops 1 to `sent` have been asked, hop n by probe n, all at one moment.
    fn asked(sent: u8) -> (Hops, Instant) {
        let (mut hops, now) = (Hops::new(target(), 30, 1000 * MS), clock::now());
        for ttl in 1..=sent {
            hops.send(ttl.into(), ttl, now);
        }
        (hops, now)
    }

    #[test]
    fn the_way_is_found_with_few_probes_beyond_the_host() {
        let (mut hops, now) = asked(0);
        for ttl in 1..=3 {
            assert_eq!(hops.ask_next(now), Next::Ask(ttl));
            hops.send(ttl.into(), ttl, now);
        }
        assert_eq!(hops.ask_next(now), Next::Wait);
        hops.hear(&heard(1, What::Expired, router(1), now + MS));
        assert_eq!(hops.ask_next(now), Next::Ask(4));
        hops.hear(&heard(3, What::Closed, target(), now + MS));
        assert_eq!((hops.ask_next(now), hops.worth_asking()), (Next::Done, 3));
        // Hop 2 was reached by a shorter way after all.
        hops.hear(&heard(2, What::Reply, target(), now + MS));
        assert_eq!((hops.worth_asking(), hops.hops(now).len()), (2, 2));
    }

    #[test]
    fn silence_ends_the_search() {
        let (mut hops, now) = asked(1);
        hops.hear(&heard(1, What::Expired, router(1), now + MS));
        for ttl in 2..=9 {
            hops.send(ttl.into(), ttl, now);
        }
        assert_eq!(hops.ask_next(now + 999 * MS), Next::Wait);
        assert_eq!(hops.ask_next(now + 1000 * MS), Next::Done);
        let list = hops.hops(now + 1000 * MS);
        assert_eq!((list.len(), list[1].address.as_deref(), list[1].loss), (2, None, 1.0));
        assert!(!hops.is_reached());
    }

    #[test]
    fn the_last_hop_allowed_is_asked_and_none_beyond() {
        let (mut hops, now) = (Hops::new(target(), 2, MS), clock::now());
        hops.send(1, 1, now);
        assert_eq!(hops.ask_next(now), Next::Ask(2));
        hops.send(2, 2, now);
        assert_eq!(hops.ask_next(now), Next::Wait);
        hops.hear(&heard(2, What::Expired, router(2), now));
        assert_eq!((hops.ask_next(now + MS), hops.worth_asking()), (Next::Done, 2));
    }

    #[test]
    fn loss_counts_what_is_settled() {
        let (mut hops, now) = asked(1);
        hops.hear(&heard(1, What::Expired, router(1), now + 10 * MS));
        hops.send(2, 1, now + 100 * MS);
        assert_eq!(hops.hops(now + 200 * MS)[0].loss, 0.0);
        let hop = &hops.hops(now + 1200 * MS)[0];
        assert_eq!((hop.sent, hop.received, hop.loss), (2, 1, 0.5));
        hops.hear(&heard(2, What::Expired, router(7), now + 1300 * MS));
        let hop = &hops.hops(now + 1300 * MS)[0];
        assert_eq!((hop.received, hop.late, hop.best_ms), (1, 1, Some(10.0)));
        assert_eq!(
            (hop.address.clone(), &hop.others[..]),
            (Some(router(1).to_string()), &[router(7).to_string()][..])
        );
        // A second answer to the same probe, and a probe never sent.
        assert_eq!(hops.hear(&heard(2, What::Expired, router(8), now)), None);
        assert_eq!(hops.hear(&heard(99, What::Expired, router(8), now)), None);
    }

    #[test]
    fn a_refusal_ends_the_way_until_the_host_answers() {
        let (mut hops, now) = asked(3);
        let why = "host unreachable".to_owned();
        hops.hear(&heard(2, What::Unreached(why.clone()), router(2), now));
        assert!(hops.is_refused());
        assert_eq!(hops.hops(now)[1].refusal, Some(why));
        hops.hear(&heard(3, What::Closed, target(), now));
        assert!(hops.is_reached() && !hops.is_refused());
        assert_eq!(hops.worth_asking(), 3);
    }
}
