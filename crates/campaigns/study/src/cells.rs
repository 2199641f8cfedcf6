//! The cells of a study: one combination of the factors' values each, what runs in it, and
//! the order of the tests.

use crate::factor::{Kind, Level, Setting, Side};
use crate::plan::{Order, Plan};
use crate::real_hosts::RealHosts;
use crate::traffic::Traffic;
use model::statistics::shuffle;
use rand_core::{Rng, SeedableRng};
use rand_pcg::Pcg64;
use record::{
    Protocol, RunStatus, STUDY_PLAN_SCHEMA, StudyFactor, StudyPlanReport, StudyRun, StudyUntil,
};
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;
use topology::PathSpec;
use units::{BitRate, ByteCount, LossRatio, Rtt};

/// One combination of values, in the order of the plan's factors.
#[derive(Debug, Clone, PartialEq)]
pub struct Cell {
    /// From 0, in the order of the plan.
    pub number: usize,
    /// A value of each factor.
    pub levels: Vec<Level>,
}

/// One test to be run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Run {
    /// The cell's number.
    pub cell: usize,
    /// From 1.
    pub repeat: u32,
}

/// What runs in a cell: one or several flows over a path.
#[derive(Debug, Clone, PartialEq)]
pub struct Test {
    /// The path as text, without a seed.
    pub path: String,
    /// The same, read.
    pub spec: PathSpec,
    /// Whether the path's RTT is known: that of a real one may not be.
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

/// A sysctl of a test's hosts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sysctl {
    /// On which hosts.
    pub side: Side,
    /// Its name, below `net.`.
    pub name: String,
    /// Its value.
    pub value: String,
    /// Whether a lab may lack it.
    pub optional: bool,
}

/// How many hosts begin connections, and how many accept them. Every flow of a plan is sent
/// once by each client: from client `n` to server `n`, modulo their number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Hosts {
    /// 1 to 16.
    pub clients: u8,
    /// 1 to 16, not more than the clients.
    pub servers: u8,
}

/// The most hosts of one side.
const MAX_HOSTS: u8 = 16;

/// The limits of the hosts' socket buffers (`tcp_rmem`, `tcp_wmem`).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Buffers {
    /// As large as the path needs.
    #[default]
    Tuned,
    /// The kernel's defaults.
    Kernel,
}

/// The goodput up to which a test is light.
const LIGHT: BitRate = BitRate::from_bps(130_000_000);

/// Streams up to which it is.
const LIGHT_STREAMS: u32 = 11;

impl Test {
    /// By settings, the later one overriding the earlier one; those without a flow are of
    /// every flow.
    pub(crate) fn of<'a>(
        plan: &'a Plan,
        settings: impl Iterator<Item = (&'a Setting, &'a Level)>,
    ) -> Result<Self, String> {
        let mut keys: Vec<(&str, &str)> = Vec::new();
        let (mut window, mut buffers) = (None, Buffers::default());
        let mut hosts = plan.real_hosts.as_ref().map_or(Hosts::PAIR, RealHosts::counts);
        let mut sysctls: Vec<Sysctl> = plan.optional.clone();
        let mut flows: Vec<Traffic> =
            plan.flow_names().iter().map(|name| Traffic::new(name)).collect();
        for (setting, level) in settings {
            let text = level.text.as_str();
            match setting {
                Setting::Path(key) => match keys.iter_mut().find(|(other, _)| other == key) {
                    Some(entry) => entry.1 = text,
                    None => keys.push((key, text)),
                },
                Setting::Sysctl(side, name) => {
                    sysctls.retain(|other| (other.side, &other.name) != (*side, name));
                    let (name, value) = (name.clone(), text.to_owned());
                    sysctls.push(Sysctl { side: *side, name, value, optional: false });
                }
                Setting::Window => window = Some(level),
                Setting::Buffers => buffers = Buffers::parse(text)?,
                Setting::Hosts => hosts = Hosts::parse(text)?,
                Setting::OfFlow(name, setting) => {
                    if let Some(flow) = flows.iter_mut().find(|flow| flow.name == *name) {
                        flow.set(setting, level, &plan.programs)?;
                    }
                }
                other => {
                    for flow in &mut flows {
                        flow.set(other, level, &plan.programs)?;
                    }
                }
            }
        }
        if keys.iter().any(|(key, _)| *key == "seed") {
            return Err("the paths' seeds follow from that of [repeats]; remove seed".to_owned());
        }
        if plan.real_hosts.is_some() {
            // Of a real path nothing need be stated.
            for unknown in [("rate", "unlimited"), ("rtt", "0ms")] {
                if !keys.iter().any(|(key, _)| *key == unknown.0) {
                    keys.push(unknown);
                }
            }
        }
        let written: Vec<String> =
            keys.iter().map(|(key, value)| format!("{key}={value}")).collect();
        let rtt_known = plan.real_hosts.is_none() || keys.iter().any(|(key, _)| *key == "rtt");
        let path = written.join(",");
        let spec: PathSpec = path.parse().map_err(|error| format!("the path: {error}"))?;
        let window = window.map(|level| window_of(level, &spec)).transpose()?;
        let loss = keys.iter().find(|(key, _)| *key == "loss" || *key == "up.loss");
        let loss = loss.and_then(|(_, text)| text.parse().ok());
        flows.iter().try_for_each(Traffic::check)?;
        check_programs(&flows, hosts)?;
        if window.is_some() && flows.iter().all(|flow| flow.protocol == Protocol::Udp) {
            return Err("udp has no window; remove it, or use tcp".to_owned());
        }
        Ok(Test { path, spec, rtt_known, loss, window, buffers, hosts, sysctls, flows })
    }

    /// Whether it runs programs that the plan brings: alone, as all processes are ended after it.
    #[must_use]
    pub fn has_foreign_programs(&self) -> bool {
        self.flows.iter().filter_map(|flow| flow.program.as_ref()).any(|one| !one.built_in)
    }

    /// Whether it leaves room for another test at the same time, on the machine that emulates
    /// the path and runs the hosts.
    #[must_use]
    pub fn is_light(&self) -> bool {
        if self.has_foreign_programs() {
            return false;
        }
        let streams: u32 = self.flows.iter().map(|flow| flow.streams).sum();
        let streams = streams * u32::from(self.hosts.clients);
        let predicted = self.predict().map(|prediction| prediction.rate);
        let rate = predicted.or(self.spec.rate());
        streams <= LIGHT_STREAMS && rate.is_some_and(|rate| rate <= LIGHT)
    }

    /// How long it takes from the first byte to the last.
    #[must_use]
    pub fn planned(&self) -> Duration {
        self.flows.iter().map(Traffic::end).max().unwrap_or_default()
    }
}

/// What the programs of a test cannot share.
fn check_programs(flows: &[Traffic], hosts: Hosts) -> Result<(), String> {
    let programs = || flows.iter().filter_map(|flow| Some((flow, flow.program.as_ref()?)));
    let alone = flows.len() == 1 && hosts == Hosts::PAIR;
    if let Some((_, program)) = programs().find(|(_, program)| !alone && !program.has_port()) {
        return Err(format!(
            "the program '{}' has no {{port}}, which tells its connections from those of other flows",
            program.name
        ));
    }
    let mut congestion = programs().map(|(flow, _)| flow.congestion());
    let first = congestion.next();
    match congestion.find(|other| Some(*other) != first) {
        Some(other) => Err(format!(
            "programs with congestion = {} and {other}: they have that of their host, so it is \
             the same for all programs of a test",
            first.unwrap_or_default()
        )),
        None => Ok(()),
    }
}

impl Hosts {
    /// One client and one server.
    pub const PAIR: Hosts = Hosts { clients: 1, servers: 1 };

    /// The name of a client's flow; clients count from 0, and in names from 1.
    #[must_use]
    pub fn flow_name(self, flow: &str, client: u8) -> String {
        match self.clients {
            1 => flow.to_owned(),
            _ => format!("{flow}-{}", u16::from(client) + 1),
        }
    }

    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        let number = |text: &str| text.parse().ok().filter(|n| (1..=MAX_HOSTS).contains(n));
        let hosts = text.split_once('x').and_then(|(clients, servers)| {
            Some(Hosts { clients: number(clients)?, servers: number(servers)? })
        });
        hosts.filter(|hosts| hosts.servers <= hosts.clients).ok_or_else(|| {
            format!(
                "hosts = '{text}'; write clients x servers, such as 4x2: 1 to {MAX_HOSTS} of each, \
                 not more servers than clients"
            )
        })
    }
}

impl Buffers {
    fn parse(text: &str) -> Result<Self, String> {
        match text {
            "tuned" => Ok(Buffers::Tuned),
            "kernel" => Ok(Buffers::Kernel),
            _ => Err(format!("no buffers '{text}'; buffers are tuned and kernel")),
        }
    }
}

fn window_of(level: &Level, path: &PathSpec) -> Result<ByteCount, String> {
    let number = level.number.unwrap_or(0.0);
    let bytes = if level.per_bdp {
        let rate = path.rate().ok_or("a window in bdp needs a path with a rate")?;
        if path.rtt() == Rtt::ZERO {
            return Err("a window in bdp needs a path with an rtt".to_owned());
        }
        number * rate.as_f64() / 8.0 * path.rtt().secs_f64()
    } else {
        number
    };
    // Half of tcp_rmem's most, of 31 bits, and two segments.
    if !(3_000.0..=1e9).contains(&bytes) {
        let window = ByteCount::from_f64(bytes);
        return Err(format!("a window of {window}; it is 3000 bytes to 1 GB"));
    }
    Ok(ByteCount::from_f64(bytes))
}

impl Plan {
    /// The values of a cell, such as `window=64KiB streams=2`.
    #[must_use]
    pub fn label(&self, cell: &Cell) -> String {
        // Of those that are paired, the first one names the others.
        let mut after_first = false;
        let pairs = self
            .factors
            .iter()
            .zip(&cell.levels)
            .filter(|(factor, _)| !std::mem::replace(&mut after_first, factor.paired));
        let pairs = pairs.map(|(factor, level)| format!("{}={}", factor.setting, level.text));
        pairs.collect::<Vec<_>>().join(" ")
    }

    /// What the plan comes to.
    #[must_use]
    pub fn report(&self) -> StudyPlanReport {
        let values = |setting: &Setting, levels: &[Level]| StudyFactor {
            name: setting.to_string(),
            values: levels.iter().map(|level| level.text.clone()).collect(),
            numbers: numbers(levels),
            unit: unit(setting, levels).to_owned(),
            paired: false,
        };
        let first = self.factors.iter().position(|factor| factor.paired);
        let factors = self.factors.iter().enumerate().map(|(at, factor)| StudyFactor {
            paired: factor.paired && first != Some(at),
            ..values(&factor.setting, &factor.levels)
        });
        let fixed = self.fixed.iter();
        let fixed = fixed.map(|(setting, level)| values(setting, std::slice::from_ref(level)));
        let optional = self.optional.iter().map(|one| StudyFactor {
            name: Setting::Sysctl(one.side, one.name.clone()).to_string(),
            values: vec![one.value.clone()],
            numbers: Vec::new(),
            unit: String::new(),
            paired: false,
        });
        StudyPlanReport {
            schema: STUDY_PLAN_SCHEMA.to_owned(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            question: self.question.clone(),
            factors: factors.collect(),
            fixed: fixed.collect(),
            cells: self.cells(),
            repeats: self.repeats.count,
            tests: self.cells() * self.repeats.count as usize,
            order: self.repeats.order.name().to_owned(),
            seed: self.repeats.seed,
            until: self
                .repeats
                .until
                .map(|until| StudyUntil { within: until.within, most: until.most }),
            estimated_s: self.estimate().as_secs_f64(),
            optional: optional.collect(),
            plots: self.plots.clone(),
            clients: self.real_hosts.as_ref().map(RealHosts::client_names).unwrap_or_default(),
            servers: self.real_hosts.as_ref().map(RealHosts::server_names).unwrap_or_default(),
            programs: self.programs_run().iter().map(|program| program.report()).collect(),
        }
    }

    /// Every test, in the order to be run: the same for the same plan.
    #[must_use]
    pub fn runs(&self) -> Vec<Run> {
        let cells = self.cells();
        let repeat = |repeat| (0..cells).map(move |cell| Run { cell, repeat });
        let mut runs: Vec<Run> = (1..=self.repeats.count).flat_map(repeat).collect();
        let mut random = Pcg64::seed_from_u64(self.repeats.seed);
        match self.repeats.order {
            Order::Plan => runs.sort_unstable(),
            Order::Random => shuffle(&mut runs, || random.next_u64()),
            Order::Blocked => {
                let blocks = runs.chunks_mut(cells.max(1));
                blocks.for_each(|block| shuffle(block, || random.next_u64()));
            }
        }
        runs
    }

    /// The tests to be added to those that are stored, in the order to be run.
    #[must_use]
    pub fn further_runs(&self, stored: &[StudyRun]) -> Vec<Run> {
        if self.repeats.until.is_none() {
            return Vec::new();
        }
        let mut of_cell: BTreeMap<usize, (BTreeSet<u32>, Vec<f64>)> = BTreeMap::new();
        for run in stored.iter().filter(|run| run.cell < self.cells()) {
            let (repeats, goodputs) = of_cell.entry(run.cell).or_default();
            repeats.insert(run.repeat);
            if run.status == RunStatus::Valid {
                goodputs.push(run.throughput_bps());
            }
        }
        let runs = of_cell.into_iter().flat_map(|(cell, (repeats, goodputs))| {
            let done = u32::try_from(repeats.len()).unwrap_or(u32::MAX);
            let more = self.repeats.to_add(done, &goodputs);
            // An interruption can have left a gap.
            let missing = (1..).filter(move |repeat| !repeats.contains(repeat));
            missing.take(more as usize).map(move |repeat| Run { cell, repeat })
        });
        let mut runs: Vec<Run> = runs.collect();
        if self.repeats.order != Order::Plan {
            let seed = self.repeats.seed.wrapping_add(stored.len() as u64);
            let mut random = Pcg64::seed_from_u64(seed);
            shuffle(&mut runs, || random.next_u64());
        }
        runs
    }

    /// The seed of a test's path: of the plan's seed, the cell and the repeat.
    #[must_use]
    pub fn seed(&self, run: Run) -> u64 {
        let of_run = (run.cell as u64) << 20 | u64::from(run.repeat);
        let mixed = self.repeats.seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ of_run;
        Pcg64::seed_from_u64(mixed).next_u64()
    }
}

/// Levels as numbers; none unless all are numbers of one unit.
pub(crate) fn numbers(levels: &[Level]) -> Vec<f64> {
    let all: Option<Vec<f64>> = levels.iter().map(|level| level.number).collect();
    all.filter(|_| levels.windows(2).all(|pair| pair[0].per_bdp == pair[1].per_bdp))
        .unwrap_or_default()
}

fn unit(setting: &Setting, levels: &[Level]) -> &'static str {
    match setting.kind() {
        Kind::Bytes if levels.iter().any(|level| level.per_bdp) => "BDP",
        Kind::Bytes => "bytes",
        Kind::Rate => "bit/s",
        Kind::Time => "s",
        Kind::Share => "ratio",
        Kind::Count | Kind::Word => "",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plan(order: &str) -> Plan {
        let text = format!(
            "question = \"?\"\n[path]\nrate = \"10mbit\"\nrtt = \"10ms\"\n[factors]\n\
             streams = \"1..8 +1\"\n[traffic]\nduration = \"1s\"\n[repeats]\ncount = 3\n\
             order = \"{order}\""
        );
        Plan::parse(&text).unwrap()
    }

    #[test]
    fn each_order_has_every_test_once() {
        for order in ["random", "blocked", "plan"] {
            let runs = plan(order).runs();
            let mut sorted = runs.clone();
            sorted.sort_unstable();
            sorted.dedup();
            assert_eq!((runs.len(), sorted.len()), (24, 24));
            assert_eq!(runs, plan(order).runs(), "the same for the same plan");
            assert_eq!(runs == sorted, order == "plan");
        }
        let blocked = plan("blocked").runs();
        assert!(blocked[..8].iter().all(|run| run.repeat == 1));
    }

    #[test]
    fn seeds_differ() {
        let plan = plan("plan");
        let mut seeds: Vec<u64> = plan.runs().into_iter().map(|run| plan.seed(run)).collect();
        seeds.sort_unstable();
        seeds.dedup();
        assert_eq!(seeds.len(), 24);
    }
}
