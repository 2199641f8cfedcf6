//! The options of the bench.

use crate::local::Set;
use bench_harness::{Arguments, Fallible};
use control::Algorithm;
use simulator::{Hosts, Proportions, Scenario, ScenarioSet, Vantage};
use std::path::PathBuf;

/// What to run and what to print; the module of the bench says what each is.
#[derive(Debug)]
pub(crate) struct Options {
    pub(crate) twin: bool,
    pub(crate) labels: bool,
    pub(crate) congestion: bool,
    pub(crate) show: Option<usize>,
    pub(crate) runs: usize,
    pub(crate) seed: Option<u64>,
    pub(crate) part: (usize, usize),
    pub(crate) only: Option<String>,
    pub(crate) save: Option<PathBuf>,
    pub(crate) load: Option<PathBuf>,
    pub(crate) export: Option<PathBuf>,
    pub(crate) vantage: Vantage,
    pub(crate) diagram: Option<PathBuf>,
    pub(crate) local: bool,
    pub(crate) decide_policer: bool,
    pub(crate) fixed_windows: bool,
    pub(crate) removal: bool,
    /// Version 3 in the place of BBR.
    pub(crate) bbr3: bool,
    /// Of the families.
    pub(crate) proportions: Proportions,
    /// Of `local`.
    pub(crate) set: Option<Set>,
}

impl Options {
    pub(crate) const fn scenarios(&self) -> ScenarioSet {
        let hosts = if self.twin { Hosts::Simulated } else { Hosts::Real };
        ScenarioSet { hosts, proportions: self.proportions }
    }

    /// A case of a seed.
    pub(crate) fn case(&self, seed: u64, number: usize) -> Scenario {
        let mut case = Scenario::draw(self.scenarios(), seed, number);
        if self.bbr3 && case.congestion == Algorithm::Bbr {
            case.congestion = Algorithm::Bbr3;
        }
        case
    }

    /// The cases of a seed that this process runs.
    pub(crate) fn cases(&self, seed: u64) -> Vec<Scenario> {
        let (part, of) = self.part;
        let only = self.only.as_deref();
        (0..self.runs)
            .filter(|number| number % of == part % of)
            .map(|number| self.case(seed, number))
            .filter(|case| only.is_none_or(|name| name == case.family))
            .collect()
    }
}

pub(crate) const HELP: &str = "\
cargo bench -p longhaul-verify --bench truth -- [OPTION]...
What is run:
  --twin             in the simulated twin; without it, in the lab
  --set SET          balanced: every family with CUBIC, Reno and BBR, one and several streams, both
                     directions, ample and default buffers in equal parts; bulk: mostly CUBIC, one
                     stream, forward (balanced)
  --runs N           cases (300)
  --seed N           of the draws (from the clock, and printed)
  --part I/N         one of N processes that share the cases
  --only FAMILY      cases of one family
  --bbr3             BBR version 3 instead of BBR; needs --twin
  --fixed-windows    windows and buffers far below the BDP: finding and prediction beside what was
                     set and achieved
  --decide-policer   pairs of a policer and a queue of the same depth, decided by second tests
  --removal          each run again with each limit removed: is the advice right, what does it
                     miss, and what does it cost a neighbour; needs --twin
  --local            transfers inside this host, where the CPU's cost per byte decides;
                     --set development or held-out
What is done with it:
  --vantage POINT    explain what is seen from there: full, receiver, watch, slow, capture-sender,
                     capture-receiver (full)
  --labels           how often each family has which limit, without a diagnosis
  --congestion       the family of congestion control that captures show beside the true one
  --show NUMBER      the ground truth of one case
  --save DIR         store every run; --load DIR labels and explains stored ones again
  --export FILE      the statistics of each run, for fitting
  --diagram FILE     the reliability diagram, as SVG";

/// Of the command line.
///
/// # Errors
/// An option is unknown or its value is not valid.
pub(crate) fn parse(mut arguments: Arguments) -> Fallible<Options> {
    let congestion = arguments.flag("--congestion");
    let twin = arguments.flag("--twin") || congestion;
    let sets = [
        ("balanced", (Some(Proportions::Balanced), None)),
        ("bulk", (Some(Proportions::Bulk), None)),
        ("development", (None, Some(Set::Development))),
        ("held-out", (None, Some(Set::HeldOut))),
    ];
    let (proportions, set) = arguments.one_of("--set", &sets)?.unwrap_or_default();
    let part = match arguments.value::<String>("--part")? {
        None => (0, 1),
        Some(value) => {
            let (part, of) = value.split_once('/').ok_or("--part is I/N")?;
            (part.parse()?, of.parse::<usize>()?.max(1))
        }
    };
    let vantages = Vantage::ALL.map(|vantage| (vantage.name(), vantage));
    let options = Options {
        twin,
        congestion,
        labels: arguments.flag("--labels"),
        show: arguments.value("--show")?,
        runs: arguments.count("--runs")?.unwrap_or(300),
        seed: arguments.value("--seed")?,
        part,
        only: arguments.value("--only")?,
        save: arguments.value("--save")?,
        load: arguments.value("--load")?,
        export: arguments.value("--export")?,
        vantage: arguments.one_of("--vantage", &vantages)?.unwrap_or_default(),
        diagram: arguments.value("--diagram")?,
        local: arguments.flag("--local"),
        decide_policer: arguments.flag("--decide-policer"),
        fixed_windows: arguments.flag("--fixed-windows"),
        removal: arguments.flag("--removal"),
        bbr3: twin && arguments.flag("--bbr3"),
        proportions: proportions.unwrap_or_default(),
        set,
    };
    arguments.end()?;
    Ok(options)
}
