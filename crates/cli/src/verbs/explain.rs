//! `longhaul explain`: a kept measurement, explained again.

use crate::console::Console;
use crate::failure::{Failure, Outcome};
use crate::verdict::{self, Forms};
use clap::Args;
use std::path::PathBuf;

/// Explain a measurement that `test --save` kept
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct ExplainArgs {
    /// The file
    file: PathBuf,
    #[command(flatten)]
    forms: Forms,
}

const EXAMPLES: &str = "\
Examples:
  longhaul test server --save monday.json
  longhaul explain monday.json
  longhaul explain monday.json --html monday.html";

pub(crate) fn run(args: &ExplainArgs, console: &mut Console) -> Outcome {
    let measurement = store::load(&args.file).map_err(Failure::work)?;
    verdict::give(console, &measurement, &args.forms, &measurement.notes)
}
