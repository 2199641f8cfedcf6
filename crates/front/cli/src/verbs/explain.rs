//! `longhaul explain`: explains a saved measurement, a recording, a capture or the result of
//! another tool.

mod capture;
mod recording;
mod tool_result;

use crate::console::Console;
use crate::failure::{Failure, Outcome};
use crate::test_report::{self, Forms};
use clap::Args;
use host::bulk;
use std::fs::File;
use std::io::{self, Read};
use std::os::fd::{AsFd, AsRawFd};
use std::path::{Path, PathBuf};
use units::ByteCount;

/// The most that is kept of standard input.
const MAX_INPUT: ByteCount = ByteCount::from_bytes(4 << 30);

/// Explain a measurement, recording, capture or another tool's result
///
/// Measurements are saved by `test --save`, recordings by `watch --record`;
/// captures are pcap or pcapng, of which the largest TCP streams are explained.
/// Results of other tools, recognised by their content, are those of iperf3 (-J,
/// --json-stream, text), iperf 2 (-y C, text), ss (-tin, once or as a series), ndt7
/// (client and server) and flent; also with other lines around them.
#[derive(Debug, Clone, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct ExplainArgs {
    /// Measurement, recording, capture or result of another tool; - reads standard input
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
  xclip -o | longhaul explain -                  text of iperf3, as it was pasted
  while sleep 1; do date +%s.%N; ss -tin; done > ss.txt
  longhaul explain ss.txt                        connections of any program
  longhaul explain rrul.flent.gz                 rates, and RTT under load";

pub(crate) fn run(args: &ExplainArgs, console: &mut Console) -> Outcome {
    if args.file != Path::new("-") {
        return explain(args, console);
    }
    let input = standard_input()
        .map_err(|error| Failure::work(format!("cannot read standard input: {error}")))?;
    let path = format!("/proc/self/fd/{}", input.as_raw_fd());
    let args = ExplainArgs { file: PathBuf::from(&path), ..args.clone() };
    explain(&args, console).map_err(|failure| failure.with_name(&path, "standard input"))
}

/// Standard input as a file: captures are read twice.
fn standard_input() -> io::Result<File> {
    let input = File::from(io::stdin().as_fd().try_clone_to_owned()?);
    if input.metadata()?.is_file() {
        return Ok(input);
    }
    let mut file = bulk::file_to_send(&[])?;
    let copied = io::copy(&mut input.take(MAX_INPUT.bytes() + 1), &mut file)?;
    if copied > MAX_INPUT.bytes() {
        let why = format!("it is larger than {MAX_INPUT}; save it to a file");
        return Err(io::Error::new(io::ErrorKind::FileTooLarge, why));
    }
    Ok(file)
}

fn explain(args: &ExplainArgs, console: &mut Console) -> Outcome {
    if store::is_recording(&args.file) {
        return recording::run(args, console);
    }
    if capture::is_capture(&args.file) {
        return capture::run(args, console);
    }
    if tool_result::is_candidate(&args.file) {
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
