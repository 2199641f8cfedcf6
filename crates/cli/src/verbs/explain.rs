//! `longhaul explain`: a kept measurement, explained again, or a recording.

mod recording;

use crate::console::Console;
use crate::failure::{Failure, Outcome};
use crate::verdict::{self, Forms};
use clap::Args;
use std::path::PathBuf;

/// Explain a measurement that `test --save` kept, or what `watch --record` saw
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct ExplainArgs {
    /// The file
    file: PathBuf,
    /// Of a recording, this connection alone and in full: its number, id or HOST:PORT
    #[arg(long, value_name = "WHICH")]
    connection: Option<String>,
    #[command(flatten)]
    forms: Forms,
}

const EXAMPLES: &str = "\
Examples:
  longhaul test server --save monday.json
  longhaul explain monday.json
  longhaul explain monday.json --html monday.html
  longhaul watch --record monday.rec
  longhaul explain monday.rec                      what limited each connection
  longhaul explain monday.rec --connection 1       one of them, with its curve";

pub(crate) fn run(args: &ExplainArgs, console: &mut Console) -> Outcome {
    if store::is_recording(&args.file) {
        return recording::run(args, console);
    }
    let measurement = store::load(&args.file).map_err(Failure::work)?;
    if args.connection.is_some() {
        return Err(Failure::usage(
            "--connection chooses from a recording of watch, and this is one test; leave it out",
        ));
    }
    verdict::give(console, &measurement, &args.forms, &measurement.notes)
}
