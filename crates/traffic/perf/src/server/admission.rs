//! Admission of tests: limits on tests, streams and memory, for the whole server
//! and by address.
//!
//! A test is admitted once its handshake is complete and its parameters were
//! accepted, never before: a client that is not authenticated holds no resource
//! that another client needs. It then holds what a session costs; streams and their
//! buffers count as they arrive. Where something is short, tests without a stream
//! are evicted ([`connection_limits::Shares`]).

use super::ServerConfig;
use crate::{PerfError, RefusalReason, plan::Plan, traffic::BufferMemory};
use connection_limits::{Exceeded, Limit, Scope, SessionId, Shares};
use host::{address_key::AddressKey, clock, lock::lock};
use iperf3_proto::{Cookie, Params, Refusal};
use problem::Field;
use std::{
    collections::HashMap,
    net::{SocketAddr, TcpStream},
    sync::{
        Mutex,
        mpsc::{Receiver, SyncSender, sync_channel},
    },
    time::Duration,
};
use units::ByteCount;

/// A stream for its session, with its order of arrival, by which iperf3 numbers
/// streams.
pub(super) type Arrival = (u64, TcpStream);

/// Memory of a test whatever its streams, bytes: 4800 samples of at most 256 bytes,
/// the results of both ends, and a thread.
const SESSION_MEMORY: u64 = 2 << 20;

/// How long a test keeps its place without a stream, although the server is full:
/// streams begin two RTTs after the parameters, and RTTs reach 600 ms.
const STREAM_GRACE_PERIOD: Duration = Duration::from_secs(2);

/// The counted resources.
const TESTS: usize = 0;
const STREAMS: usize = 1;
const MEMORY: usize = 2;

/// Resources of a test, each by its index.
type Amounts = [u64; 3];

/// The cost of a test before its first stream.
const SESSION: Amounts = [1, 0, SESSION_MEMORY];

/// Resources of a test: of each stream a thread and a socket, and the buffers of the program.
/// The kernel accounts for its socket buffers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Cost {
    sending: u32,
    receiving: u32,
    buffers: BufferMemory,
}

impl Cost {
    pub(super) fn of(params: &Params, plan: &Plan) -> Self {
        let each = params.streams();
        let (sending, receiving) = match (params.bidirectional, params.reverse) {
            (true, _) => (each, each),
            (false, true) => (each, 0),
            (false, false) => (0, each),
        };
        Cost { sending, receiving, buffers: BufferMemory::of(plan, sending, receiving) }
    }

    /// Cost of the stream with this index; the first one bears what all of them share, and the
    /// client's own come first.
    const fn of_stream(&self, index: u32) -> Amounts {
        let buffers = &self.buffers;
        let own = if index < self.receiving { buffers.receiver } else { buffers.sender };
        let shared = if index == 0 { buffers.shared } else { 0 };
        [0, 1, own.saturating_add(shared)]
    }

    fn whole(&self) -> Amounts {
        let streams = u64::from(self.sending) + u64::from(self.receiving);
        let of = |count: u32, each: u64| u64::from(count).saturating_mul(each);
        let memory = SESSION_MEMORY
            .saturating_add(self.buffers.shared)
            .saturating_add(of(self.sending, self.buffers.sender))
            .saturating_add(of(self.receiving, self.buffers.receiver));
        [1, streams, memory]
    }
}

/// The running tests and their limits.
pub(super) struct Admission {
    streams_per_test: usize,
    limits: [Limit; 3],
    running: Mutex<Running>,
}

struct Running {
    tests: HashMap<Cookie, StreamSender>,
    cookies: HashMap<SessionId, Cookie>,
    shares: Shares<3>,
}

/// Channel for a test's streams; `None` once it has all of them.
type StreamSender = Option<SyncSender<Arrival>>;

/// A client that is not admitted.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Refused {
    /// The category.
    pub(super) reason: RefusalReason,
    /// The error code for a test that could never be served; `None` where it may be served later.
    pub(super) refusal: Option<Refusal>,
    /// The limit that is reached, in one line for the log.
    pub(super) why: String,
}

impl Refused {
    pub(super) fn now(reason: RefusalReason, why: &str) -> Self {
        Refused { reason, refusal: None, why: why.to_owned() }
    }
}

/// The test that a cookie belongs to.
pub(super) enum CookieOwner {
    /// A test that waits for streams.
    Waiting(SyncSender<Arrival>),
    /// A test that has its streams.
    Complete,
    /// No test yet.
    Unknown,
}

impl Admission {
    pub(super) fn new(config: &ServerConfig) -> Self {
        Admission::with_grace_period(config, STREAM_GRACE_PERIOD)
    }

    /// `grace_period`: how long a test is safe without a stream.
    fn with_grace_period(config: &ServerConfig, grace_period: Duration) -> Self {
        let limits = &config.limits;
        let tests = if config.one_off { 1 } else { limits.sessions };
        let limit = |all, per_address| Limit { all, per_address };
        let limits = [
            limit(tests.into(), limits.sessions_per_address().min(tests).into()),
            limit(
                limits.total_streams.into(),
                limits.share_of_address(limits.total_streams.into()),
            ),
            limit(limits.memory.bytes(), limits.share_of_address(limits.memory.bytes())),
        ];
        // Both directions may be requested at once.
        let streams = 2 * config.limits.streams.clamp(1, 128);
        let running = Running {
            tests: HashMap::new(),
            cookies: HashMap::new(),
            shares: Shares::new(limits, grace_period),
        };
        Admission {
            streams_per_test: usize::try_from(streams).unwrap_or(usize::MAX),
            limits,
            running: Mutex::new(running),
        }
    }

    pub(super) fn count(&self) -> usize {
        lock(&self.running).tests.len()
    }

    /// The test that a connection with this cookie belongs to.
    pub(super) fn owner_of(&self, cookie: &Cookie) -> CookieOwner {
        match lock(&self.running).tests.get(cookie) {
            Some(Some(sender)) => CookieOwner::Waiting(sender.clone()),
            Some(_) => CookieOwner::Complete,
            None => CookieOwner::Unknown,
        }
    }

    /// Checks that a client of this address could be admitted now; otherwise it is
    /// refused before the rest of the handshake.
    pub(super) fn check_address(&self, client: AddressKey) -> Result<(), Refused> {
        let fits = lock(&self.running).shares.fits(client, SESSION, clock::now());
        fits.map_err(|exceeded| Refused::now(reason(exceeded), why(exceeded)))
    }

    /// Admits a test; it runs until the [`AdmittedTest`] is dropped, or is evicted.
    pub(super) fn admit(
        &self,
        cookie: &Cookie,
        client: AddressKey,
        cost: Cost,
    ) -> Result<AdmittedTest<'_>, Refused> {
        let (stream_sender, streams) = sync_channel(self.streams_per_test);
        let now = clock::now();
        let later = |exceeded| Refused::now(reason(exceeded), why(exceeded));
        let mut evicted = Vec::new();
        let mut running = lock(&self.running);
        let whole = cost.whole();
        running.shares.allows(whole).map_err(|exceeded| self.never(exceeded, whole))?;
        if running.tests.contains_key(cookie) {
            let why = "another test has the same cookie";
            return Err(Refused::now(RefusalReason::ExtraStream, why));
        }
        // Nothing is reserved for its streams, but a test without room for them is not begun.
        running.shares.fits(client, whole, now).map_err(later)?;
        let admitted = running.shares.admit(client, SESSION, now, &mut evicted);
        let session = admitted.map_err(later)?;
        let evicted = running.forget(&evicted);
        running.cookies.insert(session, *cookie);
        running.tests.insert(*cookie, Some(stream_sender));
        drop(running);
        drop(evicted);
        Ok(AdmittedTest { admission: self, cookie: *cookie, session, cost, streams })
    }

    /// The refusal of a test that is larger than a limit.
    fn never(&self, Exceeded { resource, scope }: Exceeded, whole: Amounts) -> Refused {
        let Limit { all, per_address } = self.limits[resource];
        let amount = |count: u64| match resource {
            MEMORY => ByteCount::from_bytes(count).to_string(),
            _ => format!("{count} streams"),
        };
        let field = if resource == MEMORY { Field::MaxMemory } else { Field::MaxTotalStreams };
        let limit = match scope {
            Scope::All => format!("{} of all tests ({field})", amount(all)),
            Scope::Address => {
                let share = amount(per_address);
                format!("{share} of one address ({field} and {})", Field::MaxPerAddress)
            }
        };
        let needs = amount(whole[resource]);
        let what = if resource == MEMORY { "of buffers " } else { "" };
        Refused {
            reason: RefusalReason::Limit,
            refusal: Some(if resource == MEMORY { Refusal::BUFFERS } else { Refusal::STREAMS }),
            why: format!("its test needs {needs} {what}but the limit is {limit}"),
        }
    }
}

impl Running {
    /// Removes evicted tests. The result is to be dropped without the lock: their sessions, which
    /// wait for streams, then end.
    fn forget(&mut self, evicted: &[SessionId]) -> Vec<StreamSender> {
        let cookies = evicted.iter().filter_map(|session| self.cookies.remove(session));
        cookies.filter_map(|cookie| self.tests.remove(&cookie)).collect()
    }
}

fn reason(Exceeded { resource, scope }: Exceeded) -> RefusalReason {
    match (resource, scope) {
        (_, Scope::Address) => RefusalReason::AddressBusy,
        (TESTS, Scope::All) => RefusalReason::Busy,
        (_, Scope::All) => RefusalReason::Capacity,
    }
}

fn why(Exceeded { resource, scope }: Exceeded) -> &'static str {
    match (resource, scope) {
        (TESTS, Scope::All) => "the maximum number of tests is running",
        (TESTS, Scope::Address) => "the maximum number of tests of its address is running",
        (STREAMS, Scope::All) => "its streams would exceed the limit on the streams of all tests",
        (STREAMS, Scope::Address) => {
            "its streams would exceed the limit on the streams of its address"
        }
        (_, Scope::All) => "its buffers would exceed the limit on the memory of all tests",
        (_, Scope::Address) => "its buffers would exceed the limit on the memory of its address",
    }
}

/// Admission of one test, released on drop.
pub(super) struct AdmittedTest<'a> {
    admission: &'a Admission,
    cookie: Cookie,
    session: SessionId,
    cost: Cost,
    /// Channel from which its streams are received; disconnected once it was evicted.
    pub(super) streams: Receiver<Arrival>,
}

impl AdmittedTest<'_> {
    /// Charges the stream with this index, from zero.
    ///
    /// # Errors
    /// It does not fit, or the test was evicted.
    pub(super) fn take_stream(&self, index: usize, client: SocketAddr) -> Result<(), PerfError> {
        let index = u32::try_from(index).unwrap_or(u32::MAX);
        let (more, now) = (self.cost.of_stream(index), clock::now());
        let mut evicted = Vec::new();
        let mut running = lock(&self.admission.running);
        let taken = running.shares.take(self.session, more, now, &mut evicted);
        let evicted = running.forget(&evicted);
        drop(running);
        drop(evicted);
        match taken {
            Some(Ok(())) => Ok(()),
            Some(Err(exceeded)) => {
                Err(PerfError::NotAdmitted { address: client, why: why(exceeded).to_owned() })
            }
            None => Err(PerfError::Evicted { address: client }),
        }
    }

    /// True once the test was evicted.
    pub(super) fn is_evicted(&self) -> bool {
        !lock(&self.admission.running).shares.contains(self.session)
    }

    /// It has its streams: later connections with its cookie are refused.
    pub(super) fn streams_are_complete(&self) {
        let mut running = lock(&self.admission.running);
        let sender = running.tests.get_mut(&self.cookie).and_then(Option::take);
        // No system call under the lock: with hundreds of threads its holder would
        // lose the processor there, and every other thread would wait for it.
        drop(running);
        drop(sender);
    }
}

impl Drop for AdmittedTest<'_> {
    fn drop(&mut self) {
        let mut running = lock(&self.admission.running);
        running.shares.release(self.session);
        // An evicted test's cookie may belong to another by now.
        let test = running.forget(&[self.session]);
        drop(running);
        drop(test);
    }
}

#[cfg(test)]
mod model;

#[cfg(test)]
mod tests {
    use super::super::Limits;
    use super::*;
    use serde_json::json;

    fn cost(params: serde_json::Value) -> Cost {
        let params: Params = serde_json::from_value(params).unwrap();
        Cost::of(&params, &Plan::of(&params))
    }

    fn admission(change: impl FnOnce(&mut Limits)) -> Admission {
        let mut config = ServerConfig::default();
        change(&mut config.limits);
        Admission::new(&config)
    }

    fn cookie(byte: u8) -> Cookie {
        Cookie::from_wire([byte; 37])
    }

    fn client(last: u8) -> AddressKey {
        AddressKey::of([192, 0, 2, last].into())
    }

    fn reason(result: Result<AdmittedTest<'_>, Refused>) -> Option<RefusalReason> {
        result.err().map(|refused| refused.reason)
    }

    fn client_address() -> SocketAddr {
        "192.0.2.1:5".parse().unwrap()
    }

    /// Takes all streams of a test.
    fn take_all(test: &AdmittedTest<'_>) {
        let streams = usize::try_from(test.cost.whole()[STREAMS]).unwrap();
        (0..streams).for_each(|index| test.take_stream(index, client_address()).unwrap());
    }

    #[test]
    fn streams_count_as_they_arrive() {
        let admission = admission(|limits| limits.total_streams = 10);
        let four = cost(json!({"tcp": true, "parallel": 4}));
        let first = admission.admit(&cookie(1), client(1), four).unwrap();
        // Of the same address: there is room until the first one has its streams.
        let second = admission.admit(&cookie(2), client(1), four).unwrap();
        take_all(&first);
        second.take_stream(0, client_address()).unwrap();
        let error = second.take_stream(1, client_address()).unwrap_err();
        assert!(error.to_string().contains("streams of its address"), "{error}");
        let third = admission.admit(&cookie(3), client(2), four).unwrap();
        take_all(&third);
        let two = cost(json!({"tcp": true, "parallel": 2}));
        let refused = admission.admit(&cookie(4), client(3), two);
        assert_eq!(reason(refused), Some(RefusalReason::Capacity));
        drop(first);
        assert!(admission.admit(&cookie(4), client(3), four).is_ok());
    }

    #[test]
    fn a_test_larger_than_the_share_of_an_address_is_never_admitted() {
        let admission = admission(|_| ());
        let udt = |window: u64| {
            cost(json!({"tcp": true, "window": window, "longhaul": {"version": "1", "udt": "udt"}}))
        };
        let refused = admission.admit(&cookie(1), client(1), udt(522_000_000)).err().unwrap();
        assert_eq!(
            (refused.reason, refused.refusal),
            (RefusalReason::Limit, Some(Refusal::BUFFERS))
        );
        for part in ["MB of buffers", "320 MiB of one address", "‹max_memory›"] {
            assert!(refused.why.contains(part), "{}", refused.why);
        }
        assert!(admission.admit(&cookie(1), client(1), udt(300_000_000)).is_ok());
        let mut config = ServerConfig::default();
        config.limits.total_streams = 200;
        let both = cost(json!({"tcp": true, "parallel": 128, "bidirectional": true}));
        let refused = Admission::new(&config).admit(&cookie(1), client(1), both).err().unwrap();
        assert_eq!(
            refused.why,
            "its test needs 256 streams but the limit is 200 streams of all \
                                 tests (‹max_total_streams›)"
        );
    }

    #[test]
    fn buffers_of_one_address_leave_another_its_share() {
        let admission = admission(|_| ());
        let large = cost(json!({"tcp": true, "window": 300_000_000,
                                "longhaul": {"version": "1", "udt": "udt"}}));
        let tests = [1, 2].map(|at| admission.admit(&cookie(at), client(at), large).unwrap());
        tests.iter().for_each(take_all);
        let refused = admission.admit(&cookie(3), client(1), large);
        assert_eq!(reason(refused), Some(RefusalReason::AddressBusy));
        let refused = admission.admit(&cookie(3), client(3), large);
        assert_eq!(reason(refused), Some(RefusalReason::Capacity));
    }

    #[test]
    fn tests_without_streams_make_way() {
        let admission = admission(|limits| limits.sessions = 4);
        let one = cost(json!({"tcp": true}));
        let idle = [1, 2].map(|at| admission.admit(&cookie(at), client(1), one).unwrap());
        let others = [3, 4].map(|at| admission.admit(&cookie(at), client(2), one).unwrap());
        take_all(&others[1]);
        let newcomer = admission.admit(&cookie(5), client(3), one).unwrap();
        assert!(idle[0].is_evicted() && !idle[1].is_evicted() && !others[0].is_evicted());
        assert!(idle[0].streams.recv().is_err(), "its session is told");
        let error = idle[0].take_stream(0, client_address()).unwrap_err();
        assert!(matches!(error, PerfError::Evicted { .. }), "{error}");
        // Its cookie may be used again, and is not released with it.
        drop(newcomer);
        let again = admission.admit(&cookie(1), client(3), one).unwrap();
        drop(idle);
        assert!(matches!(admission.owner_of(&cookie(1)), CookieOwner::Waiting(_)));
        drop((again, others));
        assert_eq!(admission.count(), 0);
        assert!(lock(&admission.running).cookies.is_empty());
    }

    #[test]
    fn an_address_has_half_of_the_tests_by_default() {
        let admission = admission(|limits| limits.sessions = 4);
        let one = cost(json!({"tcp": true}));
        let _two = [1, 2].map(|n| admission.admit(&cookie(n), client(1), one).unwrap());
        let refused = admission.admit(&cookie(3), client(1), one);
        assert_eq!(reason(refused), Some(RefusalReason::AddressBusy));
        assert!(admission.check_address(client(2)).is_ok());
        let _others = [3, 4].map(|n| {
            let test = admission.admit(&cookie(n), client(n), one).unwrap();
            take_all(&test);
            test
        });
        let refused = admission.admit(&cookie(5), client(3), one);
        assert_eq!(reason(refused), Some(RefusalReason::Busy));
    }

    #[test]
    fn a_cookie_identifies_one_test_and_its_streams_once() {
        let admission = admission(|_| ());
        let one = cost(json!({"tcp": true}));
        let test = admission.admit(&cookie(1), client(1), one).unwrap();
        let again = admission.admit(&cookie(1), client(2), one);
        assert_eq!(reason(again), Some(RefusalReason::ExtraStream));
        assert!(matches!(admission.owner_of(&cookie(1)), CookieOwner::Waiting(_)));
        test.streams_are_complete();
        assert!(matches!(admission.owner_of(&cookie(1)), CookieOwner::Complete));
        drop(test);
        assert!(matches!(admission.owner_of(&cookie(1)), CookieOwner::Unknown));
    }
}
