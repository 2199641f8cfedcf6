//! Limits on concurrent streams of a server: in total, and per address.

use host::address_key::AddressKey;
use host::lock::lock;
use problem::Field;
use std::collections::HashMap;
use std::fmt;
use std::net::IpAddr;
use std::sync::{Mutex, MutexGuard};

/// The limits, and the slots in use.
pub(crate) struct StreamSlots {
    most: u32,
    most_per_address: u32,
    in_use: Mutex<InUse>,
}

#[derive(Default)]
struct InUse {
    all: u32,
    /// Only addresses with a stream.
    by_address: HashMap<AddressKey, u32>,
}

/// The limit that is reached.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum LimitReached {
    /// Streams in total.
    Total,
    /// Streams per address.
    Address(AddressKey),
}

impl fmt::Display for LimitReached {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            LimitReached::Total => write!(
                f,
                "server busy: all stream slots are in use; wait, or raise {}",
                Field::MaxStreams
            ),
            LimitReached::Address(key) => write!(
                f,
                "server busy: {key} has the maximum number of streams; wait, or raise {}",
                Field::MaxPerAddress
            ),
        }
    }
}

/// A slot, released when dropped.
pub(crate) struct Slot<'p> {
    slots: &'p StreamSlots,
    key: AddressKey,
}

impl StreamSlots {
    pub(crate) fn new(most: u32, most_per_address: u32) -> Self {
        StreamSlots { most, most_per_address, in_use: Mutex::default() }
    }

    fn in_use(&self) -> MutexGuard<'_, InUse> {
        lock(&self.in_use)
    }

    /// Takes a slot for a stream of `address`.
    pub(crate) fn take(&self, address: IpAddr) -> Result<Slot<'_>, LimitReached> {
        let key = AddressKey::of(address);
        let mut in_use = self.in_use();
        if in_use.all >= self.most {
            return Err(LimitReached::Total);
        }
        let count = in_use.by_address.entry(key).or_default();
        if *count >= self.most_per_address {
            return Err(LimitReached::Address(key));
        }
        *count += 1;
        in_use.all += 1;
        Ok(Slot { slots: self, key })
    }
}

impl Drop for Slot<'_> {
    fn drop(&mut self) {
        let mut in_use = self.slots.in_use();
        in_use.all = in_use.all.saturating_sub(1);
        if let Some(count) = in_use.by_address.get_mut(&self.key) {
            *count -= 1;
            if *count == 0 {
                in_use.by_address.remove(&self.key);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slots_are_limited_per_address_and_in_total() {
        let slots = StreamSlots::new(3, 2);
        let [one, same, other]: [IpAddr; 3] =
            ["2001:db8::1", "2001:db8::2", "192.0.2.1"].map(|text| text.parse().unwrap());
        let first = slots.take(one).ok().unwrap();
        let second = slots.take(same).ok().unwrap();
        assert_eq!(slots.take(one).err(), Some(LimitReached::Address(AddressKey::of(one))));
        let third = slots.take(other).ok().unwrap();
        assert_eq!(slots.take(other).err(), Some(LimitReached::Total));
        drop((first, third));
        let again = slots.take(same).ok().unwrap();
        drop((second, again));
        assert!(slots.in_use().by_address.is_empty(), "no address is kept");
        assert_eq!(slots.in_use().all, 0);
    }
}
