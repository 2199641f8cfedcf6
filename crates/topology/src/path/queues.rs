//! Queues as they are written: a discipline, a size, options, and what stands
//! in for those not given.

use super::error::{PathError, short};
use super::key::Key;
use super::setting::{Setting, quantity};
use super::words::size_in_words;
use link::{CoDel, Fifo, FqCoDel, Limit, Pie, Queue, Red};
use std::collections::BTreeMap;
use std::time::Duration;
use units::{BitRate, ByteCount, Probability, Rtt};

/// Least queue, in packets of MTU size, where none is asked for: a train of
/// 64 KiB arrives at one moment and fits.
pub(super) const LEAST_PACKETS: u64 = 64;

/// Linux's limit of CoDel's kin, in packets: it is there against floods, the
/// delay is what governs.
const AQM_PACKETS: u64 = 10_240;

/// The same in BDPs, so that a long fat path never meets it either.
const AQM_BDPS: u64 = 4;

/// A size in the unit it was asked in.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Size {
    /// A multiple of the BDP, in thousandths.
    Bdp(u64),
    /// Packets of MTU size or less.
    Packets(u64),
    /// Bytes, framing included.
    Bytes(ByteCount),
    /// What the bottleneck sends in so long.
    Time(Rtt),
}

const SIZES: &str = "1bdp, 1000p, 2MiB or 250ms";

impl Size {
    /// `1bdp`, `1000p`, `250ms` or a number of bytes.
    pub(super) fn read(name: &str, text: &str) -> Result<Self, PathError> {
        let wrong = || {
            let wrong = format!("'{}' is not a size; write {SIZES}", short(text));
            PathError::at(name, wrong)
        };
        let lower = text.to_ascii_lowercase();
        if let Some(number) = lower.strip_suffix("bdp") {
            let number: f64 = number.trim().parse().map_err(|_| wrong())?;
            if !(0.001..=1000.0).contains(&number) {
                let wrong = format!("{number} BDP is outside 0.001bdp to 1000bdp");
                return Err(PathError::at(name, wrong));
            }
            #[expect(
                clippy::cast_possible_truncation,
                clippy::cast_sign_loss,
                reason = "in 1..=1 000 000 by the check above"
            )]
            return Ok(Size::Bdp((number * 1000.0).round() as u64));
        }
        if let Some(number) = lower.strip_suffix('p').filter(|n| n.trim().parse::<f64>().is_ok()) {
            let packets = number.trim().parse().ok().filter(|n| (1..=100_000_000).contains(n));
            return packets
                .map(Size::Packets)
                .ok_or_else(|| PathError::at(name, "from 1p to 100000000p"));
        }
        if lower.ends_with('s') && !lower.ends_with("bytes") {
            return quantity(name, text).map(Size::Time);
        }
        text.parse().map(Size::Bytes).map_err(|_| wrong())
    }
}

/// How a queue is managed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Discipline {
    DropTail,
    DropHead,
    CoDel,
    FqCoDel,
    Red,
    Pie,
}

impl Discipline {
    const ALL: [(Discipline, &str); 6] = [
        (Discipline::DropTail, "drop-tail"),
        (Discipline::DropHead, "drop-head"),
        (Discipline::CoDel, "codel"),
        (Discipline::FqCoDel, "fq_codel"),
        (Discipline::Red, "red"),
        (Discipline::Pie, "pie"),
    ];

    /// A discipline, or the size of a drop-tail queue.
    pub(super) fn read(name: &str, text: &str) -> Result<(Self, Option<Size>), PathError> {
        let named = Self::ALL.iter().find(|(_, word)| *word == text);
        if let Some((discipline, _)) = named {
            return Ok((*discipline, None));
        }
        if text.starts_with(|c: char| c.is_ascii_alphabetic()) && !text.starts_with("nan") {
            let known: Vec<&str> = Self::ALL.iter().map(|(_, word)| *word).collect();
            let wrong = format!(
                "'{}' is not a queue; write {SIZES} for a drop-tail queue, or one of {}",
                short(text),
                known.join(", ")
            );
            return Err(PathError::at(name, wrong));
        }
        Size::read(name, text).map(|size| (Discipline::DropTail, Some(size)))
    }

    pub(super) fn name(self) -> &'static str {
        Self::ALL.iter().find(|(queue, _)| *queue == self).map_or("", |(_, word)| word)
    }

    const fn options(self) -> &'static [Key] {
        match self {
            Discipline::DropTail | Discipline::DropHead => &[Key::Limit, Key::Mark],
            Discipline::CoDel => &[Key::Limit, Key::Target, Key::Interval, Key::Ecn],
            Discipline::FqCoDel => {
                &[Key::Limit, Key::Target, Key::Interval, Key::Ecn, Key::Flows, Key::Quantum]
            }
            Discipline::Red => {
                &[Key::Limit, Key::Min, Key::Max, Key::Probability, Key::Weight, Key::Ecn]
            }
            Discipline::Pie => &[Key::Limit, Key::Target, Key::Update, Key::MaxBurst, Key::Ecn],
        }
    }
}

/// What a queue is made for.
#[derive(Debug, Clone, Copy)]
pub(super) struct Bottleneck {
    /// In the long run.
    pub(super) rate: BitRate,
    /// Round trip without queueing.
    pub(super) rtt: Duration,
    /// Bytes of the longest packet, framing included.
    pub(super) packet: u64,
}

impl Bottleneck {
    pub(super) fn bdp(&self) -> ByteCount {
        self.rate.bytes_in(self.rtt)
    }

    fn limit(&self, size: Size) -> Limit {
        match size {
            Size::Bdp(thousandths) => {
                let bytes = u128::from(self.bdp().bytes()) * u128::from(thousandths) / 1000;
                Limit::Bytes(ByteCount::from_bytes(u64::try_from(bytes).unwrap_or(u64::MAX)))
            }
            Size::Packets(packets) => Limit::Packets(packets),
            Size::Bytes(bytes) => Limit::Bytes(bytes),
            Size::Time(time) => Limit::Bytes(self.rate.bytes_in(time.duration())),
        }
    }

    /// A limit in bytes, packets taken as of MTU size.
    pub(super) fn bytes(&self, limit: Limit) -> ByteCount {
        match limit {
            Limit::Bytes(bytes) => bytes,
            Limit::Packets(packets) => ByteCount::from_bytes(packets.saturating_mul(self.packet)),
        }
    }

    fn packet_time(&self) -> Duration {
        self.rate.time_for(ByteCount::from_bytes(self.packet))
    }
}

/// A queue as it was asked.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct QueueAsked {
    pub(super) discipline: Discipline,
    size: Option<Size>,
    options: BTreeMap<Key, Setting>,
}

impl Default for QueueAsked {
    fn default() -> Self {
        QueueAsked::new(Discipline::DropTail, None)
    }
}

impl QueueAsked {
    pub(super) const fn new(discipline: Discipline, size: Option<Size>) -> Self {
        QueueAsked { discipline, size, options: BTreeMap::new() }
    }

    pub(super) fn set(&mut self, key: Key, option: Setting) {
        self.options.insert(key, option);
    }

    /// The size that was asked, wherever it stood.
    pub(super) fn size(&self) -> Option<Size> {
        self.size.or_else(|| self.size_of(Key::Limit))
    }

    fn size_of(&self, key: Key) -> Option<Size> {
        match self.options.get(&key) {
            Some(Setting::Size(size)) => Some(*size),
            _ => None,
        }
    }

    fn time(&self, key: Key) -> Option<Duration> {
        match self.options.get(&key) {
            Some(Setting::Time(time)) => Some(time.duration()),
            _ => None,
        }
    }

    fn flag(&self, key: Key) -> Option<bool> {
        match self.options.get(&key) {
            Some(Setting::Flag(flag)) => Some(*flag),
            _ => None,
        }
    }

    fn number(&self, key: Key) -> Option<u32> {
        match self.options.get(&key) {
            Some(Setting::Number(number)) => Some(*number),
            _ => None,
        }
    }

    /// Where the size stands, for messages.
    fn size_key(&self) -> &'static str {
        if self.options.contains_key(&Key::Limit) { "limit" } else { "queue" }
    }

    /// As the link takes it.
    pub(super) fn queue(&self, at: &Bottleneck) -> Queue {
        let limit = self.limit(at);
        let fifo = Fifo { limit, mark: self.size_of(Key::Mark).map(|mark| at.limit(mark)) };
        let ecn = self.flag(Key::Ecn);
        match self.discipline {
            Discipline::DropTail => Queue::DropTail(fifo),
            Discipline::DropHead => Queue::DropHead(fifo),
            Discipline::CoDel => Queue::CoDel(self.codel(at, limit, ecn.unwrap_or(false))),
            Discipline::FqCoDel => Queue::FqCoDel(FqCoDel {
                // RFC 8290 marks unless told otherwise, as Linux does.
                codel: self.codel(at, limit, ecn.unwrap_or(true)),
                flows: self.number(Key::Flows).unwrap_or(1024),
                // RFC 8290, section 5.2.4: one MTU with an Ethernet header.
                quantum: self.number(Key::Quantum).unwrap_or_else(|| {
                    u32::try_from(at.packet.saturating_add(14)).unwrap_or(u32::MAX)
                }),
            }),
            Discipline::Red => Queue::Red(self.red(at, limit, ecn.unwrap_or(false))),
            Discipline::Pie => Queue::Pie(Pie {
                // RFC 8033, sections 4.2 and 4.4.
                target: self.time(Key::Target).unwrap_or(Duration::from_millis(15)),
                update: self.time(Key::Update).unwrap_or(Duration::from_millis(15)),
                burst: self.time(Key::MaxBurst).unwrap_or(Duration::from_millis(150)),
                limit,
                ecn: ecn.unwrap_or(false),
            }),
        }
    }

    fn limit(&self, at: &Bottleneck) -> Limit {
        if let Some(size) = self.size() {
            return at.limit(size);
        }
        match self.discipline {
            Discipline::DropTail | Discipline::DropHead | Discipline::Red => {
                let least = ByteCount::from_bytes(at.packet * LEAST_PACKETS);
                Limit::Bytes(at.bdp().max(least))
            }
            Discipline::CoDel | Discipline::FqCoDel | Discipline::Pie => {
                let (packets, bytes) = (Limit::Packets(AQM_PACKETS), at.bdp().times(AQM_BDPS));
                if at.bytes(packets) < bytes { Limit::Bytes(bytes) } else { packets }
            }
        }
    }

    fn codel(&self, at: &Bottleneck, limit: Limit, ecn: bool) -> CoDel {
        // RFC 8289, section 4.2: 5 ms within 100 ms. A target that is less than
        // one packet takes would drop from a queue of one.
        let usual = Duration::from_millis(5);
        let target = self.time(Key::Target).unwrap_or_else(|| {
            let packet = at.packet_time();
            usual.max(packet.saturating_add(packet / 2))
        });
        // What the target is more than usual, the interval is too: there must
        // be time within it for the queue to come below the target.
        let more = target.saturating_sub(usual);
        let interval =
            self.time(Key::Interval).unwrap_or(Duration::from_millis(100).saturating_add(more));
        CoDel { target, interval, limit, ecn }
    }

    fn red(&self, at: &Bottleneck, limit: Limit, ecn: bool) -> Red {
        let bytes = |key| self.size_of(key).map(|size| at.bytes(at.limit(size)));
        // Gentle RED reaches certainty at twice `max`: at the limit then.
        // Floyd ("RED: Discussions of Setting Parameters", 1997) takes a third
        // of `max` for `min`, 0.1 for the probability, 0.002 for the weight.
        let half = ByteCount::from_bytes(at.bytes(limit).bytes() / 2);
        let max = bytes(Key::Max).unwrap_or(half);
        let min = bytes(Key::Min).unwrap_or(ByteCount::from_bytes(max.bytes() / 3));
        let probability = match self.options.get(&Key::Probability) {
            Some(Setting::Share(share)) => *share,
            _ => "10%".parse().unwrap_or(Probability::ALWAYS),
        };
        let weight = self.number(Key::Weight).and_then(|weight| u8::try_from(weight).ok());
        Red { min, max, probability, weight: weight.unwrap_or(9), limit, ecn }
    }

    /// What is wrong with it, at that bottleneck.
    pub(super) fn check(&self, at: Option<&Bottleneck>) -> Result<(), PathError> {
        let discipline = self.discipline;
        let has = discipline.options();
        if let Some(strange) = self.options.keys().find(|key| !has.contains(key)) {
            let has: Vec<&str> = has.iter().map(|key| key.name()).collect();
            let wrong = format!(
                "a {} queue has no such option; it has {}",
                discipline.name(),
                has.join(", ")
            );
            return Err(PathError::at(strange.name(), wrong));
        }
        if self.size.is_some() && self.options.contains_key(&Key::Limit) {
            let wrong = "the size stands in queue= already; give it once";
            return Err(PathError::at("limit", wrong));
        }
        at.map_or(Ok(()), |at| self.check_at(at))
    }

    fn check_at(&self, at: &Bottleneck) -> Result<(), PathError> {
        let queue = self.queue(at);
        let limit = at.bytes(queue.limit());
        if limit.bytes() < at.packet {
            let (key, least) = (self.size_key(), at.packet);
            let wrong = format!(
                "{limit} hold not one packet of {least} bytes; the least is {key}={least}, or {key}=1p"
            );
            return Err(PathError::at(key, wrong));
        }
        match queue {
            Queue::CoDel(codel) => check_codel(&codel, at),
            Queue::FqCoDel(fq) => check_codel(&fq.codel, at),
            Queue::Red(red) if red.min >= red.max => {
                let wrong = format!("{} is not less than max, {}", red.min, red.max);
                Err(PathError::at("min", wrong))
            }
            Queue::Red(red) if red.max > limit => {
                let wrong = format!("{} is beyond the limit, {limit}; raise limit=", red.max);
                Err(PathError::at("max", wrong))
            }
            _ => Ok(()),
        }
    }

    /// In words: `1 BDP (2.16 MB)`, `fq_codel, target 5 ms, …`.
    pub(super) fn in_words(&self, at: &Bottleneck) -> String {
        let queue = self.queue(at);
        let limit = queue.limit();
        let size = match self.size() {
            None if at.bytes(limit) == at.bdp() => Some(Size::Bdp(1000)),
            size => size,
        };
        let limit = size_in_words(size, limit, at.bytes(limit));
        let time = |time: Duration| {
            Rtt::from_nanos(u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)).to_string()
        };
        let mut words = match self.discipline {
            Discipline::DropTail => Vec::new(),
            other => vec![other.name().to_owned()],
        };
        let mut ecn = false;
        match queue {
            Queue::DropTail(fifo) | Queue::DropHead(fifo) => {
                words.push(limit);
                if let Some(mark) = fifo.mark {
                    let mark = size_in_words(self.size_of(Key::Mark), mark, at.bytes(mark));
                    words.push(format!("marks above {mark}"));
                }
                return words.join(", ");
            }
            Queue::CoDel(CoDel { target, interval, ecn: marks, .. })
            | Queue::FqCoDel(FqCoDel {
                codel: CoDel { target, interval, ecn: marks, .. }, ..
            }) => {
                words.push(format!("target {}, interval {}", time(target), time(interval)));
                ecn = marks;
            }
            Queue::Red(red) => {
                words.push(format!("min {}, max {}", red.min, red.max));
                words.push(format!("probability {}, weight {}", red.probability, red.weight));
                ecn |= red.ecn;
            }
            Queue::Pie(pie) => {
                words.push(format!("target {}, update {}", time(pie.target), time(pie.update)));
                words.push(format!("max burst {}", time(pie.burst)));
                ecn |= pie.ecn;
            }
        }
        words.push(format!("limit {limit}"));
        if let Queue::FqCoDel(fq) = queue {
            words.push(format!("{} flows, quantum {}", fq.flows, fq.quantum));
        }
        words.push(if ecn { "marks" } else { "drops" }.to_owned());
        words.join(", ")
    }
}

fn check_codel(codel: &CoDel, at: &Bottleneck) -> Result<(), PathError> {
    let packet = at.packet_time();
    let words =
        |time: Duration| Rtt::from_nanos(u64::try_from(time.as_nanos()).unwrap_or(u64::MAX));
    if codel.target < packet {
        let wrong = format!(
            "{} is less than the {} that one packet takes at {}; leave it out, or write more",
            words(codel.target),
            words(packet),
            at.rate
        );
        return Err(PathError::at("target", wrong));
    }
    if codel.interval <= codel.target {
        let wrong = format!(
            "{} is not longer than the target, {}; RFC 8289 wants ten to twenty times as much",
            words(codel.interval),
            words(codel.target)
        );
        return Err(PathError::at("interval", wrong));
    }
    Ok(())
}
