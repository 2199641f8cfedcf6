//! `longhaul explain`: explains a saved measurement, a recording, a capture or the result of
//! another tool.

use crate::console::{self, Console};
use crate::failure::{DONE, FAILED, Failure, Outcome};
use crate::read_progress;
use crate::stop;
use crate::test_report::{self, Forms};
use clap::Args;
use host::bulk;
use longhaul::StopFlag;
use longhaul::explain::{
    self, ExplainRequest, Explained, ExplainedConnection, ExplainedRecording, Transfers,
};
use record::command_line;
use report::terminal::{self, ConnectionSummary};
use report::untrusted;
use std::fs::File;
use std::io::{self, Read};
use std::os::fd::{AsFd, AsRawFd};
use std::path::{Path, PathBuf};
use units::ByteCount;

/// Maximum size of standard input.
const MAX_INPUT: ByteCount = ByteCount::from_bytes(4 << 30);

/// Explain a test, recording, capture or another tool's result
///
/// Measurements are saved by `test --save`, recordings by `watch --record`.
/// Captures are pcap or pcapng; their largest TCP streams are explained.
/// Results of other tools are recognised by their content: iperf3 (-J,
/// --json-stream, text), iperf 2 (-y C, text), ss (-tin, once or as a series), ndt7
/// (client and server) and flent. Other lines around them are ignored.
#[derive(Debug, Clone, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct ExplainArgs {
    /// Measurement, recording, capture or result of another tool; - reads standard input
    file: PathBuf,
    /// Explain this connection of a file with several
    ///
    /// WHICH is its number in the table, its id, or its local or remote HOST:PORT;
    /// for a capture, the stream number; for another tool's result, the transfer
    /// number.
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
  xclip -o | longhaul explain -                  pasted text output of iperf3
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
    let request = ExplainRequest { file: args.file.clone(), connection: args.connection.clone() };
    // Nothing else takes long.
    let is_capture = explain::is_capture(&args.file);
    let stop = if is_capture { stop::on_signals() } else { StopFlag::new() };
    let explained = explain::explain(&request, &mut read_progress::progress(console), &stop);
    console.clear();
    match explained? {
        Explained::Measurement(measurement) => {
            test_report::print(console, &measurement, &args.forms, &measurement.notes)
        }
        Explained::Recording(recording) => show_recording(args, &recording, console),
        Explained::Transfers(found) => show_transfers(args, found, console),
    }
}

/// The connections of a recording.
fn show_recording(
    args: &ExplainArgs,
    recording: &ExplainedRecording,
    console: &mut Console,
) -> Outcome {
    if args.forms.html.is_some() {
        return Err(Failure::usage(
            "--html shows one connection; select it with --connection, as in --connection 1 --html FILE",
        ));
    }
    let text = if args.forms.json {
        console::json(recording)?
    } else {
        let rows: Vec<ConnectionSummary<'_>> = recording.connections.iter().map(row).collect();
        let words = ["longhaul", "explain", &args.file.to_string_lossy(), "--connection", "1"];
        let next = terminal::next_command(&command_line(words), &console.out);
        format!("{}\n{next}", terminal::recorded_connections(&rows, &console.out))
    };
    console.print(&text);
    Ok(DONE)
}

fn row(one: &ExplainedConnection) -> ConnectionSummary<'_> {
    ConnectionSummary {
        who: &one.who,
        seconds: (one.from_s, one.to_s),
        bytes: one.bytes,
        sends: one.sends,
        retransmits: one.retransmits.unwrap_or(0),
        finding: &one.finding,
    }
}

/// Transfers of a capture or of another tool's result, like tests; JSON and a page show the
/// first one.
fn show_transfers(args: &ExplainArgs, found: Transfers, console: &mut Console) -> Outcome {
    let Transfers { is_capture, mut transfers, count, notes, test } = found;
    let is_single = args.forms.json || args.forms.html.is_some();
    let is_selected = args.connection.is_some();
    if let Some(first) = transfers.first_mut().filter(|_| is_single) {
        if is_capture && !is_selected {
            console.say(&format!("{}, the largest; --connection selects another one", first.name));
        } else if !is_capture && count > 1 && !is_selected {
            let name = &first.name;
            console.say(&format!("{name}, the first of {count}; --connection selects another"));
        }
        first.measurement.notes.extend(notes.iter().cloned());
        transfers.truncate(1);
    }
    let is_named = !is_single && (is_capture || transfers.len() > 1);
    let (mut code, shown) = (DONE, transfers.len());
    for one in transfers {
        if is_named {
            console.print(&format!("{}\n", untrusted::clean(&one.name)));
        }
        let notes = &one.measurement.notes;
        if test_report::print(console, &one.measurement, &args.forms, notes)? != DONE {
            code = FAILED;
        }
    }
    if !is_single {
        notes.iter().for_each(|note| console::note(note));
        if !is_capture && !is_selected && count > shown {
            console.say(&format!(
                "{} of {count} transfers are not shown; --connection NUMBER explains one",
                count - shown
            ));
        }
    }
    test.iter().for_each(|sentence| console::note(sentence));
    Ok(code)
}
