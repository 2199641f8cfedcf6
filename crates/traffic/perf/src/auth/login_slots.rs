//! Limits concurrent logins: each costs an RSA operation, and anyone may request one.

use host::address_key::AddressKey;
use host::{clock, cpu, lock};
use std::{
    collections::HashMap,
    net::IpAddr,
    sync::{Condvar, Mutex, MutexGuard},
    time::Duration,
};

/// Slots for private-key operations.
#[derive(Debug)]
pub(super) struct LoginSlots {
    most: usize,
    taken: Mutex<HashMap<AddressKey, usize>>,
    freed: Condvar,
}

/// A slot, freed on drop.
#[derive(Debug)]
pub(super) struct LoginSlot<'a> {
    slots: &'a LoginSlots,
    key: AddressKey,
}

impl LoginSlots {
    /// One per core, at least two: no address may take all of them.
    pub(super) fn for_cores() -> Self {
        LoginSlots::new(usize::try_from(cpu::cores()).unwrap_or(1))
    }

    fn new(most: usize) -> Self {
        LoginSlots { most: most.max(2), taken: Mutex::default(), freed: Condvar::new() }
    }

    /// Takes a slot, waiting at most `timeout`. One address, or one IPv6 /64, gets
    /// at most half of them.
    pub(super) fn take(&self, address: IpAddr, timeout: Duration) -> Option<LoginSlot<'_>> {
        let key = AddressKey::of(address);
        let until = clock::now() + timeout;
        let mut taken = self.taken();
        loop {
            let own = taken.get(&key).copied().unwrap_or(0);
            if taken.values().sum::<usize>() < self.most && own < self.most / 2 {
                taken.insert(key, own + 1);
                return Some(LoginSlot { slots: self, key });
            }
            let left = until.saturating_duration_since(clock::now());
            if left.is_zero() {
                return None;
            }
            taken = lock::wait_timeout(&self.freed, taken, left);
        }
    }

    fn taken(&self) -> MutexGuard<'_, HashMap<AddressKey, usize>> {
        lock::lock(&self.taken)
    }
}

impl Drop for LoginSlot<'_> {
    fn drop(&mut self) {
        let mut taken = self.slots.taken();
        match taken.get_mut(&self.key) {
            Some(count) if *count > 1 => *count -= 1,
            _ => {
                taken.remove(&self.key);
            }
        }
        drop(taken);
        self.slots.freed.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_address_cannot_take_all_slots() {
        let slots = LoginSlots::new(4);
        let take = |text: &str| slots.take(text.parse().unwrap(), Duration::ZERO);
        let held = (take("192.0.2.1").unwrap(), take("::ffff:192.0.2.1").unwrap());
        assert!(take("192.0.2.1").is_none());
        let third = take("2001:db8::1").unwrap();
        let fourth = take("2001:db8::ffff:2").unwrap();
        assert!(take("2001:db8:0:1::1").is_none(), "all are taken");
        drop(third);
        assert!(take("192.0.2.1").is_none() && take("2001:db8:0:1::1").is_some());
        drop((held, fourth));
        assert!(slots.taken().is_empty() && take("192.0.2.1").is_some());
    }
}
