//! Replay protection: used proofs, remembered until they expire.

use std::collections::{BTreeSet, HashMap};

/// Identifies a proof: an HMAC, or the SHA-256 of an encrypted login.
pub(super) type Digest = [u8; 32];

/// Used proofs, by the token or user that owns them, with a limit per owner: a
/// client that knows one token cannot fill the share of others.
#[derive(Debug)]
pub(super) struct ReplayCache {
    most_per_owner: usize,
    /// Each proof with the last second at which it would be accepted.
    by_expiry: BTreeSet<(u64, Digest)>,
    owners: HashMap<Digest, usize>,
    counts: HashMap<usize, usize>,
}

/// Why a proof is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Replay {
    /// It was used before.
    Used,
    /// The owner's limit is reached.
    Full,
}

impl ReplayCache {
    pub(super) fn new(most_per_owner: usize) -> Self {
        ReplayCache {
            most_per_owner,
            by_expiry: BTreeSet::new(),
            owners: HashMap::new(),
            counts: HashMap::new(),
        }
    }

    /// Whether a proof was used.
    pub(super) fn contains(&self, digest: &Digest) -> bool {
        self.owners.contains_key(digest)
    }

    /// Uses a proof of `owner` that would be accepted up to and including the
    /// second `expires`; what expired before `now` is forgotten.
    pub(super) fn insert(
        &mut self,
        owner: usize,
        digest: Digest,
        expires: u64,
        now: u64,
    ) -> Result<(), Replay> {
        while let Some(&(expired, old)) = self.by_expiry.first() {
            if expired >= now {
                break;
            }
            self.by_expiry.pop_first();
            if let Some(count) = self.owners.remove(&old).and_then(|o| self.counts.get_mut(&o)) {
                *count -= 1;
            }
        }
        if self.contains(&digest) {
            return Err(Replay::Used);
        }
        let count = self.counts.entry(owner).or_default();
        if *count >= self.most_per_owner {
            return Err(Replay::Full);
        }
        *count += 1;
        self.owners.insert(digest, owner);
        self.by_expiry.insert((expires, digest));
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_owner_cannot_lock_out_another() {
        let mut cache = ReplayCache::new(2);
        let digest = |byte| [byte; 32];
        assert_eq!(cache.insert(0, digest(1), 100, 50), Ok(()));
        assert_eq!(cache.insert(0, digest(1), 100, 50), Err(Replay::Used));
        assert_eq!(cache.insert(1, digest(1), 100, 50), Err(Replay::Used));
        assert_eq!(cache.insert(0, digest(2), 101, 50), Ok(()));
        assert_eq!(cache.insert(0, digest(3), 101, 100), Err(Replay::Full));
        assert_eq!(cache.insert(1, digest(3), 101, 100), Ok(()));
        assert!(cache.contains(&digest(1)), "it would be accepted in this second still");
        assert_eq!(cache.insert(0, digest(4), 101, 101), Ok(()));
        assert!(!cache.contains(&digest(1)));
        assert_eq!(cache.insert(0, digest(5), 200, 150), Ok(()));
        assert_eq!((cache.owners.len(), cache.by_expiry.len()), (1, 1));
    }
}
