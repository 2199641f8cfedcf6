//! `longhaul explain`: explains a saved measurement, a recording, a capture or the result of
//! another tool.

mod capture;
mod recording;
mod tool_result;

use crate::console::Console;
use crate::failure::{Failure, Outcome};
use crate::test_report::{self, Forms};
use clap::Args;
use std::path::PathBuf;

/// Explain a measurement, recording, capture or another tool's result
///
/// Measurements are saved by `test --save`, recordings by `watch --record`;
/// captures are pcap or pcapng, of which the largest TCP streams are explained.
/// Results of other tools, recognised by their content, are those of iperf3 (-J,
/// --json-stream), iperf 2 (-y C, -e), ss (-tin, once or as a series), ndt7
/// (client and server) and flent.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct ExplainArgs {
    /// Measurement, recording, capture or result of another tool
    file: PathBuf,
    /// Explain this connection of a file with several
    ///
    /// Its number in the table, its id, or its local or remote HOST:PORT; of a
    /// capture, the number of its stream; of another tool's result, the number of
    /// the transfer.
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
  longhaul explain trace.pcap                    the largest TCP streams
  iperf3 -c HOST -J > iperf3.json                any version from 3.1 on
  longhaul explain iperf3.json
  while sleep 1; do date +%s.%N; ss -tin; done > ss.txt
  longhaul explain ss.txt                        connections of any program
  longhaul explain rrul.flent.gz                 rates, and RTT under load";

pub(crate) fn run(args: &ExplainArgs, console: &mut Console) -> Outcome {
    if store::is_recording(&args.file) {
        return recording::run(args, console);
    }
    let is_result = tool_result::is_candidate(&args.file);
    // Both may be packed.
    if capture::is_capture(&args.file) && !(is_result && tool_result::is_packed(&args.file)) {
        return capture::run(args, console);
    }
    if is_result {
        return tool_result::run(args, console);
    }
    let measurement = store::load(&args.file).map_err(Failure::work)?;
    if args.connection.is_some() {
        return Err(Failure::usage(
            "--connection applies to recordings, and the file is a measurement; omit --connection",
        ));
    }
    test_report::print(console, &measurement, &args.forms, &measurement.notes)
}
