//! `longhaul pcap io`: packets or bits per interval, of all packets and of those that pass
//! filters.

use super::RulesArg;
use crate::console::{self, Console};
use crate::failure::{DONE, FAILED, Outcome};
use crate::read_progress;
use crate::stop;
use crate::verbs::probe_args::time;
use clap::{Args, ValueEnum};
use longhaul::pcap::{self, IoRequest};
use report::terminal::{self, IoCurve};
use std::path::PathBuf;
use std::time::Duration;

/// Draw packets or bits per interval, for all packets or by filter
///
/// Like Wireshark's "I/O Graphs": one curve per display filter, or one for all
/// packets.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct IoArgs {
    /// Capture file; '-' for standard input
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// Display filters, one curve each; quote each filter
    #[arg(value_name = "FILTER")]
    filters: Vec<String>,
    /// Interval, such as 100ms [default: from the duration]
    #[arg(long, short = 'i', value_name = "TIME", value_parser = time)]
    interval: Option<Duration>,
    /// Unit: bits, bytes, packets
    #[arg(long, short = 'u', value_enum, value_name = "UNIT", default_value = "bits")]
    #[arg(hide_possible_values = true)]
    unit: Unit,
    /// Version of Wireshark whose analysis rules apply
    #[arg(long, value_enum, value_name = "VERSION", default_value = "wireshark-4.4")]
    rules: RulesArg,
    /// Print JSON
    #[arg(long, short = 'J')]
    json: bool,
}

const EXAMPLES: &str = "\
Examples:
  longhaul pcap io trace.pcap
  longhaul pcap io trace.pcap tcp udp --unit packets
  longhaul pcap io trace.pcap 'tcp.port == 5201' tcp.analysis.retransmission -i 100ms
  longhaul pcap io trace.pcap tcp.analysis.retransmission --json

Exit codes: 0 read, 1 the file could not be read to its end, 2 usage error.";

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Unit {
    /// Bits per second
    Bits,
    /// Bytes per second
    Bytes,
    /// Packets per interval
    Packets,
}

impl From<Unit> for terminal::IoUnit {
    fn from(unit: Unit) -> Self {
        match unit {
            Unit::Bits => terminal::IoUnit::Bits,
            Unit::Bytes => terminal::IoUnit::Bytes,
            Unit::Packets => terminal::IoUnit::Packets,
        }
    }
}

pub(super) fn run(args: &IoArgs, console: &mut Console) -> Outcome {
    let request = IoRequest {
        filters: args.filters.clone(),
        interval: args.interval,
        rules: args.rules.into(),
    };
    request.check()?;
    let stop = stop::on_signals();
    let counted = pcap::io(&args.file, &request, &mut read_progress::progress(console), &stop);
    console.clear();
    let counted = counted?;
    let capture = &counted.capture;
    if args.json {
        console.print(&console::json(&counted.document())?);
    } else {
        let label = |filter: &Option<String>| filter.as_deref().unwrap_or("all packets").to_owned();
        let curves: Vec<IoCurve> = counted
            .curves
            .iter()
            .map(|(filter, bins)| IoCurve { label: label(filter), bins: bins.clone() })
            .collect();
        let graph =
            terminal::capture_io(&curves, counted.interval_s, args.unit.into(), &console.out);
        let notes: String = counted.notes.iter().map(|note| format!("{note}\n")).collect();
        let name = report::untrusted::clean(&capture.name);
        console.print(&format!("{name}\n{graph}{notes}"));
    }
    Ok(if capture.is_incomplete() { FAILED } else { DONE })
}
