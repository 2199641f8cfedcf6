//! The options of the bench.

use crate::paths::{Path, Set};
use bench_harness::{Arguments, Fallible};
use std::path::PathBuf;

/// What to run and what to print; the module of the bench says what each is.
#[derive(Debug)]
pub(crate) struct Options {
    set: Option<Set>,
    only: Option<String>,
    pub(crate) seed: u64,
    pub(crate) save: Option<PathBuf>,
    pub(crate) load: Option<PathBuf>,
    pub(crate) show: bool,
}

impl Options {
    pub(crate) fn includes(&self, path: &Path) -> bool {
        self.set.is_none_or(|set| set == path.set)
            && self.only.as_deref().is_none_or(|only| only == path.name)
    }
}

pub(crate) const HELP: &str = "\
cargo bench -p longhaul-verify --bench kinds -- [OPTION]...
  --set SET     development, which the rules were adjusted on, or held-out (both)
  --only NAME   one path
  --seed N      seed of the paths' draws (1)
  --save DIR    store the runs
  --load DIR    label stored runs again
  --show        list every packet with another label";

/// Of the command line.
///
/// # Errors
/// An option is unknown or its value is not valid.
pub(crate) fn parse(mut arguments: Arguments) -> Fallible<Options> {
    let sets =
        [("development", Some(Set::Development)), ("held-out", Some(Set::HeldOut)), ("all", None)];
    let options = Options {
        set: arguments.one_of("--set", &sets)?.flatten(),
        only: arguments.value("--only")?,
        seed: arguments.value("--seed")?.unwrap_or(1),
        save: arguments.value("--save")?,
        load: arguments.value("--load")?,
        show: arguments.flag("--show"),
    };
    arguments.end()?;
    Ok(options)
}
