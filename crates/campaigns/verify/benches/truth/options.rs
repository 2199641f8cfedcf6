//! The options of the bench.

use crate::Fallible;
use crate::local::Set;
use simulator::{Hosts, Proportions, ScenarioSet, Vantage};
use std::path::PathBuf;

/// What to run and what to print; the module of the bench says what each is.
#[derive(Debug, Default)]
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
}

/// Of the command line.
///
/// # Errors
/// An option is unknown or its value is not valid.
pub(crate) fn parse() -> Fallible<Options> {
    let mut options = Options { runs: 300, part: (0, 1), ..Options::default() };
    let mut arguments = std::env::args().skip(1);
    while let Some(argument) = arguments.next() {
        let mut value = || arguments.next().ok_or(format!("{argument} needs a value"));
        match argument.as_str() {
            "--bench" => {}
            "--twin" => options.twin = true,
            "--congestion" => (options.congestion, options.twin) = (true, true),
            "--local" => options.local = true,
            "--decide-policer" => options.decide_policer = true,
            "--fixed-windows" => options.fixed_windows = true,
            "--set" => match value()?.as_str() {
                "balanced" => options.proportions = Proportions::Balanced,
                "bulk" => options.proportions = Proportions::Bulk,
                "development" => options.set = Some(Set::Development),
                "held-out" => options.set = Some(Set::HeldOut),
                other => {
                    let known = "balanced or bulk; with --local development or held-out";
                    return Err(format!("--set is {known}, not {other}").into());
                }
            },
            "--labels" => options.labels = true,
            "--show" => options.show = Some(value()?.parse()?),
            "--runs" => options.runs = value()?.parse()?,
            "--seed" => options.seed = Some(value()?.parse()?),
            "--part" => {
                let value = value()?;
                let (part, of) = value.split_once('/').ok_or("--part is I/N")?;
                options.part = (part.parse()?, of.parse::<usize>()?.max(1));
            }
            "--only" => options.only = Some(value()?),
            "--save" => options.save = Some(value()?.into()),
            "--load" => options.load = Some(value()?.into()),
            "--vantage" => {
                let value = value()?;
                let known = Vantage::ALL.into_iter().find(|vantage| vantage.name() == value);
                options.vantage = known.ok_or_else(|| {
                    format!("--vantage is {}", Vantage::ALL.map(Vantage::name).join(", "))
                })?;
            }
            "--diagram" => options.diagram = Some(value()?.into()),
            "--export" => options.export = Some(value()?.into()),
            other => return Err(format!("no option {other}").into()),
        }
    }
    Ok(options)
}
