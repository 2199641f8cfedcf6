//! `longhaul pcap expert`: what the expert information says of a capture, each kind once.

use super::packets;
use super::reading::{self, Dissected, Tables};
use crate::console::{self, Console};
use crate::failure::{DONE, FAILED, Failure, Outcome};
use crate::stop;
use clap::{Args, ValueEnum};
use packet_fields::Tracker;
use packet_fields::expert::{self, KINDS, Severity};
use report::terminal::{self, ExpertRow};
use serde_json::{Value, json};
use std::ops::ControlFlow;
use std::path::PathBuf;

use super::analysis::RulesArg;

/// Show what stands out: severity, group, message, packets
///
/// As Wireshark's "Expert Information", for all packets or those that pass a
/// display filter; each kind of message is one row.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct ExpertArgs {
    /// Capture file; '-' for standard input
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// Display filter; several words are joined by spaces
    #[arg(value_name = "FILTER")]
    filter: Vec<String>,
    /// Least severity: chat, note, warning, error
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

The packets of a row: longhaul pcap packets FILE '_ws.expert.message contains \"reset\"'

Exit codes: 0 read, 1 the file could not be read to its end, 2 wrong usage.";

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Least {
    /// Ordinary events
    Chat,
    /// What may matter
    Note,
    /// What is unusual
    Warning,
    /// What is wrong
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
    let filter = packets::compile(&args.filter.join(" "))?;
    let stop = stop::on_signals();
    let tables = Tables::of_reading();
    let mut tracker = Tracker::within(args.rules.rules(), &tables.budget);
    // How many of each kind, and the first packet.
    let mut counts = [(0_u64, 0_u64); KINDS.len()];
    let read = reading::read_packets(&args.file, &tables, &stop, console, |found, _| {
        let Dissected { packet, layers, segment, stream, conversations, .. } = *found;
        let view = tracker.add(packet, layers, segment, stream, conversations);
        if filter.as_ref().is_none_or(|filter| filter.matches(&view)) {
            tracker.passed(packet.time_ns);
            expert::each(&view, |item| {
                if let Some((count, first)) = counts.get_mut(item.place) {
                    *first = if *count == 0 { packet.number } else { *first };
                    *count += 1;
                }
            });
        }
        ControlFlow::Continue(())
    });
    let mut capture = read.map_err(Failure::work)?;
    capture.not_analysed = reading::not_analysed(tracker.streams(), &capture.conversations);
    let rows = KINDS
        .into_iter()
        .zip(counts)
        .filter(|(kind, (count, _))| *count > 0 && kind.severity >= args.severity.severity());
    let mut rows: Vec<ExpertRow> =
        rows.map(|(kind, (count, first))| ExpertRow { kind, count, first }).collect();
    rows.sort_by_key(|row| std::cmp::Reverse((row.kind.severity, row.count)));
    if args.json {
        let document = json!({
            "schema": "longhaul.pcap-expert/1",
            "version": env!("CARGO_PKG_VERSION"),
            "file": report::untrusted::clean(&capture.name),
            "packets": capture.overview.packets,
            "filter": filter.map(|filter| filter.to_string()),
            "items": rows.iter().map(object).collect::<Vec<_>>(),
            "notes": capture.notes(),
        });
        console.print(&console::json(&document)?);
    } else {
        let text = terminal::capture_expert(&rows, &console.out);
        console.print(&capture.headed(&text));
    }
    Ok(if capture.broken.is_some() || capture.is_interrupted { FAILED } else { DONE })
}

fn object(row: &ExpertRow) -> Value {
    json!({
        "severity": row.kind.severity.name(),
        "group": row.kind.group.name(),
        "protocol": row.kind.protocol,
        "message": row.kind.summary,
        "count": row.count,
        "first_packet": row.first,
    })
}
