//! Whether following the page's advice helps: held-out cases, drawn of the families, a run of the
//! page's protocol each, and the goodput with each action of a menu over the same path.

use crate::hosts::Hosts;
use crate::menu::{self, Action, MENU};
use crate::together::together;
use bench_harness::Fallible;
use host::lock::lock;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use simulator::removal::RIGHT;
use simulator::{Hosts as Kernels, Proportions, Scenario, ScenarioSet};
use std::collections::BTreeMap;
use std::fs::OpenOptions;
use std::io::Write;
use std::panic::catch_unwind;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use topology::PathSpec;
use units::BitRate;

/// A goodput below this share of the best one is wrong advice, if the page was sure.
const SURE: f64 = 0.9;

/// Which cases, and where their results are.
#[derive(Debug)]
pub(crate) struct Set {
    pub(crate) runs: usize,
    pub(crate) seed: u64,
    pub(crate) store: Option<PathBuf>,
}

/// A measured case.
#[derive(Debug, Serialize, Deserialize)]
struct Case {
    seed: u64,
    number: usize,
    family: String,
    path: String,
    congestion: String,
    download: bool,
    /// What the page says with its experiments, and without.
    advice: String,
    passive: String,
    probability: Option<f64>,
    limit: String,
    /// The rate of one flow that the page shows, bit/s.
    #[serde(default)]
    shown: Option<f64>,
    /// bit/s, by action.
    goodput: BTreeMap<String, f64>,
}

impl Case {
    fn with(&self, action: &str) -> f64 {
        self.goodput.get(action).copied().unwrap_or(0.0)
    }

    fn best(&self) -> f64 {
        let menu = MENU.iter().filter(|action| **action != Action::BuffersAndBbr);
        menu.map(|action| self.with(&format!("{action:?}"))).fold(0.0, f64::max)
    }

    fn is_right(&self, action: &str) -> bool {
        self.with(action) >= RIGHT * self.best()
    }
}

/// Measures the cases that the store does not have, and prints the shares.
pub(crate) fn measure(set: &Set) -> Fallible<()> {
    let known = stored(set)?;
    let is_known = |number, download| {
        known.iter().any(|case| (case.number, case.download) == (number, download))
    };
    let missing =
        numbers(set).into_iter().filter(|(number, download)| !is_known(*number, *download));
    let drawn = missing.map(|(number, download)| (drawn(set.seed, number), download)).collect();
    let cases = Mutex::new(known);
    together(
        drawn,
        |(drawn, download)| rate(drawn, *download),
        |(drawn, download)| {
            // Where the page loses its run, the messages of the protocol are missing.
            let measured = catch_unwind(|| case(drawn, set.seed, *download))
                .unwrap_or_else(|_| Err("the page lost its run".into()));
            let mut cases = lock(&cases);
            match measured.and_then(|case| keep(set.store.as_deref(), &case).map(|()| case)) {
                Ok(case) => {
                    println!(
                        "{:>4} {:<22} {:<9} {:<9} of {:?}",
                        case.number,
                        case.family,
                        case.advice,
                        case.is_right(&case.advice),
                        case.goodput
                    );
                    cases.push(case);
                }
                Err(error) => {
                    println!("{:>4} {:<22} left out: {error}", drawn.number, drawn.family);
                }
            }
        },
    );
    let cases = lock(&cases);
    for download in [true, false] {
        show(&cases.iter().filter(|case| case.download == download).collect::<Vec<_>>(), download);
    }
    Ok(())
}

/// The rate of the direction that the transfer takes.
fn rate(drawn: &Scenario, download: bool) -> BitRate {
    let path: Result<PathSpec, _> = drawn.path.parse();
    let rate = path.ok().and_then(|path| path.directions()[usize::from(download)].rate());
    rate.unwrap_or(BitRate::from_bps(u64::MAX))
}

fn drawn(seed: u64, number: usize) -> Scenario {
    let set = ScenarioSet { hosts: Kernels::Real, proportions: Proportions::Balanced };
    Scenario::draw(set, seed, number)
}

/// The numbers of downloads and of uploads, half each. A visitor's page cannot have what is left
/// out: limits of the application, and traffic beside it. Nor has it paths that change once, at a time
/// or at the number of a packet: of a page's steps another one meets that than of the menu's.
fn numbers(set: &Set) -> Vec<(usize, bool)> {
    let fits = |scenario: &Scenario| {
        scenario.rate.is_none()
            && scenario.pacing.is_none()
            && scenario.block.is_none()
            && scenario.reader.is_none()
            && scenario.window.is_none()
            && scenario.cross.is_empty()
            && !scenario.path.contains('@')
            && !scenario.path.contains("loss=list")
    };
    let mut numbers = Vec::new();
    for download in [true, false] {
        let fitting = (0..).filter(|number| {
            let drawn = drawn(set.seed, *number);
            drawn.reverse == download && fits(&drawn)
        });
        numbers.extend(fitting.take(set.runs / 2).map(|number| (number, download)));
    }
    numbers
}

fn case(drawn: &Scenario, seed: u64, download: bool) -> Fallible<Case> {
    let path = format!("{},seed={}", drawn.path, drawn.path_seed(seed));
    let run = |thorough| -> Fallible<Value> {
        let hosts = Hosts::of(&path, drawn.congestion.name(), &drawn.host_sysctls())?;
        let run = hosts.over(|hosts| hosts.run(thorough))?;
        match run.not_valid.first() {
            Some(why) => Err(format!("not valid: {why}").into()),
            None => Ok(run.result),
        }
    };
    let (told, short) = (run(true)?, run(false)?);
    let goodput = menu::measure(drawn, &path)?;
    let remedies = if download { "remedies" } else { "upload_remedies" };
    Ok(Case {
        seed,
        number: drawn.number,
        family: drawn.family.to_owned(),
        path,
        congestion: drawn.congestion.name().to_owned(),
        download,
        advice: format!("{:?}", Action::of(&told[remedies][0])),
        passive: format!("{:?}", Action::of(&short[remedies][0])),
        probability: told["finding"]["probability"].as_f64(),
        limit: told["finding"]["limit"].as_str().unwrap_or("unknown").to_owned(),
        shown: told[if download { "download" } else { "upload" }]["one_flow"].as_f64(),
        goodput,
    })
}

fn show(cases: &[&Case], download: bool) {
    let count = cases.len();
    if count == 0 {
        return;
    }
    let share = |is_right: &dyn Fn(&Case) -> bool| {
        let right = cases.iter().filter(|case| is_right(case)).count();
        format!("{right:>3} of {count}, {:.0} %", 100.0 * right as f64 / count as f64)
    };
    let sure = |case: &Case| case.probability.is_some_and(|probability| probability >= SURE);
    println!("{}", if download { "downloads" } else { "uploads" });
    println!("  the page's advice is right     {}", share(&|case| case.is_right(&case.advice)));
    println!("  without its experiments        {}", share(&|case| case.is_right(&case.passive)));
    println!("  nothing                        {}", share(&|case| case.is_right("Nothing")));
    println!("  large buffers and BBR          {}", share(&|case| case.is_right("BuffersAndBbr")));
    println!(
        "  sure and wrong                 {}",
        share(&|case| sure(case) && !case.is_right(&case.advice))
    );
}

fn stored(set: &Set) -> Fallible<Vec<Case>> {
    let Some(path) = set.store.as_deref().filter(|path| path.exists()) else {
        return Ok(Vec::new());
    };
    let text = std::fs::read_to_string(path)?;
    let cases = text.lines().map(serde_json::from_str).collect::<Result<Vec<Case>, _>>()?;
    Ok(cases.into_iter().filter(|case| case.seed == set.seed).collect())
}

fn keep(store: Option<&Path>, case: &Case) -> Fallible<()> {
    let Some(path) = store else { return Ok(()) };
    let mut file = OpenOptions::new().create(true).append(true).open(path)?;
    writeln!(file, "{}", serde_json::to_string(case)?)?;
    Ok(())
}
