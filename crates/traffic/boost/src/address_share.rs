//! A limit that no single address uses up: what an address may have shrinks with the room that is
//! left, so there is always some for the next one (dynamic thresholds: Choudhury and Hahne, IEEE/ACM
//! Transactions on Networking 6(2), 1998).

use host::address_key::AddressKey;
use host::lock::lock;
use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::net::IpAddr;
use std::sync::{Arc, Mutex};

/// An address may have up to so many times the room that is left: one alone up to 7/8 of the limit,
/// two up to 7/15 each.
const SHARE: u64 = 7;

/// The reason that there is no room.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Full {
    /// For any address.
    Limit,
    /// For this address.
    Share,
}

#[derive(Debug, Default)]
struct Counts {
    total: u64,
    /// Without those of loopback addresses.
    by_address: HashMap<AddressKey, u64>,
}

/// Counts what addresses have, up to a limit.
#[derive(Debug, Clone)]
pub(crate) struct AddressShares {
    limit: u64,
    counts: Arc<Mutex<Counts>>,
}

/// Counts one of an address until it is dropped.
#[derive(Debug)]
pub(crate) struct ShareTicket {
    counts: Arc<Mutex<Counts>>,
    key: Option<AddressKey>,
}

impl AddressShares {
    pub(crate) fn new(limit: u64) -> Self {
        AddressShares { limit, counts: Arc::default() }
    }

    /// Counts one more of an address. Loopback addresses have no share: all programs of this host
    /// have the same.
    ///
    /// # Errors
    /// There is no room.
    pub(crate) fn take(&self, address: IpAddr) -> Result<ShareTicket, Full> {
        let address = address.to_canonical();
        let key = (!address.is_loopback()).then(|| AddressKey::of(address));
        let mut counts = lock(&self.counts);
        let room = self.limit.saturating_sub(counts.total);
        if room == 0 {
            return Err(Full::Limit);
        }
        if let Some(key) = key {
            let own = counts.by_address.get(&key).copied().unwrap_or_default();
            if own >= room.saturating_mul(SHARE) {
                return Err(Full::Share);
            }
            counts.by_address.insert(key, own + 1);
        }
        counts.total += 1;
        drop(counts);
        Ok(ShareTicket { counts: Arc::clone(&self.counts), key })
    }
}

impl Drop for ShareTicket {
    fn drop(&mut self) {
        let mut counts = lock(&self.counts);
        counts.total -= 1;
        if let Some(key) = self.key
            && let Entry::Occupied(mut count) = counts.by_address.entry(key)
        {
            *count.get_mut() -= 1;
            if *count.get() == 0 {
                count.remove();
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fill(shares: &AddressShares, address: &str) -> (Vec<ShareTicket>, Full) {
        let address = address.parse().unwrap();
        let mut tickets = Vec::new();
        loop {
            match shares.take(address) {
                Ok(ticket) => tickets.push(ticket),
                Err(full) => return (tickets, full),
            }
        }
    }

    #[test]
    fn an_address_leaves_room_for_the_next_one() {
        let shares = AddressShares::new(20_000);
        let (first, full) = fill(&shares, "192.0.2.1");
        assert_eq!((first.len(), full), (17_500, Full::Share));
        let (second, _) = fill(&shares, "2001:db8::1");
        assert!(second.len() > 2000, "{}", second.len());
        assert!(shares.take("2001:db8::2".parse().unwrap()).is_err(), "the same /64");
        // However many have taken their share.
        let others: Vec<_> = (1..100).map(|n| fill(&shares, &format!("198.51.100.{n}"))).collect();
        assert!(others.iter().take(3).all(|(tickets, _)| !tickets.is_empty()));
        // What is given back is shared out among those that have less.
        drop(first);
        assert!(shares.take("192.0.2.2".parse().unwrap()).is_ok());
        drop((second, others));
        assert_eq!(fill(&shares, "192.0.2.3").0.len(), 17_500);
    }

    #[test]
    fn programs_of_this_host_have_all() {
        for limit in [0, 1, 100] {
            let shares = AddressShares::new(limit);
            let (tickets, full) = fill(&shares, "127.0.0.1");
            assert_eq!((tickets.len() as u64, full), (limit, Full::Limit));
            drop(tickets);
            assert!(fill(&shares, "::1").0.len() as u64 == limit);
            // The last tickets are dropped with their addresses.
            assert!(lock(&shares.counts).by_address.is_empty());
        }
    }
}
