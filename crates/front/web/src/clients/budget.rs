//! Limits of transfers: how many run, and how many bytes they take in an hour, per address and in
//! all. Without a clock.

use crate::WebLimits;
use host::address_key::AddressKey;
use std::collections::HashMap;
use std::time::{Duration, Instant};
use units::ByteCount;

/// Addresses that are remembered.
const MAX_ADDRESSES: usize = 1 << 16;

/// The time in which a budget of bytes is restored.
const HOUR: Duration = Duration::from_hours(1);

/// A transfer that may not begin.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Refused {
    pub(crate) why: &'static str,
    pub(crate) retry_after: Duration,
}

/// Bytes taken, of which an hour's budget is given back each hour.
#[derive(Debug, Clone, Copy)]
struct Account {
    taken: f64,
    at: Instant,
    running: u32,
}

impl Account {
    fn new(now: Instant) -> Self {
        Account { taken: 0.0, at: now, running: 0 }
    }

    /// Gives back what the time since the last call restored.
    fn restore(&mut self, budget: ByteCount, now: Instant) {
        let since = now.saturating_duration_since(self.at).as_secs_f64();
        self.taken = (self.taken - budget.bytes() as f64 * since / HOUR.as_secs_f64()).max(0.0);
        self.at = self.at.max(now);
    }

    /// Whether a transfer more may run.
    fn check(&mut self, limit: u32, budget: ByteCount, now: Instant) -> Result<(), Duration> {
        self.restore(budget, now);
        if self.running >= limit {
            return Err(Duration::from_secs(10));
        }
        // A tenth of the budget, or every retry would find a byte and no more.
        let over = self.taken - 0.9 * budget.bytes() as f64;
        if self.taken < budget.bytes() as f64 {
            return Ok(());
        }
        Err(HOUR.mul_f64((over / budget.bytes().max(1) as f64).clamp(1e-3, 24.0)))
    }
}

/// The transfers that run, and the bytes of the last hour.
#[derive(Debug)]
pub(crate) struct Budget {
    limits: WebLimits,
    all: Account,
    addresses: HashMap<AddressKey, Account>,
}

impl Budget {
    pub(crate) fn new(limits: WebLimits, now: Instant) -> Self {
        Budget { limits, all: Account::new(now), addresses: HashMap::new() }
    }

    /// Counts a transfer until [`Budget::end`].
    ///
    /// # Errors
    /// Why it may not begin, and when to ask again.
    pub(crate) fn begin(&mut self, key: AddressKey, now: Instant) -> Result<(), Refused> {
        let limits = self.limits;
        let refused = |why| move |retry_after| Refused { why, retry_after };
        self.all
            .check(limits.transfers, limits.bytes_per_hour, now)
            .map_err(refused("the server is busy"))?;
        self.make_room(key, now);
        let account = self.addresses.entry(key).or_insert_with(|| Account::new(now));
        account
            .check(limits.transfers_per_address, limits.bytes_per_hour_per_address, now)
            .map_err(refused("your address has reached its limit"))?;
        account.running += 1;
        self.all.running += 1;
        Ok(())
    }

    /// Takes bytes of a transfer that runs; false once its address or the server has none left.
    pub(crate) fn take(&mut self, key: AddressKey, bytes: u64) -> bool {
        self.all.taken += bytes as f64;
        let Some(account) = self.addresses.get_mut(&key) else { return false };
        account.taken += bytes as f64;
        account.taken <= self.limits.bytes_per_hour_per_address.bytes() as f64
            && self.all.taken <= self.limits.bytes_per_hour.bytes() as f64
    }

    /// Transfers that run.
    pub(crate) fn running(&self) -> usize {
        self.all.running as usize
    }

    /// Ends a transfer.
    pub(crate) fn end(&mut self, key: AddressKey) {
        self.all.running = self.all.running.saturating_sub(1);
        if let Some(account) = self.addresses.get_mut(&key) {
            account.running = account.running.saturating_sub(1);
        }
    }

    /// Forgets addresses that owe nothing, and then the one that owes least.
    fn make_room(&mut self, key: AddressKey, now: Instant) {
        if self.addresses.len() < MAX_ADDRESSES || self.addresses.contains_key(&key) {
            return;
        }
        let budget = self.limits.bytes_per_hour_per_address;
        self.addresses.retain(|_, account| {
            account.restore(budget, now);
            account.running > 0 || account.taken > 0.0
        });
        if self.addresses.len() < MAX_ADDRESSES {
            return;
        }
        let idle = self.addresses.iter().filter(|(_, account)| account.running == 0);
        let least = idle.min_by(|a, b| a.1.taken.total_cmp(&b.1.taken)).map(|(key, _)| *key);
        if let Some(least) = least {
            self.addresses.remove(&least);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::IpAddr;

    fn limits() -> WebLimits {
        WebLimits {
            transfers: 3,
            transfers_per_address: 2,
            bytes_per_hour: ByteCount::from_bytes(5000),
            bytes_per_hour_per_address: ByteCount::from_bytes(3600),
            ..WebLimits::default()
        }
    }

    fn key(last: u32) -> AddressKey {
        AddressKey::of(IpAddr::V4(last.into()))
    }

    fn why(result: Result<(), Refused>) -> (&'static str, u64) {
        let refused = result.unwrap_err();
        (refused.why, refused.retry_after.as_secs())
    }

    #[test]
    fn transfers_are_counted_until_they_end() {
        let now = host::clock::now();
        let mut budget = Budget::new(limits(), now);
        assert_eq!([1, 1, 2].map(|last| budget.begin(key(last), now)), [Ok(()); 3]);
        assert_eq!(why(budget.begin(key(2), now)), ("the server is busy", 10));
        budget.end(key(2));
        assert_eq!(why(budget.begin(key(1), now)), ("your address has reached its limit", 10));
        budget.end(key(1));
        assert_eq!(budget.begin(key(1), now), Ok(()));
    }

    #[test]
    fn bytes_are_given_back_in_an_hour() {
        let now = host::clock::now();
        let mut budget = Budget::new(limits(), now);
        budget.begin(key(1), now).unwrap();
        assert!(budget.take(key(1), 3600));
        assert!(!budget.take(key(1), 1));
        budget.end(key(1));
        let (_, seconds) = why(budget.begin(key(1), now));
        assert_eq!(seconds, 361, "a tenth of the hour, and a byte");
        assert_eq!(budget.begin(key(2), now), Ok(()), "another address");
        assert_eq!(budget.begin(key(1), now + Duration::from_secs(seconds)), Ok(()));
        assert!(budget.take(key(1), 300));
        assert!(!budget.take(key(1), 100));
    }

    #[test]
    fn the_whole_has_a_budget_too() {
        let now = host::clock::now();
        let mut budget = Budget::new(limits(), now);
        for last in [1, 2] {
            budget.begin(key(last), now).unwrap();
            budget.take(key(last), 2600);
        }
        assert!(!budget.take(key(2), 1));
        assert_eq!(why(budget.begin(key(3), now)).0, "the server is busy");
    }

    #[test]
    fn addresses_are_bounded_and_those_that_owe_most_are_kept() {
        let now = host::clock::now();
        let bytes_per_hour = ByteCount::from_bytes(u64::MAX);
        let mut budget = Budget::new(WebLimits { bytes_per_hour, ..limits() }, now);
        for last in 0..=MAX_ADDRESSES as u32 {
            budget.begin(key(last), now).unwrap();
            budget.take(key(last), if last == 0 { 3600 } else { 1 });
            budget.end(key(last));
        }
        assert_eq!(budget.addresses.len(), MAX_ADDRESSES);
        assert!(budget.begin(key(0), now).is_err(), "nobody is forgiven by a flood");
    }
}
