//! Results that visitors keep on the server and share by a link.
//!
//! ```text
//!  run ends ─> offered, in memory, for minutes ─> the visitor asks ─> Store (SQLite)
//! ```
//!
//! A kept result has an ID of 128 random bits, which is its link, and a secret with which its visitor
//! can delete it. Nothing that identifies the visitor is stored: how much an address has kept on a day
//! is in memory only. Whatever goes wrong here ends no run.

mod routes;
mod store;
#[cfg(test)]
mod tests;

pub(crate) use routes::{is_result, routes};
pub(crate) use store::{Kept, StoreError};

use crate::{WebLimits, id};
use host::address_key::AddressKey;
use host::lock::lock;
use host::{clock, random};
use serde::Serialize;
use std::collections::{HashMap, VecDeque};
use std::path::Path;
use std::sync::Mutex;
use std::time::{Duration, Instant};
use store::Store;

/// The schema of a kept run.
pub(crate) const SCHEMA: &str = "longhaul.web-run/1";
/// Finished runs that may still be kept, the time for that, and their bytes of memory.
const MAX_OFFERED: usize = 256;
const OFFERED_TIME: Duration = Duration::from_secs(15 * 60);
const MAX_OFFERED_BYTES: usize = 64 << 20;
/// Addresses that are counted; further ones wait until the next day.
const MAX_ADDRESSES: usize = 65_536;
const DAY_S: u64 = 86_400;

/// The results that are kept, and those that may be.
#[derive(Debug)]
pub(crate) struct History {
    store: Mutex<Store>,
    offered: Mutex<VecDeque<Offered>>,
    today: Mutex<Today>,
    per_day: u32,
}

#[derive(Debug)]
struct Offered {
    run: String,
    since: Instant,
    kept: Kept,
}

/// Results that addresses kept today.
#[derive(Debug, Default)]
struct Today {
    day: u64,
    kept: HashMap<AddressKey, u32>,
}

/// What only the visitor gets.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct Receipt {
    pub(crate) id: String,
    pub(crate) secret: String,
}

/// A result that is not kept.
#[derive(Debug, thiserror::Error)]
pub(crate) enum KeepError {
    #[error("there is no such run, or it ended too long ago")]
    Unknown,
    #[error("too many results of this address were kept today")]
    TooMany { seconds: u32 },
    #[error("the system gives no random numbers")]
    Random,
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl History {
    /// Opens the file, or creates it.
    ///
    /// # Errors
    /// Why it cannot be used, in one sentence.
    pub(crate) fn open(file: &Path, limits: &WebLimits) -> Result<Self, StoreError> {
        Ok(History {
            store: Mutex::new(Store::open(file, limits)?),
            offered: Mutex::default(),
            today: Mutex::default(),
            per_day: limits.kept_per_day_per_address,
        })
    }

    /// Offers a finished run to be kept, for a while. The oldest offers give way.
    pub(crate) fn offer(&self, run: &str, kept: Kept) {
        let mut offered = lock(&self.offered);
        offered.retain(|offer| offer.since.elapsed() < OFFERED_TIME);
        offered.push_back(Offered { run: run.to_owned(), since: clock::now(), kept });
        let bytes = |all: &VecDeque<Offered>| all.iter().map(|one| one.kept.bytes()).sum::<usize>();
        while offered.len() > MAX_OFFERED || bytes(&offered) > MAX_OFFERED_BYTES {
            offered.pop_front();
        }
    }

    /// Keeps an offered run, once.
    ///
    /// # Errors
    /// The limit that is reached, or why it cannot be stored; it may then be tried again.
    pub(crate) fn keep(&self, run: &str, key: AddressKey) -> Result<Receipt, KeepError> {
        let offer = {
            let mut offered = lock(&self.offered);
            offered.retain(|offer| offer.since.elapsed() < OFFERED_TIME);
            let place = offered.iter().position(|offer| offer.run == run);
            let place = place.ok_or(KeepError::Unknown)?;
            self.count(key)?;
            offered.remove(place).ok_or(KeepError::Unknown)?
        };
        let stored = self.stored(&offer.kept);
        if stored.is_err() {
            if let Some(count) = lock(&self.today).kept.get_mut(&key) {
                *count = count.saturating_sub(1);
            }
            lock(&self.offered).push_front(offer);
        }
        stored
    }

    fn stored(&self, kept: &Kept) -> Result<Receipt, KeepError> {
        let random = random::secret::<16>().and_then(|id| Ok((id, random::secret::<16>()?)));
        let (id, secret) = random.map_err(|_| KeepError::Random)?;
        lock(&self.store).add(id, &secret, kept)?;
        Ok(Receipt { id: id::hexadecimal(&id), secret: id::hexadecimal(&secret) })
    }

    /// Counts a result of an address.
    fn count(&self, key: AddressKey) -> Result<(), KeepError> {
        let now = clock::unix_seconds();
        let mut today = lock(&self.today);
        if today.day != now / DAY_S {
            *today = Today { day: now / DAY_S, kept: HashMap::new() };
        }
        let has_room = today.kept.len() < MAX_ADDRESSES || today.kept.contains_key(&key);
        let count = today.kept.get(&key).copied().unwrap_or(0);
        if !has_room || count >= self.per_day {
            let seconds = u32::try_from(DAY_S - now % DAY_S).unwrap_or(u32::MAX);
            return Err(KeepError::TooMany { seconds });
        }
        today.kept.insert(key, count + 1);
        Ok(())
    }

    /// The document of a kept run; `None` if there is none of this ID.
    ///
    /// # Errors
    /// The file cannot be read.
    pub(crate) fn document(&self, id: &str) -> Result<Option<Vec<u8>>, StoreError> {
        let Some(id) = id::of_text(id) else { return Ok(None) };
        lock(&self.store).document(id)
    }

    /// The measurement of a step of it, as JSON.
    ///
    /// # Errors
    /// The file cannot be read.
    pub(crate) fn measurement(&self, id: &str, step: u32) -> Result<Option<Vec<u8>>, StoreError> {
        let Some(id) = id::of_text(id) else { return Ok(None) };
        lock(&self.store).measurement(id, step)
    }

    /// Deletes a result; `None` if there is none, false if the secret is wrong.
    ///
    /// # Errors
    /// The file cannot be written.
    pub(crate) fn remove(&self, id: &str, secret: &str) -> Result<Option<bool>, StoreError> {
        let Some(id) = id::of_text(id) else { return Ok(None) };
        let secret = id::of_text(secret).unwrap_or_default();
        lock(&self.store).remove(id, &secret)
    }
}
