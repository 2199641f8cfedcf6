//! The shares of addresses under any sequence of requests, beside a model that knows only what
//! each session holds and says who may be refused or evicted.

#![expect(clippy::unwrap_used, reason = "in a test an unwrap is an assertion")]

use connection_limits::{Exceeded, Limit, Scope, SessionId, Shares};
use host::address_key::AddressKey;
use proptest::prelude::*;
use std::time::{Duration, Instant};

const GRACE: Duration = Duration::from_secs(2);

/// Sessions, streams, memory.
const LIMITS: [Limit; 3] = [
    Limit { all: 8, per_address: 4 },
    Limit { all: 24, per_address: 12 },
    Limit { all: 200, per_address: 100 },
];
/// What a session holds when it is admitted.
const SESSION: [u64; 3] = [1, 0, 5];

#[derive(Debug, Clone)]
enum Step {
    /// A client of an address connects, and its parameters arrive.
    Connect(u8),
    /// A stream of a session arrives, with buffers.
    Stream(prop::sample::Index, u64),
    /// Nothing happens for some milliseconds.
    Wait(u64),
    /// A session ends.
    End(prop::sample::Index),
}

#[derive(Debug, Clone)]
struct Modelled {
    id: SessionId,
    address: u8,
    since: Instant,
    held: [u64; 3],
    is_idle: bool,
}

struct Model {
    shares: Shares<3>,
    sessions: Vec<Modelled>,
    now: Instant,
    /// Refusals and evictions of each address.
    refused: [usize; 8],
    evicted: [usize; 8],
}

fn key(address: u8) -> AddressKey {
    AddressKey::of([192, 0, 2, address].into())
}

fn sum(sessions: &[&Modelled]) -> [u64; 3] {
    sessions
        .iter()
        .fold([0; 3], |sum, session| std::array::from_fn(|at| sum[at] + session.held[at]))
}

impl Model {
    fn new() -> Self {
        let now = host::clock::now();
        let shares = Shares::new(LIMITS, GRACE);
        Model { shares, sessions: Vec::new(), now, refused: [0; 8], evicted: [0; 8] }
    }

    fn of(&self, address: u8) -> Vec<&Modelled> {
        self.sessions.iter().filter(|session| session.address == address).collect()
    }

    /// Whether an idle session may make way for one of `address`.
    fn yields(&self, idle: &Modelled, address: u8) -> bool {
        idle.is_idle
            && (self.now - idle.since >= GRACE
                || self.of(idle.address).len() > self.of(address).len() + 1)
    }

    /// Who may be refused: an address beyond its share, or where the sessions that do not yield
    /// leave too little.
    fn check_refusal(
        &mut self,
        address: u8,
        taker: Option<SessionId>,
        more: [u64; 3],
        refusal: Exceeded,
    ) {
        self.refused[usize::from(address)] += 1;
        let Exceeded { resource, scope } = refusal;
        match scope {
            Scope::Address => {
                let own = sum(&self.of(address))[resource];
                assert!(own + more[resource] > LIMITS[resource].per_address, "within its share");
            }
            Scope::All => {
                let staying = self.staying(address, taker);
                let left = sum(&staying)[resource];
                assert!(left + more[resource] > LIMITS[resource].all, "there was room");
                // Whichever address is left out, the others need more than the rest of its share.
                for one in 0..8 {
                    let others = |session: &&&Modelled| session.address != one;
                    let others: Vec<&Modelled> = staying.iter().filter(others).copied().collect();
                    let rest = LIMITS[resource].all - LIMITS[resource].per_address;
                    let needed = sum(&others)[resource] + more[resource];
                    assert!(one == address || needed > rest, "refused because of {one}");
                }
            }
        }
    }

    /// The sessions that do not make way for one of `address`, however much it needs.
    fn staying(&self, address: u8, taker: Option<SessionId>) -> Vec<&Modelled> {
        let is_old = |session: &&Modelled| {
            session.is_idle && self.now - session.since >= GRACE && Some(session.id) != taker
        };
        let safe = |address| self.of(address).iter().filter(|session| !is_old(session)).count();
        let own = safe(address);
        let mut staying = Vec::new();
        for other in 0..8 {
            // Recent ones yield while their address has more than the other then will have.
            let mut excess = if other == address { 0 } else { safe(other).saturating_sub(own + 1) };
            for session in self.of(other) {
                if is_old(&session) || (session.is_idle && excess > 0) {
                    excess -= usize::from(!is_old(&session));
                } else {
                    staying.push(session);
                }
            }
        }
        staying
    }

    fn check_eviction(
        &mut self,
        evicted: &[SessionId],
        address: u8,
        more: [u64; 3],
        taker: Option<SessionId>,
    ) {
        for id in evicted {
            let all = sum(&self.sessions.iter().collect::<Vec<_>>());
            assert!((0..3).any(|at| all[at] + more[at] > LIMITS[at].all), "evicted beside room");
            let at = self.sessions.iter().position(|session| session.id == *id).unwrap();
            let victim = self.sessions[at].clone();
            assert_ne!(Some(victim.id), taker, "evicted for itself");
            let idle = |address| self.of(address).iter().filter(|s| s.is_idle).count();
            assert!(self.yields(&victim, address), "it had streams, or was safe: {victim:?}");
            let candidates = self.sessions.iter().filter(|other| Some(other.id) != taker);
            for other in candidates.filter(|other| self.yields(other, address)) {
                assert!(idle(other.address) <= idle(victim.address), "not the heaviest");
                assert!(
                    idle(other.address) < idle(victim.address) || other.id >= victim.id,
                    "not the oldest"
                );
            }
            self.evicted[usize::from(victim.address)] += 1;
            self.sessions.remove(at);
        }
    }

    fn connect(&mut self, address: u8) {
        let (mut evicted, now) = (Vec::new(), self.now);
        let fits = self.shares.fits(key(address), SESSION, now);
        let admitted = self.shares.admit(key(address), SESSION, now, &mut evicted);
        assert_eq!(fits.err(), admitted.err());
        match admitted {
            Ok(id) => {
                self.check_eviction(&evicted, address, SESSION, None);
                let held = SESSION;
                self.sessions.push(Modelled { id, address, since: now, held, is_idle: true });
            }
            Err(refusal) => self.check_refusal(address, None, SESSION, refusal),
        }
    }

    fn stream(&mut self, at: usize, memory: u64) {
        let (Modelled { id, address, .. }, more) = (self.sessions[at].clone(), [0, 1, memory]);
        let mut evicted = Vec::new();
        match self.shares.take(id, more, self.now, &mut evicted).unwrap() {
            Ok(()) => {
                self.check_eviction(&evicted, address, more, Some(id));
                let session = self.sessions.iter_mut().find(|session| session.id == id).unwrap();
                session.is_idle = false;
                session.held = std::array::from_fn(|at| session.held[at] + more[at]);
            }
            Err(refusal) => {
                self.check_refusal(address, Some(id), more, refusal);
                // Its test ends.
                self.end(at);
            }
        }
    }

    fn end(&mut self, at: usize) {
        let ended = self.sessions.remove(at);
        self.shares.release(ended.id);
        self.shares.release(ended.id);
    }

    /// One step; sessions are chosen among those of `address`, or among all.
    fn step(&mut self, step: &Step, address: Option<u8>) {
        let is_meant = |session: &Modelled| address.is_none_or(|one| session.address == one);
        let meant: Vec<usize> =
            (0..self.sessions.len()).filter(|at| is_meant(&self.sessions[*at])).collect();
        let chosen = |at: &prop::sample::Index| (!meant.is_empty()).then(|| *at.get(&meant));
        match step {
            Step::Connect(address) => self.connect(*address),
            Step::Stream(at, memory) => {
                if let Some(at) = chosen(at) {
                    self.stream(at, *memory);
                }
            }
            Step::End(at) => {
                if let Some(at) = chosen(at) {
                    self.end(at);
                }
            }
            Step::Wait(milliseconds) => self.now += Duration::from_millis(*milliseconds),
        }
        self.check();
    }

    fn check(&self) {
        assert_eq!(self.shares.len(), self.sessions.len());
        assert!(self.sessions.iter().all(|session| self.shares.contains(session.id)));
        let within = |held: [u64; 3], limit: fn(&Limit) -> u64| {
            (0..3).all(|at| held[at] <= limit(&LIMITS[at]))
        };
        assert!(within(sum(&self.sessions.iter().collect::<Vec<_>>()), |limit| limit.all));
        for address in 0..8 {
            assert!(within(sum(&self.of(address)), |limit| limit.per_address));
        }
    }
}

fn step(addresses: std::ops::Range<u8>) -> impl Strategy<Value = Step> {
    let index = any::<prop::sample::Index>;
    prop_oneof![
        4 => addresses.prop_map(Step::Connect),
        4 => (index(), 0..60_u64).prop_map(|(at, memory)| Step::Stream(at, memory)),
        1 => (0..1500_u64).prop_map(Step::Wait),
        1 => index().prop_map(Step::End),
    ]
}

proptest! {
    #[test]
    fn only_those_are_refused_or_evicted_who_may_be(
        steps in prop::collection::vec(step(0..8), 0..200),
    ) {
        let mut model = Model::new();
        steps.iter().for_each(|step| model.step(step, None));
        while !model.sessions.is_empty() {
            model.end(0);
        }
        prop_assert!(model.shares.is_empty());
        prop_assert_eq!(model.shares.allows(LIMITS.map(|limit| limit.per_address)), Ok(()));
    }

    #[test]
    fn one_address_never_disturbs_another(
        steps in prop::collection::vec(step(0..1), 0..120),
        tests in 1..=4_u8,
        waits in 0..3_000_u64,
    ) {
        // Whatever address 0 has done, and does between any two steps, address 1 gets its share.
        let mut model = Model::new();
        let mut attack = steps.iter();
        let mut attacked = |model: &mut Model| {
            attack.by_ref().take(7).for_each(|step| model.step(step, Some(0)));
        };
        attacked(&mut model);
        for _ in 0..tests {
            model.connect(1);
            attacked(&mut model);
            model.step(&Step::Wait(waits), None);
            for _ in 0..3 {
                attacked(&mut model);
                model.connect(0);
                let at = model.sessions.iter().rposition(|session| session.address == 1);
                let at = at.unwrap();
                model.stream(at, 6);
            }
        }
        prop_assert_eq!((model.refused[1], model.evicted[1]), (0, 0));
    }
}

#[test]
fn idle_sessions_of_many_addresses_refuse_nobody() {
    let mut model = Model::new();
    for address in 0..4 {
        (0..2).for_each(|_| model.connect(address));
    }
    assert_eq!(model.shares.len(), 8);
    // Others have two each: the oldest makes way at once, and the others after the grace period.
    model.connect(4);
    assert_eq!((model.refused[4], model.evicted[0]), (0, 1));
    model.stream(7, 1);
    // One session each is safe while its streams may be on their way.
    (0..2).for_each(|address| model.connect(5 + address));
    assert_eq!(model.evicted, [1, 1, 1, 0, 0, 0, 0, 0]);
    model.connect(7);
    assert_eq!((model.refused[7], model.evicted[3]), (0, 1));
    model.connect(4);
    assert_eq!(model.refused[4], 1, "each of the others has one, and it has one with a stream");
    model.step(&Step::Wait(2000), None);
    model.connect(4);
    assert_eq!(model.refused[4], 1);
}

#[test]
fn what_never_fits_is_told_apart() {
    let shares = Shares::new(LIMITS, GRACE);
    assert_eq!(shares.allows([1, 12, 100]), Ok(()));
    let exceeded = |resource, scope| Err(Exceeded { resource, scope });
    assert_eq!(shares.allows([1, 13, 100]), exceeded(1, Scope::Address));
    assert_eq!(shares.allows([1, 12, 201]), exceeded(2, Scope::All));
}
