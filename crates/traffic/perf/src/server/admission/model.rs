//! Admission under any sequence of tests, streams and ends, beside a model that knows only what
//! each test holds.

use super::super::Limits;
use super::*;
use proptest::prelude::*;
use serde_json::json;
use std::net::{IpAddr, Ipv6Addr};

/// Clients whose tests count together: three IPv4 addresses, and three IPv6 prefixes of 64 bits.
const CLIENTS: u8 = 6;

#[derive(Debug, Clone)]
enum Step {
    /// The parameters of a client's test arrive; `host` are the last bits of an IPv6 address.
    Connect { client: u8, host: u8, cookie: u8, test: Requested },
    /// The next stream of a test arrives.
    Stream(prop::sample::Index),
    /// A test, evicted or not, ends.
    End(prop::sample::Index),
}

/// What a client asks for.
#[derive(Debug, Clone, Copy)]
struct Requested {
    parallel: u32,
    reverse: bool,
    bidirectional: bool,
    /// The window of a UDT test, which has buffers of that size.
    udt_window: Option<u32>,
}

impl Requested {
    fn cost(self) -> (Cost, Vec<Amounts>) {
        let mut params = json!({"tcp": true, "parallel": self.parallel, "reverse": self.reverse,
                                "bidirectional": self.bidirectional});
        if let Some(window) = self.udt_window {
            params["window"] = window.into();
            params["longhaul"] = json!({"version": "1", "udt": "udt"});
        }
        let params: Params = serde_json::from_value(params).unwrap();
        let plan = Plan::of(&params);
        let sending = if self.bidirectional || self.reverse { self.parallel } else { 0 };
        let receiving = if self.bidirectional || !self.reverse { self.parallel } else { 0 };
        let buffers = BufferMemory::of(&plan, sending, receiving);
        let own =
            [vec![buffers.receiver; receiving as usize], vec![buffers.sender; sending as usize]];
        let mut streams: Vec<Amounts> = own.concat().into_iter().map(|own| [0, 1, own]).collect();
        streams[0][MEMORY] += buffers.shared;
        (Cost::of(&params, &plan), streams)
    }
}

fn address(client: u8, host: u8) -> IpAddr {
    match client {
        // Also as an IPv4-mapped address.
        0..3 if host.is_multiple_of(2) => [192, 0, 2, client].into(),
        0..3 => std::net::Ipv4Addr::new(192, 0, 2, client).to_ipv6_mapped().into(),
        _ => Ipv6Addr::new(0x2001, 0xdb8, 0, client.into(), host.into(), 0, 0, host.into()).into(),
    }
}

/// A test of the model.
#[derive(Debug, Clone)]
struct Modelled {
    /// In order of admission.
    number: usize,
    client: u8,
    held: Amounts,
    has_stream: bool,
}

/// The tests that are neither ended nor evicted, the oldest first.
struct Model {
    limits: [Limit; 3],
    /// Whether every test without a stream may be evicted by any address.
    grace_is_over: bool,
    tests: Vec<Modelled>,
}

fn sum<'a>(tests: impl Iterator<Item = &'a Modelled>) -> Amounts {
    tests.fold([0; 3], |sum, test| std::array::from_fn(|at| sum[at] + test.held[at]))
}

fn of(tests: &[Modelled], client: u8) -> impl Iterator<Item = &Modelled> {
    tests.iter().filter(move |test| test.client == client)
}

impl Model {
    /// The tests left once there is room for `more` of a client, or whose limit leaves none.
    fn with_room(
        &self,
        client: u8,
        taker: Option<usize>,
        more: Amounts,
    ) -> Result<Vec<Modelled>, Exceeded> {
        let own = sum(of(&self.tests, client));
        let beyond = |resource: &usize| {
            own[*resource] + more[*resource] > self.limits[*resource].per_address
        };
        if let Some(resource) = (0..3).find(beyond) {
            return Err(Exceeded { resource, scope: Scope::Address });
        }
        let mut left = self.tests.clone();
        loop {
            let held = sum(left.iter());
            let lacking = (0..3).find(|at| held[*at] + more[*at] > self.limits[*at].all);
            let Some(resource) = lacking else { return Ok(left) };
            let idle = |test: &Modelled| of(&left, test.client).filter(|t| !t.has_stream).count();
            let yields = |test: &&Modelled| {
                let surplus = of(&left, test.client).count() > of(&left, client).count() + 1;
                !test.has_stream && Some(test.number) != taker && (self.grace_is_over || surplus)
            };
            let heaviest = left
                .iter()
                .filter(yields)
                .max_by_key(|test| (idle(test), std::cmp::Reverse(test.number)));
            let Some(number) = heaviest.map(|test| test.number) else {
                return Err(Exceeded { resource, scope: Scope::All });
            };
            left.retain(|test| test.number != number);
        }
    }

    /// Whether a new test of a client is admitted; the tests that are left then.
    fn admit(&self, client: u8, streams: &[Amounts]) -> Result<Vec<Modelled>, RefusalReason> {
        let whole = streams
            .iter()
            .fold(SESSION, |whole, stream| std::array::from_fn(|at| whole[at] + stream[at]));
        let fits = |limit: &Limit, needed: u64| needed <= limit.all.min(limit.per_address);
        if !self.limits.iter().zip(whole).all(|(limit, needed)| fits(limit, needed)) {
            return Err(RefusalReason::Limit);
        }
        self.with_room(client, None, whole).map_err(super::reason)?;
        self.with_room(client, None, SESSION).map_err(super::reason)
    }

    fn check(&self) {
        let all = sum(self.tests.iter());
        assert!((0..3).all(|at| all[at] <= self.limits[at].all), "more than all of it");
        for client in 0..CLIENTS {
            let own = sum(of(&self.tests, client));
            assert!((0..3).all(|at| own[at] <= self.limits[at].per_address), "beyond its share");
        }
    }
}

/// A test of the server, which its session holds also after it was evicted.
struct Running<'a> {
    number: usize,
    cookie: u8,
    admitted: AdmittedTest<'a>,
    streams: Vec<Amounts>,
    arrived: usize,
}

struct Server<'a> {
    admission: &'a Admission,
    model: Model,
    running: Vec<Running<'a>>,
    admitted: usize,
}

impl<'a> Server<'a> {
    fn is_running(&self, number: usize) -> bool {
        self.model.tests.iter().any(|test| test.number == number)
    }

    fn step(&mut self, step: &Step) {
        match step {
            Step::Connect { client, host, cookie, test } => {
                self.connect(*client, *host, *cookie, *test);
            }
            Step::Stream(at) if !self.running.is_empty() => {
                self.stream(at.index(self.running.len()));
            }
            Step::End(at) if !self.running.is_empty() => self.end(at.index(self.running.len())),
            Step::Stream(_) | Step::End(_) => {}
        }
        self.check();
    }

    fn connect(&mut self, client: u8, host: u8, cookie_byte: u8, test: Requested) {
        let key = AddressKey::of(address(client, host));
        let early = self.admission.check_address(key).err().map(|refused| refused.reason);
        let expected = self.model.with_room(client, None, SESSION).err();
        assert_eq!(early, expected.map(super::reason));
        let (cost, streams) = test.cost();
        let cookie = Cookie::from_wire([cookie_byte; 37]);
        let is_used = |one: &Running<'_>| one.cookie == cookie_byte && self.is_running(one.number);
        let expected = match self.model.admit(client, &streams) {
            Err(RefusalReason::Limit) => Err(RefusalReason::Limit),
            _ if self.running.iter().any(is_used) => Err(RefusalReason::ExtraStream),
            other => other,
        };
        match (self.admission.admit(&cookie, key, cost), expected) {
            (Ok(admitted), Ok(left)) => {
                self.model.tests = left;
                self.admitted += 1;
                let number = self.admitted;
                let held = SESSION;
                self.model.tests.push(Modelled { number, client, held, has_stream: false });
                let cookie = cookie_byte;
                self.running.push(Running { number, cookie, admitted, streams, arrived: 0 });
            }
            (Err(refused), Err(expected)) => assert_eq!(refused.reason, expected, "{refused:?}"),
            (Ok(_), Err(reason)) => panic!("admitted instead of refused: {reason:?}"),
            (Err(refused), Ok(_)) => panic!("refused: {refused:?}"),
        }
    }

    fn stream(&mut self, at: usize) {
        let Running { number, ref admitted, ref streams, ref mut arrived, .. } = self.running[at];
        let Some(more) = streams.get(*arrived).copied() else {
            return admitted.streams_are_complete();
        };
        let taken = admitted.take_stream(*arrived, "192.0.2.1:5".parse().unwrap());
        *arrived += 1;
        let Some(taker) = self.model.tests.iter().find(|test| test.number == number) else {
            assert!(matches!(taken, Err(PerfError::Evicted { .. })), "{taken:?}");
            return;
        };
        match (self.model.with_room(taker.client, Some(number), more), taken) {
            (Ok(mut left), Ok(())) => {
                let taker = left.iter_mut().find(|test| test.number == number).unwrap();
                taker.has_stream = true;
                taker.held = std::array::from_fn(|at| taker.held[at] + more[at]);
                self.model.tests = left;
            }
            (Err(exceeded), Err(PerfError::NotAdmitted { why, .. })) => {
                assert_eq!(why, super::why(exceeded));
                // Its session ends.
                self.end(at);
            }
            (expected, taken) => panic!("{expected:?}, and {taken:?}"),
        }
    }

    fn end(&mut self, at: usize) {
        let number = self.running.remove(at).number;
        self.model.tests.retain(|test| test.number != number);
    }

    fn check(&self) {
        self.model.check();
        assert_eq!(self.admission.count(), self.model.tests.len());
        for one in &self.running {
            assert_eq!(one.admitted.is_evicted(), !self.is_running(one.number));
        }
    }
}

fn step() -> impl Strategy<Value = Step> {
    let index = any::<prop::sample::Index>;
    let window = prop::option::weighted(0.3, 100_000..20_000_000_u32);
    let test = (1..=4_u32, any::<bool>(), any::<bool>(), window).prop_map(
        |(parallel, reverse, bidirectional, udt_window)| Requested {
            parallel,
            reverse,
            bidirectional,
            udt_window,
        },
    );
    let connect = (0..CLIENTS, any::<u8>(), 0..30_u8, test)
        .prop_map(|(client, host, cookie, test)| Step::Connect { client, host, cookie, test });
    prop_oneof![5 => connect, 5 => index().prop_map(Step::Stream), 1 => index().prop_map(Step::End)]
}

fn limits() -> impl Strategy<Value = Limits> {
    (1..10_u32, prop::option::of(1..10_u32), 2..40_u32, 8..160_u64).prop_map(
        |(sessions, sessions_per_address, total_streams, mebibytes)| Limits {
            sessions,
            sessions_per_address,
            total_streams,
            memory: ByteCount::from_bytes(mebibytes << 20),
            ..Limits::default()
        },
    )
}

proptest! {
    #[test]
    fn tests_are_admitted_as_the_model_says(
        limits in limits(),
        grace_is_over: bool,
        steps in prop::collection::vec(step(), 0..150),
    ) {
        // No clock: tests without streams may be evicted at once, or never because of their age.
        let grace = if grace_is_over { Duration::ZERO } else { Duration::MAX };
        let config = ServerConfig { limits, ..ServerConfig::default() };
        let admission = Admission::with_grace_period(&config, grace);
        let model = Model { limits: admission.limits, grace_is_over, tests: Vec::new() };
        let mut server = Server { admission: &admission, model, running: Vec::new(), admitted: 0 };
        steps.iter().for_each(|step| server.step(step));
        while !server.running.is_empty() {
            server.end(0);
            server.check();
        }
        // Everything was returned: whoever comes has its whole share.
        let running = lock(&admission.running);
        prop_assert!(running.tests.is_empty() && running.cookies.is_empty());
        prop_assert!(running.shares.is_empty());
        let share = admission.limits.map(|limit| limit.per_address.min(limit.all));
        for client in 0..CLIENTS {
            let key = AddressKey::of(address(client, 0));
            prop_assert_eq!(running.shares.fits(key, share, clock::now()), Ok(()));
        }
    }
}
