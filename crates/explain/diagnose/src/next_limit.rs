//! The building blocks of remedies: a command, and the goodput expected with it.
//!
//! The expectation is the next limit: the minimum of the path's payload rate, the rate
//! that loss allows, and the rates that the other known buffers allow.
//! `campaigns/verify/benches/remedy` applies each remedy in a lab and requires nine tenths of the
//! predicted gain.

use crate::{
    causes::Observed,
    predict::{self, PathPayload},
    remedy::Goal,
};
use model::{BufferTarget, HEAD_ROOM, INITIAL_WINDOW_SHARE, MAX_BUFFER, SEND_SHARE};
use record::{Direction, Remedy, RemedyCommand, RemedyPlace};
use units::{BitRate, ByteCount, LossRatio, Rtt, percent};

/// Header bytes of a segment: IPv4 and TCP with timestamps (RFC 791, 9293, 7323).
const HEADERS: u64 = 20 + 20 + 12;

/// The ratio of expected to current goodput from which it counts as a gain.
const WORTH: f64 = 1.02;

/// The maximum number of streams recommended.
const STREAMS: u32 = 8;

/// The share of the path's rate up to which parallel streams under random loss add up.
const SHARED_EVENLY: f64 = 0.7;

/// The host whose buffer a remedy changes.
#[derive(Clone, Copy, PartialEq)]
pub(crate) enum Side {
    Sender,
    Receiver,
}

const RATE_UNKNOWN: &str = "no prediction: the path's rate is unknown";

/// The goodput expected with a remedy, and its derivation.
pub(crate) struct Expectation {
    /// `None` where there is no prediction or no gain.
    pub(crate) rate: Option<BitRate>,
    pub(crate) why: String,
}

impl Expectation {
    pub(crate) fn none(why: &str) -> Self {
        Expectation { rate: None, why: why.to_owned() }
    }
}

/// The limit of the transfer once its present limit is removed.
pub(crate) struct NextLimit<'a> {
    goal: Option<&'a Goal>,
    pub(crate) o: Observed<'a>,
}

impl<'a> NextLimit<'a> {
    pub(crate) fn new(goal: Option<&'a Goal>, o: Observed<'a>) -> Self {
        NextLimit { goal, o }
    }

    /// Raises the limiting buffer; both buffers if the other one would be the next limit.
    pub(crate) fn buffers(&self, side: Side, other: Side) -> Vec<Remedy> {
        if self.o.m.spec.window_bytes.is_some() {
            return Vec::from_iter(self.fixed_window());
        }
        let Some(first) = self.buffer(side, &[side]) else {
            return Vec::new();
        };
        if first.expects_bps.is_some() {
            return vec![first];
        }
        match self.buffer(other, &[side, other]) {
            Some(second) if second.expects_bps.is_some() => {
                let why = format!("combined with the remedy above: {}", second.why);
                vec![first, Remedy { why, ..second }]
            }
            _ => vec![first],
        }
    }

    /// The buffer of `side`, with those of `raised` no longer limiting.
    fn buffer(&self, side: Side, raised: &[Side]) -> Option<Remedy> {
        let goal = self.goal?;
        let buffer = self.target(goal).buffer(INITIAL_WINDOW_SHARE).unwrap_or(MAX_BUFFER);
        let host = &self.o.m.host;
        let forward = self.o.m.spec.direction != Direction::Reverse;
        // The client's settings are known; the kernel's defaults stand in for the server's.
        let (place, key, known) = match side {
            Side::Receiver => {
                let known = (!forward).then_some(host.tcp_rmem).flatten();
                let known = known.unwrap_or([4096, 131_072, 6_291_456]);
                (RemedyPlace::Receiver, "net.ipv4.tcp_rmem", known)
            }
            Side::Sender => {
                let known = forward.then_some(host.tcp_wmem).flatten();
                (RemedyPlace::Sender, "net.ipv4.tcp_wmem", known.unwrap_or([4096, 16_384, 4 << 20]))
            }
        };
        let [least, initial, _] = known.map(|bytes| bytes.min(buffer.bytes()));
        let command = RemedyCommand::Sysctl {
            key: key.to_owned(),
            value: format!("{least} {initial} {}", buffer.bytes()),
        };
        let holds = ByteCount::from_f64(buffer.as_f64() / HEAD_ROOM).min(model::MAX_WINDOW);
        let Expectation { rate, why } = self.expects(raised, Some(holds));
        Some(Remedy { place, command, setting: Some(key.to_owned()), expects_bps: rate, why })
    }

    /// The goal, with the streams of this test.
    fn target(&self, goal: &Goal) -> BufferTarget {
        let streams = u32::try_from(self.o.e.streams).unwrap_or(u32::MAX);
        BufferTarget { rate: goal.rate, rtt: goal.rtt, queue: goal.queue, streams }
    }

    fn fixed_window(&self) -> Option<Remedy> {
        let goal = self.goal?;
        let target = BufferTarget { queue: ByteCount::ZERO, ..self.target(goal) };
        let buffer = target.buffer(INITIAL_WINDOW_SHARE).unwrap_or(MAX_BUFFER);
        Some(call(
            RemedyCommand::SocketBufferMib(buffer.bytes() >> 20),
            Expectation::none(
                "no prediction: net.core.rmem_max and wmem_max of both hosts limit it, and are \
                 unknown",
            ),
        ))
    }

    /// Without the requested rate limit.
    pub(crate) fn unpaced(&self) -> Option<Remedy> {
        self.o.facts.requested_rate?;
        Some(call(RemedyCommand::NoRateLimit, self.expects(&[], None)))
    }

    pub(crate) fn without_pacing(&self) -> Remedy {
        call(RemedyCommand::NoPacingLimit, self.expects(&[], None))
    }

    pub(crate) fn longer(&self) -> Option<Remedy> {
        let rtt = self.goal.map(|goal| goal.rtt).or(self.o.e.min_rtt)?;
        let lasted = self.o.m.spec.duration_s().unwrap_or_else(|| self.o.m.seconds());
        // After slow start, CUBIC needs many RTTs to recover from its overshoot.
        let seconds = (100.0 * rtt.secs_f64()).max(4.0 * lasted).ceil();
        Some(call(RemedyCommand::Seconds(seconds as u64), self.expects(&[], None)))
    }

    pub(crate) fn bbr(&self) -> Option<Remedy> {
        if self.o.facts.is_bbr() {
            return None;
        }
        let remedy =
            |expected| Some(call(RemedyCommand::CongestionControl("bbr".to_owned()), expected));
        let Some(path) = self.path() else {
            return remedy(Expectation::none(RATE_UNKNOWN));
        };
        let loss = predict::loss_ratio(self.o.m, self.o.e).unwrap_or(LossRatio::NONE);
        let rtt = self.goal.map_or(Rtt::ZERO, |goal| goal.rtt);
        if loss.fraction() > model::BBR_ACCURATE_LOSS {
            let why = "no prediction: above 10 % loss, BBR falls below its model";
            return remedy(Expectation::none(why));
        }
        let Some(rate) = model::bbr(path, loss) else {
            return remedy(Expectation::none("no prediction: BBR has no model for that loss"));
        };
        let rate = rate.scaled(1.0 - model::bbr_probe_rtt_share(rtt));
        let why = format!(
            "BBR keeps its rate under loss: {path} of TCP payload x (1 - {}), less its ProbeRTT \
             phases",
            percent(loss.fraction())
        );
        let expected = self.bounded(rate, why, &[], None);
        remedy(Expectation { rate: expected.rate.filter(|rate| self.is_gain(*rate)), ..expected })
    }

    pub(crate) fn more_streams(&self) -> Option<Remedy> {
        let (path, now) = (self.path()?, self.o.e.goodput);
        let streams = u32::try_from(self.o.e.streams).unwrap_or(1).max(1);
        let room = path.as_f64() * SHARED_EVENLY / now.as_f64().max(1.0);
        let times = (room as u32).min(STREAMS / streams);
        if times < 2 {
            return None;
        }
        let rate = now.scaled(f64::from(times));
        let why = format!("{times} x {now}: loss reduces each stream's window independently");
        let expected = Expectation { rate: Some(rate), why };
        Some(call(RemedyCommand::Streams(times * streams), expected))
    }

    /// Each stream paced a little below its goodput; `why` states what that changes.
    pub(crate) fn paced_below_goodput(&self, why: &str) -> Remedy {
        let each = self.o.e.per_stream().scaled(0.95);
        call(RemedyCommand::RateLimitKbit(each.bps() / 1_000), Expectation::none(why))
    }

    /// More streams where each one has a limit of its own that does not depend on loss;
    /// `each` states which. As many as are ever recommended where the path's rate is unknown.
    pub(crate) fn streams_that_add_up(&self, each: &str) -> Option<Remedy> {
        let now = self.o.e.goodput;
        let streams = u32::try_from(self.o.e.streams).unwrap_or(1).max(1);
        let most = STREAMS / streams;
        let path = self.path();
        let times = path
            .map_or(most, |path| most.min((path.as_f64() / now.as_f64().max(1.0)).ceil() as u32));
        if times < 2 {
            return None;
        }
        let why = format!("{times} x {now}: {each}");
        let expected = match path {
            Some(path) => Expectation { rate: Some(path.min(now.scaled(f64::from(times)))), why },
            None => Expectation::none(&format!("at most {why}; {RATE_UNKNOWN}")),
        };
        Some(call(RemedyCommand::Streams(times * streams), expected))
    }

    /// The path's payload rate: the lab's, else the goal's rate times the share of
    /// payload in a packet of this segment size.
    pub(crate) fn path(&self) -> Option<BitRate> {
        if let Some(PathPayload { goodput, .. }) = predict::path_payload(self.o.m, self.o.e) {
            return Some(goodput);
        }
        let mss = self.o.e.mss.filter(|mss| *mss > ByteCount::ZERO)?.bytes();
        Some(self.goal?.rate.scaled(mss as f64 / mss.saturating_add(HEADERS) as f64))
    }

    /// The goal, and the path's payload rate; `None` without an RTT.
    pub(crate) fn goal_path(&self) -> Option<(&Goal, BitRate)> {
        let goal = self.goal.filter(|goal| goal.rtt > Rtt::ZERO)?;
        Some((goal, self.path()?))
    }

    fn is_gain(&self, rate: BitRate) -> bool {
        rate.as_f64() > WORTH * self.o.e.goodput.as_f64()
    }

    /// The next limit, once the buffers of the sides in `raised` are of size `holds`.
    fn expects(&self, raised: &[Side], holds: Option<ByteCount>) -> Expectation {
        let Some(path) = self.path() else {
            return Expectation::none(RATE_UNKNOWN);
        };
        let why = format!("the bottleneck rate is {path} of TCP payload");
        match self.bounded(path, why, raised, holds) {
            Expectation { rate: Some(rate), why } if !self.is_gain(rate) => {
                Expectation { rate: None, why: format!("no gain: {why}") }
            }
            expected => expected,
        }
    }

    /// The minimum of a rate and the rates that buffers and loss allow.
    fn bounded(
        &self,
        rate: BitRate,
        why: String,
        raised: &[Side],
        holds: Option<ByteCount>,
    ) -> Expectation {
        let mut least = (rate, why);
        let mut bound = |rate: Option<BitRate>, why: &str| {
            if let Some(rate) = rate.filter(|rate| *rate < least.0) {
                least = (rate, format!("{why} allows {rate}"));
            }
        };
        let rtt = self.goal.map(|goal| goal.rtt).or(self.o.e.min_rtt).unwrap_or_default();
        let all = |bytes: ByteCount| {
            let streams = u64::try_from(self.o.e.streams.max(1)).unwrap_or(1);
            model::window_rate(bytes.times(streams), rtt)
        };
        if let Some(holds) = holds {
            bound(all(holds), "the maximum window");
        }
        let forward = self.o.m.spec.direction != Direction::Reverse;
        let part = |triple: Option<[u64; 3]>, share: f64| {
            all(model::share_of_buffer(ByteCount::from_bytes(triple?[2]), share))
        };
        let autotuned = self.o.m.spec.window_bytes.is_none();
        if autotuned && forward && !raised.contains(&Side::Sender) {
            bound(part(self.o.m.host.tcp_wmem, SEND_SHARE), "this host's tcp_wmem");
        }
        if autotuned && !forward && !raised.contains(&Side::Receiver) {
            bound(part(self.o.m.host.tcp_rmem, INITIAL_WINDOW_SHARE), "this host's tcp_rmem");
        }
        let configured =
            self.o.m.path.as_ref().map(|path| path.loss).filter(|p| *p > LossRatio::NONE);
        if let Some(loss) = configured
            && !self.o.facts.is_bbr()
            && !raised.is_empty()
        {
            let most = predict::loss_range(self.o.m, self.o.e).map(|(_, most)| most);
            let each = most.map(|rate| rate.scaled(self.o.e.streams.max(1) as f64));
            bound(each, &format!("a loss of {}", percent(loss.fraction())));
        }
        Expectation { rate: Some(least.0), why: least.1 }
    }
}

/// A remedy without a prediction, and the reason.
pub(crate) fn unpromised(remedy: Remedy, why: &str) -> Remedy {
    Remedy { expects_bps: None, why: format!("no prediction: {why}"), ..remedy }
}

/// A change of the options of the test.
pub(crate) fn call(command: RemedyCommand, expected: Expectation) -> Remedy {
    let Expectation { rate, why } = expected;
    Remedy { place: RemedyPlace::Call, command, setting: None, expects_bps: rate, why }
}
