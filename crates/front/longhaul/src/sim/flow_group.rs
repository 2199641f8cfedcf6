//! Flows as people write them: `cubic`, `4xbbr,start=30s,stop=90s`, `reno,rate=10mbit`.

use crate::{Field, Problem};
use control::{Algorithm, NamedControl};
use std::time::Duration;
use tcp::{Application, BufferSize, KernelVersion, WindowSize, WriteLimit};
use topology::did_you_mean;
use twin::{ConnectionConfig, Ecn};
use units::{BitRate, ByteCount, Rtt};

/// Most flows of a simulation.
pub(crate) const MAX_FLOWS: u32 = 1000;

/// The control of flows that a program of the user controls.
pub(crate) const OWN: &str = "own";

/// Keys of a flow, with an example of each value.
const KEYS: [(&str, &str); 9] = [
    ("start", "start=30s"),
    ("stop", "stop=90s"),
    ("rate", "rate=10mbit"),
    ("bytes", "bytes=100MB"),
    ("pacing", "pacing=50mbit"),
    ("window", "window=64KiB"),
    ("delay", "delay=50ms"),
    ("ecn", "ecn=yes"),
    ("kernel", "kernel=6.1"),
];

/// The smallest receive window: one segment of TCP's default maximum (RFC 9293, section 3.7.1). A
/// flow always has one segment in flight.
const SMALLEST_WINDOW: ByteCount = ByteCount::from_bytes(536);

/// Bytes of one write of an application with a rate, as iperf3's.
const BLOCK: ByteCount = ByteCount::from_bytes(131_072);

/// Connections of a group start one after the other: those that start at the same moment would stay in
/// step.
pub(crate) const STAGGER: Duration = Duration::from_micros(200);

/// Flows that are alike: `[Nx]CONTROL[,KEY=VALUE…]`. With `psockets` each is several connections,
/// which share the rate of its application and its bytes.
///
/// | key | meaning |
/// |---|---|
/// | `start`, `stop` | when each begins and ends, since the start of the run |
/// | `rate` | rate of each application; unlimited without it |
/// | `bytes` | payload after which each ends |
/// | `pacing` | maximum pacing rate of each socket |
/// | `window` | maximum receive window of each |
/// | `delay` | delay of each one's own access link, in addition to the round trip of the path |
/// | `ecn` | `yes`: each negotiates ECN (RFC 3168); `dctcp` and `prague` always do |
/// | `kernel` | the Linux whose rules each sender follows: 6.1 or 6.18 |
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FlowGroup {
    /// As written.
    pub spec: String,
    /// How many there are, 1 to 1000.
    pub count: u32,
    /// Their congestion control; that of a program has none here.
    pub control: Option<NamedControl>,
    /// When they begin.
    pub start: Duration,
    /// When they end; `None`: with the run, or with `bytes`.
    pub stop: Option<Duration>,
    /// Rate of each application.
    pub rate: Option<BitRate>,
    /// Payload after which each ends.
    pub bytes: Option<ByteCount>,
    /// Maximum pacing rate of each.
    pub pacing: Option<BitRate>,
    /// Maximum receive window of each.
    pub window: Option<ByteCount>,
    /// What the round trip of each has beyond that of the path.
    pub delay: Duration,
    /// True if they negotiate ECN.
    pub ecn: bool,
    /// The Linux that the senders follow.
    pub kernel: KernelVersion,
}

impl FlowGroup {
    /// Bulk flows from the start to the end.
    pub(crate) fn bulk(control: Algorithm) -> Self {
        FlowGroup {
            spec: control.name().to_owned(),
            count: 1,
            control: Some(control.into()),
            start: Duration::ZERO,
            stop: None,
            rate: None,
            bytes: None,
            pacing: None,
            window: None,
            delay: Duration::ZERO,
            ecn: false,
            kernel: KernelVersion::default(),
        }
    }

    /// Parses a group.
    ///
    /// # Errors
    /// The wrong part, and what would be accepted.
    pub fn parse(text: &str) -> Result<Self, Problem> {
        let mut parts = text.split(',').map(str::trim);
        let first = parts.next().unwrap_or_default();
        let (count, name) = counted(first)?;
        let mut group = FlowGroup {
            spec: text.trim().to_owned(),
            count,
            ..FlowGroup::bulk(Algorithm::default())
        };
        group.control = if name == OWN { None } else { Some(control(name)?) };
        let mut seen = Vec::new();
        for part in parts {
            let (key, value) = part.split_once('=').unwrap_or((part, ""));
            if seen.contains(&key) {
                return Err(wrong(format!("'{key}' twice in '{text}'"), "with each key once"));
            }
            seen.push(key);
            group.set(key, value)?;
        }
        if group.stop.is_some_and(|stop| stop <= group.start) {
            let what = format!("'{text}' stops before it starts");
            return Err(wrong(what, "with a stop that is later than the start"));
        }
        Ok(group)
    }

    fn set(&mut self, key: &str, value: &str) -> Result<(), Problem> {
        let invalid =
            |error: units::ParseError| wrong(format!("{key}={value}: {error}"), example(key));
        match key {
            "start" => self.start = value.parse::<Rtt>().map_err(invalid)?.duration(),
            "stop" => self.stop = Some(value.parse::<Rtt>().map_err(invalid)?.duration()),
            "rate" => self.rate = Some(value.parse().map_err(invalid)?),
            "bytes" => self.bytes = Some(value.parse().map_err(invalid)?),
            "pacing" => self.pacing = Some(value.parse().map_err(invalid)?),
            "window" => self.window = Some(value.parse().map_err(invalid)?),
            "delay" => self.delay = value.parse::<Rtt>().map_err(invalid)?.duration(),
            "ecn" if value == "yes" => self.ecn = true,
            "ecn" if value == "no" => self.ecn = false,
            "ecn" => return Err(wrong(format!("ecn={value}"), "with ecn=yes or ecn=no")),
            "kernel" => {
                let version = KernelVersion::by_name(value);
                self.kernel = version.ok_or_else(|| {
                    let known = KernelVersion::ALL.map(KernelVersion::name);
                    let one = format!("with kernel as one of {}", known.join(", "));
                    wrong(format!("kernel={value}"), one)
                })?;
            }
            _ => {
                let names = KEYS.map(|(name, _)| name);
                let near = did_you_mean(key, names.into_iter());
                let keys = format!("with the keys {}{near}", names.join(", "));
                return Err(wrong(format!("'{key}' is not a key of a flow"), keys));
            }
        }
        if [self.bytes, self.window].contains(&Some(ByteCount::ZERO)) {
            return Err(wrong(format!("{key}=0"), example(key)));
        }
        if self.window.is_some_and(|window| window < SMALLEST_WINDOW) {
            let least = format!("with a window of at least {SMALLEST_WINDOW}, one segment");
            return Err(wrong(format!("{key}={value}"), least));
        }
        Ok(())
    }

    /// The group in the syntax of [`FlowGroup::parse`].
    pub(crate) fn to_spec(&self) -> String {
        let count = if self.count == 1 { String::new() } else { format!("{}x", self.count) };
        let control = self.control.map_or_else(|| OWN.to_owned(), |control| control.to_string());
        let mut parts = vec![format!("{count}{control}")];
        let [start, delay] =
            [self.start, self.delay].map(|time| Some(time).filter(|one| !one.is_zero()));
        for (key, time) in [("start", start), ("stop", self.stop), ("delay", delay)] {
            parts.extend(time.map(|time| format!("{key}={}s", time.as_secs_f64())));
        }
        for (key, rate) in [("rate", self.rate), ("pacing", self.pacing)] {
            parts.extend(rate.map(|rate| format!("{key}={}bit", rate.bps())));
        }
        for (key, size) in [("bytes", self.bytes), ("window", self.window)] {
            parts.extend(size.map(|size| format!("{key}={}", size.bytes())));
        }
        parts.extend(self.ecn.then(|| "ecn=yes".to_owned()));
        if self.kernel != KernelVersion::default() {
            parts.push(format!("kernel={}", self.kernel.name()));
        }
        parts.join(",")
    }

    /// The name of its congestion control.
    pub(crate) fn control_name(&self) -> &'static str {
        self.control.map_or(OWN, NamedControl::name)
    }

    /// What each of its connections has in the kernel.
    pub(crate) fn kernel_control(&self) -> &'static str {
        self.control.map_or(OWN, |control| control.algorithm().name())
    }

    /// The connections of each flow.
    pub(crate) fn connections_each(&self) -> u32 {
        self.control.map_or(1, NamedControl::connections)
    }

    /// The connections of all its flows.
    pub(crate) fn connection_count(&self) -> u32 {
        self.count.saturating_mul(self.connections_each())
    }

    /// The rate of what is written to each connection.
    pub(crate) fn connection_rate(&self) -> Option<BitRate> {
        let each = u64::from(self.connections_each());
        self.rate.map(|rate| BitRate::from_bps(rate.bps() / each))
    }

    /// True if nothing but the path limits it, until the run ends.
    pub(crate) const fn is_unlimited(&self) -> bool {
        self.rate.is_none()
            && self.bytes.is_none()
            && self.pacing.is_none()
            && self.window.is_none()
    }

    /// Its connections; `ample` is a buffer that limits none.
    pub(crate) fn connections(
        &self,
        mss: u32,
        ample: ByteCount,
    ) -> impl Iterator<Item = ConnectionConfig> + '_ {
        let after = self.stop.map(|stop| stop.saturating_sub(self.start));
        let each = self.connections_each();
        let application = self
            .connection_rate()
            .map_or(Application::Bulk, |rate| Application::Rate { rate, block: block(rate) });
        (0..self.connection_count()).map(move |index| ConnectionConfig {
            start: self.start + STAGGER * index,
            access_delay: self.delay,
            limit: WriteLimit {
                after,
                bytes: self.bytes.map(|bytes| part(bytes, each, index % each)),
            },
            algorithm: self.control.map_or_else(Algorithm::default, NamedControl::algorithm),
            mss,
            application,
            buffer: BufferSize::Auto(ample),
            max_pacing_rate: self.pacing,
            window: WindowSize::Auto(self.window.unwrap_or(ample)),
            ecn: self.ecn_field(),
            kernel: self.kernel,
            ..ConnectionConfig::default()
        })
    }
}

impl FlowGroup {
    fn ecn_field(&self) -> Ecn {
        match self.control.map_or(Ecn::Off, |control| Ecn::needed_by(control.algorithm())) {
            Ecn::Off if self.ecn => Ecn::Classic,
            needed => needed,
        }
    }
}

/// What one write has: 10 ms of the rate, at most iperf3's block.
fn block(rate: BitRate) -> ByteCount {
    rate.bytes_in(Duration::from_millis(10)).clamp(ByteCount::from_bytes(1_448), BLOCK)
}

/// The bytes of one of `of` connections that share them.
fn part(bytes: ByteCount, of: u32, index: u32) -> ByteCount {
    let (of, index) = (u64::from(of), u64::from(index));
    let remainder = u64::from(index < bytes.bytes() % of);
    ByteCount::from_bytes(bytes.bytes() / of + remainder)
}

/// `4xbbr`: the number and the name.
fn counted(text: &str) -> Result<(u32, &str), Problem> {
    let digits = text.len() - text.trim_start_matches(|c: char| c.is_ascii_digit()).len();
    let Some((number, name)) = text.split_at_checked(digits).filter(|_| digits > 0) else {
        return Ok((1, text));
    };
    // 4xcp are four flows with XCP.
    let times = name.strip_prefix(['x', 'X']).filter(|_| NamedControl::by_name(name).is_none());
    let name = times.unwrap_or(name);
    match number.parse() {
        Ok(count) if (1..=MAX_FLOWS).contains(&count) => Ok((count, name)),
        _ => Err(wrong(
            format!("{number} flows"),
            format!("1 to {MAX_FLOWS} flows, such as 4xcubic"),
        )),
    }
}

fn control(name: &str) -> Result<NamedControl, Problem> {
    NamedControl::by_name(name).ok_or_else(|| {
        let names = super::control_names();
        let near = did_you_mean(name, names.iter().copied());
        wrong(
            format!("'{name}' is not a congestion control of the simulator{near}"),
            format!("with one of {}", names.join(", ")),
        )
    })
}

fn example(key: &str) -> String {
    let example = KEYS.iter().find(|(name, _)| *name == key).map_or("", |(_, example)| example);
    format!("as in {example}")
}

fn wrong(what: String, accepted: impl Into<String>) -> Problem {
    Problem::field(Field::Flows, what, accepted)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_groups() {
        let group = FlowGroup::parse("4xbbr,start=30s,stop=90s,rate=10mbit,ecn=yes").unwrap();
        assert_eq!((group.count, group.control), (4, Some(Algorithm::Bbr.into())));
        assert_eq!(group.start, Duration::from_secs(30));
        assert_eq!(group.stop, Some(Duration::from_secs(90)));
        assert!(group.ecn && !group.is_unlimited());
        let connections: Vec<_> = group.connections(1448, ByteCount::from_bytes(1 << 20)).collect();
        assert_eq!(connections.len(), 4);
        assert_eq!(connections[3].start, Duration::from_micros(30_000_600));
        assert_eq!(connections[0].limit.after, Some(Duration::from_secs(60)));
        assert!(FlowGroup::parse("cubic").unwrap().is_unlimited());
        for text in ["4xcp", "4xxcp"] {
            let group = FlowGroup::parse(text).unwrap();
            assert_eq!((group.count, group.control), (4, Some(Algorithm::Xcp.into())));
        }
        for text in [
            "cubic",
            "psockets:3,stop=2s",
            "2xreno,start=1.5s,stop=9s,delay=0.25s,rate=5000bit,bytes=7,ecn=yes,kernel=6.1",
        ] {
            assert_eq!(FlowGroup::parse(text).unwrap().to_spec(), text);
        }
    }

    #[test]
    fn connections_of_psockets_share_its_rate_and_its_bytes() {
        let group = FlowGroup::parse("2xpsockets:3,rate=9mbit,bytes=100000").unwrap();
        let connections: Vec<_> = group.connections(1448, ByteCount::from_bytes(1 << 20)).collect();
        assert_eq!((group.count, connections.len()), (2, 6));
        let bytes = connections.iter().filter_map(|one| one.limit.bytes).map(ByteCount::bytes);
        assert_eq!(bytes.collect::<Vec<_>>(), [33_334, 33_333, 33_333, 33_334, 33_333, 33_333]);
        assert!(connections.iter().all(|one| one.algorithm == Algorithm::NewReno));
        let rate = |one: &ConnectionConfig| match one.application {
            Application::Rate { rate, .. } => rate.bps(),
            _ => 0,
        };
        assert_eq!(connections.iter().map(rate).sum::<u64>(), 18_000_000);
    }

    #[test]
    fn says_what_is_accepted() {
        for (text, part) in [
            ("cubik", "did you mean 'cubic'"),
            ("", "one of cubic"),
            ("psockets:0", "not a congestion control"),
            ("0xcubic", "1 to 1000 flows"),
            ("99999999999xcubic", "1 to 1000 flows"),
            ("cubic,strat=1s", "did you mean 'start'"),
            ("cubic,start=1s,start=2s", "each key once"),
            ("cubic,start=2s,stop=1s", "stops before it starts"),
            ("cubic,rate=10", "rate=10mbit"),
            ("cubic,bytes=0", "bytes=100MB"),
            ("cubic,window=1", "a window of at least 536 bytes"),
            ("cubic,ecn", "ecn=yes or ecn=no"),
            ("cubic,kernel=5.4", "one of 6.1, 6.18"),
        ] {
            let problem = FlowGroup::parse(text).unwrap_err();
            let line = problem.to_string();
            assert!(line.contains(part), "{text}: {line}");
            assert_eq!(problem.fields(), [Field::Flows], "{text}");
        }
    }
}
