//! `longhaul explain`: explains a saved measurement, a recording or a capture.

mod capture;
mod recording;

use crate::console::Console;
use crate::failure::{Failure, Outcome};
use crate::test_report::{self, Forms};
use clap::Args;
use std::path::PathBuf;

/// Explain a saved measurement, recording or capture
///
/// Measurements are saved by `test --save`, recordings by `watch --record`;
/// captures are pcap or pcapng, of which the largest TCP streams are explained.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct ExplainArgs {
    /// Measurement, recording or capture
    file: PathBuf,
    /// Explain this connection of a recording or capture
    ///
    /// Its number in the table, its id, or its local or remote HOST:PORT; of a
    /// capture, the number of its stream.
    #[arg(long, value_name = "WHICH")]
    connection: Option<String>,
    #[command(flatten)]
    forms: Forms,
}

const EXAMPLES: &str = "\
Examples:
  longhaul test HOST --save monday.json
  longhaul explain monday.json
  longhaul explain monday.json --html monday.html
  longhaul watch --record monday.rec
  longhaul explain monday.rec                    what limited each connection
  longhaul explain monday.rec --connection 1     one of them, with curves
  longhaul explain trace.pcap                    the largest TCP streams";

pub(crate) fn run(args: &ExplainArgs, console: &mut Console) -> Outcome {
    if store::is_recording(&args.file) {
        return recording::run(args, console);
    }
    if capture::is_capture(&args.file) {
        return capture::run(args, console);
    }
    let measurement = store::load(&args.file).map_err(Failure::work)?;
    if args.connection.is_some() {
        return Err(Failure::usage(
            "--connection applies to recordings, and the file is a measurement; omit --connection",
        ));
    }
    test_report::print(console, &measurement, &args.forms, &measurement.notes)
}
