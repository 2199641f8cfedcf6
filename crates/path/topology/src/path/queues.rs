//! Queue settings: discipline, size, options, and defaults.

use super::bottleneck::Bottleneck;
use super::discipline::Discipline;
use super::error::PathError;
use super::key::Key;
use super::setting::Setting;
use super::size::{Size, size_in_words};
use link::{CoDel, Fifo, FqCoDel, Limit, Pie, Queue, Red};
use std::collections::BTreeMap;
use std::time::Duration;
use units::{ByteCount, Probability, Rtt};

/// Minimum default queue in packets of MTU size: a train of 64 KiB, which arrives
/// at one moment, fits.
const MIN_PACKETS: u64 = 64;

/// Linux's default limit of CoDel and FQ-CoDel, in packets: a safety limit, as the
/// delay controls the queue.
const AQM_PACKETS: u64 = 10_240;

/// The same in BDPs, so that a long fat path never reaches it either.
const AQM_BDPS: u64 = 4;

/// The settings of a queue.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct QueueSetting {
    pub(super) discipline: Discipline,
    size: Option<Size>,
    options: BTreeMap<Key, Setting>,
}

impl Default for QueueSetting {
    fn default() -> Self {
        QueueSetting::new(Discipline::DropTail, None)
    }
}

impl QueueSetting {
    pub(super) const fn new(discipline: Discipline, size: Option<Size>) -> Self {
        QueueSetting { discipline, size, options: BTreeMap::new() }
    }

    pub(super) fn set(&mut self, key: Key, option: Setting) {
        self.options.insert(key, option);
    }

    /// The size, given by `queue=` or `limit=`.
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

    /// The key that gave the size, for messages.
    fn size_key(&self) -> &'static str {
        if self.options.contains_key(&Key::Limit) { "limit" } else { "queue" }
    }

    /// The settings for the link.
    pub(super) fn queue(&self, at: &Bottleneck) -> Queue {
        let limit = self.limit(at);
        let fifo = Fifo { limit, mark: self.size_of(Key::Mark).map(|mark| at.limit(mark)) };
        let ecn = self.flag(Key::Ecn);
        match self.discipline {
            Discipline::DropTail => Queue::DropTail(fifo),
            Discipline::DropHead => Queue::DropHead(fifo),
            Discipline::CoDel => Queue::CoDel(self.codel(at, limit, ecn.unwrap_or(false))),
            Discipline::FqCoDel => Queue::FqCoDel(FqCoDel {
                // ECN is on by default in RFC 8290 and Linux.
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
                let least = ByteCount::from_bytes(at.packet * MIN_PACKETS);
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
        // A longer target makes the interval longer by the same time: the queue
        // must be able to fall below the target within it.
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

    /// Checks the settings for that bottleneck.
    pub(super) fn check(&self, at: Option<&Bottleneck>) -> Result<(), PathError> {
        let entry = self.discipline.entry();
        if let Some(strange) = self.options.keys().find(|key| entry.default_of(**key).is_none()) {
            let has: Vec<&str> = entry.options.iter().map(|(key, _)| key.name()).collect();
            let wrong = format!(
                "not an option of a {} queue; its options are {}",
                entry.name,
                has.join(", ")
            );
            return Err(PathError::at(strange.name(), wrong));
        }
        if self.size.is_some() && self.options.contains_key(&Key::Limit) {
            let wrong = "the size is given in queue= already; give it once";
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
                "{limit} cannot hold a packet of {least} bytes; the minimum is {key}={least}, or {key}=1p"
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
                let wrong = format!("{} is above the limit, {limit}; raise limit=", red.max);
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
                    words.push(format!("ECN marks above {mark}"));
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
        words.push(if ecn { "ECN on" } else { "ECN off" }.to_owned());
        words.join(", ")
    }
}

fn check_codel(codel: &CoDel, at: &Bottleneck) -> Result<(), PathError> {
    let packet = at.packet_time();
    let words =
        |time: Duration| Rtt::from_nanos(u64::try_from(time.as_nanos()).unwrap_or(u64::MAX));
    if codel.target < packet {
        let wrong = format!(
            "{} is less than the {} that a packet takes at {}; omit it, or write a longer time",
            words(codel.target),
            words(packet),
            at.rate
        );
        return Err(PathError::at("target", wrong));
    }
    if codel.interval <= codel.target {
        let wrong = format!(
            "{} is not longer than the target, {}; RFC 8289 recommends ten to twenty times the target",
            words(codel.interval),
            words(codel.target)
        );
        return Err(PathError::at("interval", wrong));
    }
    Ok(())
}
