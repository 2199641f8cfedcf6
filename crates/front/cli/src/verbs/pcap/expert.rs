//! `longhaul pcap expert`: the expert information on a capture, each kind once.

use super::{RulesArg, headed};
use crate::console::{self, Console};
use crate::failure::{DONE, FAILED, Outcome};
use crate::read_progress;
use crate::stop;
use clap::{Args, ValueEnum};
use longhaul::pcap::{self, ExpertRequest, Severity};
use report::terminal;
use std::path::PathBuf;

/// Show expert information: severity, group, message, packets
///
/// Like Wireshark's "Expert Information", for all packets or those that match a
/// display filter. Each kind of message is one row.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct ExpertArgs {
    /// Capture file; '-' for standard input
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// Display filter; several words are joined by spaces
    #[arg(value_name = "FILTER")]
    filter: Vec<String>,
    /// Minimum severity: chat, note, warning, error
    #[arg(long, value_enum, value_name = "SEVERITY", default_value = "chat")]
    #[arg(hide_possible_values = true)]
    severity: Least,
    /// Version of Wireshark whose analysis rules apply
    #[arg(long, value_enum, value_name = "VERSION", default_value = "wireshark-4.4")]
    rules: RulesArg,
    /// Print JSON
    #[arg(long, short = 'J')]
    json: bool,
}

const EXAMPLES: &str = "\
Examples:
  longhaul pcap expert trace.pcap
  longhaul pcap expert trace.pcap --severity warning
  longhaul pcap expert trace.pcap 'tcp.stream == 3'
  longhaul pcap expert trace.pcap --json

To list a row's packets: longhaul pcap packets FILE '_ws.expert.message contains \"reset\"'

Exit codes: 0 read, 1 the file could not be read to its end, 2 usage error.";

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Least {
    /// Ordinary events
    Chat,
    /// Notable events
    Note,
    /// Unusual events
    Warning,
    /// Errors
    Error,
}

impl Least {
    fn severity(self) -> Severity {
        match self {
            Least::Chat => Severity::Chat,
            Least::Note => Severity::Note,
            Least::Warning => Severity::Warning,
            Least::Error => Severity::Error,
        }
    }
}

pub(super) fn run(args: &ExpertArgs, console: &mut Console) -> Outcome {
    let request = ExpertRequest {
        filter: args.filter.join(" "),
        severity: args.severity.severity(),
        rules: args.rules.into(),
    };
    request.check()?;
    let stop = stop::on_signals();
    let found = pcap::expert(&args.file, &request, &mut read_progress::progress(console), &stop);
    console.clear();
    let found = found?;
    if args.json {
        console.print(&console::json(&found.document())?);
    } else {
        let text = terminal::capture_expert(&found.rows, &console.out);
        console.print(&headed(&found.capture, &text));
    }
    Ok(if found.capture.is_incomplete() { FAILED } else { DONE })
}
