//! The cells of a study: one combination of the factors' values each, what runs in it, and
//! the order of the tests.

use crate::factor::{Level, Setting};
use crate::plan::{Order, Plan};
use rand_core::{Rng, SeedableRng};
use rand_pcg::Pcg64;
use record::{Direction, Protocol, STUDY_PLAN_SCHEMA, StudyFactor, StudyPlanReport};
use std::time::Duration;
use topology::PathSpec;
use units::{BitRate, ByteCount};

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

/// What runs in a cell.
#[derive(Debug, Clone, PartialEq)]
pub struct Test {
    /// The path as text, without a seed.
    pub path: String,
    /// TCP or UDP.
    pub protocol: Protocol,
    /// How long it sends, after `omit`.
    pub duration: Duration,
    /// Time before it that counts for no figure.
    pub omit: Duration,
    /// Parallel streams.
    pub streams: u32,
    /// The receive window to be advertised to each stream; `None`: as the path needs it.
    pub window: Option<ByteCount>,
    /// Congestion control, by the kernel's name.
    pub congestion: String,
    /// Who sends.
    pub direction: Direction,
    /// The rate of each stream; `None`: as fast as possible.
    pub bitrate: Option<BitRate>,
    /// Bytes per write, or the payload of a datagram; `None`: the client's default.
    pub block: Option<ByteCount>,
    /// Of both hosts.
    pub sysctls: Vec<(String, String)>,
}

/// The longest test.
const LONGEST: Duration = Duration::from_secs(24 * 3600);
/// The most streams of one test, as of the client.
const MOST_STREAMS: f64 = 128.0;

impl Test {
    /// By settings; a later one overrides an earlier one.
    pub(crate) fn of<'a>(
        settings: impl Iterator<Item = (&'a Setting, &'a Level)>,
    ) -> Result<Self, String> {
        let mut keys: Vec<(&str, &str)> = Vec::new();
        let mut window = None;
        let mut test = Test {
            path: String::new(),
            protocol: Protocol::Tcp,
            duration: Duration::from_secs(10),
            omit: Duration::ZERO,
            streams: 1,
            window: None,
            congestion: "cubic".to_owned(),
            direction: Direction::Forward,
            bitrate: None,
            block: None,
            sysctls: Vec::new(),
        };
        for (setting, level) in settings {
            let number = level.number.unwrap_or(0.0);
            let text = level.text.as_str();
            match setting {
                Setting::Path(key) => match keys.iter_mut().find(|(other, _)| other == key) {
                    Some(entry) => entry.1 = text,
                    None => keys.push((key, text)),
                },
                Setting::Sysctl(name) => match test.sysctls.iter_mut().find(|(n, _)| n == name) {
                    Some(entry) => text.clone_into(&mut entry.1),
                    None => test.sysctls.push((name.clone(), text.to_owned())),
                },
                Setting::Protocol => test.protocol = protocol(text)?,
                Setting::Direction => test.direction = direction(text)?,
                Setting::Congestion => test.congestion = congestion(text)?,
                Setting::Duration => test.duration = time(number, "duration", 0.1)?,
                Setting::Omit => test.omit = time(number, "omit", 0.0)?,
                Setting::Streams if !(1.0..=MOST_STREAMS).contains(&number) => {
                    return Err(format!("streams = {text}; it is 1 to {MOST_STREAMS}"));
                }
                Setting::Streams => test.streams = number as u32,
                Setting::Window => window = Some(level),
                Setting::Bitrate => test.bitrate = Some(BitRate::from_bps_f64(number)),
                Setting::Block => test.block = Some(ByteCount::from_f64(number)),
            }
        }
        let keys: Vec<String> = keys.iter().map(|(key, value)| format!("{key}={value}")).collect();
        test.path = keys.join(",");
        let path: PathSpec = test.path.parse().map_err(|error| format!("the path: {error}"))?;
        test.window = window.map(|level| window_of(level, &path)).transpose()?;
        if test.protocol == Protocol::Udp && test.bitrate.is_none() {
            return Err("udp needs a bitrate, the rate that is offered".to_owned());
        }
        if test.protocol == Protocol::Udp && test.window.is_some() {
            return Err("udp has no window; remove it, or use tcp".to_owned());
        }
        Ok(test)
    }

    /// How long it sends.
    #[must_use]
    pub fn planned(&self) -> Duration {
        self.omit + self.duration
    }
}

fn window_of(level: &Level, path: &PathSpec) -> Result<ByteCount, String> {
    let number = level.number.unwrap_or(0.0);
    let bytes = if level.per_bdp {
        let rate = path.rate().ok_or("a window in bdp needs a path with a rate")?;
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

fn time(seconds: f64, what: &str, least: f64) -> Result<Duration, String> {
    let time = Duration::try_from_secs_f64(seconds).ok().filter(|time| *time <= LONGEST);
    time.filter(|_| seconds >= least).ok_or(format!("{what} is {least} s to 24 h"))
}

fn protocol(text: &str) -> Result<Protocol, String> {
    match text {
        "tcp" => Ok(Protocol::Tcp),
        "udp" => Ok(Protocol::Udp),
        _ => Err(format!("no protocol '{text}'; protocols are tcp and udp")),
    }
}

fn direction(text: &str) -> Result<Direction, String> {
    match text {
        "forward" => Ok(Direction::Forward),
        "reverse" => Ok(Direction::Reverse),
        "both" => Ok(Direction::Both),
        _ => Err(format!("no direction '{text}'; directions are forward, reverse and both")),
    }
}

fn congestion(text: &str) -> Result<String, String> {
    let named = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_';
    let is_name = (1..16).contains(&text.len()) && text.chars().all(named);
    is_name.then(|| text.to_owned()).ok_or(format!("'{text}' is not a congestion control"))
}

impl Plan {
    /// The values of a cell, such as `window=64KiB streams=2`.
    #[must_use]
    pub fn label(&self, cell: &Cell) -> String {
        let pairs = self.factors.iter().zip(&cell.levels);
        let pairs = pairs.map(|(factor, level)| format!("{}={}", factor.setting, level.text));
        pairs.collect::<Vec<_>>().join(" ")
    }

    /// What the plan comes to.
    #[must_use]
    pub fn report(&self) -> StudyPlanReport {
        let values = |setting: &Setting, levels: &[Level]| StudyFactor {
            name: setting.to_string(),
            values: levels.iter().map(|level| level.text.clone()).collect(),
        };
        let factors = self.factors.iter().map(|factor| values(&factor.setting, &factor.levels));
        let fixed = self.fixed.iter();
        let fixed = fixed.map(|(setting, level)| values(setting, std::slice::from_ref(level)));
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
            estimated_s: self.estimate().as_secs_f64(),
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
            Order::Random => shuffle(&mut runs, &mut random),
            Order::Blocked => {
                runs.chunks_mut(cells.max(1)).for_each(|block| shuffle(block, &mut random));
            }
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

/// Fisher and Yates.
fn shuffle(runs: &mut [Run], random: &mut Pcg64) {
    for last in (1..runs.len()).rev() {
        let at = ((u128::from(random.next_u64()) * (last as u128 + 1)) >> 64) as usize;
        runs.swap(last, at);
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
