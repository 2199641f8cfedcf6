//! Admission of tests: limits on tests, streams and memory, for the whole server
//! and by address.
//!
//! A test is admitted once its handshake is complete and its parameters were
//! accepted, never before: a client that is not authenticated holds no resource
//! that another client needs.

use super::{Limits, ServerConfig};
use crate::{RefusalReason, plan::Plan, traffic};
use host::address_key::AddressKey;
use host::lock::lock;
use iperf3_proto::{Cookie, Params};
use std::{
    collections::HashMap,
    net::TcpStream,
    sync::{
        Mutex,
        mpsc::{Receiver, SyncSender, sync_channel},
    },
};
use units::ByteCount;

/// A stream for its session, with its order of arrival, by which iperf3 numbers
/// streams.
pub(super) type Arrival = (u64, TcpStream);

/// Memory of a test whatever its streams: 4800 samples of at most 256 bytes,
/// the results of both ends, and a thread.
const SESSION_MEMORY: ByteCount = ByteCount::from_bytes(2 << 20);

/// Resources of a running test.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Cost {
    /// Streams of both directions, a thread and a socket each.
    streams: u32,
    /// Buffers of the program; the kernel accounts for its socket buffers.
    memory: ByteCount,
}

impl Cost {
    pub(super) fn of(params: &Params, plan: &Plan) -> Self {
        let each = params.streams();
        let (sending, receiving) = match (params.bidirectional, params.reverse) {
            (true, _) => (each, each),
            (false, true) => (each, 0),
            (false, false) => (0, each),
        };
        let buffers = traffic::buffer_memory(plan, sending, receiving);
        let memory = ByteCount::from_bytes(SESSION_MEMORY.bytes() + buffers.bytes());
        Cost { streams: sending + receiving, memory }
    }
}

/// The running tests and their limits.
pub(super) struct Admission {
    tests: usize,
    tests_per_address: usize,
    streams_per_test: usize,
    streams: u32,
    memory: ByteCount,
    running: Mutex<Running>,
}

#[derive(Default)]
struct Running {
    tests: HashMap<Cookie, Test>,
    streams: u32,
    memory: u64,
}

struct Test {
    client: AddressKey,
    cost: Cost,
    /// Channel for its streams; `None` once it has all of them.
    stream_sender: Option<SyncSender<Arrival>>,
}

/// Why a client is refused: category, and one line for the log.
pub(super) type Refused = (RefusalReason, &'static str);

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
        let Limits { sessions, streams, total_streams, memory, .. } = config.limits;
        let count = |limit: u32| usize::try_from(limit).unwrap_or(usize::MAX);
        Admission {
            tests: if config.one_off { 1 } else { count(sessions) },
            tests_per_address: count(config.limits.sessions_per_address()),
            // Both directions may be requested at once.
            streams_per_test: 2 * count(streams.clamp(1, 128)),
            streams: total_streams,
            memory,
            running: Mutex::default(),
        }
    }

    pub(super) fn count(&self) -> usize {
        lock(&self.running).tests.len()
    }

    /// The test that a connection with this cookie belongs to.
    pub(super) fn owner_of(&self, cookie: &Cookie) -> CookieOwner {
        match lock(&self.running).tests.get(cookie) {
            Some(Test { stream_sender: Some(sender), .. }) => CookieOwner::Waiting(sender.clone()),
            Some(_) => CookieOwner::Complete,
            None => CookieOwner::Unknown,
        }
    }

    /// Whether a client of this address could be admitted now; otherwise it is
    /// refused before the rest of the handshake.
    pub(super) fn check_address(&self, client: AddressKey) -> Result<(), Refused> {
        self.has_room(&lock(&self.running), client)
    }

    /// Admits a test; it runs until the [`AdmittedTest`] is dropped.
    pub(super) fn admit(
        &self,
        cookie: &Cookie,
        client: AddressKey,
        cost: Cost,
    ) -> Result<AdmittedTest<'_>, Refused> {
        let (stream_sender, streams) = sync_channel(self.streams_per_test);
        let mut running = lock(&self.running);
        self.has_room(&running, client)?;
        if running.tests.contains_key(cookie) {
            return Err((RefusalReason::ExtraStream, "another test has the same cookie"));
        }
        if cost.streams > self.streams.saturating_sub(running.streams) {
            return Err((
                RefusalReason::Capacity,
                "its streams would exceed the limit on the streams of all tests",
            ));
        }
        if cost.memory.bytes() > self.memory.bytes().saturating_sub(running.memory) {
            return Err((
                RefusalReason::Capacity,
                "its buffers would exceed the limit on the memory of all tests",
            ));
        }
        running.streams += cost.streams;
        running.memory += cost.memory.bytes();
        let test = Test { client, cost, stream_sender: Some(stream_sender) };
        running.tests.insert(*cookie, test);
        Ok(AdmittedTest { admission: self, cookie: *cookie, streams })
    }

    fn has_room(&self, running: &Running, client: AddressKey) -> Result<(), Refused> {
        if running.tests.len() >= self.tests {
            return Err((RefusalReason::Busy, "the maximum number of tests is running"));
        }
        let same = running.tests.values().filter(|test| test.client == client).count();
        if same >= self.tests_per_address {
            return Err((
                RefusalReason::AddressBusy,
                "the maximum number of tests of its address is running",
            ));
        }
        Ok(())
    }
}

/// Admission of one test, released on drop.
pub(super) struct AdmittedTest<'a> {
    admission: &'a Admission,
    cookie: Cookie,
    /// Channel from which its streams are received.
    pub(super) streams: Receiver<Arrival>,
}

impl AdmittedTest<'_> {
    /// It has its streams: later connections with its cookie are refused.
    pub(super) fn streams_are_complete(&self) {
        let mut running = lock(&self.admission.running);
        let sender = running.tests.get_mut(&self.cookie).and_then(|test| test.stream_sender.take());
        // No system call under the lock: with hundreds of threads its holder would
        // lose the processor there, and every other thread would wait for it.
        drop(running);
        drop(sender);
    }
}

impl Drop for AdmittedTest<'_> {
    fn drop(&mut self) {
        let mut running = lock(&self.admission.running);
        let test = running.tests.remove(&self.cookie);
        if let Some(test) = &test {
            running.streams -= test.cost.streams;
            running.memory -= test.cost.memory.bytes();
        }
        drop(running);
        drop(test);
    }
}

#[cfg(test)]
mod tests {
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
        result.err().map(|(reason, _)| reason)
    }

    #[test]
    fn streams_of_all_tests_are_bounded() {
        let admission = admission(|limits| limits.total_streams = 10);
        let four = cost(json!({"tcp": true, "parallel": 4}));
        let first = admission.admit(&cookie(1), client(1), four).unwrap();
        let both = cost(json!({"tcp": true, "parallel": 3, "bidirectional": true}));
        let _second = admission.admit(&cookie(2), client(2), both).unwrap();
        let one = cost(json!({"tcp": true}));
        let refused = admission.admit(&cookie(3), client(3), one);
        assert_eq!(reason(refused), Some(RefusalReason::Capacity));
        drop(first);
        assert!(admission.admit(&cookie(3), client(3), four).is_ok());
    }

    #[test]
    fn memory_of_all_tests_is_bounded() {
        let large = cost(json!({"udp": true, "parallel": 64}));
        let admission = admission(|limits| {
            limits.memory = ByteCount::from_bytes(2 * large.memory.bytes());
        });
        let _two = [1, 2].map(|n| admission.admit(&cookie(n), client(n), large).unwrap());
        let small = cost(json!({"tcp": true}));
        let refused = admission.admit(&cookie(3), client(3), small);
        assert_eq!(reason(refused), Some(RefusalReason::Capacity));
    }

    #[test]
    fn an_address_has_half_of_the_tests_by_default() {
        let admission = admission(|limits| limits.sessions = 4);
        let one = cost(json!({"tcp": true}));
        let _two = [1, 2].map(|n| admission.admit(&cookie(n), client(1), one).unwrap());
        let refused = admission.admit(&cookie(3), client(1), one);
        assert_eq!(reason(refused), Some(RefusalReason::AddressBusy));
        assert!(admission.check_address(client(2)).is_ok());
        let _others = [3, 4].map(|n| admission.admit(&cookie(n), client(n), one).unwrap());
        let refused = admission.admit(&cookie(5), client(5), one);
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
