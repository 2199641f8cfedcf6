//! `longhaul pcap handshake`: SYN, SYN-ACK and ACK as they were on the wire.

use super::files_document::FilesDocument;
use super::{Files, headed};
use crate::console::{self, Console};
use crate::failure::{DONE, FAILED, Failure, Outcome};
use crate::read_progress;
use crate::stop;
use clap::Args;
use longhaul::pcap::document::streams::{HANDSHAKES_SCHEMA, HandshakesFile};
use longhaul::pcap::{self, tables};
use report::terminal;

#[derive(Debug, Args)]
pub(super) struct HandshakeArgs {
    #[command(flatten)]
    files: Files,
    /// Show only this stream, by number
    #[arg(long, value_name = "N")]
    stream: Option<u32>,
    /// Handshakes to show; 0 for all [default: 10; all with --csv or --json]
    #[arg(long, short = 'n', value_name = "N")]
    rows: Option<usize>,
}

/// Handshakes on a terminal.
const ROWS: usize = 10;

pub(super) fn run(args: &HandshakeArgs, console: &mut Console) -> Outcome {
    let stop = stop::on_signals();
    let (mut code, mut table) = (DONE, args.files.table());
    let mut document = FilesDocument::new(HANDSHAKES_SCHEMA);
    for path in &args.files.files {
        let read =
            pcap::handshakes(path, args.stream, &mut read_progress::progress(console), &stop);
        console.clear();
        let (capture, all) = match read {
            Ok(read) => read,
            Err(problem) => {
                console::complain(&Failure::from(problem).to_string());
                code = FAILED;
                continue;
            }
        };
        if capture.is_incomplete() {
            code = FAILED;
        }
        let whole = args.files.is_whole();
        let shown = match args.rows.unwrap_or(if whole { 0 } else { ROWS }) {
            0 => &all[..],
            most => all.get(..most).unwrap_or(&all),
        };
        if args.files.json {
            document.add(&HandshakesFile::new(&capture, shown), console)?;
        } else if args.files.is_table() {
            table.add(tables::handshakes(&capture, shown), &mut |text| console.print(text))?;
        } else {
            let text = terminal::capture_handshakes(shown, all.len(), &console.out);
            console.print(&headed(&capture, &text));
        }
    }
    if args.files.json {
        document.finish(console);
    } else {
        super::finish(table, console)?;
    }
    Ok(code)
}
