//! The options of the bench.

use crate::Fallible;
use crate::paths::{Path, Set};
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

/// Of the command line.
///
/// # Errors
/// An option is unknown or its value is not valid.
pub(crate) fn parse() -> Fallible<Options> {
    let mut options =
        Options { set: None, only: None, seed: 1, save: None, load: None, show: false };
    let mut arguments = std::env::args().skip(1);
    while let Some(argument) = arguments.next() {
        let mut value = || arguments.next().ok_or(format!("{argument} needs a value"));
        match argument.as_str() {
            "--bench" => {}
            "--set" => {
                options.set = match value()?.as_str() {
                    "development" => Some(Set::Development),
                    "held-out" => Some(Set::HeldOut),
                    "all" => None,
                    other => {
                        return Err(
                            format!("--set is development, held-out or all, not {other}").into()
                        );
                    }
                }
            }
            "--only" => options.only = Some(value()?),
            "--seed" => options.seed = value()?.parse()?,
            "--save" => options.save = Some(value()?.into()),
            "--load" => options.load = Some(value()?.into()),
            "--show" => options.show = true,
            other => return Err(format!("no option {other}").into()),
        }
    }
    Ok(options)
}
