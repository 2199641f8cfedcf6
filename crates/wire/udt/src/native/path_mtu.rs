//! Which packet size the path carries (DPLPMTUD, RFC 8899): data begins in packets that every
//! path carries; padded pings of larger sizes, up to that of this host's link, show which of them
//! arrive. No answer of a router is needed, and no data is lost to the search.

use super::connection::NativeConfig;
use super::packet::Ack;
use super::round_trip::RoundTrip;
use units::Nanos;

/// UDP payload of packets before any size is confirmed: that of 540-byte packets over IPv4 and
/// 560-byte packets over IPv6, below the 576 bytes of RFC 791.
const BASE_BYTES: usize = 512;
/// What most tunnels carry (`BASE_PLPMTU` of RFC 8899).
//= https://www.rfc-editor.org/rfc/rfc8899#section-5.1.2
//# When using IPv4, there is no currently equivalent size specified, and a default BASE_PLPMTU
//# of 1200 bytes is RECOMMENDED.
const USUAL_BYTES: usize = 1_200;
/// Probes of a size before it counts as too large (`MAX_PROBES`).
const MAX_PROBES: u32 = 3;
/// Sizes that are tried at a time, and the difference at which the search ends, bytes.
const SIZES: usize = 7;
const PRECISION: usize = NativeConfig::MTU_PRECISION;
/// Time after which a larger size is tried once more, ns (`PMTU_RAISE_TIMER`).
//= https://www.rfc-editor.org/rfc/rfc8899#section-5.1.1
//# The PMTU_RAISE_TIMER is configured to the period a sender will continue to use the current
//# PLPMTU, after which it reenters the Search Phase.
const RAISE_NS: u64 = 600_000_000_000;

/// What a search found out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Found {
    /// The size of new packets is this, bytes.
    Size(usize),
    /// The path carried packets of this size, bytes, and does not any more; smaller ones arrive.
    Vanishes(usize),
}

/// The search for the largest packet that the path carries.
#[derive(Debug)]
pub(super) struct PathMtu {
    max: usize,
    /// The largest that arrived, and the smallest that did not.
    confirmed: usize,
    refused: usize,
    /// Sizes of this round, ascending, those of them that are to be sent, and how often all were.
    sizes: Vec<usize>,
    unsent: Vec<usize>,
    sends: u32,
    last_sent: Nanos,
    /// Numbers and sizes of the probes of this round.
    in_flight: Vec<(u64, usize)>,
    /// A search has ended; the next one begins then.
    raise: Option<Nanos>,
    /// Packets of this size vanish.
    doubted: Option<usize>,
    /// Nothing has been found out yet.
    is_first: bool,
}

impl PathMtu {
    /// A search up to `max` bytes of UDP payload.
    pub(super) fn new(max: usize) -> Self {
        let mut search = PathMtu {
            max,
            confirmed: BASE_BYTES.min(max),
            refused: max + 1,
            sizes: Vec::new(),
            unsent: Vec::new(),
            sends: 0,
            last_sent: Nanos(0),
            in_flight: Vec::new(),
            raise: None,
            doubted: None,
            is_first: max > BASE_BYTES,
        };
        search.begin_round(Nanos(0), vec![USUAL_BYTES.min(max), max]);
        search
    }

    /// The largest packet that may carry data, bytes.
    pub(super) fn bytes(&self) -> usize {
        // What is in flight has that size still.
        self.doubted.unwrap_or(self.confirmed)
    }

    /// What arrives and what does not, where that is below the size of the link.
    pub(super) fn smaller(&self) -> Option<(usize, usize)> {
        (self.refused <= self.max).then_some((self.confirmed, self.refused))
    }

    /// Whether more than the first window is to wait for larger packets.
    pub(super) const fn is_first(&self) -> bool {
        self.is_first
    }

    fn begin_round(&mut self, now: Nanos, mut sizes: Vec<usize>) {
        sizes.retain(|size| *size > self.confirmed && *size < self.refused);
        sizes.dedup();
        self.in_flight.clear();
        self.sends = 0;
        if sizes.is_empty() {
            self.raise = Some(now.plus_nanos(RAISE_NS));
        }
        self.unsent.clone_from(&sizes);
        self.sizes = sizes;
    }

    /// The sizes between what passes and what does not, or the end of the search.
    fn refine(&mut self, now: Nanos) {
        let (low, high) = (self.confirmed, self.refused.min(self.max + 1));
        let sizes = if self.confirmed == self.max || high - low <= PRECISION {
            Vec::new()
        } else {
            (1..=SIZES).map(|step| low + (high - low) * step / (SIZES + 1)).collect()
        };
        self.begin_round(now, sizes);
    }

    /// The bytes of a probe that is to be sent now; [`PathMtu::on_send`] gets its number.
    pub(super) fn poll(&mut self) -> Option<usize> {
        self.unsent.pop()
    }

    pub(super) fn on_send(&mut self, now: Nanos, number: u64, bytes: usize) {
        self.in_flight.push((number, bytes));
        self.last_sent = now;
    }

    /// An acknowledgement came, whose largest number is `largest`.
    pub(super) fn on_ack(&mut self, now: Nanos, ack: &Ack<'_>, largest: u64) -> Option<Found> {
        if self.in_flight.is_empty() {
            return None;
        }
        let mut arrived = 0;
        for run in ack.runs(largest) {
            let is_in = |number: &u64| run.start <= *number && *number < run.end;
            for (_, bytes) in self.in_flight.extract_if(.., |(number, _)| is_in(number)) {
                arrived = arrived.max(bytes);
            }
        }
        if arrived < self.confirmed || arrived == 0 {
            return None;
        }
        self.confirmed = arrived;
        self.is_first = false;
        if self.doubted.is_some_and(|doubted| doubted <= arrived) {
            // Not the size was the reason.
            self.doubted = None;
        }
        self.sizes.retain(|size| *size > arrived);
        self.unsent.retain(|size| *size > arrived);
        if self.sizes.is_empty() {
            self.refine(now);
        }
        self.found()
    }

    fn found(&self) -> Option<Found> {
        self.doubted.is_none().then_some(Found::Size(self.confirmed))
    }

    /// When [`PathMtu::on_timeout`] is to be called.
    pub(super) fn next_timeout(&self, rtt: &RoundTrip) -> Option<Nanos> {
        if !self.unsent.is_empty() {
            return Some(Nanos(0));
        }
        match self.raise {
            Some(_) => self.raise,
            None => Some(self.last_sent.plus_nanos(rtt.probe_timeout_ns())),
        }
    }

    /// Time has passed.
    pub(super) fn on_timeout(&mut self, now: Nanos, rtt: &RoundTrip) -> Option<Found> {
        if !self.unsent.is_empty() || self.next_timeout(rtt).is_none_or(|due| now < due) {
            return None;
        }
        if self.raise.take().is_some() {
            self.refused = self.max + 1;
            self.begin_round(now, vec![self.max]);
            return None;
        }
        self.sends += 1;
        if self.sends < MAX_PROBES {
            self.unsent.clone_from(&self.sizes);
            return None;
        }
        self.is_first = false;
        if let Some(doubted) = self.doubted.take() {
            let arrives = self.sizes.first() != Some(&BASE_BYTES);
            // Else the path is down, whatever the size.
            self.confirmed = doubted;
            self.begin_round(now, Vec::new());
            return arrives.then_some(Found::Vanishes(doubted));
        }
        self.refused = self.sizes.first().copied().unwrap_or(self.refused);
        self.refine(now);
        self.found()
    }

    /// Packets of the confirmed size have vanished for a while: looks whether smaller ones
    /// arrive.
    pub(super) fn doubt(&mut self, now: Nanos) {
        if self.doubted.is_some() || self.confirmed <= BASE_BYTES {
            return;
        }
        self.doubted = Some(self.confirmed);
        self.raise = None;
        let (low, high) = (BASE_BYTES, self.confirmed);
        self.confirmed = low - 1;
        self.refused = self.max + 1;
        let between = (1..SIZES).map(|step| low + (high - low) * step / SIZES);
        self.begin_round(now, std::iter::once(low).chain(between).chain([high]).collect());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use runs::{PacketRun, RunSet};

    /// A search over a path that carries `mtu` bytes, of which it loses the first `losses` that
    /// fit. Gives what it found, and the time it took in round trips of 100 ms.
    fn search(path: &mut PathMtu, mtu: usize, mut losses: u32) -> (Vec<Found>, u64) {
        let (mut now, mut rtt, mut number) = (Nanos(1), RoundTrip::default(), 0);
        rtt.update(Nanos(100_000_000), Nanos(0), 0);
        rtt.update(Nanos(100_000_000), Nanos(0), 0);
        let (mut found, began) = (Vec::new(), now);
        while path.raise.is_none() {
            let mut arrived = RunSet::default();
            while let Some(bytes) = path.poll() {
                path.on_send(now, number, bytes);
                if bytes <= mtu && losses == 0 {
                    arrived.insert(PacketRun::new(number, number + 1));
                } else if bytes <= mtu {
                    losses -= 1;
                }
                number += 1;
            }
            now = now.plus_nanos(100_000_000);
            let mut room = Vec::new();
            if let Some(ack) = Ack::new(arrived.iter(), &mut room, 500) {
                found.extend(path.on_ack(now, &ack, u64::from(ack.largest)));
            }
            if let Some(due) = path.next_timeout(&rtt).filter(|_| path.raise.is_none()) {
                now = now.max(due);
                found.extend(path.on_timeout(now, &rtt));
            }
            assert!(number < 1_000, "it ends");
        }
        (found, now.nanos_since(began) / 100_000_000)
    }

    #[test]
    fn the_size_of_the_link_is_used_after_one_round_trip() {
        let mut path = PathMtu::new(1_472);
        assert_eq!((path.bytes(), path.is_first()), (512, true));
        assert_eq!(search(&mut path, 1_500, 0), (vec![Found::Size(1_472)], 1));
        assert!(!path.is_first());
    }

    #[test]
    fn any_smaller_size_is_found() {
        for mtu in [548, 700, 999, 1_199, 1_200, 1_252, 1_372, 1_412, 1_444, 1_464, 1_471] {
            for losses in [0, 1, 2] {
                let mut path = PathMtu::new(1_472);
                let (_, trips) = search(&mut path, mtu, losses);
                let bytes = path.bytes();
                assert!(bytes <= mtu && bytes + PRECISION + 1 >= mtu, "{bytes} of {mtu}");
                assert!(trips < 60, "{trips} round trips for {mtu}");
            }
        }
        // Nothing larger than the base passes.
        let mut path = PathMtu::new(1_472);
        search(&mut path, 0, 0);
        assert_eq!(path.bytes(), 512);
    }

    #[test]
    fn a_path_that_shrinks_is_noticed_and_one_that_is_down_is_not_taken_for_it() {
        for (mtu, expected) in [(1_000, true), (0, false), (1_472, false)] {
            let mut path = PathMtu::new(1_472);
            search(&mut path, 1_472, 0);
            path.doubt(Nanos(1));
            let (found, _) = search(&mut path, mtu, 0);
            assert_eq!(found.contains(&Found::Vanishes(1_472)), expected, "{mtu}: {found:?}");
            assert_eq!(path.bytes(), 1_472);
        }
    }

    #[test]
    fn a_larger_size_is_tried_later() {
        let mut path = PathMtu::new(1_472);
        search(&mut path, 1_300, 0);
        let (rtt, raise) = (RoundTrip::default(), path.raise.unwrap());
        assert_eq!(path.on_timeout(raise, &rtt), None);
        search(&mut path, 1_472, 0);
        assert_eq!(path.bytes(), 1_472);
    }
}
