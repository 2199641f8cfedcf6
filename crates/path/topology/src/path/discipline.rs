//! The disciplines of queues, with their options.

use super::bottleneck::Bottleneck;
use super::error::{PathError, short};
use super::key::Key;
use super::size::{SIZES, Size, size_in_words};
use link::{CoDel, DualPi2, Fifo, FqCoDel, Limit, Pie, Queue, Red, Xcp};
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

/// A queue discipline.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Discipline {
    DropTail,
    DropHead,
    CoDel,
    FqCoDel,
    Red,
    Pie,
    DualPi2,
    Xcp,
}

/// What a path gives of a queue's options; `None` where it leaves one out.
pub(super) trait Options {
    fn size_of(&self, key: Key) -> Option<Size>;
    fn time(&self, key: Key) -> Option<Duration>;
    fn flag(&self, key: Key) -> Option<bool>;
    fn number(&self, key: Key) -> Option<u32>;
    fn share(&self, key: Key) -> Option<Probability>;
}

/// A discipline as a path names it.
pub(super) struct DisciplineEntry {
    discipline: Discipline,
    /// What stands after `queue=`.
    pub(super) name: &'static str,
    /// Its options, each with its default as the help prints it.
    pub(super) options: &'static [(Key, &'static str)],
}

const FIFO_OPTIONS: &[(Key, &str)] = &[(Key::Limit, BUFFER), (Key::Mark, "none")];

/// Every discipline: the one table that parsing, messages and help are made from. A
/// variant that is missing here is never constructed, which the compiler reports.
pub(super) const DISCIPLINES: &[DisciplineEntry] = &[
    DisciplineEntry { discipline: Discipline::DropTail, name: "drop-tail", options: FIFO_OPTIONS },
    DisciplineEntry { discipline: Discipline::DropHead, name: "drop-head", options: FIFO_OPTIONS },
    DisciplineEntry {
        discipline: Discipline::CoDel,
        name: "codel",
        options: &[
            (Key::Limit, SAFETY_LIMIT),
            (Key::Target, "5ms"),
            (Key::Interval, "100ms"),
            (Key::Ecn, "no"),
        ],
    },
    DisciplineEntry {
        discipline: Discipline::FqCoDel,
        name: "fq_codel",
        options: &[
            (Key::Limit, SAFETY_LIMIT),
            (Key::Target, "5ms"),
            (Key::Interval, "100ms"),
            (Key::Ecn, "yes"),
            (Key::Flows, "1024"),
            (Key::Quantum, "one packet and 14 bytes"),
        ],
    },
    DisciplineEntry {
        discipline: Discipline::Red,
        name: "red",
        options: &[
            (Key::Limit, BUFFER),
            (Key::Min, "max / 3"),
            (Key::Max, "limit / 2"),
            (Key::Probability, "10%"),
            (Key::Weight, "9"),
            (Key::Ecn, "no"),
        ],
    },
    DisciplineEntry {
        discipline: Discipline::Pie,
        name: "pie",
        options: &[
            (Key::Limit, SAFETY_LIMIT),
            (Key::Target, "15ms"),
            (Key::Update, "15ms"),
            (Key::MaxBurst, "150ms"),
            (Key::Ecn, "no"),
        ],
    },
    DisciplineEntry {
        discipline: Discipline::DualPi2,
        name: "dualpi2",
        options: &[
            (Key::Limit, SAFETY_LIMIT),
            (Key::Target, "15ms"),
            (Key::Update, "16ms"),
            (Key::Step, "1ms"),
            (Key::Coupling, "2"),
            (Key::ClassicShare, "10%"),
        ],
    },
    DisciplineEntry { discipline: Discipline::Xcp, name: "xcp", options: &[(Key::Limit, BUFFER)] },
];

/// Defaults of `limit`, see `QueueSetting::limit`.
const BUFFER: &str = "1bdp, at least 64p";
const SAFETY_LIMIT: &str = "10240p, at least 4bdp";

/// What stands after `queue=`, for every discipline.
pub(super) fn names() -> Vec<&'static str> {
    DISCIPLINES.iter().map(|entry| entry.name).collect()
}

impl Key {
    /// Whether it is an option of the queue given before it.
    pub(super) fn is_queue_option(self) -> bool {
        DISCIPLINES.iter().any(|entry| entry.default_of(self).is_some())
    }
}

impl DisciplineEntry {
    /// The default of an option; `None` if the discipline does not have it.
    pub(super) fn default_of(&self, key: Key) -> Option<&'static str> {
        self.options.iter().find(|(option, _)| *option == key).map(|(_, default)| *default)
    }
}

impl Discipline {
    /// A discipline, or the size of a drop-tail queue.
    pub(super) fn read(name: &str, text: &str) -> Result<(Self, Option<Size>), PathError> {
        if let Some(named) = DISCIPLINES.iter().find(|entry| entry.name == text) {
            return Ok((named.discipline, None));
        }
        if text.starts_with(|c: char| c.is_ascii_alphabetic()) && !text.starts_with("nan") {
            let wrong = format!(
                "'{}' is not a queue; write {SIZES} for a drop-tail queue, or one of {}",
                short(text),
                names().join(", ")
            );
            return Err(PathError::at(name, wrong));
        }
        Size::read(name, text).map(|size| (Discipline::DropTail, Some(size)))
    }

    pub(super) fn entry(self) -> &'static DisciplineEntry {
        let entry = DISCIPLINES.iter().find(|entry| entry.discipline == self);
        entry.unwrap_or(&DISCIPLINES[0])
    }

    pub(super) fn name(self) -> &'static str {
        self.entry().name
    }

    /// The settings for the link.
    pub(super) fn queue(self, options: &impl Options, at: &Bottleneck, limit: Limit) -> Queue {
        let fifo = Fifo { limit, mark: options.size_of(Key::Mark).map(|mark| at.limit(mark)) };
        let ecn = options.flag(Key::Ecn);
        match self {
            Discipline::DropTail => Queue::DropTail(fifo),
            Discipline::DropHead => Queue::DropHead(fifo),
            Discipline::CoDel => Queue::CoDel(codel(options, at, limit, ecn.unwrap_or(false))),
            Discipline::FqCoDel => Queue::FqCoDel(FqCoDel {
                // ECN is on by default in RFC 8290 and Linux.
                codel: codel(options, at, limit, ecn.unwrap_or(true)),
                flows: options.number(Key::Flows).unwrap_or(1024),
                // RFC 8290, section 5.2.4: one MTU with an Ethernet header.
                quantum: options.number(Key::Quantum).unwrap_or_else(|| {
                    u32::try_from(at.packet.saturating_add(14)).unwrap_or(u32::MAX)
                }),
            }),
            Discipline::Red => Queue::Red(red(options, at, limit, ecn.unwrap_or(false))),
            Discipline::Pie => Queue::Pie(Pie {
                // RFC 8033, sections 4.2 and 4.4.
                target: options.time(Key::Target).unwrap_or(Duration::from_millis(15)),
                update: options.time(Key::Update).unwrap_or(Duration::from_millis(15)),
                burst: options.time(Key::MaxBurst).unwrap_or(Duration::from_millis(150)),
                limit,
                ecn: ecn.unwrap_or(false),
            }),
            Discipline::DualPi2 => Queue::DualPi2(dualpi2(options, limit)),
            Discipline::Xcp => Queue::Xcp(Xcp { limit }),
        }
    }

    /// The limit where none is given.
    pub(super) fn default_limit(self, at: &Bottleneck) -> Limit {
        match self {
            Discipline::DropTail | Discipline::DropHead | Discipline::Red | Discipline::Xcp => {
                let least = ByteCount::from_bytes(at.packet * MIN_PACKETS);
                Limit::Bytes(at.bdp().max(least))
            }
            Discipline::CoDel | Discipline::FqCoDel | Discipline::Pie | Discipline::DualPi2 => {
                let (packets, bytes) = (Limit::Packets(AQM_PACKETS), at.bdp().times(AQM_BDPS));
                if at.bytes(packets) < bytes { Limit::Bytes(bytes) } else { packets }
            }
        }
    }

    /// The queue in words, with its limit.
    pub(super) fn in_words(
        self,
        queue: &Queue,
        options: &impl Options,
        at: &Bottleneck,
        limit: String,
    ) -> String {
        let time = |time: Duration| {
            Rtt::from_nanos(u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)).to_string()
        };
        let mut words = match self {
            Discipline::DropTail => Vec::new(),
            other => vec![other.name().to_owned()],
        };
        let mut ecn = false;
        match *queue {
            Queue::DropTail(fifo) | Queue::DropHead(fifo) => {
                words.push(limit);
                if let Some(mark) = fifo.mark {
                    let mark = size_in_words(options.size_of(Key::Mark), mark, at.bytes(mark));
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
            Queue::DualPi2(dual) => {
                words.push(format!("target {}, update {}", time(dual.target), time(dual.update)));
                words.push(format!("step {}, coupling {}", time(dual.step), dual.coupling));
                words.push(format!("classic share {}", dual.classic_share));
                words.push(format!("limit {limit}"));
                return words.join(", ");
            }
            Queue::Xcp(_) => {
                words.push(format!("limit {limit}"));
                return words.join(", ");
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

fn codel(options: &impl Options, at: &Bottleneck, limit: Limit, ecn: bool) -> CoDel {
    // RFC 8289, section 4.2: 5 ms within 100 ms. A target that is less than
    // one packet takes would drop from a queue of one.
    let usual = Duration::from_millis(5);
    let target = options.time(Key::Target).unwrap_or_else(|| {
        let packet = at.packet_time();
        usual.max(packet.saturating_add(packet / 2))
    });
    // A longer target makes the interval longer by the same time: the queue
    // must be able to fall below the target within it.
    let more = target.saturating_sub(usual);
    let interval =
        options.time(Key::Interval).unwrap_or(Duration::from_millis(100).saturating_add(more));
    CoDel { target, interval, limit, ecn }
}

/// The defaults are those of RFC 9332, appendix A.
fn dualpi2(options: &impl Options, limit: Limit) -> DualPi2 {
    let tenth = || "10%".parse().unwrap_or(Probability::ALWAYS);
    DualPi2 {
        target: options.time(Key::Target).unwrap_or(Duration::from_millis(15)),
        update: options.time(Key::Update).unwrap_or(Duration::from_millis(16)),
        step: options.time(Key::Step).unwrap_or(Duration::from_millis(1)),
        coupling: options.number(Key::Coupling).unwrap_or(2),
        classic_share: options.share(Key::ClassicShare).unwrap_or_else(tenth),
        limit,
    }
}

fn red(options: &impl Options, at: &Bottleneck, limit: Limit, ecn: bool) -> Red {
    let bytes = |key| options.size_of(key).map(|size| at.bytes(at.limit(size)));
    // Gentle RED reaches certainty at twice `max`: at the limit then.
    // Floyd ("RED: Discussions of Setting Parameters", 1997) takes a third
    // of `max` for `min`, 0.1 for the probability, 0.002 for the weight.
    let half = ByteCount::from_bytes(at.bytes(limit).bytes() / 2);
    let max = bytes(Key::Max).unwrap_or(half);
    let min = bytes(Key::Min).unwrap_or(ByteCount::from_bytes(max.bytes() / 3));
    let tenth = || "10%".parse().unwrap_or(Probability::ALWAYS);
    let probability = options.share(Key::Probability).unwrap_or_else(tenth);
    let weight = options.number(Key::Weight).and_then(|weight| u8::try_from(weight).ok());
    Red { min, max, probability, weight: weight.unwrap_or(9), limit, ecn }
}
