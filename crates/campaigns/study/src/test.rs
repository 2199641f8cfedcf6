//! The test of a cell.

use crate::level::Level;
use crate::real_hosts::RealHosts;
use crate::setting::{Setting, Side};
use crate::test_error::TestError;
use crate::totals::Totals;
use crate::traffic::Traffic;
use crate::value::{Buffers, Hosts, Value};
use record::{Direction, Protocol};
use std::ops::RangeInclusive;
use std::time::Duration;
use topology::PathSpec;
use units::{BitRate, ByteCount, LossRatio, Rtt};

/// The test of a cell: one or several flows over a path.
#[derive(Debug, Clone, PartialEq)]
pub struct Test {
    /// The path as text, without a seed.
    pub path: String,
    /// The same, read.
    pub spec: PathSpec,
    /// True if the path's RTT is known: that of a real one may not be.
    pub rtt_known: bool,
    /// Random loss of each packet in the direction of the data, if the path has a plain ratio.
    pub loss: Option<LossRatio>,
    /// The receive window to be advertised to each TCP stream; `None`: as `buffers` gives.
    pub window: Option<ByteCount>,
    /// Socket buffers of both hosts.
    pub buffers: Buffers,
    /// Clients and servers.
    pub hosts: Hosts,
    /// In the order to be set; a later one of the same name and side replaced an earlier one.
    pub sysctls: Vec<Sysctl>,
    /// At least one, in the order of the plan.
    pub flows: Vec<Traffic>,
}

/// The buffers that a test needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Memory {
    /// The sum of the windows of all streams: what the receivers hold at most, and the senders until
    /// it is acknowledged; `None` where no window is set.
    pub hosts: Option<ByteCount>,
    /// The capacity of the router's queue, in the direction of the data, or of both; zero of a path
    /// without a rate, or that is not emulated.
    pub router: ByteCount,
}

/// A sysctl of a test's hosts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sysctl {
    /// On which hosts.
    pub side: Side,
    /// Its name, below `net.`.
    pub name: String,
    /// Its value.
    pub value: String,
    /// True if a lab may lack it.
    pub optional: bool,
}

/// The goodput up to which a test is light.
const LIGHT: BitRate = BitRate::from_bps(130_000_000);

/// Streams up to which it is.
const LIGHT_STREAMS: u32 = 11;

impl Test {
    /// By settings, the later one overriding the earlier one; those without a flow are of
    /// every flow.
    pub(crate) fn of<'a>(
        flow_names: &[String],
        real_hosts: Option<&RealHosts>,
        optional: &[Sysctl],
        settings: impl Iterator<Item = (&'a Setting, &'a Level)>,
    ) -> Result<Self, TestError> {
        let mut keys: Vec<(&str, &str)> = Vec::new();
        let (mut window, mut buffers) = (None, Buffers::default());
        let mut hosts = real_hosts.map_or(Hosts::PAIR, RealHosts::counts);
        let mut sysctls: Vec<Sysctl> = optional.to_vec();
        let mut flows: Vec<Traffic> = flow_names.iter().map(|name| Traffic::new(name)).collect();
        let mut totals = Totals::default();
        for (setting, level) in settings {
            if totals.takes(setting, level) {
                continue;
            }
            let text = level.text.as_str();
            match (setting, &level.value) {
                (Setting::Path(key), _) => match keys.iter_mut().find(|(other, _)| other == key) {
                    Some(entry) => entry.1 = text,
                    None => keys.push((key, text)),
                },
                (Setting::Sysctl(side, name), _) => {
                    sysctls.retain(|other| (other.side, &other.name) != (*side, name));
                    let (name, value) = (name.clone(), text.to_owned());
                    sysctls.push(Sysctl { side: *side, name, value, optional: false });
                }
                (Setting::Window, _) => window = Some(level),
                (_, Value::Buffers(value)) => buffers = *value,
                (_, Value::Hosts(value)) => hosts = *value,
                (Setting::OfFlow(name, setting), _) => {
                    if let Some(flow) = flows.iter_mut().find(|flow| flow.name == *name) {
                        flow.set(setting, level);
                    }
                }
                (other, _) => flows.iter_mut().for_each(|flow| flow.set(other, level)),
            }
        }
        if keys.iter().any(|(key, _)| *key == "seed") {
            return Err(TestError::Seed);
        }
        if real_hosts.is_some() {
            // Of a real path nothing need be stated.
            for unknown in [("rate", "unlimited"), ("rtt", "0ms")] {
                if !keys.iter().any(|(key, _)| *key == unknown.0) {
                    keys.push(unknown);
                }
            }
        }
        let written: Vec<String> =
            keys.iter().map(|(key, value)| format!("{key}={value}")).collect();
        let rtt_known = real_hosts.is_none() || keys.iter().any(|(key, _)| *key == "rtt");
        let path = written.join(",");
        let spec = path.parse::<PathSpec>()?;
        totals.check(flows.len())?;
        let share = totals.share(&mut flows, hosts, &spec)?;
        let window = window.map_or(Ok(share), |level| window_of(level, &spec).map(Some))?;
        let loss = keys.iter().find(|(key, _)| *key == "loss" || *key == "up.loss");
        let loss = loss.and_then(|(_, text)| text.parse().ok());
        flows.iter().try_for_each(Traffic::check)?;
        check_programs(&flows, hosts)?;
        if window.is_some() && flows.iter().all(|flow| flow.protocol == Protocol::Udp) {
            return Err(TestError::UdpWindow);
        }
        Ok(Test { path, spec, rtt_known, loss, window, buffers, hosts, sysctls, flows })
    }

    /// Returns true if it runs programs that the plan brings: alone, as all processes are ended
    /// after it.
    #[must_use]
    pub fn has_foreign_programs(&self) -> bool {
        self.flows.iter().filter_map(|flow| flow.program.as_ref()).any(|one| !one.built_in)
    }

    /// Returns true if it leaves room for another test at the same time, on the machine that
    /// emulates the path and runs the hosts.
    #[must_use]
    pub fn is_light(&self) -> bool {
        // The time of an object is one of milliseconds.
        if self.has_foreign_programs() || self.flows.iter().any(|flow| flow.object.is_some()) {
            return false;
        }
        let streams = self.streams();
        let predicted = self.predict().map(|prediction| prediction.rate);
        let rate = predicted.or(self.spec.rate());
        streams <= LIGHT_STREAMS && rate.is_some_and(|rate| rate <= LIGHT)
    }

    /// The streams of all flows and clients together.
    #[must_use]
    pub fn streams(&self) -> u32 {
        let of_client: u32 = self.flows.iter().map(|flow| flow.streams).sum();
        of_client * u32::from(self.hosts.clients)
    }

    /// The buffers that it needs.
    #[must_use]
    pub fn memory(&self) -> Memory {
        let tcp = self.flows.iter().filter(|flow| flow.protocol != Protocol::Udp);
        let streams: u32 = tcp.map(|flow| flow.streams * u32::from(self.hosts.clients)).sum();
        let [up, down] = self.spec.directions().map(topology::PathDirection::queue_bytes);
        let sends = |from: Direction| {
            self.flows.iter().any(|flow| [from, Direction::Both].contains(&flow.direction))
        };
        let queues = [(Direction::Forward, up), (Direction::Reverse, down)];
        let queues = queues.into_iter().filter(|(from, _)| sends(*from));
        Memory {
            hosts: self.window.map(|each| ByteCount::from_bytes(each.bytes() * u64::from(streams))),
            router: ByteCount::from_bytes(queues.map(|(_, queue)| queue.bytes()).sum()),
        }
    }

    /// How long it takes from the first byte to the last.
    #[must_use]
    pub fn planned(&self) -> Duration {
        self.flows.iter().map(Traffic::end).max().unwrap_or_default()
    }
}

/// What the programs of a test cannot share.
fn check_programs(flows: &[Traffic], hosts: Hosts) -> Result<(), TestError> {
    let programs = || flows.iter().filter_map(|flow| Some((flow, flow.program.as_ref()?)));
    let alone = flows.len() == 1 && hosts == Hosts::PAIR;
    if let Some((_, program)) = programs().find(|(_, program)| !alone && !program.has_port()) {
        return Err(TestError::NoPort { program: program.name.clone() });
    }
    let mut congestion = programs().map(|(flow, _)| flow.congestion());
    let first = congestion.next();
    match congestion.find(|other| Some(*other) != first) {
        Some(other) => {
            let congestion = [first.unwrap_or_default(), other].map(str::to_owned);
            Err(TestError::ProgramsCongestion { congestion })
        }
        None => Ok(()),
    }
}

/// The windows that a stream can have: half of tcp_rmem's most, of 31 bits, and two segments.
pub(crate) const WINDOWS: RangeInclusive<f64> = 3_000.0..=1e9;

fn window_of(level: &Level, path: &PathSpec) -> Result<ByteCount, TestError> {
    let bytes = bytes_of(level, path)?;
    if !WINDOWS.contains(&bytes) {
        return Err(TestError::Window(ByteCount::from_f64(bytes)));
    }
    Ok(ByteCount::from_f64(bytes))
}

/// The bytes of a level, which may be a multiple of the path's bandwidth-delay product.
pub(crate) fn bytes_of(level: &Level, path: &PathSpec) -> Result<f64, TestError> {
    let number = level.number().unwrap_or(0.0);
    if !level.per_bdp() {
        return Ok(number);
    }
    let rate = path.rate().ok_or(TestError::WindowNeedsRate)?;
    if path.rtt() == Rtt::ZERO {
        return Err(TestError::WindowNeedsRtt);
    }
    Ok(number * rate.as_f64() / 8.0 * path.rtt().secs_f64())
}
