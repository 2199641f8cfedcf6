//! What an edge has served, and from where.

use crate::access_log::{CacheStatus, Entry, Subject};
use std::collections::BTreeMap;
use units::ByteCount;

/// Sums over the lines of an access log.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Totals {
    /// Requests by the status of their first slice; those that were refused have none.
    pub requests: BTreeMap<Option<CacheStatus>, u64>,
    /// Further slices by their status.
    pub slices: BTreeMap<CacheStatus, u64>,
    /// Requests that were answered with a status of 500 or more.
    pub failed: u64,
    /// Body bytes sent to clients.
    pub sent: ByteCount,
    /// Bytes received from the origin, with headers.
    pub fetched: ByteCount,
    /// Lines that could not be read.
    pub unread: u64,
}

impl Totals {
    /// Adds a line.
    pub fn add(&mut self, line: &[u8]) {
        let Some(entry) = Entry::parse(line) else {
            self.unread = self.unread.saturating_add(1);
            return;
        };
        let plus = |one: ByteCount, other: ByteCount| {
            ByteCount::from_bytes(one.bytes().saturating_add(other.bytes()))
        };
        self.fetched = plus(self.fetched, entry.fetched);
        match entry.subject {
            Subject::Request { status, sent } => {
                self.sent = plus(self.sent, sent);
                self.failed = self.failed.saturating_add(u64::from(status >= 500));
                let count = self.requests.entry(entry.cache).or_default();
                *count = count.saturating_add(1);
            }
            Subject::Slice => {
                if let Some(cache) = entry.cache {
                    let count = self.slices.entry(cache).or_default();
                    *count = count.saturating_add(1);
                }
            }
        }
    }

    /// All requests.
    #[must_use]
    pub fn all(&self) -> u64 {
        self.requests.values().fold(0, |sum, count| sum.saturating_add(*count))
    }

    /// Requests whose first slice had that status.
    #[must_use]
    pub fn with(&self, status: CacheStatus) -> u64 {
        self.requests.get(&Some(status)).copied().unwrap_or(0)
    }

    /// Requests whose first slice came from the cache.
    #[must_use]
    pub fn from_cache(&self) -> u64 {
        let cached = CacheStatus::ALL.into_iter().filter(|status| status.is_from_cache());
        cached.map(|status| self.with(status)).fold(0, u64::saturating_add)
    }

    /// Body bytes that clients got from the cache: what was sent beyond what was fetched.
    #[must_use]
    pub const fn cached_bytes(&self) -> ByteCount {
        ByteCount::from_bytes(self.sent.bytes().saturating_sub(self.fetched.bytes()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slices_are_no_requests_and_broken_lines_are_counted() {
        let mut totals = Totals::default();
        for line in [
            "200\tMISS\t2000\t1100\t80",
            "200\tMISS\t1900\t1000\t0",
            "200\tHIT\t2000\t\t80",
            "200\tHIT\t1000\t\t0",
            "502\tMISS\t157\t0\t80",
            "403\t\t150\t\t90",
            "nonsense",
        ] {
            totals.add(line.as_bytes());
        }
        assert_eq!((totals.all(), totals.from_cache(), totals.failed), (4, 1, 1));
        assert_eq!((totals.with(CacheStatus::Miss), totals.unread), (2, 1));
        assert_eq!(totals.slices, [(CacheStatus::Hit, 1), (CacheStatus::Miss, 1)].into());
        assert_eq!((totals.sent.bytes(), totals.fetched.bytes()), (4307, 2100));
        assert_eq!(totals.cached_bytes().bytes(), 2207);
    }

    #[test]
    fn sums_saturate() {
        let mut totals = Totals::default();
        for _ in 0..2 {
            totals.add(b"200\tHIT\t18446744073709551615\t18446744073709551615\t9");
        }
        assert_eq!((totals.sent.bytes(), totals.cached_bytes().bytes()), (u64::MAX, 0));
    }
}
