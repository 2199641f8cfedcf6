//! `longhaul pcap streams`: TCP streams, worst first.

use super::files_document::{FilesDocument, Streamed};
use super::{Files, MAX_TEXT_ROWS, RulesArg, headed};
use crate::console::{self, Console};
use crate::failure::{DONE, FAILED, Failure, Outcome};
use crate::read_progress;
use crate::stop;
use clap::Args;
use longhaul::pcap::document::streams::STREAMS_SCHEMA;
use longhaul::pcap::{streams, tables};
use record::command_line;
use report::terminal::{self, StreamRow};

#[derive(Debug, Args)]
pub(super) struct StreamsArgs {
    #[command(flatten)]
    files: Files,
    /// Rules for the flags: wireshark-4.0, wireshark-4.4
    #[arg(long, value_enum, value_name = "VERSION", default_value = "wireshark-4.4")]
    #[arg(hide_possible_values = true)]
    rules: RulesArg,
    /// Streams to show; 0 for all [default: 10; all with --csv or --json]
    #[arg(long, short = 'n', value_name = "N")]
    rows: Option<usize>,
}

/// Streams on a terminal.
const ROWS: usize = 10;

pub(super) fn run(args: &StreamsArgs, console: &mut Console) -> Outcome {
    let stop = stop::on_signals();
    let (mut code, mut table) = (DONE, args.files.table());
    let mut document = FilesDocument::new(STREAMS_SCHEMA);
    for path in &args.files.files {
        let read =
            streams::read(path, args.rules.into(), &mut read_progress::progress(console), &stop);
        console.clear();
        let read = match read {
            Ok(read) => read,
            Err(problem) => {
                console::complain(&Failure::from(problem).to_string());
                code = FAILED;
                continue;
            }
        };
        let (analysis, capture) = (&read.analysis, &read.analysis.capture);
        if capture.is_incomplete() {
            code = FAILED;
        }
        let whole = args.files.is_whole();
        let most = match args.rows.unwrap_or(if whole { 0 } else { ROWS }) {
            0 => read.count(),
            most => most.min(read.count()),
        };
        let shown = read.rows(most);
        if args.files.json {
            let streams = Streamed::new(shown.filter_map(|row| read.stream(&row)));
            document.add(&read.file(streams), console)?;
        } else if args.files.is_table() {
            table.add(tables::streams(capture, shown), &mut |text| console.print(text))?;
        } else {
            let rows: Vec<StreamRow> = shown.take(MAX_TEXT_ROWS).collect();
            let first_ns = capture.overview.first_ns;
            let tests = analysis.tests.iter().take(ROWS);
            let tests: Vec<Vec<String>> =
                tests.map(|test| terminal::iperf3_test(test, first_ns)).collect();
            let text = terminal::capture_streams(&rows, read.count(), &tests, &console.out);
            console.print(&headed(capture, &text));
            if let Some(first) = rows.first().filter(|_| read.is_explained) {
                let words = ["longhaul", "explain", &path.to_string_lossy(), "--connection"];
                let number = first.stream.to_string();
                let command = command_line(words.into_iter().chain([number.as_str()]));
                console.print(&format!("\n{}", terminal::next_command(&command, &console.out)));
            }
        }
    }
    if args.files.json {
        document.finish(console);
    } else {
        super::finish(table, console)?;
    }
    Ok(code)
}
