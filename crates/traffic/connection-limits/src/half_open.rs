//! Connections whose handshake is not complete: counted by address, each with
//! one deadline for the whole handshake.
//!
//! When the table is full, the oldest connection of the address with the most of
//! them is closed, so that no address can lock out another.

use host::address_key::AddressKey;
use host::lock::lock;
use std::{
    collections::{BTreeMap, HashMap},
    sync::{
        Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    time::{Duration, Instant},
};

/// How long a connection may exceed its address's share before it is closed.
/// A client's first bytes follow its TCP handshake, so a burst of legitimate
/// clients behind one address takes one RTT.
pub const GRACE_PERIOD: Duration = Duration::from_millis(250);

/// Limits of handshakes in progress.
#[derive(Debug, Clone, Copy)]
pub struct HalfOpenLimits {
    /// Handshakes of all addresses.
    pub all: usize,
    /// Handshakes of one address, once [`GRACE_PERIOD`] is over.
    pub per_address: usize,
    /// Timeout of a whole handshake.
    pub timeout: Duration,
}

/// Handshakes in progress, by address.
#[derive(Debug, Default)]
pub struct HandshakeCounts {
    by_address: Mutex<HashMap<AddressKey, usize>>,
    /// Total over all addresses.
    total: AtomicUsize,
}

impl HandshakeCounts {
    /// Counts one more handshake, until the ticket is dropped.
    pub fn ticket(&self, key: AddressKey) -> HandshakeTicket<'_> {
        *lock(&self.by_address).entry(key).or_default() += 1;
        self.total.fetch_add(1, Ordering::Relaxed);
        HandshakeTicket { counts: self, key }
    }

    /// Handshakes of one address.
    pub fn of(&self, key: AddressKey) -> usize {
        lock(&self.by_address).get(&key).copied().unwrap_or(0)
    }

    /// Handshakes of all addresses.
    pub fn total(&self) -> usize {
        self.total.load(Ordering::Relaxed)
    }
}

/// One handshake in progress.
#[derive(Debug)]
pub struct HandshakeTicket<'a> {
    counts: &'a HandshakeCounts,
    key: AddressKey,
}

impl HandshakeTicket<'_> {
    /// The address that it counts for.
    #[must_use]
    pub fn key(&self) -> AddressKey {
        self.key
    }
}

impl Drop for HandshakeTicket<'_> {
    fn drop(&mut self) {
        let mut by_address = lock(&self.counts.by_address);
        if let Some(count) = by_address.get_mut(&self.key) {
            *count -= 1;
            if *count == 0 {
                by_address.remove(&self.key);
            }
        }
        self.counts.total.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Connections whose handshake is in progress, by order of arrival. Handshakes may also be in
/// the counts only, such as those that a thread completes.
#[derive(Debug)]
pub struct HalfOpenTable<'a, T> {
    counts: &'a HandshakeCounts,
    entries: BTreeMap<u64, Entry<T>>,
    limits: HalfOpenLimits,
}

#[derive(Debug)]
struct Entry<T> {
    key: AddressKey,
    since: Instant,
    connection: T,
}

impl<'a, T> HalfOpenTable<'a, T> {
    /// A table without connections. Each connection that is inserted holds, or has beside it, a
    /// ticket of these counts.
    #[must_use]
    pub const fn new(counts: &'a HandshakeCounts, limits: HalfOpenLimits) -> Self {
        HalfOpenTable { counts, entries: BTreeMap::new(), limits }
    }

    /// The limits.
    #[must_use]
    pub const fn limits(&self) -> HalfOpenLimits {
        self.limits
    }

    /// Adds a connection; `arrival` numbers connections in order of arrival.
    pub fn insert(&mut self, arrival: u64, key: AddressKey, since: Instant, connection: T) {
        self.entries.insert(arrival, Entry { key, since, connection });
    }

    /// The connection with this number.
    pub fn get_mut(&mut self, arrival: u64) -> Option<&mut T> {
        Some(&mut self.entries.get_mut(&arrival)?.connection)
    }

    /// Removes the connection with this number.
    pub fn remove(&mut self, arrival: u64) -> Option<T> {
        Some(self.entries.remove(&arrival)?.connection)
    }

    /// All connections, oldest first.
    pub fn iter(&self) -> impl Iterator<Item = (u64, &T)> {
        self.entries.iter().map(|(arrival, entry)| (*arrival, &entry.connection))
    }

    /// Removes the connections whose handshake has timed out. The timeout is the
    /// same for all, so they expire in order of arrival.
    pub fn take_expired(&mut self, now: Instant) -> Vec<T> {
        let mut expired = Vec::new();
        while let Some(first) = self.entries.first_entry() {
            if now < first.get().since + self.limits.timeout {
                break;
            }
            expired.push(first.remove().connection);
        }
        expired
    }

    /// Removes connections of addresses over their share, oldest first, once
    /// their grace period is over.
    pub fn take_over_share(&mut self, now: Instant) -> Vec<T> {
        let mut excess: HashMap<AddressKey, usize> = HashMap::new();
        let mut over = Vec::new();
        for (arrival, entry) in &self.entries {
            let excess = excess.entry(entry.key).or_insert_with(|| {
                self.counts.of(entry.key).saturating_sub(self.limits.per_address)
            });
            if *excess > 0 && now >= entry.since + GRACE_PERIOD {
                *excess -= 1;
                over.push(*arrival);
            }
        }
        over.into_iter().filter_map(|arrival| self.remove(arrival)).collect()
    }

    /// Removes the oldest connection of the address with the most handshakes, if there are more
    /// of all addresses than the limit.
    pub fn take_excess(&mut self) -> Option<T> {
        if self.counts.total() > self.limits.all { self.take_from_busiest() } else { None }
    }

    /// Removes the oldest connection of the address with the most handshakes.
    pub fn take_from_busiest(&mut self) -> Option<T> {
        let mut busiest: Option<(usize, u64)> = None;
        let mut seen = std::collections::HashSet::new();
        for (arrival, entry) in &self.entries {
            if !seen.insert(entry.key) {
                continue;
            }
            let count = self.counts.of(entry.key);
            if busiest.is_none_or(|(most, _)| count > most) {
                busiest = Some((count, *arrival));
            }
        }
        self.remove(busiest?.1)
    }

    /// The time at which the next handshake times out.
    #[must_use]
    pub fn next_expiry(&self) -> Option<Instant> {
        self.entries.first_key_value().map(|(_, entry)| entry.since + self.limits.timeout)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TIMEOUT: Duration = Duration::from_secs(10);

    fn key(last: u8) -> AddressKey {
        AddressKey::of([192, 0, 2, last].into())
    }

    /// Connections are named by their order of arrival.
    fn table<'a>(
        counts: &'a HandshakeCounts,
        arrivals: &[(u8, Duration)],
        start: Instant,
    ) -> HalfOpenTable<'a, (u64, HandshakeTicket<'a>)> {
        let limits = HalfOpenLimits { all: 100, per_address: 4, timeout: TIMEOUT };
        let mut table = HalfOpenTable::new(counts, limits);
        for (arrival, (address, after)) in (1..).zip(arrivals) {
            let ticket = counts.ticket(key(*address));
            table.insert(arrival, key(*address), start + *after, (arrival, ticket));
        }
        table
    }

    fn names(taken: &[(u64, HandshakeTicket<'_>)]) -> Vec<u64> {
        taken.iter().map(|(arrival, _)| *arrival).collect()
    }

    #[test]
    fn a_handshake_has_one_deadline() {
        let (counts, start) = (HandshakeCounts::default(), host::clock::now());
        let second = Duration::from_secs(1);
        let mut table = table(&counts, &[(1, Duration::ZERO), (2, second)], start);
        assert_eq!(table.next_expiry(), Some(start + TIMEOUT));
        assert!(table.take_expired(start + TIMEOUT - Duration::from_nanos(1)).is_empty());
        assert_eq!(names(&table.take_expired(start + TIMEOUT)), [1]);
        assert_eq!((counts.of(key(1)), counts.of(key(2)), counts.total()), (0, 1, 1));
        assert_eq!(names(&table.take_expired(start + TIMEOUT + second)), [2]);
        assert_eq!(table.next_expiry(), None);
    }

    #[test]
    fn an_address_keeps_its_share_once_the_grace_period_is_over() {
        let (counts, start) = (HandshakeCounts::default(), host::clock::now());
        let mut arrivals = vec![(1, Duration::ZERO); 7];
        arrivals.push((2, Duration::ZERO));
        let mut table = table(&counts, &arrivals, start);
        assert!(table.take_over_share(start + GRACE_PERIOD - Duration::from_nanos(1)).is_empty());
        assert_eq!(names(&table.take_over_share(start + GRACE_PERIOD)), [1, 2, 3]);
        assert!(table.take_over_share(start + 2 * GRACE_PERIOD).is_empty());
        assert_eq!((counts.of(key(1)), counts.of(key(2))), (4, 1));
    }

    #[test]
    fn the_busiest_address_loses_a_connection() {
        let (counts, start) = (HandshakeCounts::default(), host::clock::now());
        let arrivals = [1, 2, 2, 3, 3, 3].map(|address| (address, Duration::ZERO));
        let mut table = table(&counts, &arrivals, start);
        // A handshake that a session's thread completes counts, but stays.
        let authenticating = counts.ticket(key(2));
        let order: Vec<u64> =
            std::iter::from_fn(|| table.take_from_busiest().map(|(arrival, _)| arrival)).collect();
        assert_eq!(order, [2, 4, 3, 5, 1, 6]);
        assert_eq!((authenticating.key(), counts.total()), (key(2), 1));
        drop(authenticating);
        assert_eq!(counts.total(), 0);
    }
}
