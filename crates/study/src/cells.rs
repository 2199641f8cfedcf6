//! The cells of a study: one combination of the factors' values each, what runs in it, and
//! the order of the tests.

use crate::factor::{Kind, Level, Setting};
use crate::plan::{Order, Plan};
use crate::traffic::{self, Traffic};
use rand_core::{Rng, SeedableRng};
use rand_pcg::Pcg64;
use record::{Protocol, STUDY_PLAN_SCHEMA, StudyFactor, StudyPlanReport};
use std::time::Duration;
use topology::PathSpec;
use units::{ByteCount, LossRatio};

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
    /// Random loss of each packet in the direction of the data, if the path has a plain ratio.
    pub loss: Option<LossRatio>,
    /// The receive window to be advertised to each TCP stream; `None`: as `buffers` gives.
    pub window: Option<ByteCount>,
    /// Socket buffers of both hosts.
    pub buffers: Buffers,
    /// Of both hosts.
    pub sysctls: Vec<(String, String)>,
    /// At least one, in the order of the plan.
    pub flows: Vec<Traffic>,
}

/// The limits of the hosts' socket buffers (`tcp_rmem`, `tcp_wmem`).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Buffers {
    /// As large as the path needs.
    #[default]
    Tuned,
    /// The kernel's defaults.
    Kernel,
}

impl Test {
    /// By settings, the later one overriding the earlier one; those without a flow are of
    /// every flow.
    pub(crate) fn of<'a>(
        flows: &[String],
        settings: impl Iterator<Item = (&'a Setting, &'a Level)>,
    ) -> Result<Self, String> {
        let mut keys: Vec<(&str, &str)> = Vec::new();
        let (mut window, mut buffers, mut sysctls) = (None, Buffers::default(), Vec::new());
        let mut flows: Vec<Traffic> = match flows {
            [] => vec![Traffic::new(traffic::ONLY)],
            names => names.iter().map(|name| Traffic::new(name)).collect(),
        };
        for (setting, level) in settings {
            let text = level.text.as_str();
            match setting {
                Setting::Path(key) => match keys.iter_mut().find(|(other, _)| other == key) {
                    Some(entry) => entry.1 = text,
                    None => keys.push((key, text)),
                },
                Setting::Sysctl(name) => {
                    sysctls.retain(|(other, _)| other != name);
                    sysctls.push((name.clone(), text.to_owned()));
                }
                Setting::Window => window = Some(level),
                Setting::Buffers => buffers = Buffers::parse(text)?,
                Setting::OfFlow(name, setting) => {
                    if let Some(flow) = flows.iter_mut().find(|flow| flow.name == *name) {
                        flow.set(setting, level)?;
                    }
                }
                other => {
                    for flow in &mut flows {
                        flow.set(other, level)?;
                    }
                }
            }
        }
        if keys.iter().any(|(key, _)| *key == "seed") {
            return Err("the paths' seeds follow from that of [repeats]; remove seed".to_owned());
        }
        let written: Vec<String> =
            keys.iter().map(|(key, value)| format!("{key}={value}")).collect();
        let path = written.join(",");
        let spec: PathSpec = path.parse().map_err(|error| format!("the path: {error}"))?;
        let window = window.map(|level| window_of(level, &spec)).transpose()?;
        let loss = keys.iter().find(|(key, _)| *key == "loss" || *key == "up.loss");
        let loss = loss.and_then(|(_, text)| text.parse().ok());
        flows.iter().try_for_each(Traffic::check)?;
        if window.is_some() && flows.iter().all(|flow| flow.protocol == Protocol::Udp) {
            return Err("udp has no window; remove it, or use tcp".to_owned());
        }
        Ok(Test { path, spec, loss, window, buffers, sysctls, flows })
    }

    /// How long it takes from the first byte to the last.
    #[must_use]
    pub fn planned(&self) -> Duration {
        self.flows.iter().map(Traffic::end).max().unwrap_or_default()
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
            numbers: numbers(levels),
            unit: unit(setting, levels).to_owned(),
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

/// Levels as numbers; none unless all are numbers of one unit.
fn numbers(levels: &[Level]) -> Vec<f64> {
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
