//! What sessions hold of counted resources: in total, and per address.
//!
//! A session is admitted with little, and takes the rest as it uses it. One that has taken
//! nothing yet is *idle*: where a resource is short, the oldest idle session of the address with
//! the most of them is evicted for another address's. An idle session is safe for a grace period,
//! in which a client's first streams arrive, from addresses that have as many sessions as its own.

use host::address_key::AddressKey;
use std::{
    collections::{BTreeMap, HashMap},
    fmt,
    time::{Duration, Instant},
};

/// Limit of one resource.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limit {
    /// Of all sessions.
    pub all: u64,
    /// Of the sessions of one address.
    pub per_address: u64,
}

/// Whose limit is reached.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scope {
    /// That of all sessions.
    All,
    /// That of the sessions of one address.
    Address,
}

/// A request that does not fit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub struct Exceeded {
    /// Index of the resource.
    pub resource: usize,
    /// Whose limit it would exceed.
    pub scope: Scope,
}

impl fmt::Display for Exceeded {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let whose = match self.scope {
            Scope::All => "all sessions",
            Scope::Address => "one address",
        };
        write!(f, "the limit of {whose} on resource {} is reached", self.resource)
    }
}

/// An admitted session; numbers are never used again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct SessionId(u64);

/// The sessions of a server and what they hold of `N` resources.
#[derive(Debug)]
pub struct Shares<const N: usize> {
    limits: [Limit; N],
    grace_period: Duration,
    /// In order of admission.
    sessions: BTreeMap<SessionId, Session<N>>,
    /// Addresses with a session.
    accounts: HashMap<AddressKey, Account<N>>,
    held: [u64; N],
    next: u64,
}

#[derive(Debug)]
struct Session<const N: usize> {
    key: AddressKey,
    since: Instant,
    held: [u64; N],
    is_idle: bool,
}

#[derive(Debug)]
struct Account<const N: usize> {
    held: [u64; N],
    sessions: usize,
    idle: usize,
}

impl<const N: usize> Shares<N> {
    /// No sessions. An idle session may be evicted by any address once `grace_period` is over.
    #[must_use]
    pub fn new(limits: [Limit; N], grace_period: Duration) -> Self {
        let sessions = BTreeMap::new();
        let accounts = HashMap::new();
        Shares { limits, grace_period, sessions, accounts, held: [0; N], next: 0 }
    }

    /// Number of sessions.
    #[must_use]
    pub fn len(&self) -> usize {
        self.sessions.len()
    }

    /// True without sessions.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.sessions.is_empty()
    }

    /// True until the session is released or evicted.
    #[must_use]
    pub fn contains(&self, session: SessionId) -> bool {
        self.sessions.contains_key(&session)
    }

    /// Whether a session that is to hold this much could ever be served.
    ///
    /// # Errors
    /// The limit that it exceeds alone.
    pub fn allows(&self, whole: [u64; N]) -> Result<(), Exceeded> {
        let exceeded = |scope, limit: fn(&Limit) -> u64| {
            let resource = (0..N).find(|at| whole[*at] > limit(&self.limits[*at]))?;
            Some(Exceeded { resource, scope })
        };
        match exceeded(Scope::All, |limit| limit.all)
            .or_else(|| exceeded(Scope::Address, |limit| limit.per_address))
        {
            Some(exceeded) => Err(exceeded),
            None => Ok(()),
        }
    }

    /// Whether an address could take this much more now.
    ///
    /// # Errors
    /// The limit that it would exceed, whatever was evicted.
    pub fn fits(&self, key: AddressKey, more: [u64; N], now: Instant) -> Result<(), Exceeded> {
        self.room_for(key, None, more, now).map(drop)
    }

    /// Admits a session that holds `held`; it is idle. Idle sessions that were evicted for it go
    /// to `evicted`.
    ///
    /// # Errors
    /// The limit that it would exceed, whatever was evicted. Nothing has changed.
    pub fn admit(
        &mut self,
        key: AddressKey,
        held: [u64; N],
        now: Instant,
        evicted: &mut Vec<SessionId>,
    ) -> Result<SessionId, Exceeded> {
        let victims = self.room_for(key, None, held, now)?;
        self.evict(victims, evicted);
        let id = SessionId(self.next);
        self.next += 1;
        self.sessions.insert(id, Session { key, since: now, held, is_idle: true });
        let new = Account { held: [0; N], sessions: 0, idle: 0 };
        let account = self.accounts.entry(key).or_insert(new);
        account.sessions += 1;
        account.idle += 1;
        add(&mut account.held, held);
        add(&mut self.held, held);
        Ok(id)
    }

    /// Adds `more` to what a session holds, which is then no longer idle. `None` if it was
    /// evicted.
    ///
    /// # Errors
    /// As [`Shares::admit`].
    pub fn take(
        &mut self,
        id: SessionId,
        more: [u64; N],
        now: Instant,
        evicted: &mut Vec<SessionId>,
    ) -> Option<Result<(), Exceeded>> {
        let key = self.sessions.get(&id)?.key;
        let victims = match self.room_for(key, Some(id), more, now) {
            Ok(victims) => victims,
            Err(exceeded) => return Some(Err(exceeded)),
        };
        self.evict(victims, evicted);
        let session = self.sessions.get_mut(&id)?;
        let account = self.accounts.get_mut(&key)?;
        if std::mem::replace(&mut session.is_idle, false) {
            account.idle -= 1;
        }
        add(&mut session.held, more);
        add(&mut account.held, more);
        add(&mut self.held, more);
        Some(Ok(()))
    }

    /// Returns what a session held; nothing if it was evicted.
    pub fn release(&mut self, id: SessionId) {
        let Some(session) = self.sessions.remove(&id) else { return };
        subtract(&mut self.held, session.held);
        if let Some(account) = self.accounts.get_mut(&session.key) {
            subtract(&mut account.held, session.held);
            account.sessions -= 1;
            account.idle -= usize::from(session.is_idle);
            if account.sessions == 0 {
                self.accounts.remove(&session.key);
            }
        }
    }

    fn evict(&mut self, victims: Vec<SessionId>, evicted: &mut Vec<SessionId>) {
        victims.iter().for_each(|id| self.release(*id));
        evicted.extend(victims);
    }

    /// The sessions to evict so that `more` fits. `taker` is never one of them.
    fn room_for(
        &self,
        key: AddressKey,
        taker: Option<SessionId>,
        more: [u64; N],
        now: Instant,
    ) -> Result<Vec<SessionId>, Exceeded> {
        let own = self.accounts.get(&key).map_or([0; N], |account| account.held);
        let lacks = |held: [u64; N], limit: fn(&Limit) -> u64| {
            (0..N).find(|at| held[*at].saturating_add(more[*at]) > limit(&self.limits[*at]))
        };
        if let Some(resource) = lacks(own, |limit| limit.per_address) {
            return Err(Exceeded { resource, scope: Scope::Address });
        }
        let (mut held, mut victims) = (self.held, Victims::default());
        while let Some(resource) = lacks(held, |limit| limit.all) {
            let exceeded = Exceeded { resource, scope: Scope::All };
            let is_candidate = |id: SessionId, session: &Session<N>| {
                Some(id) != taker
                    && session.held[resource] > 0
                    && self.may_evict(key, session, &victims, now)
            };
            let (id, session) = self.heaviest_idle(&victims, is_candidate).ok_or(exceeded)?;
            subtract(&mut held, session.held);
            victims.add(id, session.key);
        }
        Ok(victims.ids)
    }

    /// Whether a session of `key` may take the place of an idle one.
    fn may_evict(
        &self,
        key: AddressKey,
        idle: &Session<N>,
        victims: &Victims,
        now: Instant,
    ) -> bool {
        let sessions = |key| {
            let sessions = self.accounts.get(&key).map_or(0, |account| account.sessions);
            sessions - victims.of(key)
        };
        now.saturating_duration_since(idle.since) >= self.grace_period
            || sessions(idle.key) > sessions(key) + 1
    }

    /// The oldest candidate of the address with the most idle sessions.
    fn heaviest_idle(
        &self,
        victims: &Victims,
        is_candidate: impl Fn(SessionId, &Session<N>) -> bool,
    ) -> Option<(SessionId, &Session<N>)> {
        let mut heaviest: Option<(usize, SessionId, &Session<N>)> = None;
        for (id, session) in &self.sessions {
            if !session.is_idle || victims.ids.contains(id) || !is_candidate(*id, session) {
                continue;
            }
            let idle = self.accounts.get(&session.key).map_or(0, |account| account.idle);
            let idle = idle - victims.of(session.key);
            if heaviest.is_none_or(|(most, ..)| idle > most) {
                heaviest = Some((idle, *id, session));
            }
        }
        heaviest.map(|(_, id, session)| (id, session))
    }
}

/// Sessions that are to be evicted.
#[derive(Default)]
struct Victims {
    ids: Vec<SessionId>,
    by_address: HashMap<AddressKey, usize>,
}

impl Victims {
    fn add(&mut self, id: SessionId, key: AddressKey) {
        self.ids.push(id);
        *self.by_address.entry(key).or_default() += 1;
    }

    fn of(&self, key: AddressKey) -> usize {
        self.by_address.get(&key).copied().unwrap_or(0)
    }
}

fn add<const N: usize>(to: &mut [u64; N], more: [u64; N]) {
    to.iter_mut().zip(more).for_each(|(to, more)| *to += more);
}

fn subtract<const N: usize>(from: &mut [u64; N], less: [u64; N]) {
    from.iter_mut().zip(less).for_each(|(from, less)| *from -= less);
}
