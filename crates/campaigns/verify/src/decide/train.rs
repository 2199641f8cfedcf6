//! Trains of datagrams that tell a policer from a shallow queue: which rates, how many bytes, and
//! what they showed. How one is read is in [`diagnose::deciding::Train`].

use super::{FAILED, INTERRUPTED, Transfer};
use diagnose::deciding::{DROPPING_ALIKE, Observation, Train, is_dropping_alike};
use perf::client::{ClientConfig, EndAfter, RisingTrain, Transport, UdpOptions};
use record::{
    Confidence, Decided, Direction, EndCondition, Finding, Limit, Measurement, Probability,
};
use units::{BitRate, ByteCount};

/// The first rate of a train over the rate that was delivered. Gentle: at twice the bottleneck's
/// rate too few datagrams pass before the first loss, and others on the path suffer.
const OVERDRIVE: f64 = 1.25;
/// How far the rate rises within a train, as far as it loses nothing: what TCP delivers through a
/// small queue or bucket is down to a fifth of the bottleneck's rate (docs/design/diagnosis.md).
const RISE: f64 = 4.0;
/// The first rate of the next train: over the last one's where it did not fill the bottleneck, and
/// over the bottleneck's where too few datagrams passed before the first loss.
const ON: f64 = 0.8;
const GENTLE: f64 = 1.02;

/// The probability from which a cause is likely.
const LIKELY: f64 = 0.15;

/// A train that lost this many datagrams was stopped early: a higher rate would not help.
const MANY_LOST: u64 = 40;

/// Maximum trains.
const MAX_TRAINS: u32 = 3;
/// Maximum bytes and seconds of a train.
const MAX_BYTES: ByteCount = ByteCount::from_bytes(6_000_000);
const MAX_SECONDS: f64 = 2.0;
/// The time that the last datagrams may take to arrive.
const ARRIVAL_SECONDS: f64 = 0.5;
/// A train of fewer bytes shows nothing: a hundred datagrams.
const MIN_BYTES: ByteCount = ByteCount::from_bytes(150_000);
/// The last datagram may pass the number of bytes by this much.
const DATAGRAM: u64 = 9_000;

/// The most that a test's bottleneck estimate counts, in goodputs: a burst may have passed faster.
const MAX_BURST: f64 = 1.5;

/// A test that tells a policer from a shallow queue.
#[derive(Debug, Clone, PartialEq)]
pub struct TrainTest {
    /// The more probable one first.
    between: Vec<Limit>,
    /// The first payload rate of the next train.
    rate: BitRate,
    /// The rate that the user asked for at most.
    most_rate: Option<BitRate>,
    /// The bytes that the user asked for at most, less those of the trains so far.
    left: ByteCount,
    trains: u32,
}

/// The reason that a train of datagrams does not decide, as a sentence.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(super) enum NoTrain {
    #[error("{APART}; it needs longhaul at both ends.")]
    OtherPeer,
    #[error("{APART}; it needs a test in one direction that transferred data.")]
    NoData,
    #[error("{APART}; it needs a rate above the {goodput} that arrived (-b).")]
    MaxRate { goodput: BitRate },
    #[error("{APART}; it needs at least {MIN_BYTES} (-n, -b).")]
    MaxBytes,
}

const APART: &str = "A policer and a shallow queue drop the same packets, and a train of datagrams \
                     tells them apart";

/// The test, or the reason that there is none, between a policer and a shallow queue: where one of
/// them is the finding, or both together are more probable than any other cause. `is_other`:
/// whether another second test decides.
pub(super) fn propose(
    m: &Measurement,
    finding: &Finding,
    is_other: bool,
) -> Option<Result<TrainTest, NoTrain>> {
    let probability = |limit: Limit| {
        let found = finding.posterior.iter().find(|one| one.limit == limit);
        found.map_or(0.0, |one| one.probability)
    };
    let both: f64 = DROPPING_ALIKE.into_iter().map(probability).sum();
    let others = finding.posterior.iter().filter(|one| !DROPPING_ALIKE.contains(&one.limit));
    let other = others.map(|one| one.probability).fold(0.0, f64::max);
    let is_first = both > other || finding.limit.is_some_and(is_dropping_alike);
    let is_sure = finding.confidence == Some(Confidence::Sure);
    if is_sure || !is_first && (is_other || both < LIKELY) {
        return None;
    }
    let test = TrainTest::new(m, finding);
    // The result of the usual test is better than nothing.
    (test.is_ok() || !is_other).then_some(test)
}

/// The test that follows another one, whose answer was a policer or a shallow queue.
pub(super) fn after(m: &Measurement, finding: &Finding, answer: &Decided) -> Option<TrainTest> {
    answer.limit.filter(|limit| is_dropping_alike(*limit))?;
    TrainTest::new(m, finding).ok()
}

impl TrainTest {
    fn new(m: &Measurement, finding: &Finding) -> Result<Self, NoTrain> {
        let is_either = |one: &&Probability| is_dropping_alike(one.limit);
        let likely = finding.posterior.iter().filter(is_either);
        let first = likely.max_by(|one, other| one.probability.total_cmp(&other.probability));
        let [policer, queue] = DROPPING_ALIKE;
        let is_queue = first.is_some_and(|first| first.limit == queue);
        let between = if is_queue { [queue, policer] } else { [policer, queue] }.to_vec();
        if !m.peer.starts_with("longhaul") {
            return Err(NoTrain::OtherPeer);
        }
        let goodput = finding.throughput_bps;
        let estimate = finding.bottleneck.map_or(goodput, |estimate| estimate.rate_bps);
        let rate = estimate.min(goodput.scaled(MAX_BURST)).max(goodput).scaled(OVERDRIVE);
        let streams = f64::from(m.spec.streams.max(1));
        let test = TrainTest {
            between,
            rate,
            most_rate: m.spec.rate_bps.map(|each| each.scaled(streams)),
            left: match (m.spec.end, m.spec.block_bytes) {
                (EndCondition::Bytes(bytes), _) => bytes,
                (EndCondition::Blocks(blocks), Some(block)) => block.times(blocks),
                _ => ByteCount::from_bytes(u64::MAX),
            },
            trains: 0,
        };
        if goodput == BitRate::ZERO || m.spec.direction == Direction::Both {
            return Err(NoTrain::NoData);
        }
        if test.most_rate.is_some_and(|most| most < goodput.scaled(GENTLE)) {
            return Err(NoTrain::MaxRate { goodput });
        }
        if test.bytes() < MIN_BYTES {
            return Err(NoTrain::MaxBytes);
        }
        Ok(TrainTest { rate: test.rate.min(test.top()), ..test })
    }

    /// The last rate of the next train.
    fn top(&self) -> BitRate {
        let top = self.rate.scaled(RISE);
        self.most_rate.map_or(top, |most| top.min(most))
    }

    /// The mean rate of the next train over time, in bit/s: it rises exponentially.
    fn mean(&self) -> f64 {
        let (first, top) = (self.rate.as_f64(), self.top().as_f64());
        if top > first { (top - first) / (top / first).ln() } else { first }
    }

    /// The bytes of the next train.
    fn bytes(&self) -> ByteCount {
        let timed = ByteCount::from_bytes((self.mean() * MAX_SECONDS / 8.0) as u64);
        let left = ByteCount::from_bytes(self.left.bytes().saturating_sub(DATAGRAM));
        MAX_BYTES.min(timed).min(left)
    }

    /// The request of the next train, given that of the first test.
    #[must_use]
    pub fn config(&self, first: &ClientConfig) -> ClientConfig {
        let bytes = self.bytes();
        let max_seconds = bytes.bytes() as f64 * 8.0 / self.mean() + ARRIVAL_SECONDS;
        ClientConfig {
            transport: Transport::Udp(UdpOptions {
                train: Some(RisingTrain { from: self.rate, max_seconds }),
                wide_counters: true,
                // One datagram at a time, each with a time of its own.
                segment: false,
                coalesce: false,
            }),
            rate: Some(self.top()),
            end: EndAfter::Bytes(bytes),
            omit_seconds: 0,
            streams: 1,
            burst: None,
            fq_rate: None,
            block: None,
            window: None,
            congestion: None,
            file: None,
            ..first.clone()
        }
    }

    /// The options of the next train.
    fn options(&self) -> String {
        format!("-u -b {}kbit -n {}", self.top().bps().div_ceil(1_000), self.bytes().bytes())
    }

    /// The purpose of the next train, in one line.
    #[must_use]
    pub fn announcement(&self) -> String {
        let names: Vec<&str> = self.between.iter().map(|limit| limit.name()).collect();
        format!(
            "Second test, to decide between {}: datagrams at {} to {} until some are lost, at most {}",
            names.join(" and "),
            self.rate,
            self.top(),
            self.bytes().decimal()
        )
    }

    /// Sends trains until one decides.
    pub(super) fn run<E>(
        mut self,
        first: &ClientConfig,
        transfer: &mut Transfer<'_, E>,
    ) -> Result<Decided, (Decided, E)> {
        loop {
            let run = transfer(&self.announcement(), &self.config(first));
            match run.map_err(|error| (self.undecided(FAILED.to_owned()), error))? {
                None => return Ok(self.undecided(INTERRUPTED.to_owned())),
                Some(second) => {
                    if let Some(decided) = self.take(&second) {
                        return Ok(decided);
                    }
                }
            }
        }
    }

    /// Reads a train. The answer, or `None` if another train is to follow.
    #[must_use]
    pub fn take(&mut self, second: &Measurement) -> Option<Decided> {
        let (options, goodput) = (self.options(), Observation::of(second).goodput);
        let arrivals: Vec<_> =
            second.streams.iter().flat_map(|stream| &stream.train).copied().collect();
        let train = Train::read(&arrivals);
        let sentence = match train.limit() {
            Some(limit) => format!(
                "Between policer and shallow-queue it is {}: {}; a queue delays packets before it \
                 overflows, and a policer delays none.",
                limit.name(),
                train.saw()
            ),
            None if arrivals.is_empty() => {
                "The second test does not decide: no arrival times came \
                back; use the same version of longhaul at both ends."
                    .to_owned()
            }
            None if self.go_on(&train, second) => return None,
            None => format!(
                "The second test does not decide between policer and shallow-queue: {}.",
                train.saw()
            ),
        };
        let decided = self.undecided(sentence);
        Some(Decided {
            options: Some(options),
            throughput_bps: Some(goodput),
            limit: train.limit(),
            ..decided
        })
    }

    /// Chooses the rate of the next train; false if there is none.
    fn go_on(&mut self, train: &Train, second: &Measurement) -> bool {
        let sent = second.streams.iter().map(|stream| stream.sent_bytes).sum();
        self.left = ByteCount::from_bytes(self.left.bytes().saturating_sub(sent));
        self.trains += 1;
        let length = second.streams.iter().filter_map(|stream| stream.datagrams.as_ref()).next();
        let bits = length.map_or(0.0, |datagrams| 8.0 * f64::from(datagrams.length_bytes));
        let next = match train.interval_us {
            Some(interval) => BitRate::from_bps_f64(bits / interval * 1e6).scaled(GENTLE),
            // Something else drops, or a sender that was held up sent too much at once.
            None if train.lost >= MANY_LOST => self.rate,
            None => self.top().scaled(ON),
        };
        let is_other = train.lost >= MANY_LOST || next > self.rate;
        self.rate = self.most_rate.map_or(next, |most| next.min(most));
        self.trains < MAX_TRAINS && is_other && self.bytes() >= MIN_BYTES
    }

    /// The result if the trains did not run to their end.
    #[must_use]
    pub fn undecided(&self, sentence: String) -> Decided {
        Decided {
            between: self.between.clone(),
            options: Some(self.options()),
            throughput_bps: None,
            limit: None,
            sentence,
        }
    }
}
