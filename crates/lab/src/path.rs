//! What is asked of a path: `rate=100mbit,rtt=173ms,loss=0.1%,queue=1bdp`.

use link::{LinkConfig, Queue};
use std::fmt;
use std::str::FromStr;
use std::time::Duration;
use units::{BitRate, ByteCount, LossRatio, ParseError, Rtt};

/// Smallest MTU of a path: what IPv6 asks of every link (RFC 8200, section 5).
pub const MIN_MTU: u32 = 1280;

/// Largest MTU: the longest IPv4 packet there is.
pub const MAX_MTU: u32 = 65_535;

/// A path with the same link in both directions.
#[derive(Debug, Clone, PartialEq)]
pub struct PathSpec {
    /// Rate of the bottleneck, in each direction.
    pub rate: BitRate,
    /// Round trip without serialisation and queueing; half of it each way.
    pub rtt: Rtt,
    /// Random loss, per direction and packet of MTU size.
    pub loss: LossRatio,
    /// Drop-tail queue before the bottleneck, in each direction.
    pub queue: QueueSpec,
    /// Framing bytes counted on each packet: 0 counts IP bytes.
    pub overhead: u32,
    /// Largest IP packet in bytes.
    pub mtu: u32,
    /// Seed of the losses; `None` draws a new one for every run.
    pub seed: Option<u64>,
}

/// The size of a queue in the unit it was asked in.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum QueueSpec {
    /// What nobody asked for: one BDP, and at least [`QueueSpec::LEAST_PACKETS`].
    Default,
    /// A multiple of the BDP, in thousandths.
    Bdp(u64),
    /// Packets of MTU size or less.
    Packets(u64),
    /// Bytes, framing included.
    Bytes(ByteCount),
    /// What the bottleneck sends in so long.
    Time(Rtt),
}

impl QueueSpec {
    /// Least queue, in packets of MTU size, where none is asked for: a train
    /// of 64 KiB arrives at one moment and fits.
    pub const LEAST_PACKETS: u64 = 64;
}

/// A path that cannot be.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PathError {
    /// A value does not parse.
    #[error("--link {key}: {source}")]
    Value {
        /// The key it stands at.
        key: String,
        /// What is wrong with it.
        source: ParseError,
    },
    /// The whole does not.
    #[error("--link: {0}")]
    Shape(String),
}

impl PathSpec {
    /// A path of that rate and round trip, everything else as it is by default.
    #[must_use]
    pub const fn new(rate: BitRate, rtt: Rtt) -> Self {
        PathSpec {
            rate,
            rtt,
            loss: LossRatio::NONE,
            queue: QueueSpec::Default,
            overhead: 0,
            mtu: 1500,
            seed: None,
        }
    }

    /// Bandwidth-delay product: rate times round trip.
    #[must_use]
    pub fn bdp(&self) -> ByteCount {
        self.rate.bytes_in(self.rtt.duration())
    }

    /// The queue as the link counts it.
    #[must_use]
    pub fn queue(&self) -> Queue {
        match self.queue {
            QueueSpec::Default => {
                let least = u64::from(self.mtu + self.overhead) * QueueSpec::LEAST_PACKETS;
                Queue::Bytes(self.bdp().max(ByteCount::from_bytes(least)))
            }
            QueueSpec::Bdp(thousandths) => {
                let bytes = u128::from(self.bdp().bytes()) * u128::from(thousandths) / 1000;
                Queue::Bytes(ByteCount::from_bytes(u64::try_from(bytes).unwrap_or(u64::MAX)))
            }
            QueueSpec::Packets(packets) => Queue::Packets(packets),
            QueueSpec::Bytes(bytes) => Queue::Bytes(bytes),
            QueueSpec::Time(time) => Queue::Bytes(self.rate.bytes_in(time.duration())),
        }
    }

    /// The most bytes the queue can hold.
    #[must_use]
    pub fn queue_bytes(&self) -> ByteCount {
        match self.queue() {
            Queue::Bytes(bytes) => bytes,
            Queue::Packets(packets) => {
                ByteCount::from_bytes(packets.saturating_mul(u64::from(self.mtu + self.overhead)))
            }
        }
    }

    /// The queue in words: `1 BDP (2.16 MB)`.
    #[must_use]
    pub fn queue_in_words(&self) -> String {
        let bytes = self.queue_bytes();
        match self.queue {
            QueueSpec::Default if bytes == self.bdp() => format!("1 BDP ({bytes})"),
            QueueSpec::Default | QueueSpec::Bytes(_) => bytes.to_string(),
            QueueSpec::Bdp(1000) => format!("1 BDP ({bytes})"),
            QueueSpec::Bdp(thousandths) => {
                format!("{}.{:03} BDP ({bytes})", thousandths / 1000, thousandths % 1000)
            }
            QueueSpec::Packets(packets) => format!("{packets} packets"),
            QueueSpec::Time(time) => format!("{time} ({bytes})"),
        }
    }

    /// Memory that packets on the wire and in the queues can take, both directions.
    #[must_use]
    pub fn memory(&self) -> ByteCount {
        self.bdp().plus(self.queue_bytes().times(2))
    }

    /// The link from client to server, and the one back.
    #[must_use]
    pub fn links(&self, seed: u64) -> [LinkConfig; 2] {
        let up = self.rtt.nanos() / 2;
        // An odd nanosecond goes into the way back; the seeds of the two ways
        // differ, or both would lose the same packets.
        [(up, seed), (self.rtt.nanos() - up, !seed)].map(|(delay, seed)| LinkConfig {
            rate: self.rate,
            delay: Duration::from_nanos(delay),
            loss: self.loss,
            queue: self.queue(),
            overhead: self.overhead,
            seed,
        })
    }
}

impl fmt::Display for PathSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} each way counting IP bytes", self.rate)?;
        if self.overhead > 0 {
            write!(f, " and {} of framing a packet", self.overhead)?;
        }
        write!(
            f,
            ", RTT {} without serialisation, loss {} each way, queue {}",
            self.rtt,
            self.loss,
            self.queue_in_words()
        )
    }
}

impl FromStr for PathSpec {
    type Err = PathError;

    fn from_str(text: &str) -> Result<Self, PathError> {
        let shape = |text: String| PathError::Shape(text);
        let mut rate = None;
        let mut rtt = None;
        let mut spec = PathSpec::new(BitRate::ZERO, Rtt::ZERO);
        let mut seen = Vec::new();
        for part in text.split(',').map(str::trim).filter(|part| !part.is_empty()) {
            let Some((key, value)) = part.split_once('=').map(|(k, v)| (k.trim(), v.trim())) else {
                return Err(shape(format!(
                    "'{}' is not KEY=VALUE, such as rate=100mbit",
                    short(part)
                )));
            };
            if seen.contains(&key) {
                return Err(shape(format!("{} stands twice; give it once", short(key))));
            }
            seen.push(key);
            match key {
                "rate" => rate = Some(parse(key, value)?),
                "rtt" => rtt = Some(parse(key, value)?),
                "loss" => spec.loss = parse(key, value)?,
                "queue" => spec.queue = queue(value)?,
                "overhead" => {
                    spec.overhead = whole(key, value, 0, 1000, "overhead=38 for Ethernet")?;
                }
                "mtu" => spec.mtu = whole(key, value, MIN_MTU, MAX_MTU, "mtu=1500")?,
                "seed" => {
                    spec.seed = Some(value.parse().map_err(|_| {
                        shape(format!("seed: '{}' is not a whole number", short(value)))
                    })?);
                }
                _ => {
                    let known = "rate, rtt, loss, queue, overhead, mtu, seed";
                    return Err(shape(format!(
                        "there is no '{}'; the keys are {known}",
                        short(key)
                    )));
                }
            }
        }
        let missing = |key| shape(format!("{key} is missing; write rate=100mbit,rtt=173ms"));
        spec.rate = rate.ok_or_else(|| missing("rate"))?;
        spec.rtt = rtt.ok_or_else(|| missing("rtt"))?;
        if let Queue::Bytes(bytes) = spec.queue()
            && bytes.bytes() < u64::from(spec.mtu + spec.overhead)
        {
            let least = spec.mtu + spec.overhead;
            return Err(shape(format!(
                "queue: {bytes} hold not one packet of {least} bytes; the least is queue={least}, or queue=1p"
            )));
        }
        Ok(spec)
    }
}

fn parse<T: FromStr<Err = ParseError>>(key: &str, value: &str) -> Result<T, PathError> {
    value.parse().map_err(|source| PathError::Value { key: key.to_owned(), source })
}

fn whole(key: &str, value: &str, least: u32, most: u32, example: &str) -> Result<u32, PathError> {
    let wrong = || {
        PathError::Shape(format!(
            "{key}: '{}' is not a number of bytes from {least} to {most}; write {example}",
            short(value)
        ))
    };
    value.parse().ok().filter(|number| (least..=most).contains(number)).ok_or_else(wrong)
}

/// `1bdp`, `1000p`, `250ms` or a size.
fn queue(value: &str) -> Result<QueueSpec, PathError> {
    let wrong = || {
        PathError::Shape(format!(
            "queue: '{}' is not a queue; write 1bdp, 1000p, 2MiB or 250ms",
            short(value)
        ))
    };
    let lower = value.to_ascii_lowercase();
    if let Some(number) = lower.strip_suffix("bdp") {
        let number: f64 = number.trim().parse().map_err(|_| wrong())?;
        if !(0.001..=1000.0).contains(&number) {
            return Err(PathError::Shape(format!(
                "queue: {number} BDP is outside 0.001bdp to 1000bdp"
            )));
        }
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "in 1..=1 000 000 by the check above"
        )]
        return Ok(QueueSpec::Bdp((number * 1000.0).round() as u64));
    }
    if let Some(number) = lower.strip_suffix('p').filter(|n| n.trim().parse::<f64>().is_ok()) {
        let packets = number.trim().parse().ok().filter(|n| (1..=100_000_000).contains(n));
        return packets
            .map(QueueSpec::Packets)
            .ok_or_else(|| PathError::Shape("queue: from 1p to 100000000p".to_owned()));
    }
    if lower.ends_with('s') && !lower.ends_with("bytes") {
        return parse("queue", value).map(QueueSpec::Time);
    }
    value.parse().map(QueueSpec::Bytes).map_err(|_| wrong())
}

fn short(text: &str) -> String {
    text.chars().filter(|c| !c.is_control()).take(40).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn path(text: &str) -> PathSpec {
        text.parse().unwrap()
    }

    #[test]
    fn seed_zeros_path() {
        let spec = path("rate=100mbit,rtt=173ms");
        assert_eq!(spec.bdp(), ByteCount::from_bytes(2_162_500));
        assert_eq!(spec.queue(), Queue::Bytes(ByteCount::from_bytes(2_162_500)));
        let [up, down] = spec.links(1);
        assert_eq!(up.delay + down.delay, Duration::from_millis(173));
        assert_ne!(up.seed, down.seed);
    }

    #[test]
    fn queues_in_every_unit() {
        for (text, queue) in [
            ("1bdp", Queue::Bytes(ByteCount::from_bytes(2_162_500))),
            ("0.5bdp", Queue::Bytes(ByteCount::from_bytes(1_081_250))),
            ("1000p", Queue::Packets(1000)),
            ("2MiB", Queue::Bytes(ByteCount::from_bytes(2 << 20))),
            ("250ms", Queue::Bytes(ByteCount::from_bytes(3_125_000))),
            ("64000bytes", Queue::Bytes(ByteCount::from_bytes(64_000))),
        ] {
            assert_eq!(
                path(&format!("rate=100mbit,rtt=173ms,queue={text}")).queue(),
                queue,
                "{text}"
            );
        }
    }

    #[test]
    fn a_default_queue_takes_a_train_even_without_delay() {
        assert_eq!(
            path("rate=1gbit,rtt=0ms").queue(),
            Queue::Bytes(ByteCount::from_bytes(64 * 1500))
        );
    }

    #[test]
    fn refuses_in_one_line_that_names_the_remedy() {
        for (text, part) in [
            ("", "rate is missing"),
            ("rate=100mbit", "rtt is missing"),
            ("rate=0,rtt=1ms", "rate of zero"),
            ("rate=100mbit,rtt=-1ms", "cannot be negative"),
            ("rate=100mbit,rtt=173", "give the unit"),
            ("rate=100mbit,rtt=1ms,loss=120%", "less than 100 %"),
            ("rate=100mbit,rtt=1ms,rate=1gbit", "stands twice"),
            ("rate=100mbit,rtt=1ms,speed=3", "the keys are"),
            ("rate", "KEY=VALUE"),
            ("rate=100mbit,rtt=1ms,queue=fast", "write 1bdp"),
            ("rate=100mbit,rtt=1ms,queue=0p", "from 1p"),
            ("rate=100mbit,rtt=1ms,queue=-1p", "from 1p"),
            ("rate=100mbit,rtt=1ms,queue=nanbdp", "outside"),
            ("rate=100mbit,rtt=1ms,queue=100", "not one packet"),
            ("rate=100mbit,rtt=0ms,queue=1bdp", "not one packet"),
            ("rate=100mbit,rtt=1ms,mtu=100", "1280"),
            ("rate=100mbit,rtt=1ms,seed=x", "whole number"),
        ] {
            let error = text.parse::<PathSpec>().unwrap_err().to_string();
            assert!(error.contains(part) && !error.contains('\n'), "{text}: {error}");
        }
    }

    proptest::proptest! {
        #[test]
        fn any_text_is_answered(text in ".*") {
            let _ = text.parse::<PathSpec>();
        }

        #[test]
        fn any_values_are_answered(rate in ".{0,12}", queue in "[0-9.]{0,9}[a-zA-Z]{0,5}", mtu in proptest::num::u32::ANY) {
            if let Ok(spec) = format!("rate={rate},rtt=3600s,queue={queue},mtu={mtu}").parse::<PathSpec>() {
                let _ = (spec.memory(), spec.links(0), spec.to_string());
            }
        }
    }
}
