//! What would help, as it is typed, and the goodput to expect of it.
//!
//! | limit | remedy | promised |
//! |---|---|---|
//! | receive window, send buffer | a larger buffer on that host | the rate that is next to hold it |
//! | the same, of buffers set with `-w` | larger ones with `-w` | nothing: both hosts' `net.core` limits bound them |
//! | program held by `-b`, or by pacing | leave that out | the rate that is next to hold it |
//! | loss | BBR; more streams | BBR's model; so many times as much |
//! | congestion | BBR | nothing: no equation says what a shallow queue drops of its bursts |
//! | ramp | a longer test | the rate that is next to hold it |
//! | policer | pace below its rate | nothing: segments are no longer lost, but no more arrive |
//!
//! What holds a transfer next is the least of what the path carries, what loss
//! leaves of it, and what those buffers hold that are known and stay as they
//! are. No remedy is known for a full path, a full core, a program that has
//! nothing to send, and what is not understood. `verify/benches/remedy` applies
//! each of them in a lab: nine tenths of the promised gain must come.

use crate::{
    evidence::Evidence,
    judge, network,
    predict::{self, PathPayload},
};
use model::{HEAD_ROOM, INITIAL_WINDOW_SHARE};
use record::{Direction, Limit, Measurement, Remedy, RemedyPlace};
use units::{BitRate, ByteCount, LossRatio, Rtt};

/// Bytes of IPv4 and TCP with timestamps on each segment (RFC 791, 9293, 7323).
const HEADERS: u64 = 20 + 20 + 12;

/// Whole MiB, as `tune` plans them, and the kernel's `int`: less than 2 GiB.
const MIB: u64 = 1 << 20;
const MAX_BUFFER: ByteCount = ByteCount::from_bytes((1 << 31) - MIB);

/// Payload in flight over a send buffer that is full: the rest waits or is the
/// kernel's overhead (`tcp_sndbuf_expand` aims at two congestion windows).
const SEND_SHARE: f64 = 0.5;

/// A gain of less is none.
const WORTH: f64 = 1.02;

/// Above this loss real BBR flows fall below its model.
const BBR_BEARS: f64 = 0.1;

/// Streams for a lossy path, at most.
const STREAMS: u32 = 8;

/// What random losses leave unsteady is promised for up to this share of the path.
const SHARED_EVENLY: f64 = 0.7;

/// A path to tune for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Goal {
    /// The bottleneck's rate.
    pub rate: BitRate,
    /// The round trip without queueing.
    pub rtt: Rtt,
    /// The bottleneck's queue, as far as it is known.
    pub queue: ByteCount,
}

impl Goal {
    /// Of the path that a lab made, where one did.
    #[must_use]
    pub fn of_path(m: &Measurement) -> Option<Self> {
        let path = m.path.as_ref()?;
        let rate = path.rate_bps.filter(|rate| *rate > BitRate::ZERO)?;
        let queue = path.queue_bytes.unwrap_or(model::bdp(rate, path.rtt));
        (path.rtt > Rtt::ZERO).then_some(Goal { rate, rtt: path.rtt, queue })
    }
}

/// What would help against `limit`.
pub(crate) fn of(limit: Limit, goal: Option<&Goal>, m: &Measurement, e: &Evidence) -> Vec<Remedy> {
    let next = Next { goal, m, e };
    let remedies = match limit {
        Limit::ReceiveWindow => next.buffers(Side::Receiver, Side::Sender),
        Limit::SendBuffer => next.buffers(Side::Sender, Side::Receiver),
        Limit::Application => vec![next.unpaced()],
        Limit::Pacing => vec![next.without_pacing()],
        Limit::Loss => vec![next.bbr(), next.more_streams()],
        Limit::Congestion => vec![next.bbr().map(unpromised)],
        Limit::Ramp => vec![next.longer()],
        Limit::Policer => vec![next.below_the_policer()],
        Limit::PathRate | Limit::Cpu | Limit::Unknown => Vec::new(),
    };
    remedies.into_iter().flatten().collect()
}

#[derive(Clone, Copy, PartialEq)]
enum Side {
    Sender,
    Receiver,
}

/// What holds the transfer once its limit is gone.
struct Next<'a> {
    goal: Option<&'a Goal>,
    m: &'a Measurement,
    e: &'a Evidence,
}

impl Next<'_> {
    /// The buffer that holds it; where the other end's would hold it as much, both.
    fn buffers(&self, side: Side, other: Side) -> Vec<Option<Remedy>> {
        if self.m.spec.window_bytes.is_some() {
            return vec![self.fixed_window()];
        }
        let first = self.buffer(side, &[side]);
        let gains = |one: &Option<Remedy>| one.as_ref().is_some_and(|r| r.expects_bps.is_some());
        if gains(&first) {
            return vec![first];
        }
        match self.buffer(other, &[side, other]) {
            Some(second) if second.expects_bps.is_some() => {
                let why = format!("with the one above; {}", second.why);
                vec![first, Some(Remedy { why, ..second })]
            }
            _ => vec![first],
        }
    }

    /// One side's, where those of `raised` no longer hold it.
    fn buffer(&self, side: Side, raised: &[Side]) -> Option<Remedy> {
        let goal = self.goal?;
        let streams = u32::try_from(self.e.streams).unwrap_or(u32::MAX);
        let in_flight = model::window_for(goal.rate, goal.rtt).plus(goal.queue);
        let window = model::per_stream(in_flight, streams);
        let buffer = model::buffer_for(window, INITIAL_WINDOW_SHARE);
        let buffer = buffer.rounded_up_to(MIB).min(MAX_BUFFER);
        let host = &self.m.host;
        let forward = self.m.spec.direction != Direction::Reverse;
        // The client's own are known; the kernel's defaults stand for the other end's.
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
        let command = format!("sysctl -w {key}=\"{least} {initial} {}\"", buffer.bytes());
        let holds = ByteCount::from_f64(buffer.as_f64() / HEAD_ROOM).min(model::MAX_WINDOW);
        let (expects_bps, why) = self.expects(raised, Some(holds));
        Some(Remedy { place, command, setting: Some(key.to_owned()), expects_bps, why })
    }

    fn fixed_window(&self) -> Option<Remedy> {
        let goal = self.goal?;
        let streams = u32::try_from(self.e.streams).unwrap_or(u32::MAX);
        let window = model::per_stream(model::window_for(goal.rate, goal.rtt), streams);
        let buffer = model::buffer_for(window, INITIAL_WINDOW_SHARE).rounded_up_to(MIB);
        Some(call(
            format!("-w {}M", buffer.bytes() / MIB),
            None,
            "no more than net.core.rmem_max and wmem_max of both hosts, which are not known: no \
             gain is promised"
                .to_owned(),
        ))
    }

    /// A rate that was asked for is left out.
    fn unpaced(&self) -> Option<Remedy> {
        judge::asked(self.m)?;
        let (expects_bps, why) = self.expects(&[], None);
        Some(call("no -b".to_owned(), expects_bps, why))
    }

    fn without_pacing(&self) -> Option<Remedy> {
        let (expects_bps, why) = self.expects(&[], None);
        Some(call("no --fq-rate".to_owned(), expects_bps, why))
    }

    fn longer(&self) -> Option<Remedy> {
        let rtt = self.goal.map(|goal| goal.rtt).or(self.e.min_rtt)?;
        // CUBIC needs a while to recover from where slow start ends.
        let seconds = (100.0 * rtt.secs_f64()).max(4.0 * self.m.spec.seconds).ceil();
        let (expects_bps, why) = self.expects(&[], None);
        Some(call(format!("-t {seconds}"), expects_bps, why))
    }

    fn bbr(&self) -> Option<Remedy> {
        if network::is_bbr(self.m) {
            return None;
        }
        let remedy = |expects, why| Some(call("-C bbr".to_owned(), expects, why));
        let Some(path) = self.path() else {
            return remedy(None, "the path's rate is not known: no gain is promised".to_owned());
        };
        let loss = predict::loss_ratio(self.m, self.e).unwrap_or(LossRatio::NONE);
        let rtt = self.goal.map_or(0.0, |goal| goal.rtt.secs_f64());
        if loss.fraction() > BBR_BEARS {
            let why = "above a loss of 10 % BBR falls below its model: no gain is promised";
            return remedy(None, why.to_owned());
        }
        let Some(rate) = model::bbr(path, loss) else {
            return remedy(None, "BBR has no model for that loss".to_owned());
        };
        // It stops sending for 200 ms or a round trip, whichever is more, in each
        // 10 s, to see the round trip without a queue (ACM Queue 14(5), 2016).
        let rate = rate.scaled(1.0 - (rtt.max(0.2) + rtt / 2.0).min(5.0) / 10.0);
        let why = format!(
            "BBR keeps its rate under loss: {path} of TCP payload x (1 - {}), less its pauses to \
             see the round trip",
            predict::percent(loss)
        );
        match self.bounded(rate, why, &[], None) {
            (Some(rate), why) if self.is_gain(rate) => remedy(Some(rate), why),
            (_, why) => remedy(None, why),
        }
    }

    fn more_streams(&self) -> Option<Remedy> {
        let (path, now) = (self.path()?, self.e.goodput);
        let streams = u32::try_from(self.e.streams).unwrap_or(1).max(1);
        let room = path.as_f64() * SHARED_EVENLY / now.as_f64().max(1.0);
        let times = (room as u32).min(STREAMS / streams);
        if times < 2 {
            return None;
        }
        let rate = now.scaled(f64::from(times));
        let why = format!("{times} x {now}: losses hit each stream on its own");
        Some(call(format!("-P {}", times * streams), Some(rate), why))
    }

    /// Its rate is what arrives already.
    fn below_the_policer(&self) -> Option<Remedy> {
        let each = self.e.per_stream().scaled(0.95);
        let rate = format!("{:.0}kbit", (each.as_f64() / 1e3).floor());
        let why = "ends the losses, and carries no more: the policer's rate arrives already";
        Some(call(format!("-b {rate}"), None, why.to_owned()))
    }

    /// The path's rate of payload: as the lab knows it, else for the goal's rate
    /// the share of payload in packets of this segment size.
    fn path(&self) -> Option<BitRate> {
        if let Some(PathPayload { goodput, .. }) = predict::path_payload(self.m, self.e) {
            return Some(goodput);
        }
        let mss = self.e.mss.filter(|mss| *mss > ByteCount::ZERO)?.bytes();
        Some(self.goal?.rate.scaled(mss as f64 / mss.saturating_add(HEADERS) as f64))
    }

    fn is_gain(&self, rate: BitRate) -> bool {
        rate.as_f64() > WORTH * self.e.goodput.as_f64()
    }

    /// What holds it next; `raised` are the sides whose buffers then `hold` so much.
    fn expects(&self, raised: &[Side], holds: Option<ByteCount>) -> (Option<BitRate>, String) {
        let Some(path) = self.path() else {
            return (None, "the path's rate is not known: no gain is promised".to_owned());
        };
        let why = format!("the path carries {path} of TCP payload");
        match self.bounded(path, why, raised, holds) {
            (Some(rate), why) if self.is_gain(rate) => (Some(rate), why),
            (Some(rate), why) => (None, format!("{why}: {rate} is no gain")),
            none => none,
        }
    }

    /// The least of a rate and what buffers and losses allow.
    fn bounded(
        &self,
        rate: BitRate,
        why: String,
        raised: &[Side],
        holds: Option<ByteCount>,
    ) -> (Option<BitRate>, String) {
        let mut least = (rate, why);
        let mut bound = |rate: Option<BitRate>, why: &str| {
            if let Some(rate) = rate.filter(|rate| *rate < least.0) {
                least = (rate, format!("{why} allows {rate}"));
            }
        };
        let rtt = self.goal.map(|goal| goal.rtt).or(self.e.min_rtt).unwrap_or_default();
        let all = |bytes: ByteCount| {
            let streams = u64::try_from(self.e.streams.max(1)).unwrap_or(1);
            model::window_rate(bytes.times(streams), rtt)
        };
        if let Some(holds) = holds {
            bound(all(holds), "the most that a window can be");
        }
        let forward = self.m.spec.direction != Direction::Reverse;
        let part = |triple: Option<[u64; 3]>, share: f64| {
            let most = ByteCount::from_bytes(triple?[2]);
            all(ByteCount::from_f64(most.as_f64() * share))
        };
        let autotuned = self.m.spec.window_bytes.is_none();
        if autotuned && forward && !raised.contains(&Side::Sender) {
            bound(part(self.m.host.tcp_wmem, SEND_SHARE), "this host's tcp_wmem");
        }
        if autotuned && !forward && !raised.contains(&Side::Receiver) {
            bound(part(self.m.host.tcp_rmem, INITIAL_WINDOW_SHARE), "this host's tcp_rmem");
        }
        let asked = self.m.path.as_ref().map(|path| path.loss).filter(|p| *p > LossRatio::NONE);
        if let Some(loss) = asked
            && !network::is_bbr(self.m)
            && !raised.is_empty()
        {
            let most = predict::loss_range(self.m, self.e).map(|(_, most)| most);
            let each = most.map(|rate| rate.scaled(self.e.streams.max(1) as f64));
            bound(each, &format!("a loss of {}", predict::percent(loss)));
        }
        (Some(least.0), least.1)
    }
}

/// BBR without a promise. Its model knows nothing of queues, and with one of 20
/// packets at 100 Mbit/s x 100 ms a lab on a busy machine showed no gain.
fn unpromised(remedy: Remedy) -> Remedy {
    let why = "no equation says what a shallow queue drops of BBR's bursts: no \
               gain is promised";
    Remedy { expects_bps: None, why: why.to_owned(), ..remedy }
}

fn call(command: String, expects_bps: Option<BitRate>, why: String) -> Remedy {
    Remedy { place: RemedyPlace::Call, command, setting: None, expects_bps, why }
}
